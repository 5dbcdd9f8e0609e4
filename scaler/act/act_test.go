package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// groups records what is asked of Auto Scaling, and answers with err.
type groups struct {
	mu    sync.Mutex
	calls []string
	err   error
	// launched is the answer to each launch.
	launched asg.Launched
	// during is called in the middle of each call.
	during func(call string)
}

func (g *groups) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	g.mu.Lock()
	g.calls = append(g.calls, call)
	g.mu.Unlock()
	if g.during != nil {
		g.during(call)
	}
	return g.err
}

func (g *groups) SetDesired(_ context.Context, group string, from, to int) error {
	return g.call("desired %s %d→%d", group, from, to)
}
func (g *groups) Lower(_ context.Context, group string, from, to int) error {
	return g.call("lower %s %d→%d", group, from, to)
}
func (g *groups) Launch(_ context.Context, o asg.LaunchOrder) (asg.Launched, error) {
	from := "as it is"
	if o.From != nil {
		from = fmt.Sprintf("from %d", *o.From)
	}
	err := g.call("launch %s %s %d %s %s", o.Group, o.Zone, o.Count, o.Token, from)
	return g.launched, err
}
func (g *groups) Terminate(_ context.Context, group, instance string, decrement bool) error {
	return g.call("terminate %s %s %v", group, instance, decrement)
}
func (g *groups) Complete(_ context.Context, w asg.Wait) error {
	return g.call("complete %s %s %s", w.Group, w.Instance, w.Hook)
}
func (g *groups) Heartbeat(_ context.Context, w asg.Wait) error {
	return g.call("heartbeat %s %s %s", w.Group, w.Instance, w.Hook)
}
func (g *groups) Serves(_ context.Context, group, instance string) error {
	return g.call("serves %s %s", group, instance)
}
func (g *groups) Down(_ context.Context, instance string) error {
	return g.call("down %s", instance)
}
func (g *groups) Suspend(_ context.Context, group, process string) error {
	return g.call("suspend %s %s", group, process)
}

func (g *groups) Claim(_ context.Context, group string, owner types.UID) error {
	return g.call("claim %s for %s", group, owner)
}

// events keeps the Events that are recorded.
type events struct {
	mu   sync.Mutex
	list []string
	// facts are the annotation of those Events that have one.
	facts map[string]string
	room  int // 0 for any number
}

func (e *events) Write(event kube.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.room > 0 && len(e.list) == e.room {
		return false
	}
	e.list = append(e.list, event.Reason+" "+event.Object.Name+": "+event.Message)
	if value, ok := event.Annotations[contract.AnnotationEventFacts]; ok {
		if e.facts == nil {
			e.facts = map[string]string{}
		}
		e.facts[event.Reason] = value
	}
	return true
}

type bed struct {
	*Actor
	client *fake.Clientset
	groups *groups
	events *events
}

// newBed has one node n1, of i-1, with the given annotations, and the given pods on it.
func newBed(annotations map[string]string, pods ...*corev1.Pod) *bed {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "7", Annotations: annotations}}
	return newBedOf(node, pods...).of("i-1")
}

func newBedOf(node *corev1.Node, pods ...*corev1.Pod) *bed {
	objects := []runtime.Object{node}
	for _, p := range pods {
		objects = append(objects, p)
	}
	b := &bed{client: fake.NewClientset(objects...), groups: &groups{}, events: &events{}}
	b.client.PrependReactor("list", "pods", listByNode(b.client))
	b.Actor = &Actor{
		Nodes: b.client.CoreV1().Nodes(), Pods: b.client.CoreV1(), Groups: b.groups, Events: b.events,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return b
}

// listByNode applies the field selector that the fake leaves out, and gives what a page may have.
func listByNode(client *fake.Clientset) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		selector := action.(clienttesting.ListAction).GetListRestrictions().Fields
		options := action.(clienttesting.ListActionImpl).ListOptions
		from, _ := strconv.Atoi(options.Continue) // empty is the first page
		all, err := client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "")
		if err != nil {
			return true, nil, err
		}
		list := &corev1.PodList{}
		for _, p := range all.(*corev1.PodList).Items {
			phase := p.Status.Phase
			if phase == "" {
				phase = corev1.PodRunning
			}
			if selector.Matches(fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(phase)}) {
				list.Items = append(list.Items, p)
			}
		}
		list.Items = list.Items[from:]
		if most := int(options.Limit); most > 0 && len(list.Items) > most {
			list.Items, list.Continue = list.Items[:most], strconv.Itoa(from+most)
		}
		return true, list, nil
	}
}

