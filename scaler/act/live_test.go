package act

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
)

// nodeList lists Nodes by pages, as the API server does and the fake does not.
type nodeList struct {
	corev1client.NodeInterface
	nodes []corev1.Node
	takes time.Duration
	err   error

	mu    sync.Mutex
	pages []string // how each was asked for
}

func (l *nodeList) List(_ context.Context, o metav1.ListOptions) (*corev1.NodeList, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = append(l.pages, fmt.Sprintf("%d from %q of version %q", o.Limit, o.Continue, o.ResourceVersion))
	time.Sleep(l.takes)
	if l.err != nil {
		return nil, l.err
	}
	from, _ := strconv.Atoi(o.Continue) // none is 0
	to := min(from+int(o.Limit), len(l.nodes))
	page := &corev1.NodeList{Items: l.nodes[from:to]}
	if to < len(l.nodes) {
		page.Continue = strconv.Itoa(to)
	}
	return page, nil
}

func closedNode(name, provider string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid1"}, Spec: corev1.NodeSpec{ProviderID: provider, Unschedulable: true}}
}

// However many instances a batch ends and lets go, by whichever lanes, all Nodes are
// listed once for it, consistently and by pages; and not at all where none is.
func TestNodesAreListedOnceForABatch(t *testing.T) {
	list := &nodeList{}
	for i := range 1200 {
		list.nodes = append(list.nodes, closedNode(fmt.Sprint("other-", i), fmt.Sprint("aws:///a/i-other-", i)))
	}
	list.nodes = append(list.nodes, closedNode("late", "aws:///a/i-3")) // on the last page
	g := &groups{}
	a := &Actor{Nodes: list, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	a.Do(t.Context(), []action.Action{action.Suspend{Group: "web"}, action.Heartbeat{Group: "web", Instance: "i-1"}})
	if len(list.pages) > 0 {
		t.Errorf("listed %q for nothing", list.pages)
	}
	var actions []action.Action
	for i := range 40 {
		actions = append(actions, action.Terminate{Group: "web", Instance: fmt.Sprint("i-", i)}, action.Complete{Group: "web", Instance: fmt.Sprint("i-c-", i)})
	}
	results := a.Do(t.Context(), actions)
	want := []string{`500 from "" of version ""`, `500 from "500" of version ""`, `500 from "1000" of version ""`}
	if diff := cmp.Diff(want, list.pages); diff != "" {
		t.Error(diff)
	}
	for _, r := range results {
		want := Done
		if x, ends := r.Action.(action.Terminate); ends && x.Instance == "i-3" {
			want = Stopped
		}
		if r.Outcome != want {
			t.Errorf("%s: %s: %v", r.Action, r.Outcome, r.Err)
		}
	}
	// What is decided later goes by a later list.
	list.nodes = append(list.nodes, closedNode("later", "aws:///a/i-50"))
	if r := a.Do(t.Context(), []action.Action{action.Terminate{Group: "web", Instance: "i-50"}})[0]; r.Outcome != Stopped || !strings.Contains(r.Err.Error(), "node later ") {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

// What is ended has the Nodes that the decision knew of, and no other that may be it.
func TestOnlyWhatWasDecidedIsEnded(t *testing.T) {
	named := func(name string, how func(*corev1.Node)) corev1.Node {
		n := closedNode(name, "")
		how(&n)
		return n
	}
	young := func(n *corev1.Node) { n.CreationTimestamp = metav1.Now() }
	nodeOfI1 := closedNode("n1", "aws:///a/i-1")
	for _, tc := range []struct {
		name    string
		nodes   []corev1.Node
		decided action.NodeRef
		says    string // empty if it is ended
	}{
		{"no node, as decided", nil, action.NodeRef{}, ""},
		{"nodes of others", []corev1.Node{closedNode("a", "aws:///a/i-10"), closedNode("b", ""), closedNode("i-10.ec2.internal", "")}, action.NodeRef{}, ""},
		{"one has appeared", []corev1.Node{closedNode("a", "aws:///a/i-1")}, action.NodeRef{}, "node a has the provider id of i-1, which had no node"},
		{"a resource name", []corev1.Node{closedNode("i-1.eu-west-1.compute.internal", "")}, action.NodeRef{}, "i-1 may be the machine of node i-1.eu-west-1.compute.internal"},
		{"a hostname", []corev1.Node{named("a", func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelHostname: "i-1"} })}, action.NodeRef{}, "of node a,"},
		{"the CSI driver knows it", []corev1.Node{named("a", func(n *corev1.Node) {
			n.Annotations = map[string]string{contract.AnnotationCSINodeID: `{"ebs.csi.aws.com":"i-1"}`}
		})}, action.NodeRef{}, "of node a,"},
		{"one has just registered", []corev1.Node{named("a", young)}, action.NodeRef{}, "of node a, which has just registered"},
		{"one of another kind has", []corev1.Node{named("a", func(n *corev1.Node) { young(n); n.Spec.ProviderID = "aws:///a/fargate-ip-1" })}, action.NodeRef{}, ""},
		{"its own, and one has just registered", []corev1.Node{nodeOfI1, named("a", young)}, n1, ""},
		{"its own, as decided", []corev1.Node{nodeOfI1}, n1, ""},
		{"another has its provider id, too", []corev1.Node{nodeOfI1, closedNode("n2", "aws:///b/i-1")}, n1, "nodes n1 and n2 both have the provider id of i-1"},
		{"another has its name", []corev1.Node{nodeOfI1, closedNode("i-1", "aws:///b/i-2")}, n1, "of node i-1,"},
		{"it is gone", nil, n1, "it was that of node n1"},
		{"its name is another's", []corev1.Node{closedNode("n1", "aws:///a/i-2")}, n1, "it was that of node n1"},
		{"it has another name", []corev1.Node{closedNode("n2", "aws:///a/i-1")}, n1, "node n2 has the provider id of i-1, and not node n1 any more"},
		{"it has registered again", []corev1.Node{nodeOfI1}, action.NodeRef{Name: "n1", UID: "before"}, "node n1 has registered again"},
	} {
		for _, todo := range []action.Action{
			action.Terminate{Group: "web", Instance: "i-1", Node: tc.decided, ID: "a"},
			action.Complete{Group: "web", Instance: "i-1", Hook: "h", Node: tc.decided},
			action.Complete{Group: "web", Instance: "i-1", Hook: "h", Node: tc.decided, Occupied: true},
		} {
			t.Run(tc.name+"/"+action.TraitsOf(todo).Kind, func(t *testing.T) {
				b := newBed(nil).cordoned()
				b.Nodes = &nodeList{NodeInterface: b.Nodes, nodes: tc.nodes}
				r := b.one(t, todo)
				if done := r.Outcome == Done && len(b.groups.calls) == 1; done != (tc.says == "") {
					t.Fatalf("%s: %v, called %q", r.Outcome, r.Err, b.groups.calls)
				}
				if tc.says != "" && (r.Outcome != Stopped || !strings.Contains(r.Err.Error(), tc.says)) {
					t.Errorf("%s: %v", r.Outcome, r.Err)
				}
			})
		}
	}
}

// As long as the API server does not list its Nodes nothing is ended and nothing let go,
// whatever the deadline: the hook ends by its own timer. No action waits twice.
func TestNothingEndsUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &nodeList{takes: time.Second, err: errors.New("the API server is away")}
		b := newBed(nil).cordoned()
		b.Nodes = list
		began := time.Now()
		var actions []action.Action
		for i := range 20 {
			actions = append(actions,
				action.Terminate{Group: "web", Instance: fmt.Sprint("i-t", i)}, action.Complete{Group: "web", Instance: fmt.Sprint("i-c", i), Hook: "h"},
				action.Complete{Group: "web", Instance: fmt.Sprint("i-o", i), Hook: "h", Occupied: true})
		}
		for _, r := range b.Do(t.Context(), actions) {
			if r.Outcome != Failed || !errors.Is(r.Err, list.err) {
				t.Errorf("%s: %s: %v", r.Action, r.Outcome, r.Err)
			}
		}
		if len(b.groups.calls) > 0 || len(list.pages) != 1 {
			t.Errorf("called %q, listed %q", b.groups.calls, list.pages)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A list of many Nodes takes its time. Timers of hooks and growth do not wait for it, and
// it leaves terminations as much time as one of few: forty end in one evaluation, though each takes a
// second.
func TestALongListHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{}
		g.during = func(call string) {
			if strings.HasPrefix(call, "terminate") {
				time.Sleep(time.Second)
			}
		}
		a := &Actor{Nodes: &nodeList{takes: 3 * time.Second}, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		began := time.Now()
		var actions []action.Action
		for i := range 40 {
			actions = append(actions, action.Terminate{Group: "web", Instance: fmt.Sprint("i-", i)})
		}
		for i := range 20 {
			actions = append(actions, action.Complete{Group: "web", Instance: fmt.Sprint("c-", i), Hook: "h"})
		}
		actions = append(actions, action.Grow{Group: "new", To: 1}, action.Heartbeat{Group: "web", Instance: "h", Hook: "h"})
		ended := 0
		for _, r := range a.Do(t.Context(), actions) {
			switch r.Action.(type) {
			case action.Grow, action.Heartbeat:
				if took := r.Ended.Sub(began); took != 0 {
					t.Errorf("%s after %s", r.Action, took)
				}
			case action.Terminate:
				if r.Outcome == Done {
					ended++
				}
			}
		}
		if ended < 40 {
			t.Errorf("%d of 40 ended", ended)
		}
	})
}

