package plan_test

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// inPools are the instances that stand in warm pools.
func inPools(s fleet.Snapshot) map[string]bool {
	pooled := map[string]bool{}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			pooled[i.ID] = i.Warmed()
		}
	}
	return pooled
}

// size is what the limits of a cluster count.
type size struct{ nodes, milli, bytes int64 }

// add counts n nodes of that capacity, or of what pods may have of it where the
// capacity is not known.
func (x *size) add(n int, capacity, allocatable corev1.ResourceList) {
	if len(capacity) == 0 {
		capacity = allocatable
	}
	x.nodes += int64(n)
	x.milli += int64(n) * capacity.Cpu().MilliValue()
	x.bytes += int64(n) * capacity.Memory().Value()
}

// ofItsTemplate is the group of a node whose instance was launched from the group's present template.
func ofItsTemplate(s fleet.Snapshot, n fleet.Node) (fleet.Group, bool) {
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			if i.ID == n.InstanceID() {
				return g, g.Template != "" && i.Template == g.Template && len(g.NodeTemplates) > 0
			}
		}
	}
	return fleet.Group{}, false
}

// lawLimits: with what this plan adds, the nodes that are there are not more than
// the cluster may have, nor their cores, nor their memory.
func lawLimits(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var all size
	pooled, grown := inPools(s), 0
	for _, n := range s.Nodes {
		if pooled[n.InstanceID()] {
			continue
		}
		var one size
		one.add(1, n.Capacity, n.Allocatable)
		if g, is := ofItsTemplate(s, n); is { // whatever its kubelet says
			var planned size
			planned.add(1, definedRoom(s, g), nil)
			one.milli, one.bytes = min(one.milli, planned.milli), min(one.bytes, planned.bytes)
		}
		all = size{all.nodes + 1, all.milli + one.milli, all.bytes + one.bytes}
	}
	for _, a := range got.Actions {
		grow, ok := a.(action.Grow)
		if !ok || grow.Again {
			continue
		}
		for _, g := range s.Groups {
			if g.Name == grow.Group {
				n := grow.To - max(grow.From, liveOf(g))
				grown += n
				all.add(n, definedRoom(s, g), nil)
			}
		}
	}
	if grown == 0 {
		return nil
	}
	var broken []string
	if p.MaxNodes > 0 && all.nodes > int64(p.MaxNodes) {
		broken = append(broken, fmt.Sprintf("limits: with %d more there are %d nodes, and there may be %d", grown, all.nodes, p.MaxNodes))
	}
	if all.milli > p.Cores.Max*1000 {
		broken = append(broken, fmt.Sprintf("limits: %dm of cpu, and there may be %d cores", all.milli, p.Cores.Max))
	}
	if all.bytes > p.Memory.Max<<30 {
		broken = append(broken, fmt.Sprintf("limits: %d bytes of memory, and there may be %d GiB", all.bytes, p.Memory.Max))
	}
	return broken
}

// lawOutage: while more of the cluster's nodes than may be are unready for certain, nothing grows:
// they are not young, and they are not drained or taken away.
func lawOutage(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	sick, pooled := 0, inPools(s)
	for _, n := range s.Nodes {
		young := s.Now.Sub(n.Created) < p.MaxNodeStartupTime
		_, draining := contract.Draining(n.Taints)
		asked := n.Annotations[contract.AnnotationDrainRequest] != "" || n.Annotations[contract.AnnotationDrainReport] != ""
		if !n.Ready && !young && !draining && !asked && !pooled[n.InstanceID()] && !leavingInstance(s, n.InstanceID()) && launching(s, n.InstanceID()) == "" {
			sick++
		}
	}
	if sick <= p.MaxUnready || float64(sick)*100 <= p.MaxUnreadyPercent*float64(len(s.Nodes)) {
		return nil
	}
	var broken []string
	for _, a := range got.Actions {
		if grow, ok := a.(action.Grow); ok && !grow.Again {
			broken = append(broken, fmt.Sprintf("outage: %s, while %d of %d nodes are unready", a, sick, len(s.Nodes)))
		}
	}
	return broken
}

