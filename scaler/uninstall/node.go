package uninstall

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Cleaned is a node without what Windlass wrote on it, and what that was: every key of its prefix but
// people's hold, and of the keys of others what is marked as Windlass's. A cordon and a label
// without the mark are somebody's.
func Cleaned(n fleet.Node) (fleet.Node, []string) {
	was := n
	n.Annotations, n.Labels = maps.Clone(n.Annotations), maps.Clone(n.Labels)
	if _, ours := was.Annotations[contract.AnnotationCordonedBy]; ours {
		n.Unschedulable = false
	}
	if _, ours := was.Annotations[contract.AnnotationExcluded]; ours {
		delete(n.Labels, contract.LabelExcludeFromLoadBalancers)
	}
	_, outOfService := was.Annotations[contract.AnnotationOutOfService]
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool {
		return ours(t.Key) || contract.IsKubeProxyTaint(t) || outOfService && t.MatchTaint(ptr(contract.OutOfServiceTaint()))
	})
	isOurs := func(key, _ string) bool { return ours(key) }
	maps.DeleteFunc(n.Annotations, isOurs)
	maps.DeleteFunc(n.Labels, isOurs)

	var what []string
	if was.Unschedulable != n.Unschedulable {
		what = append(what, "cordon")
	}
	for _, t := range was.Taints {
		if !slices.Contains(n.Taints, t) {
			what = append(what, "taint "+t.Key)
		}
	}
	return n, slices.Concat(what, gone("label ", was.Labels, n.Labels), gone("annotation ", was.Annotations, n.Annotations))
}

// ours reports whether a key is Windlass's and not people's word.
func ours(key string) bool {
	return strings.HasPrefix(key, contract.Prefix) && key != contract.AnnotationHold
}

func ptr[T any](v T) *T { return &v }

func gone(kind string, was, is map[string]string) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, has := is[key]; !has {
			keys = append(keys, kind+key)
		}
	}
	return keys
}
