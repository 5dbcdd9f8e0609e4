package act

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/scaler/plan/action"
)

// updateBuffer writes the status of a CapacityBuffer, if it still is as it was seen.
func (a *Actor) updateBuffer(ctx context.Context, x action.UpdateBuffer) error {
	if a.Buffers == nil {
		return fmt.Errorf("buffer %s: this scaler has no client for capacity buffers", x.Buffer)
	}
	patch, err := json.Marshal(statusPatch(x))
	if err != nil {
		return fmt.Errorf("buffer %s: writing its status down: %w", x.Buffer, err)
	}
	written, err := a.Buffers.Namespace(x.Buffer.Namespace).Patch(ctx, x.Buffer.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return stopped("buffer %s is gone", x.Buffer)
	case apierrors.IsConflict(err):
		return stopped("buffer %s has changed", x.Buffer)
	case err != nil:
		return fmt.Errorf("writing the status of buffer %s: %w", x.Buffer, err)
	}
	if a.AwaitBuffer != nil {
		ctx, cancel := context.WithTimeout(ctx, awaitTime)
		defer cancel()
		a.AwaitBuffer(ctx, x.Buffer.Namespace, x.Buffer.Name, written.GetResourceVersion())
	}
	return nil
}

// statusPatch names all of the status, also what is absent: a patch leaves alone what it
// does not name.
func statusPatch(x action.UpdateBuffer) any {
	status := map[string]any{
		"podTemplateRef":        nil,
		"podTemplateGeneration": x.Status.Generation,
		"replicas":              x.Status.Replicas,
		"provisioningStrategy":  x.Status.Strategy,
		"conditions":            x.Status.Conditions,
	}
	if x.Status.Template != "" {
		status["podTemplateRef"] = map[string]string{"name": x.Status.Template}
	}
	return map[string]any{
		"metadata": map[string]any{"uid": x.Buffer.UID, "resourceVersion": x.Version},
		"status":   status,
	}
}
