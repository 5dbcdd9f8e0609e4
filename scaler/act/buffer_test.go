package act

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
)

var buffers = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacitybuffers"}

// All of a buffer's status is updated, and what is absent now is removed; the next evaluation
// waits until that is known.
func TestInform(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status fleet.BufferStatus
		want   string
	}{
		{"ready", fleet.BufferStatus{
			Template: "spare", Generation: ptr.To(int64(3)), Replicas: ptr.To(int32(2)), Strategy: fleet.ActiveCapacity,
			Conditions: []metav1.Condition{{Type: fleet.BufferReady, Status: metav1.ConditionTrue, Reason: "AttributesSetSuccessfully", Message: "ready", LastTransitionTime: metav1.NewTime(time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC))}},
		}, `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"conditions":[{"lastTransitionTime":"2025-01-01T10:00:00Z","message":"ready","reason":"AttributesSetSuccessfully","status":"True","type":"ReadyForProvisioning"}],
			"podTemplateGeneration":3,"podTemplateRef":{"name":"spare"},"provisioningStrategy":"buffer.x-k8s.io/active-capacity","replicas":2}}`},
		{"amiss", fleet.BufferStatus{Strategy: fleet.ActiveCapacity},
			`{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"conditions":null,"podTemplateGeneration":null,"podTemplateRef":null,"provisioningStrategy":"buffer.x-k8s.io/active-capacity","replicas":null}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent []byte
			outcome, awaited := informed(t, tc.status, func(a clienttesting.PatchAction) error {
				if a.GetSubresource() != "status" || a.GetName() != "spare" || a.GetNamespace() != "shop" {
					t.Errorf("patched %s/%s %q", a.GetNamespace(), a.GetName(), a.GetSubresource())
				}
				sent = a.GetPatch()
				return nil
			})
			if diff := cmp.Diff(decoded(t, []byte(tc.want)), decoded(t, sent)); diff != "" || outcome != Done || awaited != "8" {
				t.Errorf("%s, awaited %q, (-want +sent):\n%s", outcome, awaited, diff)
			}
		})
	}
}

// A buffer that has changed, or was deleted, is left to the next evaluation.
func TestInformStops(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Outcome
	}{
		"changed": {apierrors.NewConflict(buffers.GroupResource(), "spare", nil), Stopped},
		"gone":    {apierrors.NewNotFound(buffers.GroupResource(), "spare"), Stopped},
		"denied":  {apierrors.NewForbidden(buffers.GroupResource(), "spare", nil), Failed},
	} {
		outcome, awaited := informed(t, fleet.BufferStatus{}, func(clienttesting.PatchAction) error { return tc.err })
		if outcome != tc.want || awaited != "" {
			t.Errorf("%s: %s, awaited %q; want %s", name, outcome, awaited, tc.want)
		}
	}
}

// informed updates a buffer's status at an API server that answers as patched does, and
// returns which version was waited for.
func informed(t *testing.T, status fleet.BufferStatus, patched func(clienttesting.PatchAction) error) (outcome Outcome, awaited string) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClient(apiruntime.NewScheme())
	client.PrependReactor("patch", "capacitybuffers", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		written := &unstructured.Unstructured{Object: map[string]any{"apiVersion": buffers.GroupVersion().String(), "kind": "CapacityBuffer"}}
		written.SetResourceVersion("8")
		return true, written, patched(a.(clienttesting.PatchAction))
	})
	actor := &Actor{
		Buffers: client.Resource(buffers), Logger: slog.New(slog.DiscardHandler),
		AwaitBuffer: func(_ context.Context, _, _, version string) { awaited = version },
	}
	results := actor.Do(t.Context(), []action.Action{action.UpdateBuffer{Buffer: action.BufferRef{Namespace: "shop", Name: "spare", UID: "u"}, Version: "7", Status: status}})
	return results[0].Outcome, awaited
}

func decoded(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}
