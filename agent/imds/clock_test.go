package imds

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	now := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
	var c clock
	// In this order: how far the node's clock is ahead, and what then counts.
	for _, tc := range []struct {
		reason       string
		ahead        time.Duration
		want         time.Duration
		wantsChanged bool
	}{
		{"alike", 0, 0, false},
		{"as good as alike", 5 * time.Second, 0, false},
		{"behind, and as good as alike", -5 * time.Second, 0, false},
		{"ahead", time.Minute, time.Minute, true},
		{"the same within what is tolerated", time.Minute + 4*time.Second, time.Minute, false},
		{"and less", time.Minute - 5*time.Second, time.Minute, false},
		{"further", 70*time.Second + 300*time.Millisecond, 70 * time.Second, true},
		{"set right: nothing is left of the difference", 2 * time.Second, 0, true},
		{"behind by a day", -24 * time.Hour, -24 * time.Hour, true},
		{"slowly back", -6 * time.Second, -6 * time.Second, true},
		{"and nearly right", -4 * time.Second, -6 * time.Second, false},
		{"right", 0, 0, true},
	} {
		changed := c.compare(now, now.Add(tc.ahead))
		if c.ahead != tc.want || changed != tc.wantsChanged {
			t.Errorf("%s (%s): counts %s, changed %v, want %s, %v", tc.reason, tc.ahead, c.ahead, changed, tc.want, tc.wantsChanged)
		}
	}
	if c.compare(time.Time{}, now) || c.ahead != 0 {
		t.Error("an answer without a date says something")
	}
}
