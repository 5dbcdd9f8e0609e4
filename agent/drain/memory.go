package drain

import (
	"slices"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// fromMemory is the source of what an earlier agent has written down.
const fromMemory notice.SourceName = "memory"

// remembered are notices that the metadata gave before, and do not give now: they stand
// until the metadata are heard to say otherwise, and clearly; a spot interruption until its
// time is over. The list on the Node holds them; an id of theirs that stands in the report
// or the marks alone came by a request, and went with it.
func (d *decision) remembered(given []notice.Notice) []notice.Notice {
	return slices.DeleteFunc(d.recalled(), func(n notice.Notice) bool {
		return has(given, n.ID) || d.isHeard(n.Cause) && d.hasLapsed(n)
	})
}

// allNoted are the notices that are written down, and those that are to be: a Node that cannot be
// written makes no notice end sooner. Of one that is written down that says it all, as what the list
// is to say beside goes with other changes that are to be written.
func (d *decision) allNoted() contract.NoticedList {
	unlisted, _ := contract.ParseNoticed(d.Unlisted)
	correctNoted(unlisted, d.Now)
	return slices.Concat(d.noted, slices.DeleteFunc(unlisted, func(n contract.Noticed) bool {
		_, listed := d.noted.Find(n.ID)
		return listed
	}))
}

// recalled are the notices that are known, but for what is over by a boot.
func (d *decision) recalled() []notice.Notice {
	var out []notice.Notice
	for _, noted := range d.known {
		if n, ok := recall(noted); ok && !d.cameBack(n) {
			out = append(out, n)
		}
	}
	return out
}

// hasLapsed reports whether a notice is over, now that the metadata give it no more.
func (d *decision) hasLapsed(n notice.Notice) bool {
	until := n.AbsentUntil(d.knownSince(n))
	return until.IsZero() || d.due(until)
}

// recall makes the notice again that was written down; ok is false where it is none of
// the metadata.
func recall(noted contract.Noticed) (n notice.Notice, ok bool) {
	cause, ok := notice.OfMetadata(noted.ID)
	return notice.Notice{
		ID: noted.ID, Cause: cause, Kind: cause.Kind(), Source: fromMemory, Reason: noted.Reason,
		Deadline: noted.Deadline.Time, NotAfter: noted.NotAfter.Time,
	}, ok
}

// isHeard reports whether the metadata were asked about a cause, and understood.
func (d *decision) isHeard(c notice.Cause) bool {
	return d.Heard && !slices.Contains(d.Unclear, c.Source())
}

// isHearsay reports whether the drain is for nothing that is certain.
func (d *decision) isHearsay() bool {
	return !slices.ContainsFunc(d.drains, func(n notice.Notice) bool { return !d.isDoubtful(n) })
}

// grounds are the notices by which the drain goes: those that are certain, or all where none is.
func (d *decision) grounds() []notice.Notice {
	if d.isHearsay() {
		return d.drains
	}
	return slices.DeleteFunc(slices.Clone(d.drains), d.isDoubtful)
}

// isDoubtful reports whether a notice may be over, though nothing reports it: the machine may
// have been down when it was announced to be, and be at work again. That is so of a
// notice
//
//   - that only an earlier agent read: what the metadata or a request say now, or the
//     mark of no return, is certain;
//   - whose moment has passed: before it nothing has been done yet, whatever boots there
//     were, and where there is none it cannot be known;
//   - under another boot than the one that is written down, under which it still was to
//     come; or under the same, if it announced a hibernation, from which a machine comes
//     back under the boot id that it had.
//
// Everything else goes on after a restart of the agent as it was, past its deadline as
// well. For what is doubtful the node stays closed, and no pod is asked to leave.
func (d *decision) isDoubtful(n notice.Notice) bool {
	if n.Source != fromMemory || n.Deadline.IsZero() || n.Deadline.After(d.Now) || d.isMarked(n.ID) {
		return false
	}
	return n.Cause == notice.SpotHibernate || d.Node.BootID == "" || d.bootOf(n) != d.Node.BootID
}

// cameBack reports whether the machine was stopped, as a notice had announced, and has been
// started again: one that stands only in the persisted state is over with that. A boot before its
// moment was a person's. A scheduled stop or retirement is never over by a boot, which
// may be anybody's: until the metadata are heard, it is doubtful.
func (d *decision) cameBack(n notice.Notice) bool {
	switch n.Cause {
	case notice.SpotStop, notice.SpotHibernate, notice.ASGWarm:
		return d.Node.BootID != "" && d.bootOf(n) != d.Node.BootID && !n.Deadline.After(d.Now)
	}
	return false
}
