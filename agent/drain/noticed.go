package drain

import (
	"cmp"
	"maps"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// note lists on the Node the notices that the metadata give, and what is made of
// them. What a request adds to one, and what came by a request alone, lives and dies
// with the request: the list is what an agent goes by whose metadata do not answer. One that is
// new there, and for which no drain begins, gets its Event: the drain has Events for the others.
func (d *decision) note() {
	var list contract.NoticedList
	for _, n := range d.standing {
		seen, ok := d.seen[n.ID]
		if !ok {
			continue
		}
		noted := d.noticed(n, seen)
		list = append(list, noted)
		_, known := d.noted.Find(n.ID)
		_, served := d.served.Find(n.ID)
		if !known && !served && !has(d.drains, n.ID) {
			d.tell(false, contract.EventNoticed, n.Reason+"; "+d.consequence(noted))
			d.events[len(d.events)-1].Notice = d.fields(n)
		}
	}
	if len(list) == 0 {
		delete(d.want.Annotations, contract.AnnotationNotices)
		return
	}
	d.want.Annotations[contract.AnnotationNotices] = list.String()
}

// noticed is what the list says of a notice, which the metadata give as seen. Since when it is
// known stays as it was, and so does the boot under which it is to come, while it is not known
// whether it has.
func (d *decision) noticed(n, seen notice.Notice) contract.Noticed {
	before, _ := d.known.Find(n.ID)
	now := contract.Noticed{
		ID: n.ID, Kind: n.Kind, Reason: n.Reason,
		Does:     string(d.response(n).Do),
		Due:      contract.At(d.dueOf(n)),
		Deadline: contract.At(seen.Deadline), NotAfter: contract.At(seen.NotAfter),
		At:   contract.At(d.Now),
		Boot: cmp.Or(d.Node.BootID, before.Boot),
	}
	if !before.At.IsZero() && before.At.Before(now.At.Time) {
		now.At = before.At
	}
	if d.isDoubtful(seen) && !d.hasRebooted(seen) {
		now.Boot = before.Boot
	}
	return now
}

// dueOf is when the drain for a notice begins, zero where that is not to come.
func (d *decision) dueOf(n notice.Notice) time.Time {
	if d.response(n).Do != notice.Drain || d.isServed(n) || !d.begin(n).After(d.Now) {
		return time.Time{}
	}
	return d.begin(n)
}

// consequence says what is made of a notice.
func (d *decision) consequence(n contract.Noticed) string {
	switch {
	case !n.Due.IsZero():
		return "its drain begins at " + clock(n.Due.Time)
	case n.Does == string(notice.Cordon) && len(d.drains) > 0:
		return "the node drains already"
	case n.Does == string(notice.Cordon):
		return "the node is cordoned, and its pods stay"
	}
	return "the agent does nothing about it"
}

// fields are those of a notice, for programs that read Events.
func (d *decision) fields(n notice.Notice) map[string]string {
	source := n.Source
	if source == fromMemory {
		source = n.Cause.Source()
	}
	fields := map[string]string{
		contract.AnnotationEventKind: string(n.Kind), contract.AnnotationEventID: n.ID,
		contract.AnnotationEventSource: string(source), contract.AnnotationEventInstance: d.Node.InstanceID(),
	}
	if !n.Deadline.IsZero() {
		fields[contract.AnnotationEventDeadline] = clock(n.Deadline)
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields
}

// clock prints a moment for people.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
