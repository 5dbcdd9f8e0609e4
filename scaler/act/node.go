package act

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan/action"
)

var errNodeDeleted = fmt.Errorf("%w: the node is gone", ErrStopped)

// node reads a Node live: what the watch delivered may be late.
func (a *Actor) node(ctx context.Context, ref action.NodeRef) (*corev1.Node, error) {
	node, err := a.Nodes.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, errNodeDeleted
	}
	if err != nil {
		return nil, fmt.Errorf("getting node %s: %w", ref.Name, err)
	}
	if ref.UID != "" && node.UID != ref.UID {
		return nil, errNodeDeleted
	}
	return node, nil
}

// write sends what leads from a node to want. The result is nil if there was
// nothing to write.
func (a *Actor) write(ctx context.Context, node *corev1.Node, want kube.NodeState, guard kube.Guard) (*corev1.Node, error) {
	written, err := kube.Send(ctx, a.Nodes, kube.NewNodePatch(kube.StateOf(node), want, guard))
	if err != nil || written == nil {
		return written, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.written == nil {
		a.written = map[string]string{}
	}
	a.written[written.Name] = written.ResourceVersion
	return written, nil
}

// requestDrain writes the request and the taint in one patch, and with them the permit of a
// scale-down, which is decided already. A stronger request stands; so does one of a person
// against our wish to save a node. Our request about one way that Auto Scaling leads an
// instance gives way to that about the next.
func (a *Actor) requestDrain(ctx context.Context, x action.RequestDrain) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	if id, marked := node.Annotations[contract.AnnotationTerminating]; marked {
		return stopped("its instance is being terminated for %s", id)
	}
	if by, held := contract.Held(node.Annotations); held && x.Kind == contract.KindScaleDown {
		return stopped("its annotation %s holds it", by)
	}
	request := x.Request(a.now())
	if value, asked := node.Annotations[contract.AnnotationDrainRequest]; asked {
		standing, err := contract.ParseRequest(value)
		if err == nil && standing.ID == x.ID && standing.Deadline.Equal(request.Deadline) {
			return nil // done already
		}
		superseded := standing.By == contract.AppScaler && standing.Kind == contract.KindASG && x.Kind == contract.KindASG
		if err == nil && standing.ID != x.ID && standing.Kind.Strength() >= x.Kind.Strength() && !superseded {
			return stopped("the request %s stands on it", standing.ID)
		}
		if err != nil && x.Kind == contract.KindScaleDown {
			return stopped("somebody's request stands on it: %v", err)
		}
	}
	want := kube.StateOf(node)
	want.Annotations[contract.AnnotationDrainRequest] = request.String()
	if x.Kind == contract.KindScaleDown {
		want.Annotations[contract.AnnotationDrainPermit] = x.ID
	}
	if kind, draining := contract.Draining(want.Taints); !draining || kind.Strength() < x.Kind.Strength() {
		want.Taints = contract.WithTaint(want.Taints, contract.DrainingTaint(x.Kind))
	}
	if _, err := a.write(ctx, node, want, kube.GuardKeys); err != nil {
		return err
	}
	if x.Kind == contract.KindScaleDown { // a termination is told by the Events of its drain
		a.tellFacts(x.Node, contract.EventScaleDown, x.String(), contract.Facts{Group: x.Group, ID: x.ID})
	}
	return nil
}

// tellCancelled says that a scale-down was cancelled. What becomes of a termination by Auto Scaling its agent
// tells.
func (a *Actor) tellCancelled(node action.NodeRef, message string, facts contract.Facts) {
	if strings.HasPrefix(facts.ID, contract.TerminateID("")) || strings.HasPrefix(facts.ID, contract.WarmID("")) {
		return
	}
	a.tellFacts(node, contract.EventScaleDownCancelled, message, facts)
}

