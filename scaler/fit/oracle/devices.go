package oracle

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"

	"windlass.dev/windlass/scaler/fit/upstream/memory"
)

type handler = cache.ResourceEventHandler

// fill makes these the objects that an informer has.
func fill[T interface {
	runtime.Object
	metav1.Object
}](informer *memory.Informer, objects []T) {
	for _, o := range informer.GetStore().List() {
		informer.Delete(o.(T))
	}
	for _, o := range objects {
		informer.Set(o)
	}
}

// devices is kube-scheduler's bookkeeping, with an eye on what is in flight.
type devices struct {
	fwk.SharedDRAManager
	claims *claims
}

func (d devices) ResourceClaims() fwk.ResourceClaimTracker { return d.claims }

// claims keeps the allocations in flight.
type claims struct {
	fwk.ResourceClaimTracker
	inFlight []*resourcev1.ResourceClaim
}

// SignalClaimPendingAllocation is called by Reserve.
func (c *claims) SignalClaimPendingAllocation(uid types.UID, claim *resourcev1.ResourceClaim) error {
	c.inFlight = append(c.inFlight, claim)
	return c.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// forget drops all that is in flight.
func (c *claims) forget() {
	for _, claim := range c.inFlight {
		c.MaybeRemoveClaimPendingAllocation(claim.UID, true)
	}
	c.inFlight = nil
}

// write is what a server does with a claim.
func (o *Oracle) write(claim *resourcev1.ResourceClaim) {
	claim = claim.DeepCopy()
	o.revision++
	claim.ResourceVersion = strconv.Itoa(o.revision)
	o.informers.DeviceClaims.Set(claim)
}

// bindDevices writes what Reserve allocated for a pod. The claim that stands for
// extended resources stays in flight, which keeps its devices from others just as
// well.
func (o *Oracle) bindDevices(pod *corev1.Pod) {
	for _, claim := range o.claimsOf(pod) {
		if allocation := o.claims.GetPendingAllocation(claim.UID); allocation != nil {
			claim.Status.Allocation = allocation
		}
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
		o.write(claim)
		o.claims.MaybeRemoveClaimPendingAllocation(claim.UID, true)
	}
}

// releaseDevices does what the controller of claims does when a pod is deleted.
func (o *Oracle) releaseDevices(pod *corev1.Pod) {
	for _, claim := range o.claimsOf(pod) {
		if !resourceclaim.IsReservedForPod(pod, claim, false) {
			continue
		}
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		o.write(claim)
	}
	for _, claim := range o.claims.inFlight {
		if metav1.IsControlledBy(claim, pod) && claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			o.claims.MaybeRemoveClaimPendingAllocation(claim.UID, true)
		}
	}
}

// claimsOf are copies of the claims that a pod names, each once.
func (o *Oracle) claimsOf(pod *corev1.Pod) []*resourcev1.ResourceClaim {
	var names []string
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil {
			names = append(names, *s.ResourceClaimName)
		}
	}
	slices.Sort(names)
	var claims []*resourcev1.ResourceClaim
	for _, name := range slices.Compact(names) {
		if object, ok, _ := o.informers.DeviceClaims.GetStore().GetByKey(pod.Namespace + "/" + name); ok {
			claims = append(claims, object.(*resourcev1.ResourceClaim).DeepCopy())
		}
	}
	return claims
}
