package hooks

import (
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// ask answers the agent's notice, whose source has no time, with a deadline. It is also how an
// agent that cannot see the instance metadata service learns of it.
func (d *Hooks) ask(p cluster.Passage) {
	if p.Notice == nil || p.Node == nil || p.Node.Mark != "" || p.Way == &cluster.Cooling && !p.Node.Ready {
		return // there is no agent to ask, or all has been done already
	}
	if d.boots(p) {
		return
	}
	if p.Group.HooksUnknown && !p.Asked() {
		if due := p.Began.Add(hooksKnownWithin); p.Group.HooksFault == "" || d.Now.Before(due) {
			d.Clock.At(due)
			p.Node.Say(verdict.NodeDraining, p.Why.Then(verdict.Say("the hooks that may hold it are not known yet")))
			return
		}
		p.Group.Note(verdict.Say("its lifecycle hooks cannot be read, so a drain has only {within}", verdict.Within(cluster.HooklessDrainTime)))
	}
	if due := p.Began.Add(p.Unasked); p.Unasked > 0 && !p.Asked() {
		if _, answered := p.Answered(); answered {
			return
		}
		if d.Now.Before(due) {
			d.Clock.At(due)
			return
		}
	}
	deadline := d.Deadline(p)
	d.Clock.At(deadline)
	if p.Asked() {
		p.Node.Say(verdict.NodeDraining, p.Why.Then(verdict.Say("its pods have until {until}", verdict.Until(deadline)), verdict.FirstOf(d.CarriedOn(p.Node), p.Progress())))
		return
	}
	p.Node.Say(verdict.NodeDraining, p.Why.Then(verdict.Say("its agent is told the deadline")))
	d.Do(action.RequestDrain{Group: p.Group.Name, Node: p.Node.Ref(), ID: p.Id(), Kind: contract.KindASG, Why: p.Why.String(), Deadline: deadline})
}