func (b *bed) node(t *testing.T) *corev1.Node {
	t.Helper()
	node, err := b.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// do carries out one action and returns what became of it.
func (b *bed) one(t *testing.T, todo action.Action) Result {
	t.Helper()
	return b.Do(t.Context(), []action.Action{todo})[0]
}

func onNode(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}

var n1 = action.NodeRef{Name: "n1", UID: "uid1"}

func retire(kind contract.Kind, id string) action.RequestDrain {
	return action.RequestDrain{Group: "web", Node: n1, ID: id, Kind: kind, Why: "it is unneeded"}
}

func request(kind contract.Kind, id string) map[string]string {
	return map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: id, Kind: kind}.String()}
}

func with(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestRetire(t *testing.T) {
	for _, tc := range []struct {
		name     string
		standing map[string]string
		action   action.RequestDrain
		want     Outcome
		wantID   string // of the request afterwards
	}{
		{"asks", nil, retire(contract.KindScaleDown, "a"), Done, "a"},
		{"asks once", request(contract.KindScaleDown, "a"), retire(contract.KindScaleDown, "a"), Done, "a"},
		{"leaves a stronger request alone", request(contract.KindASG, "x"), retire(contract.KindScaleDown, "a"), Stopped, "x"},
		{"overrules a weaker one", request(contract.KindScaleDown, "x"), retire(contract.KindASG, "a"), Done, "a"},
		{"overrules its own of another way out", map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: "asg-warm:i-1", Kind: contract.KindASG, By: contract.AppScaler}.String()}, retire(contract.KindASG, "asg-terminate:i-1"), Done, "asg-terminate:i-1"},
		{"but not one of others", request(contract.KindASG, "x"), retire(contract.KindASG, "a"), Stopped, "x"},
		{"leaves what people wrote alone", map[string]string{contract.AnnotationDrainRequest: "not a request"}, retire(contract.KindScaleDown, "a"), Stopped, ""},
		{"does not touch a node on hold", map[string]string{contract.AnnotationHold: "true"}, retire(contract.KindScaleDown, "a"), Stopped, ""},
		{"answers Auto Scaling even then", map[string]string{contract.AnnotationHold: "true"}, retire(contract.KindASG, "a"), Done, "a"},
		{"is too late after the mark", map[string]string{contract.AnnotationTerminating: "x"}, retire(contract.KindASG, "a"), Stopped, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.standing)
			if r := b.one(t, tc.action); r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			node := b.node(t)
			got, err := contract.ParseRequest(node.Annotations[contract.AnnotationDrainRequest])
			if tc.wantID != "" && (err != nil || got.ID != tc.wantID) {
				t.Errorf("request %+v, error %v", got, err)
			}
			kind, tainted := contract.Draining(node.Spec.Taints)
			if wrote := tc.want == Done && tc.standing[contract.AnnotationDrainRequest] != request(tc.action.Kind, tc.action.ID)[contract.AnnotationDrainRequest]; wrote != tainted || (wrote && kind != tc.action.Kind) {
				t.Errorf("taint %q %v", kind, tainted)
			}
		})
	}
}

// That the agent is told the deadline of a termination that Auto Scaling began is no scale-down.
func TestATerminationIsNotToldAsAScaleDown(t *testing.T) {
	b := newBed(nil)
	if got := b.one(t, retire(contract.KindASG, "a")); got.Outcome != Done {
		t.Fatalf("outcome %s, %v", got.Outcome, got.Err)
	}
	if len(b.events.list) != 0 {
		t.Errorf("events %q", b.events.list)
	}
}

// The request and the taint come in one patch, or not at all.
func TestRetireIsOnePatch(t *testing.T) {
	b := newBed(nil)
	b.one(t, retire(contract.KindScaleDown, "a"))
	var patches []string
	for _, a := range b.client.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			patches = append(patches, string(p.GetPatch()))
		}
	}
	if len(patches) != 1 {
		t.Fatalf("patches %q", patches)
	}
	var ops []kube.Op
	if err := json.Unmarshal([]byte(patches[0]), &ops); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range ops {
		got = append(got, op.Op+" "+op.Path)
	}
	want := []string{"test /metadata/uid", "test /metadata/resourceVersion", "add /metadata/annotations", "add /spec/taints"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(b.events.list) != 1 || !strings.HasPrefix(b.events.list[0], contract.EventScaleDown+" n1: ") {
		t.Errorf("events %q", b.events.list)
	}
	if facts, err := contract.ParseFacts(b.events.facts[contract.EventScaleDown]); err != nil || facts.Group == "" || facts.ID == "" {
		t.Errorf("facts %+v, %v", facts, err)
	}
}

