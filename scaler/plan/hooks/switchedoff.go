package hooks

import (
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// MarkOutOfService marks nodes whose machines are down, and removes the mark where they may run
// again. Only a taint that bears our annotation is removed, also where the flag is off by now.
func (d *Hooks) MarkOutOfService() {
	var bearers map[string]int // of the same instance, once it is asked
	borneTwice := func(id string) bool {
		if bearers == nil {
			bearers = make(map[string]int, len(d.Nodes))
			for _, n := range d.Nodes {
				bearers[n.InstanceID()]++
			}
		}
		return bearers[id] > 1
	}
	for _, n := range d.Nodes {
		if n.Ready && !n.OutOfService {
			continue // as most are
		}
		machine, told := d.Machines[n.InstanceID()]
		group, ours := d.launchedBy(n, machine)
		switch {
		case n.OutOfService && n.Ready:
			d.takeBackOutOfService(n, group, verdict.Say("it is Ready again"))
		case n.OutOfService && n.Down != n.InstanceID():
			d.takeBackOutOfService(n, group, verdict.Say("its out-of-service mark is for {instance}, and it is another instance now", verdict.Instance(contract.Shorten(n.Down, cluster.MostCause))))
		case n.OutOfService && told && !machine.Down():
			d.takeBackOutOfService(n, group, verdict.Say("EC2 says that {instance} is {state}", verdict.Instance(n.InstanceID()), verdict.State(machine.State)))
		case n.OutOfService && !told:
			n.Say(verdict.NodeOutOfService, verdict.Say("its machine was down when it was marked out of service, and EC2 does not report it now").Then(verdict.Say("the mark stays until it is Ready again")))
		case n.OutOfService:
			n.Say(verdict.NodeOutOfService, verdict.Say("its machine is down, and it is marked out of service until it is Ready again"))
		case !d.Policy.OutOfService || n.Attached == 0 || !told || !machine.Down() || !ours || n.InWarmPool() || hasOutOfService(n):
		case borneTwice(n.InstanceID()) || d.Contested(&fleet.Instance{ID: n.InstanceID()}, n) != nil:
			n.Say(verdict.NodeHeld, verdict.Say("EC2 says that {instance} is {state}, and it is not marked out of service: another Node may be that machine",
				verdict.Instance(n.InstanceID()), verdict.State(machine.State)))
		default:
			why := n.WhyUnready().And(", EC2 says that {instance} is {state}, and {count} {count:volume is|volumes are} attached",
				verdict.Instance(n.InstanceID()), verdict.State(machine.State), verdict.Count(n.Attached))
			n.Say(verdict.NodeOutOfService, why)
			d.Do(action.OutOfService{Group: group, Node: n.Ref(), Instance: n.InstanceID(), Why: why.String()})
		}
	}
}

func (d *Hooks) takeBackOutOfService(n *cluster.Node, group string, why verdict.Details) {
	d.Do(action.InServiceAgain{Group: group, Node: n.Ref(), Why: why.String()})
	if !n.Ready {
		n.Say(verdict.NodeUnready, n.WhyUnready().Then(why))
	}
}

// launchedBy is the group of ours that a node belongs to. One whose instance has ended is in
// none any more, and EC2 knows which had launched it.
func (d *Hooks) launchedBy(n *cluster.Node, m fleet.Machine) (group string, ours bool) {
	if n.Group != nil {
		return n.Group.Name, true
	}
	return m.Group, d.GroupOf(m.Group) != nil
}

func hasOutOfService(n *cluster.Node) bool {
	for _, t := range n.Taints {
		if t.Key == corev1.TaintNodeOutOfService {
			return true
		}
	}
	return false
}