// closedNodes are as nodeList, and are read and written in no time.
type closedNodes struct{ *nodeList }

func (l closedNodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	i := slices.IndexFunc(l.nodes, func(n corev1.Node) bool { return n.Name == name })
	return l.nodes[i].DeepCopy(), nil
}

func (l closedNodes) Patch(ctx context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Node, error) {
	return l.Get(ctx, name, metav1.GetOptions{})
}

// slowLists are pods whose lists take a second each, and those of a node whose name begins with "hung"
// as long as they may.
type slowLists struct {
	corev1client.PodsGetter
	corev1client.PodInterface
	*counter
}

// counter counts what is under way.
type counter struct {
	mu             sync.Mutex
	underWay, most int
}

func (c *counter) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay++
	c.most = max(c.most, c.underWay)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underWay--
	}
}

func (p slowLists) Pods(string) corev1client.PodInterface { return p }

func (p slowLists) List(ctx context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	defer p.begin()()
	if strings.Contains(o.FieldSelector, "hung") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(time.Second)
	return &corev1.PodList{}, nil
}

// endingNodes are an actor of so many closed nodes of each name, and what ends them.
func endingNodes(pods slowLists, count int, names ...string) (*Actor, []action.Action) {
	nodes := closedNodes{&nodeList{}}
	var actions []action.Action
	for _, of := range names {
		for i := range count {
			name, instance := fmt.Sprint(of, i), fmt.Sprintf("i-%s-%d", of, i)
			nodes.nodes = append(nodes.nodes, closedNode(name, "aws:///a/"+instance))
			actions = append(actions, action.Terminate{Group: "web", Instance: instance, Node: action.NodeRef{Name: name, UID: "uid1"}, ID: "a"})
		}
	}
	return &Actor{Nodes: nodes, Pods: pods, Groups: &groups{}, Events: &events{}, Logger: slog.New(slog.DiscardHandler)}, actions
}