func TestKeep(t *testing.T) {
	keep := action.CancelDrain{Group: "web", Node: n1, ID: "a", Why: "pods wait for it"}
	for _, tc := range []struct {
		name     string
		standing map[string]string
		want     Outcome
		left     bool
	}{
		{"takes the request back", with(request(contract.KindScaleDown, "a"), contract.AnnotationDrainPermit, "a"), Done, false},
		{"is done where there is none", nil, Done, false},
		{"leaves another request", request(contract.KindScaleDown, "b"), Stopped, true},
		{"is too late after the mark", with(request(contract.KindScaleDown, "a"), contract.AnnotationTerminating, "a"), Stopped, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(tc.standing)
			if r := b.one(t, keep); r.Outcome != tc.want {
				t.Fatalf("%s: %v", r.Outcome, r.Err)
			}
			annotations := b.node(t).Annotations
			if _, left := annotations[contract.AnnotationDrainRequest]; left != tc.left {
				t.Errorf("annotations %v", annotations)
			}
			if _, permitted := annotations[contract.AnnotationDrainPermit]; permitted {
				t.Error("its permit is left")
			}
		})
	}
}

func TestMarkAndUnmark(t *testing.T) {
	b := newBed(nil)
	since := time.Unix(1_700_000_000, 0)
	for range 2 { // twice is once
		if r := b.one(t, action.Mark{Group: "web", Node: n1, Since: since}); r.Outcome != Done {
			t.Fatal(r.Err)
		}
	}
	if got, ok, err := contract.Unneeded(b.node(t).Spec.Taints); !ok || err != nil || !got.Equal(since) {
		t.Errorf("since %s %v %v", got, ok, err)
	}
	for _, c := range []struct{ asked, want time.Time }{
		{since.Add(time.Hour), since},                  // one that stands longer stays
		{since.Add(-time.Hour), since.Add(-time.Hour)}, // one dated ahead does not
	} {
		if r := b.one(t, action.Mark{Group: "web", Node: n1, Since: c.asked}); r.Outcome != Done {
			t.Fatal(r.Err)
		}
		if got, _, err := contract.Unneeded(b.node(t).Spec.Taints); err != nil || !got.Equal(c.want) {
			t.Errorf("marked since %s: it says %s %v, want %s", c.asked, got, err, c.want)
		}
	}
	if r := b.one(t, action.Unmark{Group: "web", Node: n1}); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	if taints := b.node(t).Spec.Taints; len(taints) != 0 {
		t.Errorf("taints %v", taints)
	}
}

// Only what changes is written, and no other taint is touched.
func TestSteer(t *testing.T) {
	b := newBed(nil)
	for _, turn := range []contract.FillTurn{contract.FillLast, contract.FillLast, contract.FillLater, contract.FillFirst, contract.FillFirst} {
		if r := b.one(t, action.Steer{Group: "web", Node: n1, Fill: turn}); r.Outcome != Done {
			t.Fatal(r.Err)
		}
		taints := b.node(t).Spec.Taints
		hard := slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		if contract.FillTurnOf(taints) != turn || len(taints) != int(turn) || hard {
			t.Errorf("turn %d: taints %v", turn, taints)
		}
	}
	if r := b.one(t, action.Mark{Group: "web", Node: n1, Since: time.Unix(1_700_000_000, 0)}); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	for _, turn := range []contract.FillTurn{contract.FillLater, contract.FillFirst} {
		if r := b.one(t, action.Steer{Group: "web", Node: n1, Fill: turn}); r.Outcome != Done {
			t.Fatal(r.Err)
		}
		if _, marked, err := contract.Unneeded(b.node(t).Spec.Taints); !marked || err != nil {
			t.Errorf("turn %d: the mark is gone", turn)
		}
	}
}

