package shadow

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// TestTaintsAreForgotten: of a node that is gone nothing is kept, also where it was of no group.
func TestTaintsAreForgotten(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := newWatch(nil)
	world := fleet.Snapshot{Now: now, Nodes: []fleet.Node{{Name: "stray", Taints: []corev1.Taint{{Key: contract.TaintToBeDeleted, Value: "1772366400"}}}}}
	w.see(world, world, false)
	if len(w.tainted) != 1 {
		t.Fatalf("%v are tainted", w.tainted)
	}
	world.Nodes = nil
	if w.see(world, world, false); len(w.tainted) != 0 {
		t.Errorf("%v are gone, and still known", w.tainted)
	}
}
