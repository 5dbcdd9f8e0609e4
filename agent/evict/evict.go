package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// Evict asks once that a pod leave: the very pod of the step, by its UID, and
// not another that has come to bear its name. It asks the eviction API, or
// deletes the pod where the step says so. It does not sleep on a Retry-After
// header, as client-go does by itself; when to ask again is decided by
// drain.Decide.
func (c *Client) Evict(ctx context.Context, step drain.Evict) drain.Answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := c.own.Post().SubResource("eviction")
	var object any = eviction(step, c.identity.refused.Load())
	if step.Delete {
		request = c.api.Delete() // the right to that is the account's alone
		object = deletion(step)
	}
	body, err := json.Marshal(object)
	if err != nil {
		return drain.Answer{Outcome: drain.Failed, Message: err.Error()}
	}
	err = request.
		Namespace(step.Namespace).Resource("pods").Name(step.Name).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(body).
		MaxRetries(0).
		Do(ctx).Error()
	return answer(step, err)
}

func eviction(step drain.Evict, asAccount bool) *policyv1.Eviction {
	e := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: step.Namespace, Name: step.Name},
		DeleteOptions: options(step),
	}
	if asAccount {
		e.Labels = map[string]string{contract.LabelAsAccount: "true"}
	}
	return e
}

func deletion(step drain.Evict) *metav1.DeleteOptions {
	o := options(step)
	o.TypeMeta = metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "DeleteOptions"}
	return o
}

func options(step drain.Evict) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{
		GracePeriodSeconds: step.Grace,
		Preconditions:      &metav1.Preconditions{UID: &step.UID},
	}
}

// answer says what an error of the eviction API, or of a deletion, means.
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
//
// Nothing but the API server's own word about this very pod means that it is
// gone: webhooks and proxies answer with any code they like, and a budget that
// was deleted a moment ago is "not found" too.
func answer(step drain.Evict, err error) drain.Answer {
	if err == nil {
		return drain.Answer{Outcome: drain.Accepted}
	}
	if kube.Denied(err) { // 429 for each pod of a virtual machine says nothing about the server's time
		return drain.Answer{Outcome: drain.Forbidden, Message: err.Error()}
	}
	if kube.PodGone(step.Name, err) {
		return drain.Answer{Outcome: drain.Gone}
	}
	if budget, message, ok := refusal(step.Namespace, err); ok {
		return drain.Answer{Outcome: drain.Refused, Budget: budget, Message: message}
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return drain.Answer{Outcome: outcome(err), Message: err.Error(), RetryAfter: time.Duration(seconds) * time.Second}
}

// refusal says which budget refuses, and in which words. As a rule that is a
// 429 with a cause; without a cause a 429 comes from a server that is too busy.
// A budget that is in no state to answer for itself refuses by 403.
func refusal(namespace string, err error) (budget, message string, ok bool) {
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok && apierrors.IsTooManyRequests(err) {
		return budgetIn(namespace, cause.Message), cause.Message, true
	}
	if apierrors.IsForbidden(err) && about(err, "poddisruptionbudget", "") {
		return namespace + "/" + details(err).Name, err.Error(), true
	}
	return "", "", false
}

// outcome of what is neither an end, nor a budget's word, nor a webhook's. A pod
// of a namespace that is being deleted is answered with 403 and goes without us,
// so it is asked for again like any failure. Any other 4xx is a no: a right that
// is missing, or an admission policy that denies.
func outcome(err error) drain.Outcome {
	code := codeOf(err)
	switch {
	case code == http.StatusTooManyRequests:
		return drain.Overloaded
	case code == http.StatusNotFound, code == http.StatusConflict, code == http.StatusRequestTimeout,
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return drain.Failed
	case code >= http.StatusBadRequest && code < http.StatusInternalServerError:
		return drain.Forbidden
	}
	return drain.Failed
}

// codeOf an answer; 0 where there was none.
func codeOf(err error) int32 {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return 0
	}
	return status.Status().Code
}

// about reports whether an answer is about an object of that resource and, unless it
// is empty, name.
func about(err error, resource, name string) bool {
	d := details(err)
	return d.Kind == resource && (name == "" || d.Name == name)
}

func details(err error) metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusDetails{}
	}
	return *status.Status().Details
}

// budgetNamed finds the budget's name in the server's sentence, such as "The
// disruption budget web needs 1 healthy pods and has 1 currently"; no field of
// the answer holds it.
var budgetNamed = regexp.MustCompile(`disruption budget ([a-z0-9][a-z0-9.-]*)`)

// budgetIn a refusal, as namespace/name; empty where the server does not name
// it.
func budgetIn(namespace, message string) string {
	m := budgetNamed.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", namespace, m[1])
}
