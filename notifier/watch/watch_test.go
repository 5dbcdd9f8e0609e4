package watch

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// What the API server has is in the world; a kubelet's word about a Node wakes nobody, and an
// agent's does.
func TestWorld(t *testing.T) {
	const ours = "windlass-system"
	node := func(annotations map[string]string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	event := func(name, by string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Source: corev1.EventSource{Component: by}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	}
	about := func(name, kind, of, in string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, UID: types.UID(name)}, Source: corev1.EventSource{Component: contract.AppAgent}, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: of, Name: "n"}}
	}
	client := fake.NewClientset(node(map[string]string{"other": "x"}, corev1.ConditionTrue), event("a", contract.AppAgent), event("k", "kubelet"),
		about("ours", "ConfigMap", ours, ours), about("theirs", "Node", "", "shop"), about("forged", "ConfigMap", "shop", "shop"), about("odd", "Node", ours, ours),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapStatus}, Data: map[string]string{statuspage.Key: "groups: [{name: web, ready: 3}]"}})
	w, err := New(client, ours, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer w.Stop()
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	world, err := w.World(metav1.Now().Time)
	if err != nil || len(world.Nodes) != 1 || world.Page == nil || world.Page.Groups[0].Ready != 3 {
		t.Fatalf("%+v, %v", world, err)
	}
	for _, e := range world.Events {
		if e.Writer != contract.AppAgent || e.UID != "" && e.UID != "ours" {
			t.Errorf("Event %q of %s", e.UID, e.Writer)
		}
	}
	// It asks for no more than this.
	selectors := map[string][]string{}
	namespaces := map[string]bool{}
	for _, a := range client.Actions() {
		if list, is := a.(clienttesting.ListAction); is && a.GetVerb() == "list" {
			resource := a.GetResource().Resource
			if resource == "events" {
				namespaces[a.GetNamespace()] = true
			}
			selectors[resource] = append(selectors[resource], list.GetListRestrictions().Fields.String())
		}
	}
	if len(selectors["events"]) != 4 || len(namespaces) != 2 || !namespaces["default"] || !namespaces[ours] || len(selectors["configmaps"]) != 1 || selectors["configmaps"][0] != "metadata.name="+contract.ConfigMapStatus {
		t.Errorf("selectors %v, Events of %v", selectors, namespaces)
	}
	nodes := client.CoreV1().Nodes()
	<-w.Changed()
	if _, err := nodes.Update(ctx, node(map[string]string{contract.AnnotationNotices: `[{"id":"spot-1","kind":"spot","does":"drain"}]`}, corev1.ConditionTrue), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-w.Changed()
	for world.Nodes["n"].Notices == nil {
		if world, err = w.World(metav1.Now().Time); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlim(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"l": "x"}, Annotations: map[string]string{"other": "x", contract.AnnotationTerminating: "id"}}}
	got, err := slim(node)
	if n := got.(*corev1.Node); err != nil || len(n.Labels) != 0 || len(n.Annotations) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is read of a Node is the same in the slim one.
func TestSlimKeepsWhatIsRead(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{
		contract.AnnotationDrainRequest: contract.Request{ID: "r"}.String(), contract.AnnotationDrainReport: contract.Report{Answers: []string{"r"}, Phase: contract.PhaseDraining}.String(),
		contract.AnnotationNotices: contract.NoticedList{{ID: "a"}}.String(), contract.AnnotationServed: contract.ServedList{{ID: "b"}}.String(), contract.AnnotationTerminating: "id",
	}}}
	slimmed, err := slim(node)
	if err != nil {
		t.Fatal(err)
	}
	want := happening.NodeOf(node)
	if diff := cmp.Diff(want, happening.NodeOf(slimmed.(*corev1.Node))); diff != "" {
		t.Errorf("(-whole +slim):\n%s", diff)
	}
	for field, value := range reflect.ValueOf(want).Fields() {
		if value.IsZero() {
			t.Errorf("the test has no %s", field.Name)
		}
	}
}

// An Event of any size is a small one here.
func TestSlimEvent(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	got, err := slim(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"l": long}, Annotations: map[string]string{"other": long, contract.AnnotationEventFacts: long, contract.AnnotationEventID: "i"}},
		Message: long, Related: &corev1.ObjectReference{Name: long}})
	if err != nil {
		t.Fatal(err)
	}
	e := got.(*corev1.Event)
	if size := e.Size(); size > 2*mostOfEvent || e.Annotations[contract.AnnotationEventID] != "i" {
		t.Errorf("%d bytes, %v", size, len(e.Annotations))
	}
}

// Where several groups are at their maximum, the verdicts say which pods wait for which.
func TestWorldOfSeveralAtMax(t *testing.T) {
	const ours = "windlass-system"
	verdicts, err := statuspage.Verdicts{Pods: []statuspage.Pods{{Count: 1, Names: []string{"shop/a"}, Verdict: statuspage.Verdict{Reason: "GroupsUnavailable",
		Details: []statuspage.Detail{{Text: "web: at its maximum of 3", Params: map[string]any{"group": "web", "max": 3}}}}}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: contract.ConfigMapStatus},
		Data:       map[string]string{statuspage.Key: "groups: [{name: web, reason: AtMax}, {name: batch, reason: AtMax}]"},
		BinaryData: map[string][]byte{statuspage.VerdictsKey: verdicts}})
	w, err := New(client, ours, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer w.Stop()
	defer cancel()
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	world, err := w.World(metav1.Now().Time)
	if err != nil || world.Waiting["web"].Pods != 1 || world.Waiting["batch"].Pods != 0 {
		t.Errorf("%+v, %v", world.Waiting, err)
	}
}
