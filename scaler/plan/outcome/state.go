package outcome

import (
	"maps"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// copyState is the state that the steps begin with: what they find anew each time is empty.
func copyState(s fleet.State, ownDrains map[string]time.Time) fleet.State {
	return fleet.State{
		Heartbeats: Copied(s.Heartbeats), Completed: Copied(s.Completed), Held: Copied(s.Held), CutIn: Copied(s.CutIn), Pooling: map[string]time.Time{}, Outlived: map[string]time.Time{}, StandIns: map[string]fleet.LoneDrain{}, BackOffs: Copied(s.BackOffs), GrownAt: Copied(s.GrownAt),
		ShrunkAt: Copied(s.ShrunkAt), FailedAt: Copied(s.FailedAt),
		Bursts:  Copied(s.Bursts),
		GiveUps: Copied(s.GiveUps), Unjoined: Copied(s.Unjoined), Deserted: map[string]time.Time{}, Awaited: Copied(s.Awaited), Promises: Copied(s.Promises), Disputed: map[string]time.Time{}, Returning: Copied(s.Returning), Launches: Copied(s.Launches), Unsteered: Copied(s.Unsteered), Suspending: Copied(s.Suspending), Seen: Copied(s.Seen), Lessons: Copied(s.Lessons),
		Steered: s.Steered, Replacement: s.Replacement, ReplacementBackOffs: Copied(s.ReplacementBackOffs), Recognition: copyRecognition(s.Recognition),
		OwnDrains: ownDrains,
	}
}

// Compact leaves no empty maps, so that a state with nothing new is equal to the one that was read.
func Compact(s fleet.State) fleet.State {
	return fleet.State{
		Heartbeats: filled(s.Heartbeats), Completed: filled(s.Completed), Held: filled(s.Held), CutIn: filled(s.CutIn), Pooling: filled(s.Pooling), Outlived: filled(s.Outlived), StandIns: filled(s.StandIns), BackOffs: filled(s.BackOffs), GrownAt: filled(s.GrownAt),
		ShrunkAt: filled(s.ShrunkAt), FailedAt: filled(s.FailedAt),
		Bursts:  filled(s.Bursts),
		GiveUps: filled(s.GiveUps), Unjoined: filled(s.Unjoined), Deserted: filled(s.Deserted), Awaited: filled(s.Awaited), Promises: filled(s.Promises), Disputed: filled(s.Disputed), Returning: filled(s.Returning), Launches: filled(s.Launches), Unsteered: filled(s.Unsteered), Suspending: filled(s.Suspending), Seen: filled(s.Seen), Lessons: filled(s.Lessons),
		Steered: s.Steered, Replacement: s.Replacement, ReplacementBackOffs: filled(s.ReplacementBackOffs), Recognition: compactRecognition(s.Recognition),
		OwnDrains: filled(s.OwnDrains),
	}
}

func filled[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Copied is a map of its own with the same entries.
func Copied[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

func copyRecognition(r fleet.Recognition) fleet.Recognition {
	return fleet.Recognition{
		Groups: Copied(r.Groups), Asked: Copied(r.Asked), Launched: Copied(r.Launched), Ended: Copied(r.Ended), Left: Copied(r.Left), Graced: Copied(r.Graced),
	}
}

func compactRecognition(r fleet.Recognition) fleet.Recognition {
	return fleet.Recognition{
		Groups: filled(r.Groups), Asked: filled(r.Asked), Launched: filled(r.Launched), Ended: filled(r.Ended), Left: filled(r.Left), Graced: filled(r.Graced),
	}
}
