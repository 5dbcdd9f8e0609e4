package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// oneWaits is a cluster with a pod that a group would grow for.
func oneWaits(t *testing.T) fleet.Snapshot {
	t.Helper()
	s, err := readSnapshot(waitingWorld(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newAsk(s fleet.Snapshot) *ask {
	return &ask{
		policy: policy.DefaultPolicy(), now: time.Now,
		leads: func() (string, bool) { return "s-1", true },
		look:  func(context.Context) seen { return seen{snapshot: s} },
	}
}

func (a *ask) get(query string) *httptest.ResponseRecorder {
	response := httptest.NewRecorder()
	a.ServeHTTP(response, asker("/plan?"+query))
	return response
}

// The answer is what the command plan prints, by the flags that are asked about, and the process
// goes by its own as before.
func TestPlanIsAsked(t *testing.T) {
	s := oneWaits(t)
	for query, flags := range map[string][]string{
		"": nil,
		"set=max-nodes-total%3D1&set=expander=least-nodes": {"--max-nodes-total=1", "--expander=least-nodes"},
		"set=--new-pod-scale-up-delay=1h":                  {"--new-pod-scale-up-delay=1h"},
		"set=balance_similar_node_groups":                  {"--balance-similar-node-groups"},
	} {
		a := newAsk(s)
		response := a.get(query)
		if response.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", query, response.Code, response.Body)
		}
		var settings settings
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		settings.register(set)
		if err := set.Parse(flags); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		if err := newPrintout(s, plan.Decide(s, settings.policy)).write(&want, asJSON); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parsed(t, want.String()), parsed(t, response.Body.String())); diff != "" {
			t.Errorf("%s (-command +answer):\n%s", query, diff)
		}
		if diff := cmp.Diff(policy.DefaultPolicy(), a.policy); diff != "" {
			t.Errorf("%s changed the process's policy:\n%s", query, diff)
		}
	}
	if grows := newAsk(s).get("").Body.String(); !strings.Contains(grows, `"kind":"grow"`) && !strings.Contains(grows, "grows 0→1") {
		t.Errorf("it does not grow: %s", grows)
	}
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// Each flag of the policy means in a question what it means on a command line, and no other flag
// can be asked about.
func TestQuestionsHaveFlagsOfThePolicy(t *testing.T) {
	values := map[string][]string{
		"bool": {"true", "false"}, "duration": {"7m", "1h2m"}, "float64": {"0.3", "1"}, "int": {"3", "17"}, "int32": {"-3", "5"},
		"min:max": {"1:9"}, "percentage or pods": {"10%", "pods=2,cpu=1"}, "steps": {"1000:5s"},
		"stringArray": {"a", "b"}, "stringSlice": {"x,y"},
		"expander": {"random"}, "failed-drain": {"hold"}, "consolidate": {"off"},
	}
	var own settings
	ofPolicy := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.registerPolicy(ofPolicy)
	asked := 0
	all := runCommand(io.Discard).Flags()
	all.VisitAll(func(f *pflag.Flag) {
		if f.Hidden { // Cluster Autoscaler's
			if _, err := withFlags(policy.DefaultPolicy(), []string{f.Name + "=1"}); err == nil {
				t.Errorf("--%s can be asked about", f.Name)
			}
			return
		}
		list := values[f.Value.Type()]
		if f.Value.Type() == "string" {
			list = values[f.Name]
		}
		if ofPolicy.Lookup(f.Name) == nil {
			if _, err := withFlags(policy.DefaultPolicy(), []string{f.Name + "=1"}); err == nil || !strings.Contains(err.Error(), "--"+f.Name+" says how the program runs") {
				t.Errorf("--%s can be asked about: %v", f.Name, err)
			}
			return
		}
		if len(list) == 0 {
			t.Fatalf("no value for --%s of type %s", f.Name, f.Value.Type())
		}
		for _, value := range list {
			var s settings
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			s.register(flags)
			if err := flags.Parse([]string{"--" + f.Name + "=" + value}); err != nil {
				t.Fatal(err)
			}
			is := policy.DefaultPolicy()
			is.Expander, is.Drainable.MinReplicas, is.OutOfService = is.Expander+","+policy.Priority, 1, true // all is read
			got, err := withFlags(is, []string{f.Name + "=" + value})
			if wrong := s.checkPolicy(); wrong != nil {
				if err == nil || !strings.Contains(err.Error(), wrong.Error()) {
					t.Errorf("--%s=%s: error %v, want %v", f.Name, value, err, wrong)
				}
				continue
			}
			if err != nil {
				t.Fatalf("--%s=%s: %v", f.Name, value, err)
			}
			if of := func(p policy.Policy) string { return fmt.Sprintf("%+v", p) }; f.Name != "expander" && f.Name != "min-replica-count" && f.Name != "out-of-service-taint" {
				s.policy.Expander, s.policy.Drainable.MinReplicas, s.policy.OutOfService = is.Expander, 1, true
				if of(got) != of(s.policy) {
					t.Errorf("--%s=%s (-command line +question):\n%s", f.Name, value, cmp.Diff(of(s.policy), of(got)))
				}
			}
			asked++
		}
	})
	if asked < 50 {
		t.Errorf("%d questions", asked)
	}
	// What was set on the command line stands, but where the question says otherwise.
	is := policy.DefaultPolicy()
	is.StartupTaints, is.MaxNodes = []string{"a", "b"}, 7
	got, err := withFlags(is, []string{"startup-taint=c", "startup-taint=d"})
	if err != nil || !reflect.DeepEqual(got.StartupTaints, []string{"c", "d"}) || got.MaxNodes != 7 || !reflect.DeepEqual(is.StartupTaints, []string{"a", "b"}) {
		t.Errorf("%v of %d nodes, error %v; the process has %v", got.StartupTaints, got.MaxNodes, err, is.StartupTaints)
	}
}

// What is wrong with a question is said, and costs nothing.
func TestBadQuestions(t *testing.T) {
	a := newAsk(oneWaits(t))
	a.look = func(context.Context) seen {
		t.Error("a snapshot was taken")
		return seen{}
	}
	for _, c := range []struct{ set, want string }{
		{"consolidate=sometimes", "--consolidate is \"sometimes\": want one of"},
		{"scale-down-utilization-threshold=NaN", "want a share between 0 and 1"},
		{"scale-down-utilization-threshold=+Inf", "want a share between 0 and 1"},
		{"disruption-cost=NaN", "--disruption-cost is NaN"},
		{"max-unrecognised-share=-1", "want 0 to 100"},
		{"scale-down-unneeded-time=NaN", "scale-down-unneeded-time"},
		{"scale-down-unneeded-time=9999999999h", "scale-down-unneeded-time"},
		{"max-nodes-total=99999999999999999999", "max-nodes-total"},
		{"cores-total=5:1", "0 ≤ min ≤ max"},
		{"headroom=pods=20001", "1 to 20000"},
		{"max-capacity-buffer-pods=20001", "--max-capacity-buffer-pods=20001 cannot be asked about: want 20000 at the most"},
		{"max-capacity-buffer-pods-per-namespace=1000000", "--max-capacity-buffer-pods-per-namespace=1000000 cannot be asked about: want 20000 at the most"},
		{"drain-steps=" + strings.Repeat("1:1s,", 700), ""},
		{"expander=priority", "--expander=priority cannot be asked about"},
		{"min-replica-count=2", "--min-replica-count cannot be asked about"},
		{"out-of-service-taint", "--out-of-service-taint cannot be asked about"},
		{"kubeconfig=/etc/passwd", "--kubeconfig says how the program runs"},
		{"price-file=/etc/passwd", "--price-file says how the program runs"},
		{"nodes=1:2:web", "--nodes says how the program runs"},
		{"bounds=1", "there is no flag --bounds"},
		{"max-nodes-total", "--max-nodes-total wants a value"},
		{"", "there is no flag --"},
		{strings.Repeat("x", mostQuery), "4096 at the most"},
	} {
		response := a.get("set=" + url.QueryEscape(c.set))
		if response.Code != http.StatusBadRequest || !strings.Contains(response.Body.String(), c.want) {
			t.Errorf("%.60s: %d %.300s", c.set, response.Code, response.Body)
		}
	}
	for _, query := range []string{"act=true", "set=%zz", "set=a;b"} {
		if response := a.get(query); response.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, response.Code, response.Body)
		}
	}
}

