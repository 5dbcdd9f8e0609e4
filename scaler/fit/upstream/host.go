package upstream

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
)

// Host is a node with those of its pods that Concerns.
type Host struct {
	node *corev1.Node
	pods []*corev1.Pod
	// info is what plugins see of it, nil since the pods changed.
	info *framework.NodeInfo
	// own takes away the objects that came with the host.
	own []func()
}

// NewHost makes a host of a node. By its name, which is unique, it finds its own among the
// synced objects. For a node that is not there yet, csi has the drivers that it will have
// with how many volumes each; where it is nil, that of its name in what was synced counts.
// slices are devices that it will have beside those that were synced: they may be those of
// another node of its kind.
func (f *Filters) NewHost(node *corev1.Node, csi *storagev1.CSINode, slices []*resourcev1.ResourceSlice) *Host {
	h := &Host{node: node}
	if csi != nil {
		drivers := *csi
		drivers.Name, drivers.Namespace = node.Name, ""
		h.own = append(h.own, f.world.nodes.think(&drivers))
	}
	for _, slice := range slices {
		if local(slice) {
			h.own = append(h.own, f.world.slices.think(rehomed(slice, node.Name)))
		}
	}
	f.changed()
	return h
}

// Drop forgets a host: it is not there any more. Whatever was seated on it was
// undone before.
func (f *Filters) Drop(h *Host) {
	for _, undo := range slices.Backward(h.own) {
		undo()
	}
	h.own = nil
	f.changed()
}

// local reports whether the devices of a slice are those of one node.
func local(s *resourcev1.ResourceSlice) bool {
	return s.Spec.NodeSelector == nil && !ptr.Deref(s.Spec.AllNodes, false) && !ptr.Deref(s.Spec.PerDeviceNodeSelection, false)
}

// rehomed is a slice with the same devices on another node, in a pool of its own.
func rehomed(s *resourcev1.ResourceSlice, node string) *resourcev1.ResourceSlice {
	moved := *s
	moved.Name = node + "/" + s.Name
	moved.Spec.NodeName = &node
	moved.Spec.Pool.Name = node + "/" + s.Spec.Pool.Name
	return &moved
}

func (h *Host) nodeInfo() *framework.NodeInfo {
	if h.info == nil {
		h.info = framework.NewNodeInfo(h.pods...)
		h.info.SetNode(h.node)
	}
	return h.info
}

func (h *Host) setPods(pods []*corev1.Pod) { h.pods, h.info = pods, nil }

// changed drops the prepared question: its answers may be wrong from now on.
func (f *Filters) changed() { f.question = nil }
