package drain

import (
	"slices"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// mostNotices is how many notices of the metadata stand at most: what they give, and as much
// of what they gave before as the Node has room for.
const mostNotices = 40

// listStanding finds every notice that stands, wherever it is written.
func (d *decision) listStanding() []notice.Notice {
	given := notice.Interruptions(d.Notices, d.recalled())
	all := notice.Standing(append(given, d.remembered(given)...)...)
	all = all[:min(len(all), mostNotices)]
	for _, n := range all {
		d.seen[n.ID] = n
	}
	if value, ok := d.Node.Annotations[contract.AnnotationDrainRequest]; ok {
		request, err := notice.ParseRequest(value)
		if err == nil {
			all = append(all, request)
		}
		d.bad = err
	}
	if n, ok := d.terminating(all); ok {
		all = append(all, n)
	}
	return notice.Standing(all...)
}

// terminating makes a notice of the mark of no return, so that such a drain
// goes on even if its request is removed. Its own notice, if it stands, says more.
func (d *decision) terminating(standing []notice.Notice) (notice.Notice, bool) {
	id, marked := d.Node.Annotations[contract.AnnotationTerminating]
	if !marked || has(standing, id) {
		return notice.Notice{}, false
	}
	n := notice.Notice{ID: id, Cause: notice.Request, Kind: contract.KindScaleDown, Source: notice.FromRequest, Reason: "the instance is being terminated"}
	if kind, ok := contract.Draining(d.Node.Taints); ok && kind.Strength() > 0 {
		n.Kind = kind
	}
	if d.old != nil && d.old.AnswersTo(id) && n.Kind != contract.KindASG { // whose deadline may be a guess
		n.Deadline = d.old.Deadline.Time
	}
	return n, true
}

// isMarked reports whether the mark of no return names a notice: the scaler is sure of it.
func (d *decision) isMarked(id string) bool {
	return d.Node.Annotations[contract.AnnotationTerminating] == id
}

// underWay lists the ids that what we did to the Node is for.
func (d *decision) underWay() []string {
	var ids []string
	if d.old != nil {
		ids = append(ids, d.old.Answers...)
	}
	if d.mark != nil && d.mark.Notice != "" {
		ids = append(ids, d.mark.Notice)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (d *decision) stands(id string) bool { return has(d.standing, id) }

func has(list []notice.Notice, id string) bool {
	return slices.ContainsFunc(list, func(n notice.Notice) bool { return n.ID == id })
}

// response to a notice. Past the point of no return there is only one.
func (d *decision) response(n notice.Notice) notice.Response {
	r := d.policy.Responses.To(n)
	if d.isMarked(n.ID) {
		r.Do, r.Lead, r.Permit = notice.Drain, 0, false
	}
	return r
}

// begin is when the drain for a notice begins; zero for at once. One that has
// begun goes on, also where its deadline is put off.
func (d *decision) begin(n notice.Notice) time.Time {
	lead := d.response(n).Lead
	begun := d.old != nil && d.old.AnswersTo(n.ID)
	if lead == 0 || begun || n.Deadline.IsZero() {
		return time.Time{}
	}
	return n.Deadline.Add(-lead)
}