// A node of the same name with another UID is another node.
func TestAnotherNodeOfTheName(t *testing.T) {
	other := action.NodeRef{Name: "n1", UID: "older"}
	for _, todo := range []action.Action{
		action.RequestDrain{Node: other, ID: "a", Kind: contract.KindASG}, action.CancelDrain{Node: other, ID: "a"}, action.Permit{Node: other, ID: "a"},
		action.Mark{Node: other}, action.Unmark{Node: other}, action.Steer{Node: other, Fill: contract.FillLast}, action.Terminate{Node: other, Instance: "i-1", ID: "a"},
	} {
		b := newBed(nil)
		if r := b.one(t, todo); r.Outcome != Stopped {
			t.Errorf("%s: %s", todo, r.Outcome)
		}
		if len(b.groups.calls) != 0 || len(b.node(t).Annotations) != 0 || len(b.node(t).Spec.Taints) != 0 {
			t.Errorf("%s: something was done", todo)
		}
	}
}

func terminate() action.Terminate {
	return action.Terminate{Group: "web", Instance: "i-1", Node: n1, ID: "a", Decrement: true, Why: "drained"}
}

// The mark stands while Auto Scaling is called, and stays.
func TestTerminate(t *testing.T) {
	b := newBed(request(contract.KindScaleDown, "a"), onNode("elsewhere", "n2")).cordoned()
	b.groups.during = func(string) {
		if mark := b.node(t).Annotations[contract.AnnotationTerminating]; mark != "a" {
			t.Errorf("called under the mark %q", mark)
		}
	}
	if r := b.one(t, terminate()); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff([]string{"terminate web i-1 true"}, b.groups.calls); diff != "" {
		t.Error(diff)
	}
	if mark := b.node(t).Annotations[contract.AnnotationTerminating]; mark != "a" {
		t.Errorf("mark %q", mark)
	}
}

// A pod that came in between takes the mark off again.
func TestTerminateFindsAPod(t *testing.T) {
	b := newBed(nil, onNode("late", "n1")).cordoned()
	r := b.one(t, terminate())
	if r.Outcome != Stopped || !strings.Contains(r.Err.Error(), "default/late") {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if len(b.groups.calls) != 0 {
		t.Errorf("called %v", b.groups.calls)
	}
	if _, marked := b.node(t).Annotations[contract.AnnotationTerminating]; marked {
		t.Error("the mark stands")
	}
}

// Pods of a tenant that have ended are no reason to read more of them at a time than fit into memory,
// nor for long; whoever is among them is found all the same.
func TestTerminateReadsPodsInPages(t *testing.T) {
	for _, c := range []struct {
		ended, running int
		deleted        bool // the first that has ended
		want           string
		pages          int
	}{
		{ended: 10_000, pages: 1 + endedPages},
		{ended: 3, running: 12, want: "pod default/z11 is still on node n1", pages: 3},
		{ended: 3, deleted: true, want: "pod default/a00000 is still on node n1", pages: 2},
	} {
		var pods []*corev1.Pod
		for i := range c.ended {
			p := onNode(fmt.Sprintf("a%05d", i), "n1")
			p.Status.Phase = corev1.PodFailed
			if c.deleted && i == 0 {
				now := metav1.Now()
				p.DeletionTimestamp, p.Finalizers = &now, []string{"x"}
			}
			pods = append(pods, p)
		}
		for i := range c.running {
			p := onNode(fmt.Sprintf("z%02d", i), "n1")
			if i < c.running-1 {
				p.Annotations = map[string]string{contract.AnnotationDaemonSetPod: "true"}
			}
			pods = append(pods, p)
		}
		b := newBed(nil, pods...).cordoned()
		most, pages := 0, 0
		list := listByNode(b.client)
		b.client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.(clienttesting.ListActionImpl).ListOptions.Limit == 0 {
				return true, nil, &http.MaxBytesError{}
			}
			_, object, err := list(a)
			most, pages = max(most, len(object.(*corev1.PodList).Items)), pages+1
			return true, object, err
		})
		got := b.one(t, action.Terminate{Group: "web", Instance: "i-1", Node: n1, ID: "scale-down:i-1:1"})
		if said := fmt.Sprint(got.Err); (c.want == "") != (got.Err == nil) || !strings.Contains(said, c.want) || most > kube.PodsPerPage || pages != c.pages {
			t.Errorf("%+v: %v, %d pages of at most %d", c, got.Err, pages, most)
		}
	}
}