// cancelDrain removes the request. Taint, cordon and label are the agent's to undo, and ours
// only where the agent is unresponsive.
func (a *Actor) cancelDrain(ctx context.Context, x action.CancelDrain) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	value, asked := node.Annotations[contract.AnnotationDrainRequest]
	if !asked && !x.AgentGone {
		return nil
	}
	if id, marked := node.Annotations[contract.AnnotationTerminating]; marked {
		return stopped("its instance is being terminated for %s", id)
	}
	if asked {
		request, err := contract.ParseRequest(value)
		if err != nil {
			return stopped("somebody's request stands on it: %v", err)
		}
		if request.ID != x.ID {
			return stopped("the request %s stands on it, not %s", request.ID, x.ID)
		}
	}
	if x.Instance != "" {
		if err := a.Groups.Serves(ctx, x.Group, x.Instance); err != nil {
			return err
		}
	}
	want := kube.StateOf(node)
	if x.AgentGone {
		if kind := drainedFor(node); kind.Strength() > contract.KindScaleDown.Strength() && !(kind == contract.KindASG && endedAll(node, x.Ended)) {
			return stopped("it is drained for %s", kind)
		}
		undo(&want)
	}
	delete(want.Annotations, contract.AnnotationDrainRequest)
	if want.Annotations[contract.AnnotationDrainPermit] == x.ID {
		delete(want.Annotations, contract.AnnotationDrainPermit)
	}
	// The mark must not come up in between.
	if written, err := a.write(ctx, node, want, kube.GuardVersion); err != nil || written == nil {
		return err
	}
	a.tellCancelled(x.Node, x.String(), contract.Facts{Group: x.Group, ID: x.ID})
	return nil
}

// drainedFor is why a node drains, by its taint and its report. An unreadable report counts
// as none.
func drainedFor(node *corev1.Node) contract.Kind {
	kind, _ := contract.Draining(node.Spec.Taints)
	report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	if err == nil && report.Kind.Strength() > kind.Strength() {
		return report.Kind
	}
	return kind
}

// endedAll reports whether there are drains that have ended, and neither the request nor the
// report nor the cordon on a node names another.
func endedAll(node *corev1.Node, ended []string) bool {
	var named []string
	if request, err := contract.ParseRequest(node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		named = append(named, request.ID)
	}
	if report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport]); err == nil {
		named = append(named, report.Answers...)
	}
	if cordon, err := contract.ParseCordon(node.Annotations[contract.AnnotationCordonedBy]); err == nil && cordon.Notice != "" {
		named = append(named, cordon.Notice)
	}
	return len(ended) > 0 && !slices.ContainsFunc(named, func(id string) bool { return !slices.Contains(ended, id) })
}

// undo makes want the node that it was before its drain, as the agent would. A
// cordon and a label without our mark are people's and stay.
func undo(want *kube.NodeState) {
	if _, ours := want.Annotations[contract.AnnotationCordonedBy]; ours {
		want.Unschedulable = false
	}
	if _, ours := want.Annotations[contract.AnnotationExcluded]; ours {
		delete(want.Labels, contract.LabelExcludeFromLoadBalancers)
	}
	want.Taints = contract.WithoutKubeProxyTaint(contract.WithoutTaint(want.Taints, contract.TaintDraining))
	for _, key := range []string{contract.AnnotationCordonedBy, contract.AnnotationExcluded, contract.AnnotationDrainReport, contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet} {
		delete(want.Annotations, key)
	}
}

// permit lets a drain begin that waits for it, if it still does.
func (a *Actor) permit(ctx context.Context, x action.Permit) error {
	node, err := a.waiting(ctx, x.Node, x.ID)
	if err != nil {
		return err
	}
	want := kube.StateOf(node)
	want.Annotations[contract.AnnotationDrainPermit] = x.ID
	delete(want.Annotations, contract.AnnotationDrainNotYet)
	if written, err := a.write(ctx, node, want, kube.GuardKeys); err != nil || written == nil {
		return err
	}
	a.tell(x.Node, contract.EventPermitted, x.String())
	return nil
}

// notYet lets a drain wait on that waits for its permit, if it still does.
func (a *Actor) notYet(ctx context.Context, x action.NotYet) error {
	node, err := a.waiting(ctx, x.Node, x.ID)
	if err != nil {
		return err
	}
	want := kube.StateOf(node)
	want.Annotations[contract.AnnotationDrainNotYet] = contract.NotYet{ID: x.ID, At: contract.At(a.now()), Why: x.Why}.String()
	_, err = a.write(ctx, node, want, kube.GuardKeys)
	return err
}

// waiting reads a Node whose drain waits for a permit for that id.
func (a *Actor) waiting(ctx context.Context, ref action.NodeRef, id string) (*corev1.Node, error) {
	node, err := a.node(ctx, ref)
	if err != nil {
		return nil, err
	}
	report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	if err != nil || report.Wants != id {
		return nil, stopped("its agent does not wait for a permit for %s any more", id)
	}
	return node, nil
}

