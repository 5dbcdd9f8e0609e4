package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeState is the part of a Node that Windlass writes, and what tells this
// state of this Node from any other.
//
// Take it with StateOf, Clone it, change the clone, and give both to
// NewNodePatch.
type NodeState struct {
	Name            string
	UID             types.UID
	ResourceVersion string

	Annotations   map[string]string
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
}

// StateOf copies what Windlass writes out of a Node.
func StateOf(node *corev1.Node) NodeState {
	return NodeState{
		Name:            node.Name,
		UID:             node.UID,
		ResourceVersion: node.ResourceVersion,
		Annotations:     node.Annotations,
		Labels:          node.Labels,
		Taints:          node.Spec.Taints,
		Unschedulable:   node.Spec.Unschedulable,
	}.Clone()
}

// Clone returns a copy that shares nothing with s. Its maps are never nil, so
// that they can be written to.
func (s NodeState) Clone() NodeState {
	s.Annotations = cloneMap(s.Annotations)
	s.Labels = cloneMap(s.Labels)
	s.Taints = cloneTaints(s.Taints)
	return s
}

func cloneMap(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	maps.Copy(out, m)
	return out
}

func cloneTaints(taints []corev1.Taint) []corev1.Taint {
	out := slices.Clone(taints)
	for i := range out {
		out[i].TimeAdded = out[i].TimeAdded.DeepCopy()
	}
	return out
}
