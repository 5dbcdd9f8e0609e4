package template

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/plan/policy"
)

// How much two groups may differ and still be similar: Cluster Autoscaler's defaults of
// --memory-difference-ratio and --max-allocatable-difference-ratio.
const (
	MemoryMayDiffer      = 0.015
	AllocatableMayDiffer = 0.05
)

// unlike are labels in which similar groups may differ: where the node is,
// which it is, and which group or tool it belongs to.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/processors/nodegroupset/aws_nodegroups.go
var unlike = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	"beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
	"alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name",
	"eks.amazonaws.com/nodegroup", "k8s.amazonaws.com/eniConfig", "lifecycle",
	"topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id",
}

func Telling(p policy.Policy, labels map[string]string) map[string]string {
	left := map[string]string{}
	for key, value := range labels {
		if !slices.Contains(unlike, key) && !slices.Contains(p.BalancingIgnoredLabels, key) {
			left[key] = value
		}
	}
	return left
}

// Near reports whether two lists name the same resources, and no amount differs by more than a
// share of the greater.
func Near(a, b corev1.ResourceList, mayDiffer func(corev1.ResourceName) float64) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		y, ok := b[name]
		if !ok {
			return false
		}
		p, q := x.AsApproximateFloat64(), y.AsApproximateFloat64()
		if math.Abs(p-q) > mayDiffer(name)*max(p, q) {
			return false
		}
	}
	return true
}

func SameTaints(a, b []corev1.Taint) bool {
	byName := func(list []corev1.Taint) []corev1.Taint {
		return slices.SortedFunc(slices.Values(list), func(a, b corev1.Taint) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
		})
	}
	return slices.EqualFunc(byName(a), byName(b), func(a, b corev1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
	})
}
