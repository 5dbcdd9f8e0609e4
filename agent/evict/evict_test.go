package evict

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: cause, Message: message}}
	return err
}

// refused is the 429 of the eviction API.
func refused(seconds int, cause string) error {
	const violates = "Cannot evict pod as it would violate the pod's disruption budget."
	return withCause(apierrors.NewTooManyRequests(violates, seconds), policyv1.DisruptionBudgetCause, cause)
}

// webhook is what an admission webhook has the API server say
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func webhook(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// The answers to an eviction or a deletion, as kube-apiserver words them
// (pkg/registry/core/pod/storage/eviction.go).
func TestAnswer(t *testing.T) {
	const denied = `admission webhook "guard.example.com" denied the request: not today`
	for _, tc := range []struct {
		name    string
		err     error
		outcome drain.Outcome
		budget  string
		message string
	}{
		{"201", nil, drain.Accepted, "", ""},

		{"404", apierrors.NewNotFound(pods, "p"), drain.Gone, "", ""},
		{"409, another UID (eviction)",
			apierrors.NewConflict(pods, "p", errors.New("the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated")),
			drain.Gone, "", ""},
		{"409, another UID (storage)",
			apierrors.NewConflict(pods, "p", errors.New("Precondition failed: UID in precondition: a, UID in object meta: ")), drain.Gone, "", ""},
		{"409, changed too often meanwhile",
			apierrors.NewConflict(pods, "p", errors.New("the ResourceVersion in the precondition (5) does not match the ResourceVersion in record (6). The object might have been modified")),
			drain.Failed, "", "might have been modified"},
		{"409 by a webhook", webhook(409, denied+" to this UID"), drain.Forbidden, "", denied},
		{"404, another pod", apierrors.NewNotFound(pods, "q"), drain.Failed, "", `"q" not found`},
		{"404, the budget was deleted meanwhile",
			apierrors.NewNotFound(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "p"), drain.Failed, "", "poddisruptionbudgets"},
		{"404 by a webhook", webhook(404, denied), drain.Forbidden, "", denied},
		{"404 of a proxy", apierrors.NewGenericServerResponse(404, "post", pods, "p", "no such page", 0, true), drain.Failed, "", "could not find"},

		{"429 by a budget", refused(0, "The disruption budget web needs 2 healthy pods and has 2 currently"),
			drain.Refused, "shop/web", "The disruption budget web needs 2 healthy pods and has 2 currently"},
		{"429 by a budget that is not worked out yet", refused(10, "The disruption budget my.budget-1 is still being processed by the server."),
			drain.Refused, "shop/my.budget-1", "The disruption budget my.budget-1 is still being processed by the server."},
		{"429 by a budget that cannot be worked out", refused(0, "The disruption budget web does not allow evicting pods currently because it failed sync: found no controllers"),
			drain.Refused, "shop/web", "The disruption budget web does not allow evicting pods currently because it failed sync: found no controllers"},
		{"429 by a budget, worded otherwise", refused(0, "no"), drain.Refused, "", "no"},
		{"403 by a budget with too many evictions in flight",
			apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, "web", errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller")),
			drain.Refused, "shop/web", "too many evictions not confirmed"},
		{"429 by priority and fairness", apierrors.NewTooManyRequests("too many requests, please try again later", 1),
			drain.Overloaded, "", "too many requests, please try again later"},
		{"429 by a webhook", webhook(429, denied), drain.Forbidden, "", denied},
		{"429 by a webhook without an explanation", webhook(429, `admission webhook "guard.example.com" denied the request without explanation`),
			drain.Forbidden, "", "without explanation"},
		{"429 that a webhook was answered with", apierrors.NewTooManyRequests(`failed calling webhook "guard.example.com": the request was denied`, 1),
			drain.Overloaded, "", "failed calling"},

		{"403, no right", apierrors.NewForbidden(pods, "p", errors.New("no")), drain.Forbidden, "", `pods "p" is forbidden: no`},
		{"401", apierrors.NewUnauthorized("who are you"), drain.Forbidden, "", "who are you"},
		{"403 by a webhook", webhook(403, denied), drain.Forbidden, "", denied},
		{"400 by a webhook that names no code", webhook(400, denied), drain.Forbidden, "", denied},
		{"422 by an admission policy",
			apierrors.NewInvalid(schema.GroupKind{Group: "policy", Kind: "Eviction"}, "p", nil), drain.Forbidden, "", "invalid"},
		{"405, a server without evictions", apierrors.NewMethodNotSupported(pods, "create"), drain.Forbidden, "", "not supported"},
		{"403, the namespace is being deleted",
			withCause(apierrors.NewForbidden(pods, "p", errors.New("namespace shop is being terminated")), corev1.NamespaceTerminatingCause, ""),
			drain.Failed, "", "namespace shop is being terminated"},

		{"500, two budgets", webhook(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
			drain.Failed, "", "more than one PodDisruptionBudget"},
		{"500 by a webhook", webhook(500, denied), drain.Forbidden, "", denied},
		{"500, a webhook that does not answer",
			apierrors.NewInternalError(errors.New(`failed calling webhook "guard.example.com": context deadline exceeded`)), drain.Failed, "", `failed calling webhook "guard.example.com"`},
		{"408", apierrors.NewGenericServerResponse(408, "post", pods, "p", "", 0, true), drain.Failed, "", ""},
		{"502 of a balancer", apierrors.NewGenericServerResponse(502, "post", pods, "p", "bad gateway", 0, true), drain.Failed, "", ""},
		{"503", apierrors.NewServiceUnavailable("etcd is away"), drain.Failed, "", "etcd is away"},
		{"504", apierrors.NewTimeoutError(`couldn't update PodDisruptionBudget "web" due to conflicts`, 10), drain.Failed, "", "due to conflicts"},
		{"no connection", errors.New("connection refused"), drain.Failed, "", "connection refused"},
		{"no answer in time", context.DeadlineExceeded, drain.Failed, "", "deadline exceeded"},
	} {
		got := answer(drain.Evict{Namespace: "shop", Name: "p"}, tc.err)
		if wait, _ := apierrors.SuggestsClientDelay(tc.err); got.Outcome == drain.Overloaded && got.RetryAfter != time.Duration(wait)*time.Second {
			t.Errorf("%s: to ask again after %s, want %d s", tc.name, got.RetryAfter, wait)
		}
		if got.Outcome != tc.outcome || got.Budget != tc.budget || !strings.Contains(got.Message, tc.message) {
			t.Errorf("%s: %+v, want %s by %q: %q", tc.name, got, tc.outcome, tc.budget, tc.message)
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
	options := `{"gracePeriodSeconds":7,"preconditions":{"uid":"u1"}}`
	for _, tc := range []struct {
		name string
		step drain.Evict
		want string
	}{
		{"evict", drain.Evict{Grace: new(int64(7))},
			`POST /api/v1/namespaces/shop/pods/web-1/eviction {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web-1","namespace":"shop"},"deleteOptions":` + options + `}`},
		{"with its own grace", drain.Evict{},
			`POST /api/v1/namespaces/shop/pods/web-1/eviction {"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"web-1","namespace":"shop"},"deleteOptions":{"preconditions":{"uid":"u1"}}}`},
		{"delete", drain.Evict{Delete: true, Grace: new(int64(7))},
			`DELETE /api/v1/namespaces/shop/pods/web-1 {"kind":"DeleteOptions","apiVersion":"v1",` + options[1:]},
	} {
		var got []string
		client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
			w.Header().Set("Retry-After", "10")
			write(w, http.StatusTooManyRequests, statusOf(refused(10, "The disruption budget web needs 1 healthy pods and has 1 currently")))
		}))
		tc.step.Namespace, tc.step.Name, tc.step.UID = "shop", "web-1", "u1"
		began := time.Now()
		answer := client.Evict(t.Context(), tc.step)
		if answer.Outcome != drain.Refused || answer.Budget != "shop/web" {
			t.Errorf("%s: answer %+v", tc.name, answer)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %s", tc.name, took)
		}
		if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Nothing is asked twice because the server says when to ask again: whoever asked decides
// that, and has seen by then what changed.
func TestAsksOnce(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Client) error{
		"read the Node": func(ctx context.Context, c *Client) error { _, err := c.Node(ctx); return err },
		"write the Node": func(ctx context.Context, c *Client) error {
			_, err := c.Patch(ctx, "n", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
			return err
		},
		"list pods": func(ctx context.Context, c *Client) error {
			_, err := c.pods(ctx, "spec.nodeName=n", latest)
			return err
		},
		"list budgets": func(ctx context.Context, c *Client) error { _, err := c.budgets(ctx); return err },
		"ask who we are": func(ctx context.Context, c *Client) error {
			_, err := c.UserName(ctx)
			return err
		},
		"write an Event": func(ctx context.Context, c *Client) error {
			_, err := c.CreateWithEventNamespaceWithContext(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}})
			return err
		},
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			asked := 0
			client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Retry-After", "0")
				write(w, code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code)})
			}))
			if err := ask(t.Context(), client); err == nil || asked != 1 {
				t.Errorf("%s, answered with %d: asked %d times, error %v", name, code, asked, err)
			}
		}
	}
}

// statusOf an error is what the server sends.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	errors.As(err, &status)
	out := status.Status()
	out.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return out
}
