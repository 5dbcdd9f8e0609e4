package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// server is the world's API server as the client of the agent sees it, over HTTP
// that goes through memory and so through virtual time. It counts what it is
// asked.
type server struct {
	*world
	asked map[string]int
	// hangs is what is not answered.
	hangs []string
}

// connected starts an agent that asks the world over HTTP. What hangs is never
// answered.
func (w *world) connected(hangs ...string) *server {
	w.t.Helper()
	s := &server{world: w, asked: map[string]int{}, hangs: hangs}
	client, err := evict.New(&rest.Config{Host: "http://api", QPS: -1, Transport: s}, nodeName)
	if err != nil {
		w.t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	events := kube.NewEventWriter(client, contract.AppAgent, nodeName, logger, kube.EventLimits{})
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		events.Run(ctx)
	}()
	w.t.Cleanup(func() { cancel(); <-ended })
	w.agentWith(func(a *Agent) {
		policy, notices := a.Policy, a.WatchNotices
		*a = *wire(config{nodeName: nodeName, policy: policy}, client, events, logger)
		a.WatchNotices = notices
	})
	return s
}

// RoundTrip carries a request to the server and its answer back.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, pipe := io.Pipe()
	out := &answer{header: http.Header{}, pipe: pipe, begun: make(chan int, 1)}
	go func() {
		s.ServeHTTP(out, r)
		out.WriteHeader(http.StatusOK)
		pipe.Close()
	}()
	var code int
	select {
	case code = <-out.begun:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: code, Header: out.header, Body: body, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

// answer is a response under way.
type answer struct {
	header http.Header
	pipe   *io.PipeWriter
	begun  chan int
	once   sync.Once // the world reports each change in a goroutine of its own
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() { a.begun <- code })
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.pipe.Write(p)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := s.count(r)
	w.Header().Set("Content-Type", "application/json")
	if slices.Contains(s.hangs, what) {
		<-r.Context().Done()
		return
	}
	switch what {
	case "watch nodes":
		s.watchNode(r.Context(), func(m evict.Metadata) { send(w, watch.Modified, partial(m)) })
	case "get nodes":
		node, err := s.readNode(r.Context())
		s.reply(w, http.StatusOK, node, err)
	case "patch nodes":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		node, err := s.patchNode(body)
		s.reply(w, http.StatusOK, node, err)
	case "list pods":
		s.reply(w, http.StatusOK, s.listPods(), nil)
	case "watch pods":
		s.followPods(r.Context(), func(e watch.Event) {
			e.Object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			send(w, e.Type, e.Object)
		})
	case "list poddisruptionbudgets":
		s.reply(w, http.StatusOK, &policyv1.PodDisruptionBudgetList{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"}}, nil)
	case "create pods/eviction":
		s.evictByRequest(w, r)
	case "create events":
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body) // the client hangs up at the end of a test
	default:
		s.t.Errorf("asked to %s", what)
		w.WriteHeader(http.StatusNotFound)
	}
}

// count says what a request asks for, and counts it.
func (s *server) count(r *http.Request) string {
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path[0] == "apis" {
		path = path[1:]
	}
	path = path[2:] // the group's or api, and the version
	if path[0] == "namespaces" {
		path = path[2:]
	}
	switch {
	case r.URL.Query().Get("watch") == "true":
		verb = "watch"
	case verb == "get" && len(path) == 1:
		verb = "list"
	}
	what := verb + " " + path[0]
	if len(path) == 3 {
		what += "/" + path[2]
	}
	s.set(func() { s.asked[what]++ })
	return what
}

func (s *server) reply(w http.ResponseWriter, code int, object any, err error) {
	if err != nil {
		s.t.Errorf("the world failed: %v", err)
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// send sends an event of a watch.
func send(w io.Writer, kind watch.EventType, object any) {
	_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
}

func partial(m evict.Metadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, ResourceVersion: m.Version, Annotations: m.Annotations, Labels: m.Labels},
	}
}

func (s *server) listPods() *corev1.PodList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, p := range s.pods {
		list.Items = append(list.Items, *p.DeepCopy())
	}
	return list
}

