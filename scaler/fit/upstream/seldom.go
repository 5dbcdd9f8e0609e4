package upstream

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Sync takes over what there is of storage and devices; an object is new where its pointer
// is. It begins a new evaluation: hosts and seats of before are forgotten. No plugin here
// looks at namespaces.
func (f *Filters) Sync(_ map[string]map[string]string, s fleet.Storage, d fleet.Devices) {
	f.forgetSeats()
	f.world.sync(s, d)
	f.changed()
}

// Concerns reports whether a pod has anything that Refusals looks at: volumes that
// bind it to places or are counted there, claims, extended resources that a
// DeviceClass serves. Such a pod is judged by its own name and UID: claims may be
// its own, so that another pod of the same spec is another question.
func (f *Filters) Concerns(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 || slices.ContainsFunc(pod.Spec.Volumes, bindsOrCounts) {
		return true
	}
	served := func(c corev1.Container) bool {
		for resource := range c.Resources.Requests {
			if f.world.serves(resource) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(pod.Spec.Containers, served) || slices.ContainsFunc(pod.Spec.InitContainers, served)
}

// bindsOrCounts reports whether one of the plugins looks at a volume: claims, and disks
// named in the pod itself, which conflict with one another or count as volumes of
// the CSI driver that replaced them.
func bindsOrCounts(v corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil ||
		v.AWSElasticBlockStore != nil || v.GCEPersistentDisk != nil || v.AzureDisk != nil || v.AzureFile != nil ||
		v.Cinder != nil || v.VsphereVolume != nil || v.PortworxVolume != nil || v.ISCSI != nil || v.RBD != nil
}

// serves reports whether a DeviceClass serves an extended resource.
func (w *world) serves(resource corev1.ResourceName) bool {
	return w.devices.DeviceClassResolver().GetDeviceClass(resource) != nil
}

// Delegated reports whether NodeResourcesFit leaves an extended resource to
// DynamicResources on that node: a DeviceClass serves it, and the node has none of
// it by a device plugin.
// https://github.com/kubernetes/enhancements/issues/5004
func (f *Filters) Delegated(_ *corev1.Pod, resource corev1.ResourceName, node *corev1.Node) bool {
	has := node.Status.Allocatable[resource]
	return has.Value() == 0 && f.world.serves(resource)
}

// Refusals returns what volumes and devices have against a pod on a host. Every
// plugin that refuses is in it; none does where it is empty. What it costs to search for devices is
// counted in steps of package fit, each time that it is asked, known or not.
func (f *Filters) Refusals(pod *corev1.Pod, h *Host) (refusals []Refusal, steps int64) {
	a := f.ask(pod).on(h)
	return a.refusals, a.steps
}

// ask prepares the plugins for a pod, once as long as nothing changes.
func (f *Filters) ask(pod *corev1.Pod) *question {
	if f.question == nil || f.question.pod != pod {
		f.question = newQuestion(pod, f.seldom)
		f.question.patience = f.world.patience
	}
	return f.question
}
