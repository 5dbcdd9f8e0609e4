package act

import (
	"context"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// complete lets an instance go on that waits for a hook, if its Nodes are what the
// decision took them for, and nothing is left on its node; live, because a cordon does
// not stop pods that were being bound. On launch its Node has to be there, whoever else
// claims to be it: that ends nothing. Where a deadline has come, or it comes into
// service, pods may be there. If the Nodes cannot be listed it is held all the same: the
// hook's own timeout ends that.
func (a *Actor) complete(ctx context.Context, x action.Complete, b *batch) error {
	live, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	if err := live.confirm(x.Instance, x.Node); err != nil && !(x.State == fleet.PendingWait && live.among(x.Instance, x.Node)) {
		return err
	}
	if !x.Occupied {
		if err := a.nothingLeft(ctx, x, b); err != nil {
			return err
		}
	}
	if err := a.Groups.Complete(ctx, asg.Wait{Group: x.Group, Instance: x.Instance, Hook: x.Hook, State: x.State, Since: x.Since, Early: x.Early}); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventHookDone, x.String())
	return nil
}

func (a *Actor) nothingLeft(ctx context.Context, x action.Complete, b *batch) error {
	if x.Node.Name == "" {
		return nil
	}
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	if !closed(node) && !unreachable(node) {
		return stopped("node %s is open for pods", x.Node)
	}
	pod, err := a.occupant(ctx, x.Node.Name, b)
	if err != nil {
		return err
	}
	if pod != "" {
		return stopped("pod %s is still on node %s", pod, x.Node.Name)
	}
	return nil
}

// clearTerminationMark takes the mark off a node whose instance has outlived its termination, with
// the request that led to it: the agent undoes the drain then. The groups as they
// were read may be older than the mark, so the instance is looked at again.
func (a *Actor) clearTerminationMark(ctx context.Context, x action.ClearTerminationMark) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	id, marked := node.Annotations[contract.AnnotationTerminating]
	if !marked {
		return nil
	}
	if id != x.ID {
		return stopped("its instance is being terminated for %s, not %s", id, x.ID)
	}
	if err := a.Groups.Serves(ctx, x.Group, x.Instance); err != nil {
		return err
	}
	want := kube.StateOf(node)
	delete(want.Annotations, contract.AnnotationTerminating)
	if request, err := contract.ParseRequest(node.Annotations[contract.AnnotationDrainRequest]); err == nil && request.By == contract.AppScaler {
		delete(want.Annotations, contract.AnnotationDrainRequest)
		delete(want.Annotations, contract.AnnotationDrainPermit)
	}
	if _, err := a.write(ctx, node, want, kube.GuardVersion); err != nil {
		return err
	}
	a.tellCancelled(x.Node, x.String(), contract.Facts{Group: x.Group, ID: x.ID, Instance: x.Instance})
	return nil
}
