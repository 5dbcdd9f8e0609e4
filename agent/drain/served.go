package drain

import (
	"slices"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// isServed reports whether nothing is done about a notice any more: it was served, and
// what was done for it is over.
func (d *decision) isServed(n notice.Notice) bool {
	served, ok := d.served.Find(n.ID)
	if !ok || served.Withdrawn || n.Kind.Strength() > served.Kind.Strength() {
		return false
	}
	if isNewer(n, served) || d.isMarked(n.ID) || served.Over && !d.isOver(n) {
		return false
	}
	return !slices.Contains(d.underWay(), n.ID)
}

// isNewer reports whether a request is another one than that of the same id which was served:
// an instance may have left its warm pool and returned to it while no agent ran. It is
// known by the request's own date, because the clock of its author may differ from ours;
// ours counts only where what was served came without a date.
func isNewer(n notice.Notice, served contract.Served) bool {
	switch {
	case n.Source != notice.FromRequest || n.At.IsZero():
		return false
	case served.Asked.IsZero():
		return n.At.After(served.At.Time)
	}
	return !served.Asked.Equal(contract.At(n.At))
}

// serve writes down that notices are served.
func (d *decision) serve(notices []notice.Notice) {
	for _, n := range notices {
		rebooted := d.hasRebooted(n)
		over := !rebooted && d.isOver(n)
		if served, ok := d.served.Find(n.ID); ok && !served.Withdrawn && served.Kind == n.Kind && !isNewer(n, served) && (served.Fulfilled || !rebooted && served.Over == over) {
			continue
		}
		s := contract.Served{ID: n.ID, Kind: n.Kind, Boot: d.bootOf(n), At: contract.At(d.Now), Fulfilled: rebooted, Over: over}
		if n.Source == notice.FromRequest {
			s.Asked = contract.At(n.At)
		}
		d.served = d.served.Add(s)
	}
	d.keepServed()
}

// forget changes what is persisted of notices that no longer stand, so that the same
// id, when it comes again, is a new wish: a person may ask twice with one word,
// and an instance that returned from a warm pool may be terminated again. The
// metadata's stay as history; a request's go with the request. A notice of the
// metadata that is not heard yet stands by the list on the Node.
func (d *decision) forget() {
	var list contract.ServedList
	for _, s := range d.served {
		_, metadata := notice.OfMetadata(s.ID)
		switch {
		case d.stands(s.ID), s.Withdrawn, s.Fulfilled:
			list = append(list, s)
		case metadata:
			s.Withdrawn, s.At = true, contract.At(d.Now)
			list = append(list, s)
		}
	}
	for _, id := range d.underWay() {
		cause, metadata := notice.OfMetadata(id)
		if _, known := list.Find(id); known || !metadata || d.stands(id) {
			continue
		}
		list = list.Add(contract.Served{ID: id, Kind: cause.Kind(), Boot: d.Node.BootID, At: contract.At(d.Now), Withdrawn: true})
	}
	d.served = list
	d.keepServed()
}

func (d *decision) keepServed() {
	if len(d.served) == 0 {
		delete(d.want.Annotations, contract.AnnotationServed)
		return
	}
	d.want.Annotations[contract.AnnotationServed] = d.served.String()
}
