package contract

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// EventPlace is where Events stand that are believed to be of Windlass: those of a program, about
// objects of a kind.
type EventPlace struct {
	// Namespace is that of the Events, and ObjectsIn that of the objects; empty for Nodes.
	Namespace, ObjectsIn string
	Kind                 string
	Program              string
}

// EventPlaces are those about Nodes, and about ConfigMaps of our own namespace. Whoever writes an
// Event chooses its source, but not its namespace: that is the object's, and "default" where the
// object has none. So Events of other namespaces are not believed: who may create some there may
// write any.
func EventPlaces(namespace string) (places []EventPlace) {
	for _, program := range []string{AppScaler, AppAgent} {
		places = append(places, EventPlace{metav1.NamespaceDefault, "", "Node", program}, EventPlace{namespace, namespace, "ConfigMap", program})
	}
	return places
}

// AutoscalerPlaces are those where Cluster Autoscaler is believed, given its namespace: about Nodes,
// and about its status.
func AutoscalerPlaces(namespace string) []EventPlace {
	return []EventPlace{
		{metav1.NamespaceDefault, "", "Node", AppClusterAutoscaler},
		{namespace, namespace, "ConfigMap", AppClusterAutoscaler},
	}
}

// Selector finds them among the Events of their namespace.
func (p EventPlace) Selector() fields.Selector {
	return fields.AndSelectors(fields.OneTermEqualSelector("source", p.Program), fields.OneTermEqualSelector("involvedObject.kind", p.Kind))
}

// Has reports whether an Event is of the place.
func (p EventPlace) Has(e *corev1.Event) bool {
	return e.Namespace == p.Namespace && e.Source.Component == p.Program && e.InvolvedObject.Kind == p.Kind && e.InvolvedObject.Namespace == p.ObjectsIn
}

// Believed reports whether an Event is of any of these places.
func Believed(e *corev1.Event, namespace string) bool {
	return slices.ContainsFunc(EventPlaces(namespace), func(p EventPlace) bool { return p.Has(e) })
}