func TestTerminateFails(t *testing.T) {
	refused := &asg.CallError{Call: "autoscaling:TerminateInstanceInAutoScalingGroup", Code: "AccessDenied", Message: "no", Class: asg.ErrDenied}
	for _, tc := range []struct {
		name   string
		err    error
		want   Outcome
		marked bool
	}{
		{"it was refused", refused, Failed, false},
		{"nobody knows whether it was heard", &asg.CallError{Class: asg.ErrUnavailable}, Failed, true},
		{"AWS failed", &asg.CallError{Code: "InternalFailure", Class: asg.ErrUnavailable}, Failed, true},
		{"the group could not be read", asg.Unasked(&asg.CallError{Class: asg.ErrUnavailable}), Failed, false},
		{"another cluster owns the group", fmt.Errorf("%w: tag", asg.ErrNotOurs), Stopped, false},
		{"it leaves already", fmt.Errorf("%w: Terminating", asg.ErrChanged), Stopped, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBed(nil).cordoned()
			b.groups.err = tc.err
			if r := b.one(t, terminate()); r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			if _, marked := b.node(t).Annotations[contract.AnnotationTerminating]; marked != tc.marked {
				t.Errorf("marked %v", marked)
			}
		})
	}
}

// A mark of an earlier try stays where the group cannot be read now: that try may have had its effect.
func TestMarkOfAnEarlierTry(t *testing.T) {
	b := newBed(map[string]string{contract.AnnotationTerminating: "a"}).cordoned()
	b.groups.err = asg.Unasked(&asg.CallError{Class: asg.ErrUnavailable})
	if r := b.one(t, terminate()); r.Outcome != Failed {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if _, marked := b.node(t).Annotations[contract.AnnotationTerminating]; !marked {
		t.Error("the mark was taken back")
	}
}

// Somebody who puts a drained node on hold before its end has begun keeps it; what is no scale-down is not
// kept by that.
func TestTerminateSeesAHold(t *testing.T) {
	for id, want := range map[string]Outcome{contract.ScaleDownID("i-1", time.Unix(1, 0)): Stopped, "a": Done} {
		x := terminate()
		x.ID = id
		b := newBed(map[string]string{contract.AnnotationHold: "heap dump"}).cordoned()
		r := b.one(t, x)
		if r.Outcome != want || (len(b.groups.calls) == 0) != (want == Stopped) {
			t.Errorf("%s: %s (%v), calls %v", id, r.Outcome, r.Err, b.groups.calls)
		}
		if _, marked := b.node(t).Annotations[contract.AnnotationTerminating]; marked != (want == Done) {
			t.Errorf("%s: marked is %v", id, marked)
		}
	}
}

// Killed after the mark, the next one goes on; a mark of another request is
// left to whoever set it.
func TestTerminateGoesOn(t *testing.T) {
	b := newBed(map[string]string{contract.AnnotationTerminating: "a"}).cordoned()
	if r := b.one(t, terminate()); r.Outcome != Done || len(b.groups.calls) != 1 {
		t.Errorf("%s, calls %v", r.Outcome, b.groups.calls)
	}
	b = newBed(map[string]string{contract.AnnotationTerminating: "other"})
	if r := b.one(t, terminate()); r.Outcome != Stopped || len(b.groups.calls) != 0 {
		t.Errorf("%s, calls %v", r.Outcome, b.groups.calls)
	}
}

// An instance that never joined has no node to look at.
func TestTerminateWithoutNode(t *testing.T) {
	b := newBed(nil)
	if r := b.one(t, action.Terminate{Group: "web", Instance: "i-2"}); r.Outcome != Done {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff([]string{"terminate web i-2 false"}, b.groups.calls); diff != "" {
		t.Error(diff)
	}
}

// Somebody writes the node between our read and our patch: nothing is written.
// The fake does not look at resource versions by itself, but it does carry out
// the patch's own tests.
func TestTheMarkIsGuarded(t *testing.T) {
	b := newBed(nil)
	b.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid1", ResourceVersion: "6"}}, nil
	})
	b.client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), `{"op":"test","path":"/metadata/resourceVersion","value":"6"}`) {
			t.Error("the patch does not test the version that was read")
		}
		return true, nil, apierrors.NewGenericServerResponse(422, "patch", corev1.Resource("nodes"), "n1", "", 0, false)
	})
	if r := b.one(t, terminate()); r.Outcome != Stopped || !errors.Is(r.Err, kube.ErrChanged) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
	if len(b.groups.calls) != 0 {
		t.Errorf("called %v", b.groups.calls)
	}
}

// of returns which instance the node is.
func (b *bed) of(instance string) *bed {
	return b.change(func(n *corev1.Node) { n.Spec.ProviderID = "aws:///eu-west-1a/" + instance })
}

// cordoned closes the node.
func (b *bed) cordoned() *bed { return b.change(func(n *corev1.Node) { n.Spec.Unschedulable = true }) }