func outcomes(results []Result) map[Outcome]int {
	out := map[Outcome]int{}
	for _, r := range results {
		out[r.Outcome]++
	}
	return out
}

// A tenant's pods that have ended may make each list of a node's pods as large as an answer may be.
// However many nodes end at once, eight such answers are in memory at one time.
func TestFewListsOfPodsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := slowLists{counter: &counter{}}
		a, actions := endingNodes(pods, 60, "n")
		if out := outcomes(a.Do(t.Context(), actions)); pods.most != 8 || out[Done] < 24 || out[Failed]+out[Stopped] > 0 {
			t.Errorf("%d lists at one time: %v", pods.most, out)
		}
	})
}

// Groups that take terminations one after the other are asked for fewer at a time.
func TestFewerEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, actions := endingNodes(slowLists{counter: &counter{}}, 20, "n")
		calls := &counter{}
		a.EndsAtOnce, a.Groups = 3, &groups{during: func(string) {
			defer calls.begin()()
			time.Sleep(time.Second)
		}}
		if a.Do(t.Context(), actions); calls.most != 3 {
			t.Errorf("%d calls at one time", calls.most)
		}
	})
}

// Lists that hung and hang again keep no place from those of other nodes.
func TestHungListsHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, actions := endingNodes(slowLists{counter: &counter{}}, 8, "hung", "n")
		if out := outcomes(a.Do(t.Context(), actions[:8])); out[Failed] != 8 {
			t.Fatalf("the hung ones: %v", out)
		}
		time.Sleep(firstFailure)
		began := time.Now()
		for i, r := range a.Do(t.Context(), actions) {
			if took := r.Ended.Sub(began); i < 8 && r.Outcome != Failed || i >= 8 && (r.Outcome != Done || took != time.Second) {
				t.Errorf("%s: %s after %s", r.Action, r.Outcome, took)
			}
		}
	})
}

