package plan_test

import (
	"fmt"
	"regexp"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
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

// lawLimits: with what this plan adds, the nodes that are there are not more than
// the cluster may have, nor their cores.
func lawLimits(s fleet.Snapshot, p plan.Policy, got plan.Plan) []string {
	nodes, milli, grown := 0, int64(0), 0
	pooled := inPools(s)
	for _, n := range s.Nodes {
		if pooled[n.InstanceID()] {
			continue
		}
		nodes++
		milli += n.Allocatable.Cpu().MilliValue()
	}
	for _, a := range got.Actions {
		grow, ok := a.(plan.Grow)
		if !ok || grow.Again {
			continue
		}
		for _, g := range s.Groups {
			if g.Name == grow.Group {
				n := grow.To - max(grow.From, liveOf(g))
				grown += n
				milli += int64(n) * g.Shapes[0].Allocatable.Cpu().MilliValue()
			}
		}
	}
	if grown == 0 {
		return nil
	}
	var broken []string
	if p.MaxNodes > 0 && nodes+grown > p.MaxNodes {
		broken = append(broken, fmt.Sprintf("limits: %d nodes grow by %d, and there may be %d", nodes, grown, p.MaxNodes))
	}
	if milli > p.Cores.Max*1000 {
		broken = append(broken, fmt.Sprintf("limits: %dm of cpu, and there may be %d cores", milli, p.Cores.Max))
	}
	return broken
}

var seated = regexp.MustCompile(`^node (\S+) has room for it`)

// lawRoom: no pod brings a node that fits one which serves, beside the pods that
// are there and those that were sent there. Where nodes drain, their pods were
// promised room that no verdict tells of.
func lawRoom(s fleet.Snapshot, p plan.Policy, got plan.Plan) []string {
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
		if m := seated.FindStringSubmatch(v.Message); m != nil && v.Reason == plan.PodFitsFree {
			sent[v.UID] = m[1]
		}
	}
	open := map[*fit.Place]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place := cluster.Add(cluster.LooksOf(n, nothing))
		for _, pod := range s.Pods {
			there := pod.Node == n.Name || pod.Node == "" && (pod.Nominated == n.Name || sent[string(pod.UID)] == n.Name)
			if there && !pod.Ended() && (pod.Node == "" || pod.Priority() >= p.ExpendableBelow) {
				cluster.Put(cluster.Tenant(pod), place)
			}
		}
		open[place] = n.Ready && !n.Unschedulable
	}
	var broken []string
	for _, v := range got.Verdicts {
		if v.Reason != plan.PodGetsNode {
			continue
		}
		class := cluster.Tenant(pods[v.UID]).Class
		for place, serves := range open {
			if serves && len(cluster.Fits(class, place)) == 0 {
				broken = append(broken, fmt.Sprintf("room: %s, and node %s has room for it", v, place.Name))
			}
		}
	}
	return broken
}

// lawGangs: of the waiting pods of a gang that bring nodes all have a place.
func lawGangs(s fleet.Snapshot, _ plan.Policy, got plan.Plan) []string {
	gangs := map[string]string{}
	for _, pod := range s.Pods {
		if name := pod.Annotations[contract.AnnotationAllOrNothing]; name != "" {
			gangs[string(pod.UID)] = pod.Namespace + "/" + name
		}
	}
	reasons := map[string]map[plan.Reason]bool{}
	for _, v := range got.Verdicts {
		if name := gangs[v.UID]; v.Of == plan.OfPod && name != "" {
			if reasons[name] == nil {
				reasons[name] = map[plan.Reason]bool{}
			}
			reasons[name][v.Reason] = true
		}
	}
	var broken []string
	for name, r := range reasons {
		if r[plan.PodGetsNode] && (r[plan.PodGangShort] || r[plan.PodFitsNothing] || r[plan.PodGroupsFull] || r[plan.PodYoung]) {
			broken = append(broken, fmt.Sprintf("gangs: %s is torn: %v", name, r))
		}
	}
	return broken
}