func (b *bed) change(how func(*corev1.Node)) *bed {
	node, err := b.client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	how(node)
	if _, err := b.client.CoreV1().Nodes().Update(context.Background(), node, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	return b
}

// What was completed already is no news.
func TestCompletedAlready(t *testing.T) {
	var log strings.Builder
	b := newBed(nil).cordoned()
	b.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b.groups.err = asg.ErrAlready
	r := b.one(t, action.Complete{Group: "web", Instance: "i-1", Hook: "windlass", Node: n1})
	if r.Outcome != Done || !r.Before || r.Err != nil || len(b.events.list) != 0 || log.Len() != 0 {
		t.Errorf("%s: %v, events %q, log %q", r.Outcome, r.Err, b.events.list, &log)
	}
}

func TestComplete(t *testing.T) {
	for _, tc := range []struct {
		name   string
		action action.Complete
		bed    *bed
		want   Outcome
	}{
		{"the node is empty", action.Complete{Node: n1}, newBed(nil).cordoned(), Done},
		{"a pod came", action.Complete{Node: n1}, newBed(nil, onNode("late", "n1")).cordoned(), Stopped},
		{"somebody has opened it", action.Complete{Node: n1}, newBed(nil), Stopped},
		{"its kubelet is silent", action.Complete{Node: n1}, newBed(nil).change(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
		}), Done},
		{"the drain failed, or it comes into service: pods may be there", action.Complete{Node: n1, Occupied: true}, newBed(nil, onNode("stuck", "n1")), Done},
		{"the node is gone: the next decision knows that", action.Complete{Node: action.NodeRef{Name: "n1"}}, newBed(nil).of("i-2"), Stopped},
		{"its kubelet registered it again, and the pods live", action.Complete{Node: action.NodeRef{Name: "n1", UID: "before"}}, newBed(nil, onNode("alive", "n1")), Stopped},
		{"another instance has its name", action.Complete{Node: action.NodeRef{Name: "n1", UID: "before"}, Occupied: true}, newBed(nil, onNode("alive", "n1")).of("i-2"), Stopped},
		{"it never joined", action.Complete{}, newBed(nil).of("i-2"), Done},
		{"it has joined", action.Complete{}, newBed(nil), Stopped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.action.Group, tc.action.Instance, tc.action.Hook = "web", "i-1", "windlass"
			r := tc.bed.one(t, tc.action)
			if r.Outcome != tc.want {
				t.Errorf("%s: %v", r.Outcome, r.Err)
			}
			if called := len(tc.bed.groups.calls) == 1; called != (tc.want == Done) {
				t.Errorf("calls %v", tc.bed.groups.calls)
			}
		})
	}
}

// What changes a group keeps its order; groups do not wait for each other, and instances that
// wait for a hook, or that are ended, hold nothing else up.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{}
		g.during = func(call string) {
			if strings.Contains(call, "slow") {
				time.Sleep(2 * time.Second)
			}
		}
		a := &Actor{Nodes: &nodeList{}, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		began := time.Now()
		results := a.Do(t.Context(), []action.Action{
			action.Grow{Group: "slow", To: 1}, action.Suspend{Group: "quick", Process: "A"},
			action.Grow{Group: "slow", To: 2}, action.Suspend{Group: "quick", Process: "B"},
			action.Heartbeat{Group: "slow", Instance: "1"}, action.Heartbeat{Group: "slow", Instance: "2"},
			action.Terminate{Group: "slowly", Instance: "1"}, action.Terminate{Group: "slowly", Instance: "2"},
		})
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("took %s", took)
		}
		var grown, quick []string
		for _, call := range g.calls {
			if strings.HasPrefix(call, "desired") {
				grown = append(grown, call)
			}
			if strings.HasPrefix(call, "suspend") {
				quick = append(quick, call)
			}
		}
		if diff := cmp.Diff([]string{"desired slow 0→1", "desired slow 0→2"}, grown); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"suspend quick A", "suspend quick B"}, quick); diff != "" {
			t.Error(diff)
		}
		for i, want := range []time.Duration{2, 0, 4, 0, 2, 2, 2, 2} {
			if got := results[i].Ended.Sub(began); got != want*time.Second {
				t.Errorf("%s ended after %s", results[i].Action, got)
			}
		}
	})
}

// slowNodes takes 50 ms to get a node.
type slowNodes struct{ corev1client.NodeInterface }

