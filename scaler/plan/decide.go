package plan

import (
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/drains"
	"windlass.dev/windlass/scaler/plan/hooks"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/recognition"
	"windlass.dev/windlass/scaler/plan/scaledown"
	"windlass.dev/windlass/scaler/plan/scaleup"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/standin"
	"windlass.dev/windlass/scaler/plan/template"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Decide says what to do now. It is a pure function: the same snapshot and
// policy give the same plan, in whatever order the snapshot lists its parts.
//
// Every step of Begin reads what the steps before it have settled, and from top to
// bottom each has the stronger claim: what others take from us comes before
// what pods need, and what pods need before what we would like to save. Of a node the first step that
// speaks settles the verdict (cluster.Node.Say), but for one that a cheaper node may replace: so the
// order also decides which of several reasons is shown.
func Decide(s fleet.Snapshot, p policy.Policy) Plan { return NewPlanner().Decide(s, p) }

// Planner decides again and again, and keeps what it has found out about rules
// and classes of pods: the answers are those of Decide, and come sooner. Not for
// concurrent use.
type Planner struct {
	register cluster.Register
	cache    *seats.Cache
	// said are the verdicts on nodes of the last plan, row by row.
	said []*verdict.Verdict
}

// NewPlanner knows nothing yet.
func NewPlanner() *Planner { return &Planner{cache: seats.NewCache()} }

// Decide says what to do now; see the function of that name.
func (k *Planner) Decide(s fleet.Snapshot, p policy.Policy) Plan {
	urgent, rest := k.Begin(s, p)
	return urgent.with(rest())
}

// Urgent is the first part of a plan.
type Urgent struct {
	Actions []action.Action
	// Foreseen are the heartbeats that are due next, also of what gets one now.
	Foreseen []outcome.Foreseen
}

// with is the whole plan.
func (u Urgent) with(rest Plan) Plan {
	rest.Actions = action.Ordered(append(u.Actions, rest.Actions...))
	return rest
}

// Begin decides in two parts. The urgent actions are those for which Auto Scaling, EC2
// or a pod that has begun to leave will not wait: the hooks, and drains that others began.
// They are worked out without a thought of what fits where, so that no pending pod
// changes them or makes them late. The rest is the plan with all other actions; it reads
// what the first part has settled, repeats nothing of it, and is to be asked for once.
func (k *Planner) Begin(s fleet.Snapshot, p policy.Policy) (urgent Urgent, rest func() Plan) {
	facts := cluster.New(s, p, &k.register)
	out := outcome.New(facts)
	templates := template.New(facts, out, s) // what a new node of each group will be
	facts.FindStages()                       // how far each node is

	ours := recognition.New(facts, out) // which groups and instances are this cluster's
	launched := launch.New(facts, out, ours)
	launched.RecallLaunches() // whose answer was not seen
	launched.EndLost()        // instances that never became nodes
	launched.LimitWaiting()   // for what was asked for and does not come
	launched.BackOffGroups()  // whose launches failed, for a while

	alone := standin.New(facts, out)
	held := hooks.New(facts, out, ours, alone)
	held.ClearTerminationMarks()                       // instances that came back after their termination had begun
	held.AnswerHooks()                                 // of Auto Scaling: drain, prolong, complete
	held.WatchCompletions()                            // whether something else completes them
	held.TakeBackWays()                                // drains that ended where the instance came into service again
	held.UndoDrains()                                  // that were cancelled, where no agent does
	held.TakeOver()                                    // nodes of a Cluster Autoscaler that is gone
	held.MarkOutOfService()                            // nodes whose machines are switched off, and those that are back
	alone.Drain(cluster.Draining, cluster.Terminating) // nodes that others take, whose agent is unresponsive

	return takeUrgent(facts, out), func() Plan {
		room := seats.New(facts, k.cache, s) // which pod fits where
		drained := drains.New(facts, out, launched, alone, room)
		grown := scaleup.New(facts, out, templates, room, drained, s.Priorities)

		drained.TakeTurns()       // which of the drains that wait for a permit are next
		grown.LimitCordons()      // nodes that rebalance recommendations closed are opened, but for few
		drained.SeatScalingDown() // pods of nodes that we drain keep the places they were promised
		grown.SeatWaiting()       // pods without a node: on free room, upcoming nodes, nodes whose scale-down is cancelled
		grown.SeatDraining()      // pods of nodes that others take have what is left
		grown.TestPromises()      // which nodes that came do not take the pods they came for
		grown.Grow()              // new nodes for the pending pods that found no place, for headroom and for minimum sizes

		drained.Permit()                 // drains without hurry whose pods have other places
		launched.LowerUnfulfilled()      // what was asked for and cannot come is asked for no more
		drained.FinishScaleDowns()       // drained nodes are removed; drains that cannot end are given up
		alone.Drain(cluster.ScalingDown) // our own drains, where they were not cancelled for a pod

		shrunk := scaledown.New(facts, out, room, drained, grown)
		if grown.Growing() {
			grown.DeferNodes() // another evaluation asks which are needed
		} else {
			shrunk.BeginScaleDowns() // unneeded nodes are marked, and drained when due
		}
		room.UpdateBuffers(out) // what becomes of them
		shrunk.BalanceZones()   // Auto Scaling is kept from undoing that, where people want it

		return decision{k, facts, out, ours, held, shrunk}.plan()
	}
}

// takeUrgent takes the urgent ones out of the actions that are decided so far.
func takeUrgent(c *cluster.Cluster, out *outcome.Outcome) Urgent {
	if c.OtherAutoscalerActs() {
		return Urgent{}
	}
	var urgent, others []action.Action
	for _, a := range out.Actions {
		if action.TraitsOf(a).Sizes {
			others = append(others, a)
		} else {
			urgent = append(urgent, a)
		}
	}
	out.Actions = others
	return Urgent{Actions: action.Ordered(urgent), Foreseen: out.Foreseen}
}
