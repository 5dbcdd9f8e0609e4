package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// ask answers the agent's notice, whose source tells no time, with a deadline. It
// is also how an agent that cannot see the metadata service hears of it.
func (d *decision) ask(p passage) {
	if p.notice == nil || p.node == nil || p.node.mark != "" || p.way == &cooling && !p.node.Ready {
		return // there is nobody to tell, or all has been done already
	}
	if p.group.HooksUnknown && !p.asked() {
		if due := p.began.Add(hooksKnownWithin); p.group.HooksFault == "" || d.now.Before(due) {
			d.clock.at(due)
			p.node.say(NodeLeaving, p.why+"; the hooks that may hold it are not known yet")
			return
		}
		p.group.note(fmt.Sprintf("what may hold its terminations cannot be read, so a drain has %s", hooklessDrainTime))
	}
	if due := p.began.Add(p.unasked); p.unasked > 0 && !p.asked() {
		if _, answered := p.answered(); answered {
			return
		}
		if d.now.Before(due) {
			d.clock.at(due)
			return
		}
	}
	deadline := d.deadline(p)
	d.clock.at(deadline)
	if p.asked() {
		p.node.say(NodeLeaving, fmt.Sprintf("%s; its pods have until %s%s", p.why, clockTime(deadline), cmp.Or(d.carriedOn(p.node), p.progress())))
		return
	}
	p.node.say(NodeLeaving, p.why+"; its agent is told until when its pods have time")
	d.do(Retire{Group: p.group.Name, Node: p.node.ref(), ID: p.id(), Kind: contract.KindASG, Why: p.why, Deadline: deadline})
}

// id is that of the notice that the node's agent answers.
func (p passage) id() string { return p.notice(p.instance.ID) }

// ids are those under which the drain of the node may go on: one that was drained
// for the warm pool, and is ended there, need not be drained again, nor one that we
// drained before we ended it.
func (p passage) ids() []string {
	list := []string{p.id()}
	if p.way == &cooling {
		list = append(list, contract.WarmID(p.instance.ID))
	}
	if p.node.mark != "" {
		list = append(list, p.node.mark)
	}
	return list
}

// asked says that the request stands on the node, and its deadline with it.
func (p passage) asked() bool { return p.node.requested && slices.Contains(p.ids(), p.node.request.ID) }

// answered is the agent's report, if it is about that.
func (p passage) answered() (contract.Report, bool) {
	for _, id := range p.ids() {
		if report, ok := p.node.answered(id); ok {
			return report, true
		}
	}
	return contract.Report{}, false
}

// deadline of the drain: the one that stands on the node, so that it does not
// move, or that of an agent that was not asked, or else what the hooks and our
// patience allow.
func (d *decision) deadline(p passage) time.Time {
	if p.asked() && !p.node.request.Deadline.IsZero() {
		return p.node.request.Deadline.Time
	}
	if report, ok := p.answered(); ok && p.unasked > 0 && !report.Deadline.IsZero() {
		return report.Deadline.Time
	}
	end, from := p.began.Add(max(hooklessDrainTime, d.held(p.group, p.way))), d.now
	if p.group.HooksUnknown && p.node.mark == "" {
		end = d.now.Add(hooklessDrainTime) // what is still there something holds
	}
	if p.node.mark != "" {
		from = p.began // nobody is asked for its drain any more, which would fix it
	}
	return earliest(end, from.Add(d.policy.TerminationDrainTime))
}

// progress is how far the drain is, for a verdict; it has no figures that tick.
func (p passage) progress() string {
	report, answered := p.answered()
	return progress(report, answered)
}

// progress is how far the drain for that id is, for a verdict.
func (n *node) progress(id string) string { return progress(n.answered(id)) }

func progress(report contract.Report, answered bool) string {
	switch {
	case !answered:
		return "; its agent has not answered yet"
	case report.Phase == contract.PhaseDrained:
		return "; it is drained"
	case report.Phase == contract.PhaseFailed:
		return "; its drain failed: " + report.Message
	}
	return "; it is being drained" + standing(report)
}

// standing is since when a drain goes on, and what is left of it.
func standing(report contract.Report) string {
	text := ""
	if !report.Since.IsZero() {
		text += " since " + clockTime(report.Since.Time)
	}
	if report.Left > 0 {
		text += fmt.Sprintf(", %d %s left", report.Left, plural(report.Left, "pod", "pods"))
	}
	if len(report.BlockedBy) > 0 {
		text += ", blocked by " + contract.Shorten(listed(slices.Sorted(slices.Values(report.BlockedBy))), contract.MostText)
	}
	return text
}
