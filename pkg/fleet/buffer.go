package fleet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Buffer is a CapacityBuffer: room that is kept free for as many pods of a template as
// it says.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md
type Buffer struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Version is its resourceVersion.
	Version string `json:"version,omitempty"`
	// Strategy is spec.provisioningStrategy; empty counts as ActiveCapacity.
	Strategy string `json:"strategy,omitempty"`
	// Template names the PodTemplate that spec.podTemplateRef refers to, Scalable is
	// spec.scalableRef. A buffer should have one of them.
	Template string    `json:"template,omitempty"`
	Scalable *Scalable `json:"scalable,omitempty"`
	// Replicas is how many pods there shall be room for, Percentage the same as a share
	// of what Scalable has, Limits what they may request at most all together.
	Replicas   *int32              `json:"replicas,omitempty"`
	Percentage *int32              `json:"percentage,omitempty"`
	Limits     corev1.ResourceList `json:"limits,omitempty"`
	// Pods is what Template or Scalable says of the pods, nil where it does not: then
	// Fault may say why that could not be read, and else it is not there.
	Pods   *BufferPods  `json:"pods,omitempty"`
	Fault  string       `json:"fault,omitempty"`
	Status BufferStatus `json:"status,omitzero"`
}

// ActiveCapacity is the strategy of buffers whose room is on nodes that run.
const ActiveCapacity = "buffer.x-k8s.io/active-capacity"

// Active reports whether the buffer asks for room on nodes that run; others are for other
// autoscalers.
func (b Buffer) Active() bool { return b.Strategy == "" || b.Strategy == ActiveCapacity }

// Key is namespace/name.
func (b Buffer) Key() string { return b.Namespace + "/" + b.Name }

// Scalable names what creates pods, in the namespace of the buffer.
type Scalable struct {
	Group string `json:"group,omitempty"` // of the API, such as apps
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// ScalableKind is a kind of scalable objects.
type ScalableKind struct{ Group, Kind string }

// The kinds of scalable objects of which the pods are known.
var (
	Deployments            = ScalableKind{"apps", "Deployment"}
	ReplicaSets            = ScalableKind{"apps", "ReplicaSet"}
	StatefulSets           = ScalableKind{"apps", "StatefulSet"}
	Jobs                   = ScalableKind{"batch", "Job"}
	ReplicationControllers = ScalableKind{"", "ReplicationController"}
)

// KindOf is the scalable's kind. Cluster Autoscaler writes core for the API group that
// has no name.
func (s Scalable) KindOf() ScalableKind {
	if s.Group == "core" {
		return ScalableKind{"", s.Kind}
	}
	return ScalableKind{s.Group, s.Kind}
}

// Known reports whether it is known what the pods of such a scalable are.
func (s Scalable) Known() bool {
	switch s.KindOf() {
	case Deployments, ReplicaSets, StatefulSets, Jobs, ReplicationControllers:
		return true
	}
	return false
}

// BufferPods are the pods for which a buffer keeps room.
type BufferPods struct {
	// Template is what they are made from. It is shared and never changed: another
	// pointer means that something of it has changed.
	Template *corev1.PodTemplateSpec `json:"template"`
	// Generation is that of a PodTemplate, Replicas how many pods a scalable has.
	Generation *int64 `json:"generation,omitempty"`
	Replicas   *int32 `json:"replicas,omitempty"`
}

// BufferStatus is the status of a CapacityBuffer.
type BufferStatus struct {
	// Template names the PodTemplate that the room is for, and Generation is its; both
	// are absent where a scalable says what the pods are.
	Template   string             `json:"template,omitempty"`
	Generation *int64             `json:"generation,omitempty"`
	Replicas   *int32             `json:"replicas,omitempty"`
	Strategy   string             `json:"strategy,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of a CapacityBuffer.
const (
	// BufferReady: it is known what room is wanted.
	BufferReady = "ReadyForProvisioning"
	// BufferProvisioning: that room is there or comes.
	BufferProvisioning = "Provisioning"
	// BufferLimited: it is smaller than it asks to be, by quotas or other limits.
	BufferLimited = "LimitedByQuotas"
)
