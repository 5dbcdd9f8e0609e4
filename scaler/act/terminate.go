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
	"windlass.dev/windlass/scaler/plan"
)

// terminate goes past the point of no return in three steps, so that no pod is
// lost whoever writes what in between:
//
//  1. The mark, guarded by the node's version: from here on nobody takes the
//     drain back.
//  2. A live list of the node's pods: a cordon does not stop those that were
//     being bound. If one is there the mark comes off again.
//  3. The call.
//
// Killed between two steps, the next leader finds the mark and goes on.
func (a *Actor) terminate(ctx context.Context, x plan.Terminate) error {
	if x.Node.Name == "" {
		return a.Groups.Terminate(ctx, x.Group, x.Instance, x.Decrement)
	}
	node, err := a.node(ctx, x.Node)
	if errors.Is(err, errNodeGone) {
		return err // what was planned for a node is not done without it
	}
	if err != nil {
		return err
	}
	node, err = a.setMark(ctx, node, x)
	if err != nil {
		return err
	}
	pod, err := a.occupant(ctx, x.Node.Name)
	if err != nil {
		return err // the mark stands; the next look looks again
	}
	if pod != "" {
		return a.takeBack(ctx, node, stopped("pod %s is still on node %s", pod, x.Node.Name))
	}
	if err := a.Groups.Terminate(ctx, x.Group, x.Instance, x.Decrement); err != nil {
		return a.notTerminated(ctx, node, err)
	}
	a.tell(x.Node, contract.EventTerminated, x.String())
	return nil
}

func (a *Actor) setMark(ctx context.Context, node *corev1.Node, x plan.Terminate) (*corev1.Node, error) {
	standing, marked := node.Annotations[contract.AnnotationTerminating]
	if marked && standing == x.ID {
		return node, nil
	}
	if marked {
		return nil, stopped("its instance is being terminated for %s", standing)
	}
	want := kube.StateOf(node)
	want.Annotations[contract.AnnotationTerminating] = x.ID
	return a.write(ctx, node, want, kube.GuardVersion)
}

// notTerminated takes the mark back if the call certainly had no effect. Where
// that is not known, or the instance leaves already, the mark stays.
func (a *Actor) notTerminated(ctx context.Context, node *corev1.Node, why error) error {
	if errors.Is(why, asg.ErrChanged) {
		return why
	}
	var refused *asg.CallError
	if !errors.As(why, &refused) || refused.Code == "" || errors.Is(why, asg.ErrUnavailable) {
		return why
	}
	return a.takeBack(ctx, node, why)
}

// takeBackTime is for taking a mark back although the action ran out of time.
const takeBackTime = 3 * time.Second

// takeBack removes the mark and returns why. If that fails too the mark stands,
// and the next look terminates, or takes back, anew.
func (a *Actor) takeBack(ctx context.Context, node *corev1.Node, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackTime)
	defer cancel()
	want := kube.StateOf(node)
	delete(want.Annotations, contract.AnnotationTerminating)
	if _, err := a.write(ctx, node, want, kube.GuardKeys); err != nil {
		return fmt.Errorf("%w; and its mark was not taken back: %w", why, err)
	}
	return why
}
