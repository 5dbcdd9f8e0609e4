package act

import (
	"context"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan/action"
)

// outOfService marks a node's machine as down, which makes Kubernetes delete its pods and
// detach its volumes by force. All is read again, EC2's word last, and nothing is written if
// the Node has changed since: one that turns Ready has.
func (a *Actor) outOfService(ctx context.Context, x action.OutOfService, b *batch) error {
	live, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	if err := live.confirm(x.Instance, x.Node); err != nil {
		return err
	}
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	taint := contract.OutOfServiceTaint()
	switch n := fleet.NodeFrom(node); {
	case n.InstanceID() != x.Instance:
		return stopped("its provider id is %s, and not that of %s", n.ProviderID, x.Instance)
	case n.Ready:
		return stopped("it is Ready")
	case n.Attached == 0:
		return stopped("no volume is attached to it")
	}
	for _, t := range node.Spec.Taints {
		if t.Key == taint.Key {
			return nil
		}
	}
	if err := a.Groups.Down(ctx, x.Instance); err != nil {
		return err
	}
	want := kube.StateOf(node)
	want.Taints = contract.WithTaint(want.Taints, taint)
	want.Annotations[contract.AnnotationOutOfService] = x.Instance
	if _, err := a.write(ctx, node, want, kube.GuardVersion); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventOutOfService, x.String())
	return nil
}

// inServiceAgain takes the taint off, unless it is somebody's.
func (a *Actor) inServiceAgain(ctx context.Context, x action.InServiceAgain) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	if _, ours := node.Annotations[contract.AnnotationOutOfService]; !ours {
		return nil
	}
	want := kube.StateOf(node)
	want.Taints = contract.WithoutTaint(want.Taints, contract.OutOfServiceTaint().Key)
	delete(want.Annotations, contract.AnnotationOutOfService)
	if _, err := a.write(ctx, node, want, kube.GuardVersion); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventInService, x.String())
	return nil
}
