package drain_test

import (
	"testing"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/drainable"
)

// Each row is a step, how it prints, and what the Event on the pod says once it was
// done.
func TestEvictInWords(t *testing.T) {
	grace := int64(28)
	for _, tc := range []struct {
		step            drain.Evict
		prints, message string
	}{
		{drain.Evict{}, "evict shop/web-1", ""},
		{drain.Evict{Grace: &grace}, "evict shop/web-1 grace=28", ""},
		{drain.Evict{Overrides: drainable.RuleNotSafeToEvict}, "evict shop/web-1 overrides=NotSafeToEvictAnnotation",
			"evicted despite NotSafeToEvictAnnotation: the instance goes"},
		{drain.Evict{Delete: true, Past: "budget shop/web", Overrides: drainable.RuleBudget, Grace: &grace},
			"delete shop/web-1 grace=28 overrides=NotEnoughPdb",
			"deleted shortly before the deadline (blocked by budget shop/web): the instance goes"},
		{drain.Evict{Delete: true, Past: "eviction forbidden: no right"}, "delete shop/web-1",
			"deleted shortly before the deadline (blocked by eviction forbidden: no right): the instance goes"},
	} {
		tc.step.Namespace, tc.step.Name, tc.step.Why = "shop", "web-1", "the instance goes"
		if got := tc.step.String(); got != tc.prints {
			t.Errorf("prints %q, want %q", got, tc.prints)
		}
		if got := tc.step.Override(); got != tc.message {
			t.Errorf("says %q, want %q", got, tc.message)
		}
	}
}
