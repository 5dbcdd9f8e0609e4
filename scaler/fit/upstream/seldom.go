package upstream

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Host is a node with those of its pods that Concerns.
type Host struct {
	node *corev1.Node
}

// Sync takes over what there is of namespaces, storage and devices. An object is
// new where its pointer is.
func (f *Filters) Sync(namespaces map[string]map[string]string, s fleet.Storage, d fleet.Devices) {
}

// Concerns says whether a pod has anything that Refusals looks at: volumes that
// bind it to a place, claims, extended resources that a DeviceClass serves.
func (f *Filters) Concerns(pod *corev1.Pod) bool { return false }

// Delegated says whether NodeResourcesFit leaves an extended resource to
// DynamicResources for that pod on that node.
func (f *Filters) Delegated(pod *corev1.Pod, resource corev1.ResourceName, node *corev1.Node) bool {
	return false
}

// NewHost makes a host of a node. Where csi or slices are nil, those of that name
// in what was synced count.
func (f *Filters) NewHost(node *corev1.Node, csi *storagev1.CSINode, slices []*resourcev1.ResourceSlice) *Host {
	return &Host{node: node}
}

// Drop forgets a host.
func (f *Filters) Drop(h *Host) {}

// Refusals says what volumes and devices have against a pod on a host.
func (f *Filters) Refusals(pod *corev1.Pod, h *Host) []Refusal { return nil }

// Seat places a pod as the scheduler's Reserve does: its volumes are assumed, its
// devices allocated. Undo takes back the last first.
func (f *Filters) Seat(pod *corev1.Pod, h *Host) (undo func()) { return func() {} }

// Put places a pod that is there already: its claims are bound and allocated in
// what was synced.
func (f *Filters) Put(pod *corev1.Pod, h *Host) (undo func()) { return func() {} }

// Remove takes a pod off a host.
func (f *Filters) Remove(pod *corev1.Pod, h *Host) (undo func()) { return func() {} }
