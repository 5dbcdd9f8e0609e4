package evict

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"windlass.dev/windlass/agent/drain"
)

// Evict asks once that a pod be evicted: the very pod of the step, by its UID,
// and not another that has come to bear its name. It does not sleep on a
// Retry-After header, as client-go does by itself; when to ask again is
// decided by drain.Decide.
func (c *Client) Evict(ctx context.Context, step drain.Evict) drain.Answer {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	body, err := json.Marshal(eviction(step))
	if err != nil {
		return drain.Answer{Outcome: drain.Failed, Message: err.Error()}
	}
	err = c.pods.Post().
		Namespace(step.Namespace).Resource("pods").Name(step.Name).SubResource("eviction").
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).
		MaxRetries(0).
		Do(ctx).Error()
	return answer(step.Namespace, err)
}

func eviction(step drain.Evict) *policyv1.Eviction {
	return &policyv1.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: step.Namespace, Name: step.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: step.Grace,
			Preconditions:      &metav1.Preconditions{UID: &step.UID},
		},
	}
}

// answer says what an error of the eviction API means.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
//
// 429 means two things: a budget that has no room says so in a cause; without
// one the server itself is too busy. A pod of a namespace that is being deleted
// is answered with 403, and goes without us, so it is asked for again like any
// failure. A right that is missing is 403 too, and never means that the pod is
// gone.
func answer(namespace string, err error) drain.Answer {
	switch {
	case err == nil:
		return drain.Answer{Outcome: drain.Accepted}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return drain.Answer{Outcome: drain.Gone}
	case apierrors.IsTooManyRequests(err):
		cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
		if !ok {
			return drain.Answer{Outcome: drain.Overloaded, Message: err.Error()}
		}
		return drain.Answer{Outcome: drain.Refused, Budget: budget(namespace, cause.Message), Message: cause.Message}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return drain.Answer{Outcome: drain.Failed, Message: err.Error()}
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return drain.Answer{Outcome: drain.Forbidden, Message: err.Error()}
	}
	return drain.Answer{Outcome: drain.Failed, Message: err.Error()}
}

// budgetNamed finds the budget's name in the server's sentence, such as "The
// disruption budget web needs 1 healthy pods and has 1 currently"; no field of
// the answer holds it.
var budgetNamed = regexp.MustCompile(`disruption budget ([a-z0-9][a-z0-9.-]*)`)

// budget is the budget of a refusal as namespace/name; empty where the server
// does not name it.
func budget(namespace, message string) string {
	m := budgetNamed.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", namespace, m[1])
}
