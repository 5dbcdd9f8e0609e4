package drainable_test

import (
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// Each row is a drain that began at now: when it is hurried and when it is pressing,
// as minutes after that; - is never, 0 from the start.
func TestUrgencyAt(t *testing.T) {
	const never = -1
	for _, tc := range []struct {
		name             string
		kind             contract.Kind
		deadline         time.Duration
		hurried, pressed int
	}{
		{"maintenance next week", contract.KindMaintenance, 7 * 24 * time.Hour, 7*24*60 - 30, 7*24*60 - 2},
		{"a long hook", contract.KindASG, 2 * time.Hour, 90, 118},
		{"an hour: half of it is half an hour", contract.KindASG, time.Hour, 30, 58},
		{"the lead of a maintenance", contract.KindMaintenance, 30 * time.Minute, 15, 28},
		{"ten minutes", contract.KindASG, 10 * time.Minute, 5, 8},
		{"four minutes", contract.KindScaleDown, 4 * time.Minute, 2, 2},
		{"three minutes: two of them press", contract.KindASG, 3 * time.Minute, 1, 1},
		{"two minutes", contract.KindRequest, 2 * time.Minute, 0, 0},
		{"past", contract.KindMaintenance, -time.Hour, 0, never},
		{"a termination without a deadline", contract.KindASG, 0, 0, never},
		{"a request without a deadline", contract.KindRequest, 0, never, never},
		{"spot", contract.KindSpot, 2 * time.Hour, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var deadline time.Time
			if tc.deadline != 0 {
				deadline = now.Add(tc.deadline)
			}
			first := map[drainable.Urgency]int{}
			last, due := drainable.Patient, time.Time{}
			for minute := range max(1, int(tc.deadline/time.Minute)) {
				at := now.Add(time.Duration(minute) * time.Minute)
				urgency, rises := drainable.UrgencyAt(at, tc.kind, now, deadline)
				if minute > 0 && urgency != last && !due.Equal(at) {
					t.Errorf("at minute %d it rises, which was foretold for %s", minute, due)
				}
				for u := drainable.Hurried; u <= urgency; u++ {
					if _, known := first[u]; !known {
						first[u] = minute
					}
				}
				last, due = urgency, rises
			}
			for u, want := range map[drainable.Urgency]int{drainable.Hurried: tc.hurried, drainable.Pressing: tc.pressed} {
				if got, ok := first[u]; ok != (want != never) || ok && got != want {
					t.Errorf("urgency %d from minute %d on (%t), want %d", u, got, ok, want)
				}
			}
		})
	}
}
