package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan/action"
)

// cordon closes a node whose agent is unresponsive, as the agent would, if the drain still
// stands there.
func (a *Actor) cordon(ctx context.Context, x action.Cordon) error {
	node, err := a.node(ctx, x.Node)
	if err != nil {
		return err
	}
	if !drainedBy(node, x.ID) {
		return stopped("its drain for %s is over", x.ID)
	}
	want := kube.StateOf(node)
	if !want.Unschedulable {
		want.Unschedulable = true
		want.Annotations[contract.AnnotationCordonedBy] = contract.Cordon{
			By: contract.AppScaler, Notice: x.ID, Boot: node.Status.NodeInfo.BootID, At: contract.At(a.now()),
		}.String()
	}
	if kind, tainted := contract.Draining(want.Taints); !tainted || kind.Strength() < x.Kind.Strength() {
		want.Taints = contract.WithTaint(want.Taints, contract.DrainingTaint(x.Kind))
	}
	if _, excluded := want.Labels[contract.LabelExcludeFromLoadBalancers]; !excluded {
		want.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		want.Annotations[contract.AnnotationExcluded] = x.ID
	}
	if x.KubeProxy {
		want.Taints = contract.WithKubeProxyTaint(want.Taints)
	}
	_, err = a.write(ctx, node, want, kube.GuardKeys)
	return err
}

// drainedBy reports whether the mark, the request or the report of that id stands on the node.
func drainedBy(node *corev1.Node, id string) bool {
	return node.Annotations[contract.AnnotationTerminating] == id || drained(node.Annotations, id)
}

// drained reports the same for the request and the report alone.
func drained(annotations map[string]string, id string) bool {
	request, err := contract.ParseRequest(annotations[contract.AnnotationDrainRequest])
	if err == nil && request.ID == id {
		return true
	}
	report, err := contract.ParseReport(annotations[contract.AnnotationDrainReport])
	return err == nil && report.AnswersTo(id)
}

// evict asks the eviction API, for exactly this pod and no later one of its name. If the API
// server no longer has the pod, or has another one of its name, the pod has left. Nothing
// else counts as left: neither a missing right nor a server that fails.
func (a *Actor) evict(ctx context.Context, x action.Evict) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: x.Pod.Namespace, Name: x.Pod.Name},
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: x.Grace, Preconditions: metav1.NewUIDPreconditions(string(x.Pod.UID))},
	}
	err := a.Pods.Pods(x.Pod.Namespace).EvictV1(ctx, eviction)
	switch {
	case kube.PodGone(x.Pod.Name, err):
		return nil
	case apierrors.IsTooManyRequests(err):
		return stopped("evicting %s: %v", x.Pod, err)
	case err != nil:
		return fmt.Errorf("evicting %s: %w", x.Pod, err)
	}
	if x.Overrides != "" {
		a.Events.Write(kube.Event{
			Object: kube.PodReference(x.Pod.Namespace, x.Pod.Name, string(x.Pod.UID)), Warning: true,
			Reason: contract.EventEvictionForced, Message: fmt.Sprintf("evicted despite %s: %s", x.Overrides, x.Why),
		})
	}
	return nil
}
