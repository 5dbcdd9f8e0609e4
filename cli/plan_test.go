package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

const (
	lastPlan = `{"at":"2026-08-01T12:00:00Z","actions":[{"kind":"heartbeat","text":"prolong i-1","do":{}}],
"verdicts":[{"kind":"group","name":"web","reason":"Steady","message":"1 desired of 0 to 5","details":[]},
{"kind":"node","name":"a","uid":"1","reason":"Needed","message":"until 12:00:10","details":[{"template":"until {until}"}]},
{"kind":"pod","name":"shop/api","uid":"2","reason":"NoNodeGroupFits","message":"web: too large","details":[]}]}`
	nextPlan = `{"at":"2026-08-01T12:00:30Z","actions":[{"kind":"grow","text":"grow web 1→2 for shop/cart","do":{"Count":2}}],
"verdicts":[{"kind":"group","name":"web","reason":"ScalingUp","message":"it grows 1→2","details":[]},
{"kind":"node","name":"a","uid":"1","reason":"Needed","message":"until 12:00:40","details":[]},
{"kind":"pod","name":"shop/cart","uid":"3","reason":"TriggersScaleUp","message":"group web grows 1→2","details":[]}]}`
)

// leader answers as a scaler does, and keeps what it was asked.
func leader(t *testing.T, asked *[]string, plan http.HandlerFunc) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, lastPlan) })
	mux.HandleFunc("/plan", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, strings.Join(r.URL.Query()["set"], " "))
		plan(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func nextPlanAnswered(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(statuspage.HeaderAsked, "true")
	fmt.Fprint(w, nextPlan)
}

// The answer is what is to be done, and what differs from the last evaluation; a sentence with
// another moment in it differs in nothing.
func TestPlan(t *testing.T) {
	var asked []string
	server := leader(t, &asked, nextPlanAnswered)
	out := &bytes.Buffer{}
	c := newCLI(t, view.World{}, out)
	if err := c.run(t.Context(), []string{"plan", "--leader-url", server.URL, "--set=max-nodes-total=3", "--set", "consolidate=off"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"what windlass-scaler would do at 2026-08-01 12:00:30 UTC with max-nodes-total=3, consolidate=off; its last evaluation was at 2026-08-01 12:00:00\n",
		"+ grow web 1→2 for shop/cart\n", "- prolong i-1\n",
		"group/web       Steady            ScalingUp         it grows 1→2\n",
		"pod/shop/api    NoNodeGroupFits   -                 -\n",
		"pod/shop/cart   -                 TriggersScaleUp   group web grows 1→2\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "node/a") || len(asked) != 1 || asked[0] != "max-nodes-total=3 consolidate=off" {
		t.Errorf("asked %q:\n%s", asked, out)
	}
	out.Reset()
	if err := c.run(t.Context(), []string{"plan", "--leader-url", server.URL, "-o", "name"}); err != nil || out.String() != "group/web\npod/shop/api\npod/shop/cart\n" {
		t.Errorf("error %v:\n%s", err, out)
	}
}

// What a leader refuses is said, one that is busy is asked again, and an old one is found out.
func TestPlanRefused(t *testing.T) {
	answer := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
	}
	for _, c := range []struct {
		what, want string
		plan       http.HandlerFunc
	}{
		{"a bad flag", "400 Bad Request: there is no flag --x\x20", answer(http.StatusBadRequest, "there is no flag --x\x1b")},
		{"no leader", "503 Service Unavailable: this replica does not lead", answer(http.StatusServiceUnavailable, "this replica does not lead")},
		{"an older scaler", "older version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, lastPlan) }},
		{"no plan", "reading its answer", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		{"a long refusal", "400 Bad Request", answer(http.StatusBadRequest, strings.Repeat("x", 1<<20))},
	} {
		var asked []string
		server := leader(t, &asked, c.plan)
		err := newCLI(t, view.World{}, &bytes.Buffer{}).run(t.Context(), []string{"plan", "--leader-url", server.URL})
		if err == nil || !strings.Contains(err.Error()+" ", c.want) || len(err.Error()) > 2*mostRefusal {
			t.Errorf("%s: error %.300v, want %q", c.what, err, c.want)
		}
	}
	var asked []string
	busy := leader(t, &asked, func(w http.ResponseWriter, r *http.Request) {
		if len(asked) > 1 {
			nextPlanAnswered(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, "one question at a time", http.StatusTooManyRequests)
	})
	if err := newCLI(t, view.World{}, &bytes.Buffer{}).run(t.Context(), []string{"plan", "--leader-url", busy.URL}); err != nil || len(asked) != 2 {
		t.Errorf("asked %d times, error %v", len(asked), err)
	}
	for _, args := range []string{"plan --leader-url=127.0.0.1:8086", "plan --leader-url=file:///etc/passwd", "plan --timeout=0s", "plan x"} {
		if err := newCLI(t, view.World{}, &bytes.Buffer{}).run(t.Context(), strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}

// The leader is the pod that the lease names, at the port that its flags name.
func TestPlanFindsLeader(t *testing.T) {
	lease := func(holder string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.LeaseScaler}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: new(metav1.NowMicro())}}
	}
	pod := func(args ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: "s-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: args}}}}
	}
	for _, c := range []struct {
		what, want string
		with       []runtime.Object
	}{
		{"as usual", "s-1:8086", []runtime.Object{lease("s-1"), pod("run")}},
		{"another port", "s-1:9000", []runtime.Object{lease("s-1"), pod("run", "--verdicts-port=9000")}},
		{"another port in two words", "s-1:9000", []runtime.Object{lease("s-1"), pod("run", "--verdicts-port", "9000")}},
		{"no port", "so it answers no questions", []runtime.Object{lease("s-1"), pod("run", "--verdicts-port=0")}},
		{"not installed", "--windlass-namespace", nil},
		{"no leader", "no scaler leads", []runtime.Object{lease(""), pod()}},
		{"a process elsewhere", "--leader-url", []runtime.Object{lease("laptop")}},
	} {
		client := fake.NewClientset(c.with...)
		program := newCLI(t, view.World{}, &bytes.Buffer{})
		program.connect = func() (kubernetes.Interface, error) { return client, nil }
		program.forward = func(_ context.Context, pod *corev1.Pod, port int) (string, func(), error) {
			return "", nil, fmt.Errorf("%s:%d", pod.Name, port)
		}
		err := program.run(t.Context(), []string{"plan"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.want)
		}
	}
}

// A leader that never answers is given up.
func TestPlanEnds(t *testing.T) {
	var asked []string
	server := leader(t, &asked, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	err := newCLI(t, view.World{}, &bytes.Buffer{}).run(t.Context(), []string{"plan", "--timeout=200ms", "--leader-url", server.URL})
	if err == nil || !strings.Contains(err.Error(), "no answer within --timeout=200ms") {
		t.Error(err)
	}
}
