package contract

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Words of others, honoured as their owners define them.
const (
	// Cluster Autoscaler: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
	casPrefix = "cluster-autoscaler.kubernetes.io/"

	// AnnotationScaleDownDisabled on a Node, "true": never retire it.
	AnnotationScaleDownDisabled = casPrefix + "scale-down-disabled"
	// AnnotationForeignSafeToEvict on a Pod; ours wins where both stand.
	AnnotationForeignSafeToEvict = casPrefix + "safe-to-evict"
	// AnnotationSafeLocalVolumes on a Pod: comma list of volumes that do not
	// block.
	AnnotationSafeLocalVolumes = casPrefix + "safe-to-evict-local-volumes"
	// AnnotationDaemonSetPod on a Pod, "true": treat it as a DaemonSet's.
	AnnotationDaemonSetPod = casPrefix + "daemonset-pod"
	// AnnotationEvictDaemonSetPod on a Pod of a DaemonSet: "true" asks that a drain
	// evicts it, "false" that it never does.
	AnnotationEvictDaemonSetPod = casPrefix + "enable-ds-eviction"
	// AnnotationPodScaleUpDelay on a Pod, a duration such as 90s: it brings no node
	// before it is as old as that. It can only be longer than the flag
	// --new-pod-scale-up-delay says for all.
	AnnotationPodScaleUpDelay = casPrefix + "pod-scale-up-delay"

	// TaintToBeDeleted and TaintDeletionCandidate are Cluster Autoscaler's hard
	// and soft taints of a node that it retires.
	TaintToBeDeleted       = "ToBeDeletedByClusterAutoscaler"
	TaintDeletionCandidate = "DeletionCandidateOfClusterAutoscaler"

	// LeaseClusterAutoscaler is held by a running Cluster Autoscaler, in its own
	// namespace: kube-system by default, the release's with its chart.
	LeaseClusterAutoscaler = "cluster-autoscaler"

	// AppClusterAutoscaler is what it calls itself as the source of Events.
	AppClusterAutoscaler = "cluster-autoscaler"
	// NamespaceClusterAutoscaler is where it runs by default.
	NamespaceClusterAutoscaler = "kube-system"

	// ConfigMapPriorities, key PrioritiesKey, says for the expander priority which
	// groups are preferred; in the namespace of the autoscaler.
	// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/expander/priority/readme.md
	ConfigMapPriorities = "cluster-autoscaler-priority-expander"
	PrioritiesKey       = "priorities"

	// ConfigMapClusterAutoscalerStatus, key ClusterAutoscalerStatusKey, is where a
	// Cluster Autoscaler tells how it is, by default and in its own namespace.
	// AnnotationLastUpdated there is when it was written.
	// https://github.com/kubernetes-sigs/cluster-autoscaler/blob/main/pkg/clusterstate/utils/status.go
	ConfigMapClusterAutoscalerStatus = "cluster-autoscaler-status"
	ClusterAutoscalerStatusKey       = "status"
	AnnotationLastUpdated            = casPrefix + "last-updated"

	// LabelCapacityType is what EKS writes on the nodes of managed groups: CapacitySpot, or
	// ON_DEMAND.
	// https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
	LabelCapacityType = "eks.amazonaws.com/capacityType"
	CapacitySpot      = "SPOT"

	// LabelArchBeta is the kubelet's from before kubernetes.io/arch, which it still writes.
	LabelArchBeta = "beta.kubernetes.io/arch"

	// LabelKarpenterCapacityType is what Karpenter and EKS Auto Mode write on their nodes:
	// KarpenterSpot, on-demand or reserved.
	// https://karpenter.sh/docs/concepts/scheduling/
	LabelKarpenterCapacityType = "karpenter.sh/capacity-type"
	KarpenterSpot              = "spot"

	// AnnotationRoleIRSA on a ServiceAccount and AnnotationRoleKube2iam on a Pod name a role at AWS.
	// https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html
	// https://github.com/jtblin/kube2iam
	AnnotationRoleIRSA     = "eks.amazonaws.com/role-arn"
	AnnotationRoleKube2iam = "iam.amazonaws.com/role"

	// Tags of an Auto Scaling group:
	// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md

	// TagDiscovery is on groups that an autoscaler may find by their tags, and
	// TagDiscoveryCluster with a cluster's name on those of that cluster.
	TagDiscovery        = "k8s.io/cluster-autoscaler/enabled"
	TagDiscoveryCluster = "k8s.io/cluster-autoscaler/"

	// TagTemplate begins the tags that describe a new node of a group that has
	// none yet: …/label/<key>, …/taint/<key> = value:Effect, …/resources/<name>.
	TagTemplate         = "k8s.io/cluster-autoscaler/node-template/"
	TagTemplateLabel    = TagTemplate + "label/"
	TagTemplateTaint    = TagTemplate + "taint/"
	TagTemplateResource = TagTemplate + "resources/"
	TagTemplateOption   = TagTemplate + "autoscaling-options/"
	TagEKSNodegroup     = "eks:nodegroup-name"
	TagEKSCluster       = "eks:cluster-name"

	// AnnotationDoNotDisrupt is Karpenter's, on a Pod or a Node, "true".
	// https://karpenter.sh/docs/concepts/disruption/
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"

	// LabelAccelerator on a Node names the kind of its GPUs; Cluster Autoscaler knows
	// GPU nodes on AWS by it.
	LabelAccelerator = "k8s.amazonaws.com/accelerator"

	// AnnotationCSINodeID on a Node: a JSON object with what each CSI driver there calls
	// the machine. The EBS and EFS drivers say its instance id. The kubelet writes it.
	// https://github.com/kubernetes/kubernetes/blob/master/pkg/volume/csi/nodeinfomanager/nodeinfomanager.go
	AnnotationCSINodeID = "csi.volume.kubernetes.io/nodeid"

	// AppTerminationHandler is the LabelAppName of the Node Termination Handler's pods.
	// LabelTerminationHandlerEvent is on a Node that it drains, and so are taints that
	// begin with TaintPrefixTerminationHandler. TerminationHandlerQueue is the environment
	// variable that names its queue, TerminationHandlerQueueFlag the argument.
	// https://github.com/aws/aws-node-termination-handler
	AppTerminationHandler         = "aws-node-termination-handler"
	LabelTerminationHandlerEvent  = AppTerminationHandler + "/event-id"
	TaintPrefixTerminationHandler = AppTerminationHandler + "/"
	TerminationHandlerQueue       = "QUEUE_URL"
	TerminationHandlerQueueFlag   = "--queue-url"

	// AnnotationMirror marks a static pod's mirror.
	AnnotationMirror = corev1.MirrorPodAnnotationKey
)

