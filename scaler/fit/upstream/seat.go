package upstream

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// seat is a pod for which volumes are assumed.
type seat struct {
	pod   *corev1.Pod
	host  *Host
	state fwk.CycleState
}

// Seat places a pod as the scheduler's Reserve does: volumes are assumed to become
// its own, and devices are allocated to its claims as they will be a moment later,
// so that a pod that shares a claim finds it allocated. What Refusals names gets no
// volume and no device, but the pod is on the host nevertheless. Undo restores what was
// there; what was seated last is undone first.
func (f *Filters) Seat(pod *corev1.Pod, h *Host) (undo func()) {
	question := f.ask(pod)
	question.on(h) // makes the choices that Reserve takes
	s := &seat{pod, h, question.state}

	// Where a plugin refused there is nothing to reserve, which it calls an error.
	_ = f.volumes.Reserve(silent, s.state, pod, h.node.Name)
	_ = f.devices.Reserve(silent, s.state, pod, h.node.Name)
	f.seats = append(f.seats, s)

	var undos []func()
	for _, claim := range f.world.devices.claims.take() {
		undos = append(undos, f.world.deviceClaims.think(written(claim, pod)))
	}
	for _, name := range deviceClaims(pod) {
		claim, ok := f.world.deviceClaims.get(pod.Namespace + "/" + name)
		if ok && claim.Status.Allocation != nil && !resourceclaim.IsReservedForPod(pod, claim, false) {
			undos = append(undos, f.world.deviceClaims.think(reserved(claim, pod)))
		}
	}
	undos = append(undos, f.Put(pod, h))
	return func() {
		backwards(undos)
		f.vacate(s)
	}
}

// written is a claim with the allocation that Reserve made, as it will be written.
// That which stands for extended resources gets its name only then.
func written(claim *resourcev1.ResourceClaim, pod *corev1.Pod) *resourcev1.ResourceClaim {
	claim = reserved(claim, pod)
	if claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
		claim.Name = ofExtendedResources(pod)
		claim.Annotations = nil // it is not one that an earlier attempt left behind
	}
	return claim
}

// reserved is a claim with the pod among those who use it.
func reserved(claim *resourcev1.ResourceClaim, pod *corev1.Pod) *resourcev1.ResourceClaim {
	with := *claim
	with.Status.ReservedFor = append(slices.Clip(claim.Status.ReservedFor), resourcev1.ResourceClaimConsumerReference{
		Resource: "pods", Name: pod.Name, UID: pod.UID,
	})
	return &with
}

// ofExtendedResources names the claim that stands for a seated pod's extended
// resources. No real claim has such a name.
func ofExtendedResources(pod *corev1.Pod) string { return "extended resources of " + pod.Name }

func backwards(undos []func()) {
	for _, undo := range slices.Backward(undos) {
		undo()
	}
}

// vacate takes back the volumes assumed for the last seat. The scheduler lets go of
// what others assumed for the same claim too; they assume it again.
func (f *Filters) vacate(s *seat) {
	f.volumes.Unreserve(silent, s.state, s.pod, s.host.node.Name)
	f.seats = slices.DeleteFunc(f.seats, func(o *seat) bool { return o == s })
	var sharing []*seat
	for _, o := range f.seats {
		if sharesClaim(o.pod, s.pod) {
			f.volumes.Unreserve(silent, o.state, o.pod, o.host.node.Name)
			sharing = append(sharing, o)
		}
	}
	plugin := f.volumes.(*volumebinding.VolumeBinding)
	for _, o := range sharing {
		question := newQuestion(o.pod, []fwk.FilterPlugin{plugin})
		question.answer(nodeAlone(o.host))
		o.state = question.state
		_ = f.volumes.Reserve(silent, o.state, o.pod, o.host.node.Name) // as in Seat
	}
	f.changed()
}

// nodeAlone is all that VolumeBinding looks at of a host.
func nodeAlone(h *Host) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(h.node)
	return info
}

// sharesClaim reports whether two pods mount the same claim.
func sharesClaim(a, b *corev1.Pod) bool {
	return a.Namespace == b.Namespace && slices.ContainsFunc(a.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && slices.ContainsFunc(b.Spec.Volumes, func(w corev1.Volume) bool {
			return w.PersistentVolumeClaim != nil && w.PersistentVolumeClaim.ClaimName == v.PersistentVolumeClaim.ClaimName
		})
	})
}

// forgetSeats lets go of all volumes that are assumed.
func (f *Filters) forgetSeats() {
	for _, s := range slices.Backward(f.seats) {
		f.volumes.Unreserve(silent, s.state, s.pod, s.host.node.Name)
	}
	f.seats = nil
}

// Put places a pod that is there already: its claims are bound and allocated in
// what was synced.
func (f *Filters) Put(pod *corev1.Pod, h *Host) (undo func()) {
	before := h.pods
	h.setPods(append(slices.Clip(before), pod))
	f.world.count(pod, 1)
	f.changed()
	return func() {
		h.setPods(before)
		f.world.count(pod, -1)
		f.changed()
	}
}

// Remove takes a pod off a host. The devices that only it used are free again, as
// the controller of the claims will see to; its volumes stay where they are.
func (f *Filters) Remove(pod *corev1.Pod, h *Host) (undo func()) {
	before := h.pods
	h.setPods(slices.DeleteFunc(slices.Clone(before), func(p *corev1.Pod) bool {
		return p.Namespace == pod.Namespace && p.Name == pod.Name
	}))
	if len(h.pods) == len(before) {
		return func() {}
	}
	f.world.count(pod, -1)
	undos := f.release(pod)
	f.changed()
	return func() {
		backwards(undos)
		f.world.count(pod, 1)
		h.setPods(before)
		f.changed()
	}
}

// release takes a pod's reservations off its claims. A claim that no other pod
// reserved loses its devices.
func (f *Filters) release(pod *corev1.Pod) (undos []func()) {
	for _, name := range deviceClaims(pod) {
		claim, ok := f.world.deviceClaims.get(pod.Namespace + "/" + name)
		if !ok || !resourceclaim.IsReservedForPod(pod, claim, false) {
			continue
		}
		freed := *claim
		freed.Status.ReservedFor = slices.DeleteFunc(slices.Clone(claim.Status.ReservedFor), func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID == pod.UID
		})
		if len(freed.Status.ReservedFor) == 0 {
			freed.Status.Allocation, freed.Status.Devices = nil, nil
		}
		undos = append(undos, f.world.deviceClaims.think(&freed))
	}
	return undos
}

// deviceClaims names the claims for devices that a pod uses.
func deviceClaims(pod *corev1.Pod) []string {
	names := []string{ofExtendedResources(pod)}
	for i := range pod.Spec.ResourceClaims {
		// With an error there is no claim yet.
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		names = append(names, status.ResourceClaimName)
	}
	return names
}
