package plan

import (
	"windlass.dev/windlass/pkg/fleet"
)

// Decide says what to do now. It is a pure function: the same snapshot and
// policy give the same plan, in whatever order the snapshot lists its parts.
//
// Every step of Begin reads what the steps before it have settled, and from top to
// bottom each has the stronger claim: what others take from us comes before
// what pods need, and what pods need before what we would like to save.
func Decide(s fleet.Snapshot, p Policy) Plan { return NewPlanner().Decide(s, p) }

// Planner decides again and again, and keeps what it has found out about rules
// and classes of pods: the answers are those of Decide, and come sooner. Not for
// concurrent use.
type Planner struct {
	order podOrder
	cache *cache
}

// NewPlanner knows nothing yet.
func NewPlanner() *Planner { return &Planner{cache: newCache()} }

// Decide says what to do now; see the function of that name.
func (k *Planner) Decide(s fleet.Snapshot, p Policy) Plan {
	urgent, rest := k.Begin(s, p)
	all := rest()
	all.Actions = ordered(append(urgent, all.Actions...))
	return all
}

// Begin decides in two parts. The urgent actions are those for which Auto Scaling, EC2
// or a pod that has begun to leave will not wait: the hooks, and drains that others began.
// They are worked out without a thought of what fits where, so that no pending pod
// changes them or makes them late. The rest is the plan with all other actions; it reads
// what the first part has settled, repeats nothing of it, and is to be asked for once.
func (k *Planner) Begin(s fleet.Snapshot, p Policy) (urgent []Action, rest func() Plan) {
	d := newCluster(s, p, &k.order)
	d.learnShapes(s)
	d.findStages()

	d.recallLaunches()                 // whose answer nobody has seen
	d.endLost()                        // instances that never became nodes
	d.limitWaiting()                   // for what was asked for and does not come
	d.pauseGroups()                    // whose launches failed, for a while
	d.spareSurvivors()                 // instances that came back after their termination had begun
	d.answerHooks()                    // of Auto Scaling: drain, prolong, complete
	d.takeBackWays()                   // drains that ended where the instance came into service again
	d.undoDrains()                     // that were taken back, where no agent does
	d.tellOutOfService()               // nodes whose machines are switched off, and those that are back
	d.drainAlone(leaving, terminating) // nodes that others take, whose agent is gone or blind

	return d.takeUrgent(), func() Plan {
		d.imagine(s, k.cache)
		d.prefer(s.Priorities)

		d.takeTurns()    // which of the drains that wait for a permit are next
		d.limitCordons() // nodes that rebalance recommendations closed are opened, but for few
		d.seatRetiring() // pods of nodes that we drain keep the places they were promised
		d.seatWaiting()  // pods without a node: on free room, coming nodes, nodes kept after all
		d.seatLeaving()  // pods of nodes that others take have what is left
		d.testPromises() // which nodes that came do not take the pods they came for
		d.grow()         // new nodes for the waiting pods that found no place, and for head-room

		d.permit()             // drains without hurry whose pods have other places
		d.lowerUnfulfilled()   // what was asked for and cannot come is taken back
		d.finishRetirements()  // drained nodes go; drains that cannot end are given up
		d.drainAlone(retiring) // our own drains, where they were not taken back for a pod
		if d.growing() {
			d.leaveNodes() // another look asks who is needed
		} else {
			d.beginRetirements() // nodes that nobody needs are marked, and drained when due
		}
		d.informBuffers() // what becomes of them
		d.balanceZones()  // Auto Scaling is kept from undoing that, where people want it

		return d.plan()
	}
}

// takeUrgent takes the urgent ones out of the actions that are decided so far.
func (d *decision) takeUrgent() []Action {
	if d.rivalled() {
		return nil
	}
	var urgent, others []Action
	for _, a := range d.actions {
		if sizes(a) {
			others = append(others, a)
		} else {
			urgent = append(urgent, a)
		}
	}
	d.actions = others
	return ordered(urgent)
}

// sizes says that an action makes a group larger or smaller. Those of one group go
// together and in their order, as each expects to find the size that the one before it
// leaves; so they wait for the part of the plan that knows of growth.
func sizes(a Action) bool {
	switch a.(type) {
	case Grow, Lower, Terminate:
		return true
	}
	return false
}
