package notice

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// Notice announces that the node is to leave, and why.
type Notice struct {
	// ID is stable: the same notice seen a thousand times has one id, in this
	// process and in the next.
	ID    string
	Cause Cause
	Kind  contract.Kind
	// Source is where it was read.
	Source SourceName
	// Reason is a sentence for people.
	Reason string
	// By names who asked, for a drain request; empty otherwise.
	By string
	// At is when it was given, zero where that is not known.
	At time.Time
	// Deadline is when the instance goes whatever is left on it; zero where that is not known.
	Deadline time.Time
	// NotAfter is when a scheduled event is over at the latest; zero where nobody
	// has said, and for all others.
	NotAfter time.Time
}

// overAfter is how long after its announced end a scheduled event is over, though
// the metadata may go on listing it.
const overAfter = time.Hour

// OverAt is when the notice is over whatever the metadata say, zero for never. It is for events
// that the machine survives: an instance that AWS is late to stop or to retire never serves
// again.
func (n Notice) OverAt() time.Time {
	switch n.Cause {
	case InstanceReboot, SystemReboot, SystemMaintenance:
		if !n.NotAfter.IsZero() {
			return n.NotAfter.Add(overAfter)
		}
	}
	return time.Time{}
}

// Standing returns the notices that stand, each id once, the strongest first:
// by kind, then the earliest deadline, then id. The first one decides how the
// drain is done. The order of its arguments changes nothing.
func Standing(notices ...Notice) []Notice {
	sorted := slices.Clone(notices)
	slices.SortFunc(sorted, byID)
	var out []Notice
	for _, n := range sorted {
		if last := len(out) - 1; last >= 0 && out[last].ID == n.ID {
			out[last] = merge(out[last], n)
			continue
		}
		out = append(out, n)
	}
	slices.SortFunc(out, byStrength)
	return out
}

// IDs of notices, in order of their spelling.
func IDs(notices []Notice) []string {
	ids := make([]string, 0, len(notices))
	for _, n := range notices {
		ids = append(ids, n.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Earliest of two moments; a zero one does not count.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// merge makes one of two notices of the same id: the scaler sees a termination
// too, and knows its deadline, which the metadata do not give. Where one of them
// is a request, so is the outcome: a wish to drain, whatever the policy for its
// cause.
func merge(a, b Notice) Notice {
	out := a
	if b.Kind.Strength() > a.Kind.Strength() {
		out.Kind, out.Cause = b.Kind, b.Cause
	}
	out.Reason = cmp.Or(a.Reason, b.Reason)
	out.By = cmp.Or(a.By, b.By)
	out.At = Earliest(a.At, b.At)
	out.Deadline = Earliest(a.Deadline, b.Deadline)
	if b.NotAfter.After(a.NotAfter) {
		out.NotAfter = b.NotAfter
	}
	return out
}

// byID sorts the notices of one id in a way that depends on nothing but their
// content; the request, whose author knows more, comes first.
func byID(a, b Notice) int {
	return cmp.Or(
		cmp.Compare(a.ID, b.ID),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(b.Kind.Strength(), a.Kind.Strength()),
		a.Deadline.Compare(b.Deadline),
		a.NotAfter.Compare(b.NotAfter),
		a.At.Compare(b.At),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.By, b.By),
	)
}

func byStrength(a, b Notice) int {
	return cmp.Or(
		cmp.Compare(b.Kind.Strength(), a.Kind.Strength()),
		compareDeadlines(a.Deadline, b.Deadline),
		cmp.Compare(a.ID, b.ID),
	)
}

// compareDeadlines puts a notice without a deadline last.
func compareDeadlines(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}