func (slowNodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	time.Sleep(50 * time.Millisecond)
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}, nil
}

func (slowNodes) Patch(_ context.Context, name string, _ types.PatchType, _ []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Node, error) {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"}}, nil
}

// Marks are put on nodes last and for a second only, because an evaluation that lasts keeps
// pods waiting; the observers know of all of them when Do returns.
func TestMarksDoNotHoldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(nil)
		b.Nodes = slowNodes{b.Nodes}
		known := map[string]string{}
		b.Await = func(_ context.Context, node, version string) { known[node] = version }
		var actions []action.Action
		for i := range 1000 {
			actions = append(actions, action.Mark{Group: "web", Node: action.NodeRef{Name: fmt.Sprint("n", i)}, Since: time.Now()})
		}
		actions = append(actions, action.Suspend{Group: "web", Process: "A"})
		began := time.Now()
		results := b.Do(t.Context(), actions)
		if took := time.Since(began); took > action.TraitsOf(action.Mark{}).Budget+100*time.Millisecond {
			t.Errorf("took %s", took)
		}
		if got := results[1000].Ended.Sub(began); got != 0 {
			t.Errorf("what is no mark ended after %s", got)
		}
		done := 0
		for _, r := range results[:1000] {
			if r.Outcome == Done {
				done++
			}
		}
		if done < 100 || done == 1000 || len(known) != done {
			t.Errorf("%d marked, %d known", done, len(known))
		}
	})
}

// What failed is left alone for a while, and longer each time.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{err: &asg.CallError{Code: "AccessDenied", Class: asg.ErrDenied}}
		a := &Actor{Nodes: &nodeList{}, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		try := func(todo action.Action) Outcome { return a.Do(t.Context(), []action.Action{todo})[0].Outcome }
		tries := 0
		for range 600 { // an evaluation each 100 ms, for a minute
			if try(action.Suspend{Group: "web", Process: "A"}) == Failed {
				tries++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if tries != 6 { // at 0, 1, 3, 7, 15 and 31 s
			t.Errorf("%d tries in a minute", tries)
		}
		if due := a.Due(time.Now()); due.Before(time.Now()) || time.Until(due) > mostFailure {
			t.Errorf("due in %s", time.Until(due))
		}
		// Others are not concerned, and a success forgets.
		g.err = nil
		if got := try(action.Suspend{Group: "web", Process: "B"}); got != Done {
			t.Errorf("another action: %s", got)
		}
		time.Sleep(time.Minute)
		if got := try(action.Suspend{Group: "web", Process: "A"}); got != Done {
			t.Errorf("after the pause: %s", got)
		}
		if due := a.Due(time.Now()); !due.IsZero() {
			t.Errorf("due at %s after a success", due)
		}
		// Too early is tried again within a second.
		g.err = asg.ErrTooEarly
		try(action.Complete{Group: "web", Instance: "i-1", Hook: "h"})
		if wait := time.Until(a.Due(time.Now())); wait > time.Second {
			t.Errorf("too early: again in %s", wait)
		}
	})
}

// One that no reading has shown to wait is tried soon, and ever more seldom; that delays none that a
// reading has shown.
func TestPausesOfEarlyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{err: fmt.Errorf("%w: refused", asg.ErrTooEarly)}
		a := &Actor{Nodes: &nodeList{}, Groups: g, Events: &events{}, Logger: slog.New(slog.DiscardHandler)}
		early := action.Complete{Group: "web", Instance: "i-1", Hook: "h", Early: true}
		var tries []time.Duration
		for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
			if a.Do(t.Context(), []action.Action{early})[0].Outcome != Paused {
				tries = append(tries, time.Since(began))
			}
		}
		if len(tries) > 25 || tries[4] > 4*time.Second {
			t.Errorf("tried after %v", tries)
		}
		g.err = nil
		if got := a.Do(t.Context(), []action.Action{action.Complete{Group: "web", Instance: "i-1", Hook: "h"}})[0].Outcome; got != Done {
			t.Errorf("one in time: %s", got)
		}
	})
}

