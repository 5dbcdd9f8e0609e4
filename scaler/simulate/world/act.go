package world

import (
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
)

// carryOut does the actions of a plan, in its order, as far as the world is as each action
// expects it. done is true if some of it was done.
func (w *World) carryOut(actions []action.Action) (results []plan.Result, done bool) {
	for _, a := range actions {
		r := plan.Result{Action: a, Ended: w.time()}
		if grow, is := a.(action.Grow); is {
			r.Done, r.Answer = w.grow(grow)
		} else {
			r.Done = w.act(a)
		}
		done = done || r.Done
		results = append(results, r)
	}
	return results, done
}

// act does one action, but for Grow, and says whether it did.
func (w *World) act(a action.Action) bool {
	switch x := a.(type) {
	case action.Lower:
		return w.setDesired(x.Group, x.From, x.To)
	case action.RequestDrain:
		return w.retire(x)
	case action.CancelDrain:
		return w.cancel(x)
	case action.Terminate:
		return w.terminate(x)
	case action.Mark:
		return w.mark(x)
	case action.Steer:
		return w.onNode(x.Node, func(n *fleet.Node) { n.Taints = contract.WithFillTurn(n.Taints, x.Fill) })
	case action.Unmark:
		return w.unmark(x)
	case action.Permit:
		return w.onNode(x.Node, func(n *fleet.Node) {
			annotate(n, contract.AnnotationDrainPermit, x.ID)
			strip(n, contract.AnnotationDrainNotYet)
		})
	case action.NotYet:
		return w.onNode(x.Node, func(n *fleet.Node) {
			annotate(n, contract.AnnotationDrainNotYet, contract.NotYet{ID: x.ID, At: contract.At(w.time()), Why: x.Why}.String())
		})
	case action.Release:
		return w.onNode(x.Node, func(n *fleet.Node) { n.Unschedulable = false })
	case action.ClearTerminationMark:
		return w.onNode(x.Node, func(n *fleet.Node) {
			strip(n, contract.AnnotationTerminating, contract.AnnotationDrainRequest)
		})
	case action.Heartbeat:
		return true // nothing times out here
	case action.Complete:
		return w.complete(x)
	case action.Suspend:
		g := w.group(x.Group)
		g.Suspended = append(slices.Clone(g.Suspended), x.Process)
		return true
	case action.Claim:
		w.group(x.Group).Owner = x.Owner
		return true
	case action.UpdateBuffer:
		return w.inform(x)
	case action.Cordon:
		return w.onNode(x.Node, func(n *fleet.Node) {
			n.Unschedulable = true
			annotate(n, contract.AnnotationCordonedBy, contract.Cordon{By: contract.AppScaler, Notice: x.ID, At: contract.At(w.time())}.String())
			n.Taints = contract.WithTaint(n.Taints, contract.DrainingTaint(x.Kind))
		})
	case action.Evict:
		return w.evictAlone(x)
	case action.OutOfService:
		return w.onNode(x.Node, func(n *fleet.Node) {
			annotate(n, contract.AnnotationOutOfService, x.Instance)
			n.Taints = contract.WithTaint(n.Taints, contract.OutOfServiceTaint())
		})
	case action.TakeOver:
		return w.onNode(x.Node, func(n *fleet.Node) {
			for _, t := range x.Taints {
				n.Taints = contract.WithoutTaint(n.Taints, t.Key)
			}
			n.Unschedulable = n.Unschedulable && !x.Uncordon
		})
	case action.InServiceAgain:
		return w.onNode(x.Node, func(n *fleet.Node) {
			strip(n, contract.AnnotationOutOfService)
			n.Taints = contract.WithoutTaint(n.Taints, contract.OutOfServiceTaint().Key)
		})
	}
	w.fault = fmt.Errorf("the simulation does not know the action %T", a)
	return false
}

// onNode changes a node that still is the one that was seen.
func (w *World) onNode(ref action.NodeRef, change func(*fleet.Node)) bool {
	m := w.machineOf(ref)
	if m == nil {
		return false
	}
	w.node(m, change)
	return true
}

func (w *World) machineOf(ref action.NodeRef) *machine {
	m := w.machines[ref.Name]
	if m == nil || m.index == none || ref.UID != "" && w.snapshot.Nodes[m.index].UID != ref.UID {
		return nil
	}
	return m
}

// grow is SetDesiredCapacity, or LaunchInstances where there is a token.
func (w *World) grow(x action.Grow) (bool, *launch.Answer) {
	if x.Token == "" {
		return w.setDesired(x.Group, x.From, x.To), nil
	}
	if came, known := w.came[x.Token]; known {
		return true, &launch.Answer{Seen: true, Came: came}
	}
	g := w.group(x.Group)
	if g.Desired != x.From && !x.Again && !x.Follows || g.Desired+x.Count > g.Max {
		return false, &launch.Answer{Unsent: true}
	}
	if !w.launch(w.groups[x.Group], x.Zone, x.Count) {
		return false, &launch.Answer{Seen: true, Failures: []fleet.Failure{noCapacity(w, x.Zone)}}
	}
	w.came[x.Token] = x.Count
	g.Desired += x.Count
	return true, &launch.Answer{Seen: true, Came: x.Count}
}

