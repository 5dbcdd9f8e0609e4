package contract

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Taints that go by themselves, each by its key.

// startupTaints stand until some component has come up on the node.
var startupTaints = []string{
	// https://kubernetes.io/docs/reference/labels-annotations-taints/
	corev1.TaintNodeNotReady, corev1.TaintNodeNetworkUnavailable, "node.cloudprovider.kubernetes.io/uninitialized",
	// https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations
	"node.cluster.x-k8s.io/uninitialized",
	// https://istio.io/latest/docs/setup/additional-setup/cni/
	"cni.istio.io/not-ready",
	// https://github.com/NVIDIA/nodewright
	"skyhook.nvidia.com",
}

// startupPrefixes begin taints of components that have one for each of their things,
// startupSuffix ends those of all that follow the custom of CSI drivers (EBS, EFS,
// FSx, S3) and of Cilium.
//
// https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/install.md#configure-node-startup-taint
// https://docs.cilium.io/en/stable/installation/taints/
var (
	startupPrefixes = []string{
		// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
		"startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/",
		// https://github.com/kubernetes-sigs/node-readiness-controller
		"readiness.k8s.io/",
		// https://github.com/uswitch/nidhogg
		"nidhogg.uswitch.com/",
	}
	startupSuffix = "/agent-not-ready"
)

// passingTaints tell of a node's condition, or that it goes.
var passingTaints = []string{
	TaintDraining, TaintUnneeded, TaintFillLater, TaintSurplus, TaintToBeDeleted, TaintDeletionCandidate,
	corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable,
	corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure,
	corev1.TaintNodeOutOfService, "node.cloudprovider.kubernetes.io/shutdown",
	"NodeWithImpairedVolumes",
}

var passingPrefixes = []string{
	// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
	"status-taint.cluster-autoscaler.kubernetes.io/",
	TaintPrefixTerminationHandler,
}

// Startup reports whether a taint is one that a node carries only until some
// component has come up on it: the node is coming, not unfit.
func Startup(t corev1.Taint) bool {
	return slices.Contains(startupTaints, t.Key) || strings.HasSuffix(t.Key, startupSuffix) || HasPrefix(t, startupPrefixes)
}

// Transient reports whether a taint tells of a node's passing condition and not
// of its kind, so that no shape has it.
func Transient(t corev1.Taint) bool {
	return Startup(t) || slices.Contains(passingTaints, t.Key) || HasPrefix(t, passingPrefixes)
}

// HasPrefix reports whether the taint's key begins with one of these.
func HasPrefix(t corev1.Taint, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(t.Key, p) })
}
