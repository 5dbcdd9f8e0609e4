package happening

import (
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// Member is the key of a node's scale-down. It begins with that of the node.
func Member(node, id string) string { return nodeKey(node) + hash(id) }

func nodeKey(node string) string { return hash(node) + "." }

// scaledDown reports whether the scaler itself removes a node, or has just done so.
func (f *fold) scaledDown(node string) bool {
	if contract.IsScaleDown(f.world.Nodes[node].Terminating) {
		return true
	}
	return slices.ContainsFunc(f.Happenings, func(h Happening) bool {
		for key, p := range h.Members {
			if strings.HasPrefix(key, nodeKey(node)) && p != Cancelled {
				return true
			}
		}
		return false
	})
}

// scaleDown: a node of a group is as far as that.
func (f *fold) scaleDown(e Event, p Phase) {
	x := e.Facts
	if e.Kind != "Node" || e.Object == "" || !contract.IsScaleDown(x.ID) {
		return // an instance that never became a node is no scale-down, nor is a termination by Auto Scaling
	}
	f.stands(e.Object, x.ID, x.Group, p, e.At)
}

// stands brings the scale-down of a node into a phase. The scale-downs of a group that follow
// one another are one happening.
func (f *fold) stands(node, id, group string, p Phase, at time.Time) {
	key := Member(node, id)
	if h := f.scaleDownOf(key); h != nil {
		was := h.Members[key]
		if rank[p] <= rank[was] {
			return
		}
		h.Members[key] = p
		if h.Over() {
			h.Phase = fallenTo(h) // a late Event says better
		}
		h.change(at)
		f.counted(h, p)
		return
	}
	h := f.open(group)
	if h == nil {
		h = f.begin(Happening{Kind: ScaleDown, Subject: group, Group: group, Phase: Draining, Began: at})
	} else {
		h.change(at)
	}
	h.Members[key] = p
	h.Names = union(h.Names, []string{node})
	f.counted(h, p)
}

// scaleDownOf finds the happening that a node's scale-down is of, ended or not.
func (f *fold) scaleDownOf(key string) *Happening {
	for i := range f.Happenings {
		if h := &f.Happenings[i]; h.Kind == ScaleDown {
			if _, is := h.Members[key]; is {
				return h
			}
		}
	}
	return nil
}

// open finds a scale-down of a group that takes in another node.
func (f *fold) open(group string) *Happening {
	for i := range f.Happenings {
		if h := &f.Happenings[i]; h.Kind == ScaleDown && h.Subject == group && !h.Over() && len(h.Members) < mostMembers {
			return h
		}
	}
	return nil
}

// counted notes a node that is terminated, and what it saves.
func (f *fold) counted(h *Happening, p Phase) {
	if p != Terminated {
		return
	}
	f.Totals.NodesDown++
	if line, known := f.group(h.Group); known {
		h.Saved += line.PricePerHour
		f.Totals.Saved += line.PricePerHour
	}
}

// fallen ends a scale-down of which every node is at its end, and that none has joined for a
// while.
func (f *fold) fallen(h *Happening) {
	for _, p := range h.Members {
		if !final(ScaleDown, p) {
			return
		}
	}
	if !f.world.Now.Before(h.Last.Add(joins)) {
		h.end(fallenTo(h), h.Last)
	}
}

// fallenTo is how a scale-down ends.
func fallenTo(h *Happening) Phase {
	for _, p := range h.Members {
		if p == Terminated || p == Gone {
			return Terminated
		}
	}
	return Cancelled
}

// noticed: an agent knows of a notice, or drains for it.
func (f *fold) noticed(e Event, p Phase) {
	n := e.Notice
	switch {
	case e.Kind != "Node" || n.Kind == contract.KindScaleDown:
		return // a scale-down is told as one
	case n.ID == "":
		f.ofNode(e, p) // of a drain that the scaler does in place of an agent
		return
	}
	f.interrupted(e.Object, n, p, e.At)
	if h := f.interruption(e.Object, n.ID); h != nil {
		h.Source, h.Instance = e.Source, e.Instance
	}
}

// interrupted brings the interruption of a node by a notice into a phase.
func (f *fold) interrupted(node string, n contract.Noticed, p Phase, at time.Time) {
	h := f.interruption(node, n.ID)
	if h == nil && n.Kind == contract.KindASG && f.scaledDown(node) {
		return // the scaler has told Auto Scaling to
	}
	if h == nil {
		f.begin(Happening{Kind: Interruption, Subject: Member(node, n.ID), Node: node, Notice: string(known(n.Kind)), NoticeID: n.ID,
			Deadline: n.Deadline.Time, Phase: p, Began: at, Text: contract.Shorten(n.Reason, mostText)})
		return
	}
	f.advance(h, p, at)
	if h.Deadline.IsZero() {
		h.Deadline = n.Deadline.Time
	}
	if h.Text == "" {
		h.Text = contract.Shorten(n.Reason, mostText)
	}
}

// stood is interrupted, of what a Node shows: without room it begins later.
func (f *fold) stood(node string, n contract.Noticed, p Phase, at time.Time) {
	if f.interruption(node, n.ID) != nil || f.room() {
		f.interrupted(node, n, p, at)
	}
}

// interruption finds that of a node by a notice, ended or not.
func (f *fold) interruption(node, id string) *Happening {
	for i := range f.Happenings {
		if h := &f.Happenings[i]; h.Kind == Interruption && h.Node == node && h.NoticeID == id {
			return h
		}
	}
	return nil
}

// ofNode brings every interruption that lasts on a node into a phase. That a drain was undone ends none
// that is still to be served: it may be the drain for another one.
func (f *fold) ofNode(e Event, p Phase) {
	if e.Kind != "Node" {
		return
	}
	for i := range f.Happenings {
		h := &f.Happenings[i]
		if h.Kind != Interruption || h.Node != e.Object || e.At.Before(h.Began.Truncate(time.Second)) {
			continue
		}
		n := f.world.Nodes[h.Node]
		if _, served := n.Served.Find(h.NoticeID); p == Cancelled && n.knows(h.NoticeID) && !served {
			continue
		}
		f.advance(h, p, e.At)
	}
}

// advance goes on to a later phase, and ends where that is an end.
func (f *fold) advance(h *Happening, p Phase, at time.Time) {
	switch {
	case rank[p] <= rank[h.Phase]:
	case final(Interruption, p):
		h.end(p, at)
	default:
		h.to(p, at)
	}
}

// nodes takes in how Nodes stand: what an Event said, or would have.
func (f *fold) nodes() {
	if f.world.Nodes == nil {
		return
	}
	for _, n := range sorted(f.world.Nodes) {
		f.node(n)
	}
	now := f.world.Now
	for i := range f.Happenings {
		h := &f.Happenings[i]
		if h.Kind != Interruption || h.Over() {
			continue
		}
		n, there := f.world.Nodes[h.Node]
		f.seen[h.ID] = there && n.knows(h.NoticeID)
		h.missed(f.seen[h.ID], now)
		switch {
		case h.Missed.IsZero() || now.Before(h.Missed.Add(vanishes)):
		case there:
			h.end(Cancelled, now)
		default:
			h.end(Gone, now)
		}
	}
	f.vanished()
}

// missed notes since when it is not seen any more.
func (h *Happening) missed(seen bool, now time.Time) {
	switch {
	case seen:
		h.Missed = time.Time{}
	case h.Missed.IsZero():
		h.Missed = now
	}
}

// knows reports whether a notice or request stands on the node, or its drain is reported.
func (n Node) knows(id string) bool {
	_, stands := n.Notices.Find(id)
	return stands || n.Request != nil && n.Request.ID == id || n.Report != nil && n.Report.AnswersTo(id)
}

var phaseOf = map[contract.Phase]Phase{
	contract.PhaseWaiting: Noticed, contract.PhaseDraining: Draining, contract.PhaseBlocked: Draining, contract.PhaseDrained: Drained, contract.PhaseFailed: Failed,
}

func (f *fold) node(n Node) {
	now := f.world.Now
	for _, notice := range n.Notices {
		f.stood(n.Name, notice, Noticed, latest(notice.At.Time, f.Totals.Since))
	}
	if r := n.Request; r != nil && r.Kind != contract.KindScaleDown && n.Report == nil {
		f.stood(n.Name, contract.Noticed{ID: r.ID, Kind: r.Kind, Reason: r.Reason, Deadline: r.Deadline}, Noticed, latest(r.At.Time, f.Totals.Since))
	}
	if r := n.Request; r != nil && contract.IsScaleDown(r.ID) && f.scaleDownOf(Member(n.Name, r.ID)) == nil && now.After(r.At.Add(vanishes)) {
		f.stands(n.Name, r.ID, "", Draining, now) // of which no Event came
	}
	if contract.IsScaleDown(n.Terminating) && f.scaleDownOf(Member(n.Name, n.Terminating)) != nil {
		f.stands(n.Name, n.Terminating, "", Terminated, now)
	}
	r := n.Report
	if r == nil || r.Kind == contract.KindScaleDown {
		return
	}
	for _, id := range r.Answers {
		if h := f.interruption(n.Name, id); h != nil {
			f.advance(h, phaseOf[r.Phase], latest(r.Since.Time, h.Began))
		} else if r.Phase.Open() && !contract.IsScaleDown(id) {
			f.stood(n.Name, contract.Noticed{ID: id, Kind: r.Kind, Reason: r.Reason, Deadline: r.Deadline}, phaseOf[r.Phase], latest(r.Since.Time, f.Totals.Since))
		}
	}
}

// vanished ends scale-downs whose nodes have no Node any more, or no request, and of which no
// Event says why.
func (f *fold) vanished() {
	now, standing := f.world.Now, f.world.standing()
	for i := range f.Happenings {
		h := &f.Happenings[i]
		if h.Kind != ScaleDown || h.Over() {
			continue
		}
		lost := false
		for key, p := range h.Members {
			since, absent := h.Absent[key]
			switch {
			case final(ScaleDown, p) || standing[key]:
				delete(h.Absent, key)
			case !absent:
				h.Absent[key] = now.Unix()
			case !now.Before(time.Unix(since, 0).Add(vanishes)):
				delete(h.Absent, key)
				h.Members[key], lost = Gone, true
			}
		}
		if lost {
			h.change(now)
		}
	}
}

// standing are the keys of what Nodes show: requests, notices, and what agents report on.
func (w World) standing() map[string]bool {
	standing := map[string]bool{}
	for _, n := range w.Nodes {
		ids := []string{n.Terminating}
		if n.Request != nil {
			ids = append(ids, n.Request.ID)
		}
		if n.Report != nil {
			ids = append(ids, n.Report.Answers...)
		}
		for _, notice := range n.Notices {
			ids = append(ids, notice.ID)
		}
		for _, id := range ids {
			standing[Member(n.Name, id)] = true
		}
	}
	return standing
}

// stands reports whether a Node shows any of it still: forgotten, it would begin anew.
func (h *Happening) stands(standing map[string]bool) bool {
	if standing[h.Subject] {
		return true
	}
	for key := range h.Members {
		if standing[key] {
			return true
		}
	}
	return false
}