// launching is the state of an instance that is not in service yet; empty for others.
func launching(s fleet.Snapshot, id string) string {
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			if i.ID == id && strings.HasPrefix(i.State, fleet.Pending) {
				return i.State
			}
		}
	}
	return ""
}

// definedRoom is what a new node of a group has at least: what its definition says, or the
// smallest of its nodes where that cannot be read.
func definedRoom(s fleet.Snapshot, g fleet.Group) corev1.ResourceList {
	if len(g.NodeTemplates) > 0 {
		if x := g.NodeTemplates[0]; len(x.Capacity) > 0 {
			return x.Capacity
		}
		return g.NodeTemplates[0].Allocatable
	}
	var least corev1.ResourceList
	for _, n := range s.Nodes {
		if slices.ContainsFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == n.InstanceID() }) && (least == nil || n.Allocatable.Cpu().Cmp(*least.Cpu()) < 0) {
			least = n.Allocatable
		}
	}
	return least
}

// lawRoom: no pod triggers scale-up that fits a node which serves, beside the pods that are there
// and those that were sent there. Where nodes drain, their pods were promised room that no verdict
// names. Pods that spread go by the zones of upcoming nodes and of those that are planned for
// others, too, which are no nodes yet.
func lawRoom(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	for _, n := range s.Nodes {
		_, draining := contract.Draining(n.Taints)
		if draining || leavingInstance(s, n.InstanceID()) || n.Annotations[contract.AnnotationDrainRequest] != "" || n.Annotations[contract.AnnotationDrainReport] != "" {
			return nil
		}
	}
	cluster := clusterOf(s)
	pods, sent := map[string]*fleet.Pod{}, map[string]string{}
	for _, pod := range s.Pods {
		pods[string(pod.UID)] = pod
	}
	for _, v := range got.Verdicts {
		switch v.Reason {
		case verdict.PodFitsNode, verdict.PodNotScheduled, verdict.PodFitsUpcoming:
			sent[v.UID], _ = v.Details[0].Param("node").(string) // none of what is only upcoming
		}
	}
	open := map[*fit.Place]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place := cluster.Add(cluster.TemplateFrom(n, nothing))
		for _, pod := range s.Pods {
			there := pod.Node == n.Name || pod.Node == "" && (pod.Nominated() == n.Name || sent[string(pod.UID)] == n.Name)
			if there && !pod.Ended() && (pod.Node == "" || pod.Priority() >= p.ExpendableBelow) {
				cluster.Put(cluster.Tenant(pod), place)
			}
		}
		open[place] = n.Ready && !n.Unschedulable
	}
	var broken []string
	for _, v := range got.Verdicts {
		if v.Reason != verdict.PodTriggersScaleUp {
			continue
		}
		class := cluster.Tenant(pods[v.UID]).Class
		if class.Spreads() {
			continue
		}
		for place, serves := range open {
			if serves && len(cluster.Fits(class, place)) == 0 {
				broken = append(broken, fmt.Sprintf("room: %s, and node %s has room for it", v, place.Name))
			}
		}
	}
	return broken
}

// lawGangs: of the pending pods of a gang that trigger scale-up all have a place.
func lawGangs(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	gangs := map[string]string{}
	for _, pod := range s.Pods {
		if name := pod.Annotations[contract.AnnotationAllOrNothing]; name != "" {
			gangs[string(pod.UID)] = pod.Namespace + "/" + name
		}
	}
	reasons := map[string]map[verdict.Reason]bool{}
	for _, v := range got.Verdicts {
		if name := gangs[v.UID]; v.Of == verdict.OfPod && name != "" {
			if reasons[name] == nil {
				reasons[name] = map[verdict.Reason]bool{}
			}
			reasons[name][v.Reason] = true
		}
	}
	var broken []string
	for name, r := range reasons {
		if r[verdict.PodTriggersScaleUp] && (r[verdict.PodGangDoesNotFit] || r[verdict.PodNoGroupFits] || r[verdict.PodGroupsUnavailable] || r[verdict.PodTooYoung]) {
			broken = append(broken, fmt.Sprintf("gangs: %s is torn: %v", name, r))
		}
	}
	return broken
}
