package act

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan/action"
)

// takeOver takes off what a Cluster Autoscaler left behind, unless that has changed meanwhile, or the
// node is about to go.
func (a *Actor) takeOver(ctx context.Context, x action.TakeOver) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	for _, key := range []string{contract.AnnotationTerminating, contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationCordonedBy} {
		if _, stands := node.Annotations[key]; stands {
			return stopped("%s stands on it", key)
		}
	}
	for _, t := range x.Taints {
		if contract.IsKubeProxyTaint(t) || !slices.ContainsFunc(node.Spec.Taints, func(is corev1.Taint) bool { return is.MatchTaint(&t) && is.Value == t.Value }) {
			return stopped("its taint %s=%s does not stand there any more", t.Key, t.Value)
		}
	}
	if err := a.Groups.Serves(ctx, x.Group, x.Instance); err != nil {
		return err
	}
	want := kube.StateOf(node)
	want.Taints = slices.DeleteFunc(want.Taints, func(is corev1.Taint) bool {
		return slices.ContainsFunc(x.Taints, func(t corev1.Taint) bool { return is.MatchTaint(&t) })
	})
	if x.Uncordon {
		want.Unschedulable = false
	}
	if _, err := a.write(ctx, node, want, kube.GuardVersion); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventTakenOver, x.String())
	return nil
}