// No question multiplies pods beyond what the leader itself may go by: each stands for about three
// kilobytes beside what it decides on.
func TestNoQuestionIsTooDear(t *testing.T) {
	s := oneWaits(t)
	s.Pods = append(s.Pods, &fleet.Pod{Namespace: "a", Name: "runs", UID: "u3", Node: "old", Phase: fleet.PodRunning, Spec: &corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5000")}}}},
	}}) // 20,000 pieces of headroom
	for _, c := range []struct {
		own  func(*policy.Policy)
		set  string
		want string // empty where it is answered
	}{
		{nil, "headroom=100%", ""},
		{nil, "headroom=100.1%", "--headroom=100.1% cannot be asked about: it makes 20020 pods of 250m cpu and 1Gi memory, want 20000 at the most"},
		{nil, "headroom=1000%", "it makes 200000 pods"},
		{func(p *policy.Policy) { p.Headroom.Percent = 101 }, "headroom=101%", ""},
		{func(p *policy.Policy) { p.Headroom.Percent = 101 }, "headroom=102%", "want 20200 at the most"},
		{nil, "max-capacity-buffer-pods=20000", ""},
		{func(p *policy.Policy) { p.BufferPods = 30_000 }, "max-capacity-buffer-pods=30000", ""},
		{func(p *policy.Policy) { p.BufferPods = 30_000 }, "max-capacity-buffer-pods=30001", "want 30000 at the most"},
		{nil, "max-capacity-buffer-pods-per-namespace=20000", ""},
		{func(p *policy.Policy) { p.BufferPods, p.BufferPodsPerNamespace = 30_000, 0 }, "max-capacity-buffer-pods-per-namespace=30001", "want 30000 at the most"},
	} {
		a := newAsk(s)
		if c.own != nil {
			c.own(&a.policy)
		}
		response := a.get("set=" + url.QueryEscape(c.set))
		if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[c.want == ""]; response.Code != want || !strings.Contains(response.Body.String(), c.want) {
			t.Errorf("%s: %d %.300s", c.set, response.Code, response.Body)
		}
	}
}

