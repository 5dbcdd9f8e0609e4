package cluster

import (
	"math"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// HooklessDrainTime is what an agent has where no hook holds the instance.
	// Auto Scaling then ends it at once, and EC2 takes about that long.
	HooklessDrainTime = 60 * time.Second
	// hookSlack is how long before a hook's global timeout the drain must end.
	hookSlack = 30 * time.Second
	// answerWithin is how long the agent of a node that moves into a warm pool has to notice that
	// by itself.
	answerWithin = 10 * time.Second
)

// Way is what an instance goes through while lifecycle hooks may hold it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html
type Way struct {
	// start is the state before hooks hold it, wait the one in which they do.
	start, Wait string
	// transitions are those whose hooks may hold it.
	transitions []string
	// Notice is the id under which agent and scaler know that its pods must leave;
	// nil where they need not.
	Notice func(instance string) string
	// Unasked is how long its agent has to answer by itself. Where there is no such time it gets a
	// deadline at once.
	Unasked time.Duration
	// Why is for people.
	Why verdict.Details
}

var (
	ending  = Way{fleet.Terminating, fleet.TerminatingWait, []string{fleet.OnTerminate}, contract.TerminateID, 0, verdict.Say("Auto Scaling terminates its instance")}
	Cooling = Way{fleet.WarmedTerminating, fleet.WarmedTerminatingWait, []string{fleet.OnTerminate}, contract.TerminateID, 0, verdict.Say("Auto Scaling terminates its instance")}
	// Warming is the first boot of an instance for the warm pool, where launch hooks hold it, and
	// its return on scale-in, where those of terminations do. Nothing that AWS reports of the
	// instance distinguishes the two, so both are asked: one of them answers that there is nothing
	// to complete.
	Warming   = Way{fleet.WarmedPending, fleet.WarmedPendingWait, []string{fleet.OnLaunch, fleet.OnTerminate}, contract.WarmID, answerWithin, verdict.Say("Auto Scaling moves its instance into the warm pool")}
	Launching = Way{fleet.Pending, fleet.PendingWait, []string{fleet.OnLaunch}, nil, 0, nil}
)

// Passage is one instance on its Way.
type Passage struct {
	*Way
	Group    *Group
	Instance *fleet.Instance
	Node     *Node // nil where none has registered, or it is deleted already
	// Hooks are those that are ours to complete.
	Hooks []fleet.Hook
	// Began is since when it has been on this way, as far as is known.
	Began time.Time
}

// LikelierThan says which of two Nodes with the same providerID is more likely the machine.
func (n *Node) LikelierThan(other *Node) bool {
	if n.Ready != other.Ready {
		return n.Ready
	}
	return n.Created.After(other.Created)
}

// Passage says on which way an instance is, if any.
func (d *Cluster) Passage(g *Group, i *fleet.Instance, n *Node) (Passage, bool) {
	p := Passage{Group: g, Instance: i, Node: n, Began: d.Now}
	switch i.State {
	case fleet.Terminating, fleet.TerminatingWait:
		p.Way = &ending
		if !i.TerminatingSince.IsZero() {
			p.Began = i.TerminatingSince
		}
	case fleet.WarmedTerminating, fleet.WarmedTerminatingWait:
		p.Way = &Cooling
	case fleet.WarmedPending, fleet.WarmedPendingWait:
		p.Way = &Warming
	case fleet.PendingWait: // before that there is nothing to do
		p.Way = &Launching
	default:
		return Passage{}, false
	}
	if since, known := d.Given.Pooling[i.ID]; known && i.Warmed() {
		p.Began = since
	}
	for _, h := range g.Hooks {
		if p.HeldBy(h) && d.Ours(h) {
			p.Hooks = append(p.Hooks, h)
		}
	}
	return p, true
}

// Ours reports whether a hook is named by our flags. All other hooks belong to others, who complete
// them.
func (d *Cluster) Ours(h fleet.Hook) bool {
	names := d.Policy.TerminationHooks
	if h.Transition == fleet.OnLaunch {
		names = d.Policy.LaunchHooks
	}
	return slices.Contains(names, h.Name)
}

// HeldBy reports whether a hook of the group may hold instances on this way.
func (w *Way) HeldBy(h fleet.Hook) bool { return slices.Contains(w.transitions, h.Transition) }

// Waits reports whether hooks hold the instance now.
func (p Passage) Waits() bool { return p.Instance.State == p.Wait }

// held is for how long the hooks of a way surely keep an instance. It waits for all
// of them, but one that is abandoned ends the wait for the others.
func (d *Cluster) held(g *Group, w *Way) time.Duration {
	longest, cut := time.Duration(0), time.Duration(math.MaxInt64)
	for _, h := range g.Hooks {
		if !w.HeldBy(h) {
			continue
		}
		longest = max(longest, d.Holds(h))
		if h.Default == Abandons {
			cut = min(cut, d.Holds(h))
		}
	}
	return min(longest, cut)
}

// Abandons is the result of a hook that was not completed in time, where the group's owner has not
// set CONTINUE.
const Abandons = "ABANDON"

// Holds is for how long a hook surely keeps an instance: ours as long as it may
// be prolonged, one of others until its first timeout.
func (d *Cluster) Holds(h fleet.Hook) time.Duration {
	if !d.Ours(h) {
		return h.Heartbeat.Duration - hookSlack
	}
	if h.Global.Duration <= 0 {
		return d.Policy.TerminationDrainTime
	}
	return h.Global.Duration - hookSlack
}

// Id is that of the notice that the node's agent answers.
func (p Passage) Id() string { return p.Notice(p.Instance.ID) }

// ids are those under which the drain of the node may go on: one that was drained
// for the warm pool, and is ended there, need not be drained again, nor one that we
// drained before we ended it.
func (p Passage) ids() []string {
	list := []string{p.Id()}
	if p.Way == &Cooling {
		list = append(list, contract.WarmID(p.Instance.ID))
	}
	if p.Node.Mark != "" {
		list = append(list, p.Node.Mark)
	}
	return list
}

// Asked reports whether the request stands on the node, and its deadline with it.
func (p Passage) Asked() bool { return p.Node.Requested && slices.Contains(p.ids(), p.Node.Request.ID) }

// Answered is the agent's report, if it is about that.
func (p Passage) Answered() (contract.Report, bool) {
	for _, id := range p.ids() {
		if report, ok := p.Node.Answered(id); ok {
			return report, true
		}
	}
	return contract.Report{}, false
}

// Deadline of the drain: the one that stands on the node, so that it does not
// move, or that of an agent that was not asked, or else what the hooks and our
// patience allow.
func (d *Cluster) Deadline(p Passage) time.Time {
	if p.Asked() && !p.Node.Request.Deadline.IsZero() {
		return p.Node.Request.Deadline.Time
	}
	if report, ok := p.Answered(); ok && p.Unasked > 0 && !report.Deadline.IsZero() {
		return report.Deadline.Time
	}
	end, from := p.Began.Add(max(HooklessDrainTime, d.held(p.Group, p.Way))), d.Now
	if p.Group.HooksUnknown && p.Node.Mark == "" {
		end = d.Now.Add(HooklessDrainTime) // what is still there something holds
	}
	if p.Node.Mark != "" {
		from = p.Began // its drain is requested no more, which would fix it
	}
	return Earliest(end, from.Add(d.Policy.TerminationDrainTime))
}

// Progress is how far the drain is, for a verdict; it has no figures that tick.
func (p Passage) Progress() verdict.Details {
	report, answered := p.Answered()
	return verdict.Progress(report, answered)
}
