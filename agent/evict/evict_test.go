package evict

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/agent/drain"
)

var pods = schema.GroupResource{Resource: "pods"}

func withCause(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause, Message: message}}}
	return err
}

// The answers of the eviction API, as kube-apiserver words them
// (pkg/registry/core/pod/storage/eviction.go).
func TestAnswer(t *testing.T) {
	const violates = "Cannot evict pod as it would violate the pod's disruption budget."
	for _, tc := range []struct {
		name string
		err  error
		want drain.Answer
	}{
		{"201", nil, drain.Answer{Outcome: drain.Accepted}},
		{"404", apierrors.NewNotFound(pods, "p"), drain.Answer{Outcome: drain.Gone}},
		{"409, another UID", apierrors.NewConflict(pods, "p", errors.New("Precondition failed: UID")), drain.Answer{Outcome: drain.Gone}},
		{"429 by a budget",
			withCause(apierrors.NewTooManyRequests(violates, 0), policyv1.DisruptionBudgetCause, "The disruption budget web needs 2 healthy pods and has 2 currently"),
			drain.Answer{Outcome: drain.Refused, Budget: "shop/web", Message: "The disruption budget web needs 2 healthy pods and has 2 currently"}},
		{"429 by a budget that is not worked out yet",
			withCause(apierrors.NewTooManyRequests(violates, 10), policyv1.DisruptionBudgetCause, "The disruption budget my.budget-1 is still being processed by the server."),
			drain.Answer{Outcome: drain.Refused, Budget: "shop/my.budget-1", Message: "The disruption budget my.budget-1 is still being processed by the server."}},
		{"429 by a budget, worded otherwise",
			withCause(apierrors.NewTooManyRequests(violates, 0), policyv1.DisruptionBudgetCause, "no"),
			drain.Answer{Outcome: drain.Refused, Message: "no"}},
		{"429 by priority and fairness", apierrors.NewTooManyRequests("too many requests, please try again later", 1),
			drain.Answer{Outcome: drain.Overloaded, Message: "too many requests, please try again later"}},
		{"403, no right", apierrors.NewForbidden(pods, "p", errors.New("no")),
			drain.Answer{Outcome: drain.Forbidden, Message: `pods "p" is forbidden: no`}},
		{"401", apierrors.NewUnauthorized("who are you"), drain.Answer{Outcome: drain.Forbidden, Message: "who are you"}},
		{"403, the namespace is being deleted",
			withCause(apierrors.NewForbidden(pods, "p", errors.New("namespace shop is being terminated")), corev1.NamespaceTerminatingCause, ""),
			drain.Answer{Outcome: drain.Failed, Message: `pods "p" is forbidden: namespace shop is being terminated`}},
		{"500, two budgets", apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget")),
			drain.Answer{Outcome: drain.Failed, Message: "Internal error occurred: This pod has more than one PodDisruptionBudget"}},
		{"504", apierrors.NewTimeoutError("couldn't update PodDisruptionBudget", 10),
			drain.Answer{Outcome: drain.Failed, Message: "Timeout: couldn't update PodDisruptionBudget"}},
		{"no connection", errors.New("connection refused"), drain.Answer{Outcome: drain.Failed, Message: "connection refused"}},
	} {
		if diff := cmp.Diff(tc.want, answer("shop", tc.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// clientOf returns a client of a server for node n.
func clientOf(t *testing.T, h http.Handler) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1}, "n")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client hangs up at the end of a test
}

// One request, with the pod's UID; and an answer at once, however long the
// server says to wait.
func TestEvict(t *testing.T) {
	type request struct {
		Path string
		Body policyv1.Eviction
	}
	var got []request
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		in := request{Path: r.Method + " " + r.URL.Path}
		if err := json.Unmarshal(body, &in.Body); err != nil {
			t.Error(err)
		}
		got = append(got, in)
		w.Header().Set("Retry-After", "10")
		refusal := withCause(apierrors.NewTooManyRequests("no", 10), policyv1.DisruptionBudgetCause, "The disruption budget web needs 1 healthy pods and has 1 currently")
		var status apierrors.APIStatus
		errors.As(refusal, &status)
		answer := status.Status()
		answer.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		write(w, http.StatusTooManyRequests, answer)
	}))

	began := time.Now()
	answer := client.Evict(t.Context(), drain.Evict{Namespace: "shop", Name: "web-1", UID: "u1", Grace: new(int64(7))})
	if answer.Outcome != drain.Refused || answer.Budget != "shop/web" {
		t.Errorf("answer %+v", answer)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	want := []request{{
		Path: "POST /api/v1/namespaces/shop/pods/web-1/eviction",
		Body: policyv1.Eviction{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
			DeleteOptions: &metav1.DeleteOptions{
				GracePeriodSeconds: new(int64(7)),
				Preconditions:      &metav1.Preconditions{UID: new(types.UID("u1"))},
			},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
