package world

import (
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// drain is what the agent of a node does for a request or a notice.
type drain struct {
	id     string
	kind   contract.Kind
	report contract.Report
	// again is true if it will ask once more for evictions that were refused.
	again bool
}

const (
	// noticeTime is from a spot interruption notice until the instance goes.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
	noticeTime = 120
	// askAgain is how long an agent waits before it asks again for evictions that were refused.
	askAgain = 10
)

// interrupt is EC2's notice that a spot instance goes in two minutes.
func (w *World) interrupt(m *machine) {
	instance := w.instance(m)
	if m.index == none || instance == nil || instance.Terminating() {
		return
	}
	w.ledger.Interruptions++
	id := "spot:" + m.id
	deadline := w.timeAt(w.now + noticeTime)
	w.node(m, func(n *fleet.Node) {
		n.Unschedulable = true
		annotate(n, contract.AnnotationCordonedBy, contract.Cordon{By: contract.AppAgent, Notice: id, At: contract.At(w.time())}.String())
	})
	w.beginDrain(m, id, contract.KindSpot, contract.At(deadline))
	w.in(noticeTime, func() {
		if i := w.instance(m); i != nil && m.index != none {
			w.unbill(m)
			w.vanish(m)
		}
	})
}

// hearRequest has the agent of a node of a snapshot go on with the request that stands there.
func (w *World) hearRequest(m *machine) {
	value, asked := w.snapshot.Nodes[m.index].Annotations[contract.AnnotationDrainRequest]
	if !asked {
		return
	}
	if r, err := contract.ParseRequest(value); err == nil {
		w.beginDrain(m, r.ID, r.Kind, r.Deadline)
	}
}

// beginDrain has the agent drain its node. A stronger drain that is under way goes on.
func (w *World) beginDrain(m *machine, id string, kind contract.Kind, deadline contract.Time) {
	if m.drain != nil && m.drain.kind.Strength() >= kind.Strength() {
		return
	}
	if m.drain == nil {
		w.draining = append(w.draining, m)
	}
	now := contract.At(w.time())
	m.drain = &drain{id: id, kind: kind, report: contract.Report{Answers: []string{id}, Kind: kind, Phase: contract.PhaseDraining, Since: now, Renewed: now, Deadline: deadline}}
	w.node(m, func(n *fleet.Node) { n.Taints = contract.WithTaint(n.Taints, contract.DrainingTaint(kind)) })
	w.goOn(m)
}

// goOn asks for the evictions that are left and reports how far the drain is.
func (w *World) goOn(m *machine) {
	d := m.drain
	if d == nil || m.index == none {
		return
	}
	left, refused := 0, false
	var by []string
	for _, p := range slices.Clone(m.pods) {
		if p.on != m || !drainable.Occupies(p.seen, w.time()) {
			continue
		}
		left++
		if p.leaving {
			continue
		}
		v := drainable.Judge(drainable.Question{
			Pod: p.seen, Now: w.time(), Budgets: w.budgets.ask(), Policy: w.policy.Manner.Rules(p.seen, d.kind == contract.KindScaleDown, false),
			Urgency: drainable.UrgencyOf(d.kind, d.report.Deadline.Time),
		})
		if v.Outcome == drainable.Leave {
			w.evict(p)
			continue
		}
		refused = true
		if v.Budget != "" && !slices.Contains(by, v.Budget) {
			by = append(by, v.Budget)
		}
	}
	phase := contract.PhaseDraining
	switch {
	case left == 0:
		phase = contract.PhaseDrained
	case refused && len(by) > 0:
		phase = contract.PhaseBlocked
	}
	if refused && !d.again {
		d.again = true
		w.in(askAgain, func() {
			if d.again = false; m.drain == d {
				w.goOn(m)
			}
		})
	}
	if m.drain != d || m.index == none {
		return
	}
	d.report.Phase, d.report.Left, d.report.BlockedBy, d.report.Renewed = phase, left, by, contract.At(w.time())
	w.node(m, func(n *fleet.Node) { annotate(n, contract.AnnotationDrainReport, d.report.String()) })
}

// renewReports is done before an evaluation, as nothing else reads them.
func (w *World) renewReports() {
	for _, m := range w.draining {
		d := m.drain
		if m.index == none || !d.report.Phase.Open() || w.time().Sub(d.report.Renewed.Time) < contract.ReportEvery {
			continue
		}
		d.report.Renewed = contract.At(w.time())
		annotate(&w.snapshot.Nodes[m.index], contract.AnnotationDrainReport, d.report.String())
	}
}

// undo is what an agent does when its drain is cancelled. Pods that were evicted are.
func (w *World) undo(m *machine) {
	m.drain = nil
	w.draining = slices.DeleteFunc(w.draining, func(o *machine) bool { return o == m })
	w.node(m, func(n *fleet.Node) {
		n.Taints = contract.WithoutKubeProxyTaint(contract.WithoutTaint(n.Taints, contract.TaintDraining))
		if _, ours := n.Annotations[contract.AnnotationCordonedBy]; ours {
			n.Unschedulable = false
		}
		strip(n, contract.AnnotationCordonedBy, contract.AnnotationDrainReport, contract.AnnotationDrainPermit, contract.AnnotationDrainNotYet)
	})
}