// What stops again and again, for the same reason, is tried less and less
// often, and reported once.
func TestPausesOfStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := &groups{err: fmt.Errorf("%w: web wants 4 instances, not 3", asg.ErrChanged)}
		a := &Actor{Nodes: &nodeList{}, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		try := func() Outcome {
			return a.Do(t.Context(), []action.Action{action.Grow{Group: "web", From: 3, To: 4}})[0].Outcome
		}
		tries := func(d time.Duration) int {
			n := 0
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				if try() == Stopped {
					n++
				}
			}
			return n
		}
		if n := tries(time.Minute); n > 12 {
			t.Errorf("%d tries in a minute", n)
		}
		if n := strings.Count(log.String(), `msg="action stopped"`); n != 1 {
			t.Errorf("told %d times", n)
		}
		if n := tries(time.Hour); n < 60 {
			t.Errorf("%d tries in an hour", n)
		}
		// Another reason is news: the world moves.
		g.err = fmt.Errorf("%w: web wants 5 instances, not 3", asg.ErrChanged)
		time.Sleep(mostFailure)
		try()
		if wait := time.Until(a.Due(time.Now())); wait > afterChange {
			t.Errorf("after another reason: again in %s", wait)
		}
	})
}

// A hundred nodes that fall due at once keep neither a pod waiting for its node
// nor the health of the loop.
func TestTerminatesDoNotHoldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &groups{}
		g.during = func(call string) {
			if strings.HasPrefix(call, "terminate") {
				time.Sleep(500 * time.Millisecond)
			}
		}
		a := &Actor{Nodes: &nodeList{}, Groups: g, Events: &events{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		var alive atomic.Int64
		a.Alive = func() { alive.Add(1) }
		var actions []action.Action
		for n := range 20 {
			group := fmt.Sprint("g", n)
			for i := range 20 {
				actions = append(actions, action.Terminate{Group: group, Instance: fmt.Sprint(group, "-", i)})
			}
			actions = append(actions, action.Heartbeat{Group: group, Instance: "h", Hook: "x"})
		}
		actions = append(actions, action.Grow{Group: "new", To: 1})
		began := time.Now()
		results := a.Do(t.Context(), actions)
		if took := time.Since(began); took > action.TraitsOf(action.Terminate{}).Budget+time.Second {
			t.Errorf("took %s", took)
		}
		outcomes := map[Outcome]int{}
		for _, r := range results {
			if _, ends := r.Action.(action.Terminate); ends {
				outcomes[r.Outcome]++
				continue
			}
			if r.Outcome != Done || r.Ended.Sub(began) > 0 {
				t.Errorf("%s: %s after %s", r.Action, r.Outcome, r.Ended.Sub(began))
			}
		}
		if outcomes[Done] == 0 || outcomes[Paused] == 0 || len(outcomes) != 2 {
			t.Errorf("terminates: %v", outcomes)
		}
		if int(alive.Load()) != len(g.calls) {
			t.Errorf("%d signs of life for %d calls", alive.Load(), len(g.calls))
		}
		// What was put off needs no event to be done.
		if due := a.Due(time.Now()); due.IsZero() || due.After(time.Now()) {
			t.Errorf("due at %v", due)
		}
	})
}

// Only a call that AWS did not answer, or answered with trouble of its own, may have had its
// effect though it failed; and only what failed now was refused now.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		reason  string
		outcome Outcome
		err     error
		unheard bool
		refusal plan.Refusal
	}{
		{"stopped", Stopped, ErrStopped, false, plan.Refusal{}},
		{"the Nodes were not listed", Failed, errors.New("listing the nodes: timeout"), false, plan.Refusal{}},
		{"throttled", Failed, &asg.CallError{Code: "Throttling"}, false, plan.Refusal{Code: "Throttling"}},
		{"no answer", Failed, &asg.CallError{}, true, plan.Refusal{}},
		{"AWS is in trouble", Failed, &asg.CallError{Code: "InternalFailure", Class: asg.ErrUnavailable}, true, plan.Refusal{Code: "InternalFailure"}},
		{"refused", Failed, &asg.CallError{Code: "ValidationError", Message: "no", Class: asg.ErrRefused}, false, plan.Refusal{Code: "ValidationError", Message: "no", ForGood: true}},
		{"no right", Failed, &asg.CallError{Call: "autoscaling:X", Code: "AccessDenied", Class: asg.ErrDenied}, false, plan.Refusal{Code: "AccessDenied", Lack: "no right to call autoscaling:X"}},
		{"refused a moment ago", Paused, &asg.CallError{Code: "ValidationError", Class: asg.ErrRefused}, false, plan.Refusal{}},
	} {
		got := Result{Action: action.Lower{Group: "web"}, Outcome: c.outcome, Err: c.err}.Settled()
		want := plan.Result{Action: action.Lower{Group: "web"}, Unheard: c.unheard, Refusal: c.refusal}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.reason, diff)
		}
	}
}
