package act

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
)

// grow raises the desired capacity, and tells the pods that it is for.
func (a *Actor) grow(ctx context.Context, x plan.Grow) error {
	if err := a.Groups.SetDesired(ctx, x.Group, x.From, x.To); err != nil {
		return err
	}
	a.tellPods(x.For, false, contract.EventTriggeredScaleUp, fmt.Sprintf("group %s grows %d→%d", x.Group, x.From, x.To))
	return nil
}

func (a *Actor) tellPods(pods []plan.PodRef, warning bool, reason, message string) {
	for _, p := range pods {
		event := kube.Event{Object: kube.PodReference(p.Namespace, p.Name, string(p.UID)), Warning: warning, Reason: reason, Message: message}
		if !a.Events.Write(event) {
			return // the queue is full of news as old as this
		}
	}
}

// complete lets an instance go that waits for a hook, if nothing is left on its
// node; live, because a cordon does not stop pods that were being bound.
func (a *Actor) complete(ctx context.Context, x plan.Complete) error {
	if err := a.nothingLeft(ctx, x); err != nil {
		return err
	}
	if err := a.Groups.Complete(ctx, x.Group, x.Instance, x.Hook); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventHookDone, x.String())
	return nil
}

func (a *Actor) nothingLeft(ctx context.Context, x plan.Complete) error {
	if x.Node.Name == "" {
		return nil
	}
	node, err := a.node(ctx, plan.NodeRef{Name: x.Node.Name})
	if errors.Is(err, errNodeGone) {
		return nil // and all its pods with it
	}
	if err != nil {
		return err
	}
	// Another UID alone says nothing: a kubelet registers its node again, and
	// the pods live on.
	if id := fleet.NodeFrom(node).InstanceID(); id != "" && id != x.Instance {
		return nil // another machine has the name
	}
	// A drain that failed has pods left, and that is why it is called failed:
	// whoever planned this knows.
	report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	if err == nil && report.Phase == contract.PhaseFailed && report.AnswersTo(contract.TerminateID(x.Instance)) {
		return nil
	}
	pod, err := a.occupant(ctx, x.Node.Name)
	if err != nil {
		return err
	}
	if pod != "" {
		return stopped("pod %s is still on node %s", pod, x.Node.Name)
	}
	return nil
}

// evict asks the eviction API, for exactly this pod and no later one of its
// name. A pod that is gone has left. No plan asks for it yet, and the manifests
// grant no right to it.
func (a *Actor) evict(ctx context.Context, x plan.Evict) error {
	uid := x.Pod.UID
	eviction := newEviction(x, &metav1.Preconditions{UID: &uid})
	err := a.Pods.Pods(x.Pod.Namespace).EvictV1(ctx, eviction)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case apierrors.IsTooManyRequests(err):
		return stopped("evicting %s: %v", x.Pod, err)
	}
	return fmt.Errorf("evicting %s: %w", x.Pod, err)
}
