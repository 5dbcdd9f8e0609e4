package observe

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// BufferResource is CapacityBuffers as the API serves them.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/apis/config/crd/autoscaling.x-k8s.io_capacitybuffers.yaml
var BufferResource = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"}

// bufferObject is as much of a CapacityBuffer as decisions read.
type bufferObject struct {
	Spec   bufferSpec   `json:"spec"`
	Status bufferStatus `json:"status"`
}

type bufferSpec struct {
	ProvisioningStrategy *string             `json:"provisioningStrategy"`
	PodTemplateRef       *localReference     `json:"podTemplateRef"`
	ScalableRef          *scalableReference  `json:"scalableRef"`
	Replicas             *int32              `json:"replicas"`
	Percentage           *int32              `json:"percentage"`
	Limits               corev1.ResourceList `json:"limits"`
}

type localReference struct {
	Name string `json:"name"`
}

type scalableReference struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

type bufferStatus struct {
	PodTemplateRef        *localReference    `json:"podTemplateRef"`
	PodTemplateGeneration *int64             `json:"podTemplateGeneration"`
	Replicas              *int32             `json:"replicas"`
	ProvisioningStrategy  *string            `json:"provisioningStrategy"`
	Conditions            []metav1.Condition `json:"conditions"`
}

// mostStrategy is the most bytes of a strategy, which may be a megabyte, that are kept and logged.
const mostStrategy = 128

// bufferFrom reads a CapacityBuffer into our words. One that cannot be read, as its
// definition is another one or a limit is beyond all quantities, is left to others.
func bufferFrom(u *unstructured.Unstructured) *fleet.Buffer {
	b := &fleet.Buffer{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Version: u.GetResourceVersion()}
	var o bufferObject
	asJSON, err := u.MarshalJSON()
	if err == nil {
		err = fleet.CheckQuantities[bufferObject](asJSON)
	}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o)
	}
	if err != nil {
		b.Strategy = contract.Shorten(fmt.Sprintf("(unreadable: %v)", err), mostStrategy)
		return b
	}
	b.Strategy = contract.Shorten(ptr.Deref(o.Spec.ProvisioningStrategy, ""), mostStrategy)
	if r := o.Spec.PodTemplateRef; r != nil {
		b.Template = r.Name
	}
	if r := o.Spec.ScalableRef; r != nil {
		b.Scalable = &fleet.Scalable{Group: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
	b.Replicas, b.Percentage, b.Limits = o.Spec.Replicas, o.Spec.Percentage, o.Spec.Limits
	b.Status = fleet.BufferStatus{
		Generation: o.Status.PodTemplateGeneration, Replicas: o.Status.Replicas,
		Strategy: ptr.Deref(o.Status.ProvisioningStrategy, ""), Conditions: o.Status.Conditions,
	}
	if r := o.Status.PodTemplateRef; r != nil {
		b.Status.Template = r.Name
	}
	return b
}