// release takes an agent's cordon for a rebalance recommendation off. Its mark stays: by
// that the agent sees that somebody else has decided, and does not cordon again.
func (a *Actor) release(ctx context.Context, x action.Release) error {
	node, err := a.node(ctx, x.Node)
	if err != nil || !node.Spec.Unschedulable {
		return err
	}
	if kind, draining := contract.Draining(node.Spec.Taints); draining {
		return stopped("it is drained for %s", kind)
	}
	for _, key := range []string{contract.AnnotationDrainRequest, contract.AnnotationDrainReport, contract.AnnotationTerminating} {
		if _, stands := node.Annotations[key]; stands {
			return stopped("%s stands on it", key)
		}
	}
	cordon, err := contract.ParseCordon(node.Annotations[contract.AnnotationCordonedBy])
	if err != nil || cordon.By != contract.AppAgent || cordon.Notice != x.ID {
		return stopped("its agent has not cordoned it for %s", x.ID)
	}
	want := kube.StateOf(node)
	want.Unschedulable = false
	if _, err := a.write(ctx, node, want, kube.GuardVersion); err != nil {
		return err
	}
	a.tell(x.Node, contract.EventUncordoned, x.String())
	return nil
}

func (a *Actor) mark(ctx context.Context, x action.Mark) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	if since, marked, err := contract.Unneeded(node.Spec.Taints); marked && err == nil && !since.After(x.Since) {
		return nil
	}
	want := kube.StateOf(node)
	want.Taints = contract.WithTaint(want.Taints, contract.UnneededTaint(x.Since))
	_, err = a.write(ctx, node, want, kube.GuardKeys)
	return err
}

func (a *Actor) unmark(ctx context.Context, x action.Unmark) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	want := kube.StateOf(node)
	want.Taints = contract.WithoutTaint(want.Taints, contract.TaintUnneeded)
	_, err = a.write(ctx, node, want, kube.GuardKeys)
	return err
}

func (a *Actor) steer(ctx context.Context, x action.Steer) error {
	node, err := a.node(ctx, x.Node)
	if err != nil || contract.FillTurnOf(node.Spec.Taints) == x.Fill {
		return err
	}
	want := kube.StateOf(node)
	want.Taints = contract.WithFillTurn(want.Taints, x.Fill)
	_, err = a.write(ctx, node, want, kube.GuardKeys)
	return err
}

// endedPages are as many pages as are read of pods that have ended, of which a tenant may leave any
// number, on a node that he names.
const endedPages = 20

// occupant names a pod that the node must not go away under; empty without one.
// The pods are listed live: at once, which the API server answers from its cache, and page by page where
// that is too large. What has ended and is being deleted is waited for out of courtesy alone.
func (a *Actor) occupant(ctx context.Context, node string, b *batch) (string, error) {
	select {
	case b.podLists <- struct{}{}:
		defer func() { <-b.podLists }()
	case <-ctx.Done():
		return "", ofNode(node, ctx.Err())
	}
	of := fields.OneTermEqualSelector("spec.nodeName", node)
	pod, err := a.firstOccupant(ctx, of, 0, 1)
	if !kube.TooLarge(err) {
		return pod, ofNode(node, err)
	}
	phase := func(not ...corev1.PodPhase) fields.Selector {
		selectors := []fields.Selector{of}
		for _, p := range not {
			selectors = append(selectors, fields.OneTermNotEqualSelector("status.phase", string(p)))
		}
		return fields.AndSelectors(selectors...)
	}
	pod, err = a.firstOccupant(ctx, phase(corev1.PodSucceeded, corev1.PodFailed), kube.PodsPerPage, math.MaxInt)
	if err == nil && pod == "" {
		pod, err = a.firstOccupant(ctx, phase(corev1.PodPending, corev1.PodRunning, corev1.PodUnknown), kube.PodsPerPage, endedPages)
	}
	return pod, ofNode(node, err)
}

func ofNode(node string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("listing the pods of node %s: %w", node, err)
}

// firstOccupant reads so many pages at most, each of so many pods, or of all where that is 0.
func (a *Actor) firstOccupant(ctx context.Context, of fields.Selector, each int64, pages int) (string, error) {
	options := metav1.ListOptions{FieldSelector: of.String(), Limit: each}
	for range pages {
		pods, err := a.Pods.Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", err
		}
		now := a.now()
		for i := range pods.Items {
			if p := fleet.PodFrom(&pods.Items[i]); drainable.Occupies(&p, now) {
				return p.Key(), nil
			}
		}
		if options.Continue = pods.Continue; options.Continue == "" {
			break
		}
	}
	return "", nil
}
