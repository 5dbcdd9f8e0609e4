package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan/action"
)

// terminate goes past the point of no return in four steps, so that no pod is lost whoever
// writes what in between:
//
//  1. A live list of all Nodes: those of the instance must be what the decision took
//     them for.
//  2. The mark, guarded by the node's version, on a node that is closed: from here on
//     the drain is not cancelled.
//  3. A live list of the node's pods: a cordon does not stop those that were
//     being bound. If one is there the mark comes off again.
//  4. The call.
//
// Killed between two steps, the next leader finds the mark and goes on.
func (a *Actor) terminate(ctx context.Context, x action.Terminate, b *batch) error {
	live, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	if err := live.confirm(x.Instance, x.Node); err != nil {
		return err
	}
	if x.Node.Name == "" {
		return a.Groups.Terminate(ctx, x.Group, x.Instance, x.Decrement)
	}
	node, err := a.node(ctx, x.Node)
	if errors.Is(err, errNodeDeleted) {
		return err // what was planned for a node is not done without it
	}
	if err != nil {
		return err
	}
	if !closed(node) && (drainedBy(node, x.ID) || serves(node)) {
		return a.takeBack(ctx, node, stopped("node %s is open for pods", x.Node))
	}
	_, again := node.Annotations[contract.AnnotationTerminating]
	if by, held := contract.Held(node.Annotations); held && !again && contract.IsScaleDown(x.ID) {
		return stopped("its annotation %s holds it", by)
	}
	node, err = a.setMark(ctx, node, x)
	if err != nil {
		return err
	}
	pod, err := a.occupant(ctx, x.Node.Name, b)
	if err != nil {
		return err // the mark stands; the next evaluation reads again
	}
	if pod != "" {
		return a.takeBack(ctx, node, stopped("pod %s is still on node %s", pod, x.Node.Name))
	}
	if err := a.Groups.Terminate(ctx, x.Group, x.Instance, x.Decrement); err != nil {
		return a.notTerminated(ctx, node, err, again)
	}
	a.tellFacts(x.Node, contract.EventTerminated, x.String(), factsOf(x))
	return nil
}

// setMark closes the node with the same patch where nothing has closed it yet: it never came
// up.
func (a *Actor) setMark(ctx context.Context, node *corev1.Node, x action.Terminate) (*corev1.Node, error) {
	standing, marked := node.Annotations[contract.AnnotationTerminating]
	if marked && standing == x.ID {
		return node, nil
	}
	if marked {
		return nil, stopped("its instance is being terminated for %s", standing)
	}
	want := kube.StateOf(node)
	want.Annotations[contract.AnnotationTerminating] = x.ID
	if !closed(node) {
		want.Taints = contract.WithTaint(want.Taints, contract.DrainingTaint(contract.KindScaleDown))
	}
	return a.write(ctx, node, want, kube.GuardVersion)
}

// notTerminated takes the mark back if the call certainly had no effect: from a node of a group
// that is not ours nobody else would. Where that is not known, or the instance leaves already,
// the mark stays. So it does where AWS was not asked now, and may have been before.
func (a *Actor) notTerminated(ctx context.Context, node *corev1.Node, why error, again bool) error {
	_, refused := errors.AsType[*asg.CallError](why)
	unasked := errors.Is(why, asg.ErrUnasked)
	switch {
	case errors.Is(why, asg.ErrNotOurs):
		return a.takeBack(ctx, node, why)
	case errors.Is(why, asg.ErrChanged), unasked && again, asg.Unheard(why) && !unasked, !refused:
		return why
	}
	return a.takeBack(ctx, node, why)
}

// takeBackTime is for taking a mark back although the action ran out of time.
const takeBackTime = 3 * time.Second

// takeBack removes the mark, with the taint if it came with that, and returns why. If that
// fails too the mark stands, and the next evaluation terminates, or takes back, anew.
func (a *Actor) takeBack(ctx context.Context, node *corev1.Node, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	want := kube.StateOf(node)
	if id, marked := want.Annotations[contract.AnnotationTerminating]; marked {
		delete(want.Annotations, contract.AnnotationTerminating)
		if !drained(want.Annotations, id) {
			want.Taints = contract.WithoutTaint(want.Taints, contract.TaintDraining)
		}
	}
	if _, err := a.write(ctx, node, want, kube.GuardKeys); err != nil {
		return fmt.Errorf("%w; and its termination mark was not cleared: %w", why, err)
	}
	return why
}
