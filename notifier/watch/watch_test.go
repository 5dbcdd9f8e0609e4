package watch

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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
	client := fake.NewClientset(node(map[string]string{"other": "x"}, corev1.ConditionTrue), event("a", contract.AppAgent), event("k", "kubelet"),
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
		if e.Writer != contract.AppAgent {
			t.Errorf("an Event of %s", e.Writer)
		}
	}
	// It asks for no more than this.
	selectors := map[string][]string{}
	for _, a := range client.Actions() {
		if list, is := a.(clienttesting.ListAction); is && a.GetVerb() == "list" {
			resource := a.GetResource().Resource
			selectors[resource] = append(selectors[resource], list.GetListRestrictions().Fields.String())
		}
	}
	if len(selectors["events"]) != 2 || len(selectors["configmaps"]) != 1 || selectors["configmaps"][0] != "metadata.name="+contract.ConfigMapStatus {
		t.Errorf("selectors %v", selectors)
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
