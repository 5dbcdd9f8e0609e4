package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// With --dry-run the Node says what would be done, and nothing else happens, whatever is
// announced; when that is over, nothing is left.
func TestDryRun(t *testing.T) {
	story(t, func(w *world) {
		w.addPod("web-1")
		w.addPod("web-2")
		w.agentWith(func(a *Agent) { a.Policy.DryRun = true })
		w.after(time.Second)
		w.notify(interrupted())
		w.after(30 * time.Second)
		w.set(func() {
			said, err := contract.ParseDryRun(w.node.Annotations[contract.AnnotationDryRun])
			if err != nil || said.Report == nil || said.Report.Phase != contract.PhaseDraining || said.Report.Left != 2 || !slices.Contains(said.Would, "cordon") || !slices.Contains(said.Would, "taint spot") ||
				!slices.ContainsFunc(said.Would, func(would string) bool { return strings.HasPrefix(would, "evict 2 pods: shop/web-1, shop/web-2") }) {
				t.Errorf("says %+v, error %v", said, err)
			}
			if n := w.node; n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || len(n.Labels) > 0 || len(n.Annotations) != 1 {
				t.Errorf("the node is %+v %+v", n.ObjectMeta, n.Spec)
			}
			if len(w.events) > 0 || w.writes > 6 {
				t.Errorf("events %q, %d writes", w.events, w.writes)
			}
		})
		if n := w.deleted(); n > 0 {
			t.Errorf("%d pods were asked to leave", n)
		}
		w.notify()
		w.after(5 * time.Minute) // as in earnest: two after its time
		w.set(func() {
			if len(w.node.Annotations) > 0 {
				t.Errorf("left on the node: %v", w.node.Annotations)
			}
		})
	})
}
