package contract

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Who may create Events in a namespace of his own cannot speak for Windlass.
func TestBelieved(t *testing.T) {
	const ours = "windlass-system"
	for _, c := range []struct {
		what, by, in, kind, of string
		want                   bool
	}{
		{"agent of its Node", AppAgent, "default", "Node", "", true},
		{"scaler of a Node", AppScaler, "default", "Node", "", true},
		{"scaler of its page", AppScaler, ours, "ConfigMap", ours, true},
		{"somebody of a Node", "kubelet", "default", "Node", "", false},
		{"a tenant of a Node", AppAgent, "shop", "Node", "", false},
		{"a tenant of a Node, said to be in his namespace", AppAgent, "shop", "Node", "shop", false},
		{"a tenant of our page", AppScaler, "shop", "ConfigMap", ours, false},
		{"a tenant of his page", AppScaler, "shop", "ConfigMap", "shop", false},
		{"somebody of default of a page there", AppScaler, "default", "ConfigMap", "default", false},
		{"scaler of a pod", AppScaler, "shop", "Pod", "shop", false},
		{"a Node in our namespace", AppScaler, ours, "Node", ours, false},
	} {
		e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: c.kind, Namespace: c.of}, Source: corev1.EventSource{Component: c.by}}
		e.Namespace = c.in
		if got := Believed(e, ours); got != c.want {
			t.Errorf("%s: believed %v", c.what, got)
		}
	}
	if places := EventPlaces(ours); len(places) != 4 || places[0].Namespace != "default" || places[3].Namespace != ours || places[0].Selector().String() != "source="+AppScaler+",involvedObject.kind=Node" {
		t.Errorf("%v", places)
	}
}
