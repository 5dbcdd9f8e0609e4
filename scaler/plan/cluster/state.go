package cluster

import (
	"maps"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

func copyState(s fleet.State) fleet.State {
	return fleet.State{
		Heartbeats: Copied(s.Heartbeats), Completed: Copied(s.Completed), Pooling: map[string]time.Time{}, Outlived: map[string]time.Time{}, Alone: map[string]fleet.LoneDrain{}, BackOffs: Copied(s.BackOffs), GrownAt: Copied(s.GrownAt),
		ShrunkAt: Copied(s.ShrunkAt), FailedAt: Copied(s.FailedAt),
		Bursts:  Copied(s.Bursts),
		GiveUps: Copied(s.GiveUps), Unjoined: Copied(s.Unjoined), Deserted: map[string]time.Time{}, Awaited: Copied(s.Awaited), Promises: Copied(s.Promises), Disputed: map[string]time.Time{}, Returning: Copied(s.Returning), Launches: Copied(s.Launches), Unsteered: Copied(s.Unsteered), Suspending: Copied(s.Suspending), Seen: Copied(s.Seen), Lessons: Copied(s.Lessons),
		Swap: s.Swap, SwapPauses: Copied(s.SwapPauses), Recognition: copyRecognition(s.Recognition),
		OwnDrains: map[string]time.Time{},
	}
}

// Compact leaves no empty maps, so that a state that says nothing new is equal
// to the one that was read.
func Compact(s fleet.State) fleet.State {
	return fleet.State{
		Heartbeats: filled(s.Heartbeats), Completed: filled(s.Completed), Pooling: filled(s.Pooling), Outlived: filled(s.Outlived), Alone: filled(s.Alone), BackOffs: filled(s.BackOffs), GrownAt: filled(s.GrownAt),
		ShrunkAt: filled(s.ShrunkAt), FailedAt: filled(s.FailedAt),
		Bursts:  filled(s.Bursts),
		GiveUps: filled(s.GiveUps), Unjoined: filled(s.Unjoined), Deserted: filled(s.Deserted), Awaited: filled(s.Awaited), Promises: filled(s.Promises), Disputed: filled(s.Disputed), Returning: filled(s.Returning), Launches: filled(s.Launches), Unsteered: filled(s.Unsteered), Suspending: filled(s.Suspending), Seen: filled(s.Seen), Lessons: filled(s.Lessons),
		Swap: s.Swap, SwapPauses: filled(s.SwapPauses), Recognition: compactRecognition(s.Recognition),
		OwnDrains: filled(s.OwnDrains),
	}
}

func filled[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func Copied[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

// clock finds the earliest of the moments at which something falls due.
type clock struct{ now, Next time.Time }

// At asks for a look at t; moments that have passed ask for none.
func (c *clock) At(t time.Time) {
	if !t.After(c.now) {
		return
	}
	if c.Next.IsZero() || t.Before(c.Next) {
		c.Next = t
	}
}

const (
	// SeenStep is to what seen memory is rounded down: hosts of one kind differ by
	// a few KiB, and that is not worth a write.
	SeenStep = 1 << 20
)