// SafeToEvict is what a pod's owner says about moving it.
type SafeToEvict string

const (
	// SafeUnsaid: no annotation, or one with an unknown value.
	SafeUnsaid SafeToEvict = ""
	// SafeYes: move it, whatever else speaks against it but a budget, --min-replica-count, or that it
	// tolerates the taint and the cordon of a drain.
	SafeYes SafeToEvict = "true"
	// SafeNo: never move it.
	SafeNo SafeToEvict = "false"
	// SafeOnCompletion: wait until it has ended.
	SafeOnCompletion SafeToEvict = "on-completion"
)

// SafeToEvictOf reads a pod's annotations. Ours wins where both stand;
// Karpenter's do-not-disrupt counts as SafeNo where neither stands.
func SafeToEvictOf(annotations map[string]string) SafeToEvict {
	for _, key := range []string{AnnotationSafeToEvict, AnnotationForeignSafeToEvict} {
		switch v := SafeToEvict(annotations[key]); v {
		case SafeYes, SafeNo, SafeOnCompletion:
			return v
		}
	}
	if annotations[AnnotationDoNotDisrupt] == "true" {
		return SafeNo
	}
	return SafeUnsaid
}

// PodScaleUpDelay is how old a pod has to be to bring a node: usually least, and
// longer where its annotation says so. An annotation that is no duration counts
// for nothing, and err says so.
func PodScaleUpDelay(annotations map[string]string, least time.Duration) (time.Duration, error) {
	value, ok := annotations[AnnotationPodScaleUpDelay]
	if !ok {
		return least, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return least, fmt.Errorf("annotation %s %s is no duration such as 90s", AnnotationPodScaleUpDelay, quoted(value))
	}
	return max(least, d), nil
}

// Held reports whether people keep a node from being retired, and by which
// annotation.
func Held(annotations map[string]string) (by string, held bool) {
	if v, ok := annotations[AnnotationHold]; ok && v != "false" {
		return AnnotationHold, true
	}
	for _, key := range []string{AnnotationScaleDownDisabled, AnnotationDoNotDisrupt} {
		if annotations[key] == "true" {
			return key, true
		}
	}
	return "", false
}

// ToBeDeletedSince is when a Cluster Autoscaler has tainted a node that it is about to
// remove, by its own clock. A taint of that key that is ours, or that tells no time, is none.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/utils/taints/taints.go
func ToBeDeletedSince(taints []corev1.Taint) (since time.Time, ok bool) {
	for _, t := range taints {
		if t.Key != TaintToBeDeleted {
			continue
		}
		seconds, err := strconv.ParseInt(t.Value, 10, 64)
		return time.Unix(seconds, 0).UTC(), err == nil
	}
	return time.Time{}, false
}

// IsOwnStatus says, by the annotations of a ConfigMap with Cluster Autoscaler's status,
// that a Windlass was the last to write it.
func IsOwnStatus(annotations map[string]string) bool {
	at, marked := annotations[AnnotationStatusWritten]
	return marked && at == annotations[AnnotationLastUpdated]
}
