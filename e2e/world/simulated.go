package world

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// simulated is hardware of which there is nothing but the Node: kwok plays the kubelet,
// and what of the pods really runs are processes of this host.
type simulated struct {
	client   kubernetes.Interface
	region   string
	groups   func(name string) (cloud.Group, bool)
	disk     func(cloud.Instance) int               // GiB of the root volume
	readyAt  func(group string) time.Time           // of a node that starts now
	rented   bool                                   // from an external provider
	nameless func(id string) bool                   // its Node has no provider id
	powerOff func(node string)                      // ends what really runs there
	powerOn  func(ctx context.Context, node string) // and runs it again
}

func (s *simulated) boot(ctx context.Context, i cloud.Instance, again bool) error {
	start := s.join
	if again {
		start = s.bootAgain
	}
	if err := start(ctx, i); err != nil {
		return err
	}
	s.powerOn(ctx, i.PrivateDNSName)
	return nil
}

func (s *simulated) join(ctx context.Context, i cloud.Instance) error {
	group, _ := s.groups(i.Group)
	m := nodeOf{instance: i, group: group, region: s.region, diskGiB: s.disk(i), readyAt: s.readyAt(i.Group)}
	n, err := m.node()
	if err != nil {
		return err
	}
	if s.rented {
		n.Spec.ProviderID = scheme + i.ID
	}
	if s.nameless(i.ID) {
		n.Spec.ProviderID = ""
	}
	if _, err := s.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", n.Name, err)
	}
	return nil
}

func (s *simulated) bootAgain(ctx context.Context, i cloud.Instance) error {
	s.powerOff(i.PrivateDNSName)
	return s.report(ctx, i.PrivateDNSName, i.BootID, s.readyAt(i.Group), corev1.ConditionFalse, "KubeletNotReady", "the machine has just booted")
}

// halt: nobody reports for the Node any more.
func (s *simulated) halt(ctx context.Context, _ string, was joined) error {
	s.powerOff(was.node)
	return s.report(ctx, was.node, was.bootID, never, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
}

func (s *simulated) end(_, node string) error {
	if node != "" {
		s.powerOff(node)
	}
	return nil
}

func (s *simulated) kubelet(ctx context.Context, i cloud.Instance, runs bool) error {
	if runs {
		return s.report(ctx, i.PrivateDNSName, i.BootID, time.Now(), corev1.ConditionFalse, "KubeletNotReady", "the kubelet has just started")
	}
	return s.report(ctx, i.PrivateDNSName, i.BootID, never, corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status.")
}

// report writes what the kubelet, or its silence, says about a node; kwok turns
// it Ready at the given time.
func (s *simulated) report(ctx context.Context, node, bootID string, readyAt time.Time, ready corev1.ConditionStatus, reason, message string) error {
	annotations, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		annotationReadyAt: readyAt.UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return err
	}
	nodes := s.client.CoreV1().Nodes()
	if _, err := nodes.Patch(ctx, node, types.MergePatchType, annotations, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("setting when node %s turns Ready: %w", node, err)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"nodeInfo":   map[string]string{"bootID": bootID},
		"conditions": []corev1.NodeCondition{readiness(ready, reason, message)},
	}})
	if err != nil {
		return err
	}
	if _, err := nodes.Patch(ctx, node, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("reporting for node %s: %w", node, err)
	}
	return nil
}
