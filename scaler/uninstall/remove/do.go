package remove

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/uninstall"
)

// errOccupied means that a drained node has a pod again.
var errOccupied = errors.New("the node has a pod that must leave")

// do carries out one step. What is done already is no error.
func (r *Remover) do(ctx context.Context, s uninstall.Step) error {
	var err error
	switch s.Do {
	case uninstall.Await:
		return nil
	case uninstall.Stop:
		err = r.stop(ctx, s)
	case uninstall.Withdraw:
		err = r.writeNode(ctx, s, func(n fleet.Node) fleet.Node {
			for _, key := range s.Keys {
				delete(n.Annotations, key)
			}
			return n
		})
	case uninstall.Clean:
		err = r.writeNode(ctx, s, func(n fleet.Node) fleet.Node {
			n, _ = uninstall.Cleaned(n)
			return n
		})
	case uninstall.Heartbeat:
		err = r.heartbeat(ctx, s)
	case uninstall.Complete:
		err = r.complete(ctx, s)
	case uninstall.Resume:
		err = r.Groups.Resume(ctx, s.Name, "AZRebalance")
	case uninstall.Untag:
		err = r.Groups.Disclaim(ctx, s.Name, s.UID)
	case uninstall.DeleteHook:
		err = r.Groups.DeleteHook(ctx, s.Name, s.Hook)
	case uninstall.Delete:
		err = r.delete(ctx, s)
	default:
		return fmt.Errorf("no code carries out %q", s.Do)
	}
	if apierrors.IsNotFound(err) || errors.Is(err, asg.ErrAlready) {
		return nil
	}
	return err
}

func (r *Remover) stop(ctx context.Context, s uninstall.Step) error {
	if s.UID == "" {
		return nil // only its pods are left
	}
	if s.Kind == "Deployment" {
		none := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":0}}`, s.UID)
		_, err := r.Client.AppsV1().Deployments(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, none, metav1.PatchOptions{})
		return err
	}
	// In the foreground: it is there as long as an agent is.
	foreground := metav1.DeletePropagationForeground
	return r.Client.AppsV1().DaemonSets(s.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{PropagationPolicy: &foreground, Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
}

// writeNode changes a Node as it is now. One whose instance is marked as terminated must serve, also
// at this moment.
func (r *Remover) writeNode(ctx context.Context, s uninstall.Step, change func(fleet.Node) fleet.Node) error {
	node, err := r.Client.CoreV1().Nodes().Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if node.UID != s.UID {
		return fmt.Errorf("%w: there is another Node %s", kube.ErrChanged, s.Name)
	}
	_, marked := node.Annotations[contract.AnnotationTerminating]
	switch {
	case marked && s.Group == "":
		return fmt.Errorf("%w: its instance is being terminated", kube.ErrChanged)
	case marked:
		if err := r.Groups.Serves(ctx, s.Group, s.Instance); err != nil {
			return err
		}
	}
	was := kube.StateOf(node)
	n := fleet.Node{Annotations: was.Clone().Annotations, Labels: was.Clone().Labels, Taints: was.Clone().Taints, Unschedulable: was.Unschedulable}
	n = change(n)
	want := was.Clone()
	want.Annotations, want.Labels, want.Taints, want.Unschedulable = n.Annotations, n.Labels, n.Taints, n.Unschedulable
	_, err = kube.Send(ctx, r.Client.CoreV1().Nodes(), kube.NewNodePatch(was, want, kube.GuardKeys))
	return err
}

// heartbeat restarts the timer of a hook that holds an instance, when that is due.
func (r *Remover) heartbeat(ctx context.Context, s uninstall.Step) error {
	now := time.Now()
	if now.Before(s.Due) {
		return nil
	}
	err := r.Groups.Heartbeat(ctx, asg.Wait{Group: s.Name, Instance: s.Instance, Hook: s.Hook, State: s.State})
	if err == nil {
		if r.beats == nil {
			r.beats = map[string]time.Time{}
		}
		r.beats[fleet.HeartbeatKey(s.Instance, s.Hook)] = now
	}
	return err
}

// complete lets an instance go on whose node is drained, and empty at this moment.
func (r *Remover) complete(ctx context.Context, s uninstall.Step) error {
	if s.Node != "" {
		pods, err := r.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", s.Node).String()})
		if err != nil {
			return fmt.Errorf("listing the pods of node %s: %w", s.Node, err)
		}
		if pod := occupant(pods.Items); pod != "" {
			return fmt.Errorf("%w: %s", errOccupied, pod)
		}
	}
	return r.Groups.Complete(ctx, asg.Wait{Group: s.Name, Instance: s.Instance, Hook: s.Hook, State: s.State})
}

func occupant(pods []corev1.Pod) string {
	for i := range pods {
		if p := fleet.PodFrom(&pods[i]); drainable.Occupies(&p, time.Now()) {
			return p.Key()
		}
	}
	return ""
}

func (r *Remover) delete(ctx context.Context, s uninstall.Step) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))}
	if s.Kind == "Lease" {
		return r.Client.CoordinationV1().Leases(s.Namespace).Delete(ctx, s.Name, options)
	}
	return r.Client.CoreV1().ConfigMaps(s.Namespace).Delete(ctx, s.Name, options)
}