// A node that never came up is closed by the mark's own patch; both go if a pod got there.
// One that came up meanwhile serves, and one that was drained and is open again was opened
// by somebody.
func TestWhatNeverCameUpIsClosedFirst(t *testing.T) {
	ready := func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	starting := func(n *corev1.Node) {
		ready(n)
		n.Spec.Taints = []corev1.Taint{{Key: "cni/not-there", Effect: corev1.TaintEffectNoSchedule}}
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for _, tc := range []struct {
		name     string
		standing map[string]string
		is       func(*corev1.Node)
		pods     []*corev1.Pod
		want     Outcome
		tainted  bool // afterwards
	}{
		{"not Ready", nil, func(*corev1.Node) {}, nil, Done, true},
		{"something has yet to start", nil, starting, nil, Done, true},
		{"it has come up", nil, ready, nil, Stopped, false},
		{"a pod got there", nil, func(*corev1.Node) {}, []*corev1.Pod{onNode("early", "n1")}, Stopped, false},
		{"drained, and opened again", request(contract.KindScaleDown, "a"), func(*corev1.Node) {}, nil, Stopped, false},
		{"marked, and opened again", map[string]string{contract.AnnotationTerminating: "a"}, starting, nil, Stopped, false},
		{"somebody cordoned it", nil, cordon, nil, Done, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.standing, tc.pods...).change(tc.is)
			b.groups.during = func(string) {
				if n := b.node(t); !n.Spec.Unschedulable && !tc.tainted {
					t.Error("ended while it was open")
				}
			}
			if r := b.one(t, terminate()); r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			node := b.node(t)
			_, tainted := contract.Draining(node.Spec.Taints)
			_, marked := node.Annotations[contract.AnnotationTerminating]
			if tainted != tc.tainted || marked != (tc.want == Done) {
				t.Errorf("tainted %v, marked %v", tainted, marked)
			}
		})
	}
}

// How old a Node is goes by the clock that has dated it, and not by ours, which may be wrong.
func TestAgeByTheServersClock(t *testing.T) {
	server := func() time.Time { return time.Now().Add(-time.Hour) }
	for age, want := range map[time.Duration]Outcome{time.Second: Stopped, 2 * namedWithin: Done} {
		nameless := closedNode("nameless", "")
		nameless.CreationTimestamp = metav1.NewTime(server().Add(-age))
		a := &Actor{Nodes: &nodeList{nodes: []corev1.Node{nameless}}, Groups: &groups{}, Events: &events{}, Logger: slog.New(slog.DiscardHandler), Now: server}
		if r := a.Do(t.Context(), []action.Action{action.Terminate{Group: "web", Instance: "i-1"}})[0]; r.Outcome != want {
			t.Errorf("%s old: %s, want %s: %v", age, r.Outcome, want, r.Err)
		}
	}
}