// Only who runs a program in the pod's network is answered, only by the leader, and only reading.
func TestWhoIsAnswered(t *testing.T) {
	a := newAsk(oneWaits(t))
	for _, c := range []struct {
		method, from, host string
		want               int
	}{
		{http.MethodGet, "127.0.0.1:9", "localhost:8086", http.StatusOK},
		{http.MethodPost, "127.0.0.1:9", "localhost:8086", http.StatusMethodNotAllowed},
		{http.MethodGet, "127.0.0.6:9", "localhost:8086", http.StatusForbidden},
		{http.MethodGet, "10.0.0.1:9", "localhost:8086", http.StatusForbidden},
		{http.MethodGet, "127.0.0.1:9", "evil.example:8086", http.StatusForbidden},
	} {
		request := httptest.NewRequest(c.method, "/plan", nil)
		request.RemoteAddr, request.Host = c.from, c.host
		response := httptest.NewRecorder()
		if guarded(a).ServeHTTP(response, request); response.Code != c.want {
			t.Errorf("%+v: %d %s", c, response.Code, response.Body)
		}
		a.rests = time.Time{}
	}
	a.leads = func() (string, bool) { return "s-2", false }
	if r := a.get(""); r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), "who leads: s-2") {
		t.Errorf("not leading: %d %s", r.Code, r.Body)
	}
	a = newAsk(fleet.Snapshot{})
	a.look = func(context.Context) seen { return seen{err: errors.New("pods not seen yet")} }
	if r := a.get(""); r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), "pods not seen yet") {
		t.Errorf("nothing seen: %d %s", r.Code, r.Body)
	}
}

// However many ask, one plan is made at a time, and then as long a rest.
func TestOneQuestionAtATime(t *testing.T) {
	a := newAsk(oneWaits(t))
	s := oneWaits(t)
	begun, goOn := make(chan bool), make(chan bool)
	a.look = func(context.Context) seen {
		begun <- true
		<-goOn
		return seen{snapshot: s}
	}
	at := time.Unix(0, 0)
	a.now = func() time.Time { at = at.Add(3 * time.Second); return at } // each reading of the clock is 3 s later
	var first sync.WaitGroup
	first.Go(func() {
		if r := a.get(""); r.Code != http.StatusOK {
			t.Errorf("the first: %d %s", r.Code, r.Body)
		}
	})
	<-begun
	for range 1000 {
		if r := a.get("set=max-nodes-total=1"); r.Code != http.StatusTooManyRequests || r.Header().Get("Retry-After") != "1" {
			t.Fatalf("while one is answered: %d %s", r.Code, r.Body)
		}
	}
	close(goOn)
	first.Wait()
	a.now = func() time.Time { return at.Add(time.Second) }
	if r := a.get(""); r.Code != http.StatusTooManyRequests || r.Header().Get("Retry-After") != "2" {
		t.Errorf("right after it: %d %s, retry after %s", r.Code, r.Body, r.Header().Get("Retry-After"))
	}
	a.now = func() time.Time { return at.Add(3 * time.Second) }
	go func() { <-begun }()
	if r := a.get(""); r.Code != http.StatusOK {
		t.Errorf("after its rest: %d %s", r.Code, r.Body)
	}
}

// The loop hands out a snapshot between two evaluations, and makes none for it.
func TestLoopIsAskedForSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(plan.Plan{})
		s.still = true
		asked := make(chan chan<- seen)
		s.asked = asked
		look := lookBetween(asked)
		var asking sync.WaitGroup
		asking.Go(func() {
			for range 3 {
				time.Sleep(7 * time.Second)
				if got := look(t.Context()); got.err != nil || !got.snapshot.Now.Equal(time.Now()) {
					t.Errorf("a snapshot of %s, error %v", got.snapshot.Now, got.err)
				}
			}
		})
		if notes := s.run(t, 30*time.Second); len(notes) != 1 {
			t.Errorf("%q", notes)
		}
		asking.Wait()
		// Where no loop runs, nobody waits for ever.
		ctx, cancel := context.WithTimeout(t.Context(), lookTime)
		defer cancel()
		if got := look(ctx); !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("without a loop: %v", got.err)
		}
	})
}
