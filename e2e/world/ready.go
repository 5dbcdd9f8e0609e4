package world

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tellAgain is the pause before the API server is told again what it did not take.
const tellAgain = time.Second

// setReady says on the pod what its process does, which kwok does not know. While the
// API server is away it tries on, as a kubelet does, until there is something newer to
// tell or the pod is gone.
func (k *programs) setReady(ctx context.Context, p *programPod, ready bool) {
	number := p.told.Add(1)
	if k.tellReady(ctx, p, ready, number) {
		return
	}
	ctx = context.WithoutCancel(ctx) // whoever killed or started the program has done so
	k.wait.Go(func() {
		for !p.gone.Load() {
			time.Sleep(tellAgain)
			if k.tellReady(ctx, p, ready, number) {
				return
			}
		}
	})
}

// tellReady tells the API server once, and returns whether there is nothing more to
// tell.
func (k *programs) tellReady(ctx context.Context, p *programPod, ready bool, number int64) bool {
	p.telling.Lock()
	defer p.telling.Unlock()
	if p.told.Load() != number {
		return true // there is something newer
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	now := metav1.Now()
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: status, LastTransitionTime: now},
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.pod.UID}, // a precondition
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		k.logger.Error("cannot encode a pod's status", "error", err)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err = k.client.CoreV1().Pods(p.pod.Namespace).Patch(ctx, p.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		k.logger.Debug("cannot say whether a pod is ready", "pod", p.pod.Name, "error", err)
	}
	return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}
