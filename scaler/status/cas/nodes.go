package cas

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// census counts the nodes of the cluster and of each group.
type census struct {
	all    NodeCounts
	groups map[string]*NodeCounts
	// unneeded counts the unneeded nodes of each group.
	unneeded map[string]int
}

func countNodes(s fleet.Snapshot, verdicts map[string]verdict.Verdict, policy policy.Policy) census {
	c := census{groups: map[string]*NodeCounts{}, unneeded: map[string]int{}}
	instances := map[string]fleet.Instance{}
	for _, g := range s.Groups {
		c.groups[g.Name] = &NodeCounts{}
		for _, i := range g.Instances {
			instances[i.ID] = i
		}
	}
	registered := map[string]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		registered[n.InstanceID()] = true
		v := verdicts[n.Name]
		instance, known := instances[n.InstanceID()]
		count := kindOf(n, v.Reason, known && instance.Terminating(), s.Now.Add(-policy.MaxNodeStartupTime))
		count(&c.all.Registered)
		if g := c.groups[v.Group]; g != nil {
			count(&g.Registered)
		}
		if v.Reason == verdict.NodeUnneeded {
			c.unneeded[v.Group]++
		}
	}
	for _, g := range s.Groups {
		long, short := unregistered(g, registered, s, policy)
		for _, counts := range []*NodeCounts{&c.all, c.groups[g.Name]} {
			counts.LongUnregistered += long
			counts.Unregistered += short
		}
	}
	return c
}

// kindOf counts a node as what it is to Cluster Autoscaler. Young is from when on a node
// that is not Ready may still be starting.
func kindOf(n *fleet.Node, reason verdict.Reason, leaving bool, young time.Time) func(*Registered) {
	return func(r *Registered) {
		r.Total++
		switch {
		case leaving:
			r.BeingDeleted++
		case reason == verdict.NodeInWarmPool:
			r.Suspended++
		case reason == verdict.NodeUpcoming, !n.Ready && n.Created.After(young):
			r.NotStarted++
		case n.Ready:
			r.Ready++
		default:
			r.Unready.Total++
		}
	}
}

// unregistered counts the instances of a group without a node, by whether their time to
// register is over. Instances that the group lacks are none yet, and count as
// Cluster Autoscaler's placeholders do.
func unregistered(g fleet.Group, registered map[string]bool, s fleet.Snapshot, policy policy.Policy) (long, short int) {
	live := 0
	for _, i := range g.Instances {
		if !i.Live() {
			continue
		}
		live++
		if registered[i.ID] {
			continue
		}
		since, seen := s.State.Unjoined[i.ID]
		if seen && !since.IsZero() && s.Now.After(since.Add(g.ScaleDown.ProvisionTime(policy.MaxNodeProvisionTime))) {
			long++
		} else {
			short++
		}
	}
	return long, short + max(0, g.Desired-live)
}