func (w *World) setDesired(name string, from, to int) bool {
	g := w.group(name)
	if g.Desired != from || to < g.Min || to > g.Max {
		return false
	}
	g.Desired = to
	w.changed = true
	w.reconcile(w.groups[name])
	return true
}

// retire writes the request on the node; its agent begins at once.
func (w *World) retire(x action.RequestDrain) bool {
	m := w.machineOf(x.Node)
	if m == nil || w.snapshot.Nodes[m.index].Annotations[contract.AnnotationTerminating] != "" {
		return false
	}
	request := x.Request(w.time())
	w.node(m, func(n *fleet.Node) {
		annotate(n, contract.AnnotationDrainRequest, request.String())
		if x.Kind == contract.KindScaleDown {
			annotate(n, contract.AnnotationDrainPermit, x.ID)
		}
	})
	if x.Kind == contract.KindScaleDown {
		w.ledger.Drains++
	}
	w.beginDrain(m, x.ID, x.Kind, request.Deadline)
	return true
}

// cancel takes the request off, and the agent undoes its drain.
func (w *World) cancel(x action.CancelDrain) bool {
	m := w.machineOf(x.Node)
	if m == nil || w.snapshot.Nodes[m.index].Annotations[contract.AnnotationTerminating] != "" {
		return false
	}
	w.ledger.Cancelled++
	w.node(m, func(n *fleet.Node) { strip(n, contract.AnnotationDrainRequest) })
	if m.drain == nil || m.drain.id == x.ID || x.AgentGone {
		w.undo(m)
	}
	return true
}

// terminate is TerminateInstanceInAutoScalingGroup, with the mark before it where there is a
// node. A pod that has come meanwhile stops it.
func (w *World) terminate(x action.Terminate) bool {
	seen := w.group(x.Group)
	m := w.machineOf(x.Node)
	if x.Node.Name == "" {
		i := slices.IndexFunc(seen.Instances, func(i fleet.Instance) bool { return i.ID == x.Instance && i.Live() })
		if i < 0 {
			return false
		}
		m = w.instances[x.Instance]
	}
	instance := (*fleet.Instance)(nil)
	if m != nil {
		instance = w.instance(m)
	}
	if instance == nil || m.id != x.Instance || instance.Terminating() || x.Decrement && seen.Desired <= seen.Min {
		return false
	}
	if m.index != none {
		if slices.ContainsFunc(m.pods, func(p *pod) bool { return drainable.Occupies(p.seen, w.time()) }) {
			return false
		}
		w.node(m, func(n *fleet.Node) { annotate(n, contract.AnnotationTerminating, x.ID) })
	}
	if x.Decrement {
		seen.Desired--
		m.group.ended = append(m.group.ended, w.now)
	}
	w.ledger.Terminations++
	w.takeDown(m)
	w.reconcile(m.group)
	return true
}

func (w *World) mark(x action.Mark) bool {
	m := w.machineOf(x.Node)
	if m == nil {
		return false
	}
	if m.marked == none {
		m.marked = w.now
		w.ledger.Marks++
	}
	w.node(m, func(n *fleet.Node) { n.Taints = contract.WithTaint(n.Taints, contract.UnneededTaint(x.Since)) })
	return true
}

// unmark clears a mark; one that stood for less than a minute was of no use.
func (w *World) unmark(x action.Unmark) bool {
	m := w.machineOf(x.Node)
	if m == nil {
		return false
	}
	if m.marked != none && w.now-m.marked <= 60 {
		w.ledger.ShortMarks++
	}
	m.marked = none
	w.node(m, func(n *fleet.Node) { n.Taints = contract.WithoutTaint(n.Taints, contract.TaintUnneeded) })
	return true
}

// complete lets an instance go on that waits for a hook.
func (w *World) complete(x action.Complete) bool {
	g := w.group(x.Group)
	i := slices.IndexFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == x.Instance && i.State == x.State })
	if i < 0 {
		return false
	}
	w.changed = true
	if x.State == fleet.PendingWait {
		g.Instances[i].State = fleet.InService
		return true
	}
	w.shutDown(w.instances[x.Instance])
	return true
}

func (w *World) inform(x action.UpdateBuffer) bool {
	for i := range w.snapshot.Buffers {
		if b := &w.snapshot.Buffers[i]; b.Namespace == x.Buffer.Namespace && b.Name == x.Buffer.Name {
			w.snapshot.Buffers = slices.Clone(w.snapshot.Buffers)
			w.snapshot.Buffers[i].Status = x.Status
			return true
		}
	}
	return false
}

// evictAlone is an eviction by the scaler, in place of an agent.
func (w *World) evictAlone(x action.Evict) bool {
	p := w.pods[x.Pod.UID]
	if p == nil || p.leaving || w.budgets.ask().Refuses(p.seen) {
		return false
	}
	w.evict(p)
	return true
}
