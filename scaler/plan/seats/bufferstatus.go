package seats

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Reasons of a buffer's conditions that Cluster Autoscaler writes too.
// https://github.com/kubernetes-sigs/cluster-autoscaler/tree/main/pkg/capacitybuffer
const (
	bufferSet      = "AttributesSetSuccessfully"
	bufferInjected = "FakePodsInjected"
	bufferEmpty    = "BufferIsEmpty"
	bufferNotReady = "NotReadyForProvisioning"
)

// bufferNoRoom is the reason of a buffer that groups cannot make whole.
const bufferNoRoom = "NoRoom"

// UpdateBuffers writes on every buffer what becomes of it, where that does not stand
// there yet.
func (d *Seats) UpdateBuffers(out *outcome.Outcome) {
	for _, b := range d.Buffers {
		status := b.status(metav1.NewTime(d.Now).Rfc3339Copy())
		if !fleet.Equal(status, b.Status) {
			out.Do(action.UpdateBuffer{Buffer: action.BufferRef{Namespace: b.Namespace, Name: b.Name, UID: b.UID}, Version: b.Version, Status: status})
		}
	}
}

// status is what should stand on the buffer. Conditions of others stay as they are.
func (b *Buffer) status(now metav1.Time) fleet.BufferStatus {
	status := fleet.BufferStatus{Strategy: fleet.ActiveCapacity, Conditions: slices.Clone(b.Status.Conditions)}
	ready, provisioning := b.conditions()
	conditions := []metav1.Condition{ready, provisioning}
	if limited, says := b.limitedCondition(); says {
		conditions = append(conditions, limited)
	}
	for _, c := range conditions {
		c.LastTransitionTime = now // unless it stands there already
		meta.SetStatusCondition(&status.Conditions, c)
	}
	if b.Room == nil {
		return status
	}
	status.Template, status.Generation = b.Template, b.Pods.Generation
	status.Replicas = new(int32(b.Room.Wanted))
	return status
}

// conditions say whether it is known what room is wanted, and whether it is there or
// comes.
func (b *Buffer) conditions() (ready, provisioning metav1.Condition) {
	ready = metav1.Condition{Type: fleet.BufferReady, Status: metav1.ConditionTrue, Reason: bufferSet, Message: "ready"}
	provisioning = metav1.Condition{Type: fleet.BufferProvisioning, Status: metav1.ConditionFalse}
	switch {
	case b.Room == nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, b.misconfigured.reason, b.misconfigured.text
		provisioning.Reason, provisioning.Message = bufferNotReady, "it is not known what room is wanted"
	case b.Room.Wanted == 0:
		provisioning.Reason, provisioning.Message = bufferEmpty, "it asks for no room"
	case b.Room.Short > 0:
		provisioning.Reason, provisioning.Message = bufferNoRoom, fmt.Sprintf("there is no room for %d of its %s: %s", b.Room.Short, verdict.Counted(b.Room.Wanted, "pod"), b.Room.Why)
	default:
		provisioning.Status, provisioning.Reason = metav1.ConditionTrue, bufferInjected
	}
	return ready, provisioning
}

// limitedCondition says why the buffer is smaller than it asks to be. One that is not, and
// never was, says nothing of it.
func (b *Buffer) limitedCondition() (limited metav1.Condition, says bool) {
	limited = metav1.Condition{Type: fleet.BufferLimited, Status: metav1.ConditionFalse, Reason: limitedByQuota}
	if b.Room == nil || b.limit == "" {
		return limited, meta.FindStatusCondition(b.Status.Conditions, fleet.BufferLimited) != nil
	}
	limited.Status, limited.Reason = metav1.ConditionTrue, b.limit
	limited.Message = fmt.Sprintf("room is kept for %d of the %d pods that it asks for: %s", b.Room.Wanted, b.asked, b.limited)
	return limited, true
}