func (s *server) evictByRequest(w http.ResponseWriter, r *http.Request) {
	var e policyv1.Eviction
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		s.t.Error(err)
	}
	step := drain.Evict{Namespace: e.Namespace, Name: e.Name, UID: *e.DeleteOptions.Preconditions.UID, Grace: e.DeleteOptions.GracePeriodSeconds}
	switch got := s.evict(r.Context(), step); got.Outcome {
	case drain.Accepted:
	case drain.Forbidden: // by a webhook
		s.reply(w, http.StatusTooManyRequests, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Code: http.StatusTooManyRequests, Message: got.Message,
		}, nil)
		return
	default:
		s.t.Errorf("evicting %s: %+v", e.Name, got)
	}
	s.reply(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil)
}

// All that a drain costs the API server, beside the evictions themselves: for a
// node of twenty pods, three of them of a DaemonSet.
func TestRequestsOfADrain(t *testing.T) {
	story(t, func(w *world) {
		for i := range 17 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		for i := range 3 {
			w.addPod(fmt.Sprintf("log%d-1", i), func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "log", UID: types.UID("log"), Controller: new(true)}}
			})
		}
		s := w.connected()
		w.after(5 * time.Second)
		for range 12 { // as the kubelet does that has nothing to say
			w.change(func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning })
			w.after(5 * time.Minute)
		}
		if diff := cmp.Diff(map[string]int{"watch nodes": 1, "get nodes": 1}, s.asked); diff != "" {
			t.Errorf("idle (-want +got):\n%s", diff)
		}
		clear(s.asked)
		w.notify(terminated)
		w.after(time.Minute)
		if r := w.report(); r.Phase != contract.PhaseDrained {
			t.Errorf("report %s", r)
		}
		want := map[string]int{
			"get nodes":   1,
			"patch nodes": 2, // draining, drained
			"list pods":   1, "watch pods": 1, "list poddisruptionbudgets": 1,
			"create pods/eviction": 17,
			"create events":        2,
		}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Errorf("drain (-want +got):\n%s", diff)
		}
	})
}

// A webhook that denies evictions by "too many requests", as that of KubeVirt does
// for each virtual machine until it has moved, is not the server's own word: the
// other pods do not wait.
func TestDeniedByTooManyRequests(t *testing.T) {
	story(t, func(w *world) {
		for i := range 50 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		for i := range 10 {
			w.addPod(fmt.Sprintf("machine%d-1", i))
			w.refusals[fmt.Sprintf("machine%d", i)] = drain.Answer{
				Outcome: drain.Forbidden,
				Message: `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI`,
			}
		}
		w.connected()
		w.after(time.Second)
		w.notify(terminated)
		w.after(time.Second)
		if n := w.deleted(); n != 50 {
			t.Errorf("%d of 50 free pods evicted within a second", n)
		}
		w.after(5 * time.Second)
		if r := w.report(); !strings.Contains(r.Message, "Eviction triggered evacuation") {
			t.Errorf("report %s", r)
		}
	})
}

// The list of the pods hangs: nothing new comes to the node all the same.
func TestPodsHang(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.connected("list pods")
		w.after(time.Second)
		w.notify(terminated)
		w.after(100 * time.Millisecond)
		w.set(func() {
			if kind, draining := contract.Draining(w.node.Spec.Taints); !draining || !w.node.Spec.Unschedulable {
				t.Errorf("right after the notice the node is unschedulable: %t, and drains for %q", w.node.Spec.Unschedulable, kind)
			}
		})
	})
}

// The list of all budgets hangs: the drain goes on without it, and it is asked for again.
func TestBudgetsHang(t *testing.T) {
	const list = "list poddisruptionbudgets"
	story(t, func(w *world) {
		for i := range 50 {
			w.addPod(fmt.Sprintf("web%d-1", i))
		}
		s := w.connected(list)
		w.after(time.Second)
		w.notify(terminated)
		w.after(time.Second)
		if n := w.deleted(); n != 50 {
			t.Errorf("%d of 50 pods evicted within a second", n)
		}
		w.after(2 * time.Minute)
		if n := s.asked[list]; n < 2 || n > 5 {
			t.Errorf("asked %d times for the budgets in two minutes", n)
		}
	})
}
