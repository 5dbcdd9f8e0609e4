package world

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// scheduler is kube-scheduler: what is feasible is asked of the project's fit, which links its
// plugins; scores are worked out here.
type scheduler struct {
	rules   *fit.Rules
	cluster *fit.Cluster
	// queue are the pods that wait for a node.
	queue []*pod
	// retry is true if a node has more room since all of them were tried.
	retry bool
	// stale is true if the cluster is to be built anew; gone and seated count what it keeps
	// of nodes and pods that are no more.
	stale        bool
	gone, seated int
	// specs are those that the rules know.
	specs map[*corev1.PodSpec]bool
	// terms is true if some pods ask who else is where, so that removed nodes and pods that
	// leave have to be forgotten at once.
	terms bool
}

// mostSeated bounds how many pods the rules keep that are no more.
const mostSeated = 5000

// schedule tries all pods that wait, in the order of kube-scheduler's queue.
func (w *World) schedule() {
	s := &w.scheduler
	if len(s.queue) == 0 || !s.retry && !slices.ContainsFunc(s.queue, func(p *pod) bool { return p.seen.Scheduling == fleet.Unjudged }) {
		return
	}
	s.retry = false
	slices.SortStableFunc(s.queue, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(b.seen.Priority(), a.seen.Priority()), cmp.Compare(a.made, b.made))
	})
	s.learn(w)
	refused := map[*fit.Class]bool{}
	waiting := s.queue[:0]
	for _, p := range s.queue {
		verdict := fleet.Gated
		if len(p.seen.Spec.SchedulingGates) == 0 {
			verdict = fleet.Unschedulable
			s.know(p)
			if !refused[p.tenant.Class] {
				if m := w.best(p); m != nil {
					w.bind(p, m)
					continue
				}
				refused[p.tenant.Class] = true
			}
		}
		waiting = append(waiting, p)
		if p.seen.Scheduling == verdict {
			continue
		}
		w.show(p, func(n *fleet.Pod) { n.Scheduling, n.Judged = verdict, fleet.SecondOf(w.time()) })
	}
	clear(s.queue[len(waiting):])
	s.queue = waiting
}

// forget has a pod not wait any more.
func (s *scheduler) forget(p *pod) {
	s.queue = slices.DeleteFunc(s.queue, func(o *pod) bool { return o == p })
}

// learn builds the cluster where what was built does not hold any more.
func (s *scheduler) learn(w *World) {
	if s.rules == nil {
		s.rules, s.specs, s.stale = fit.NewRules(), map[*corev1.PodSpec]bool{}, true
	}
	for _, p := range s.queue {
		if !s.specs[p.seen.Spec] {
			s.specs[p.seen.Spec] = true
			if fit.CountTerms(p.seen.Spec) > 0 {
				s.terms, s.stale = true, true
			}
		}
	}
	if !s.stale && s.gone <= 16+len(w.nodeAt)/4 && s.seated <= mostSeated {
		return
	}
	s.stale, s.gone = false, 0
	s.cluster = s.rules.Cluster(fit.World{
		Kubernetes: w.snapshot.Kubernetes, Pods: w.snapshot.Pods, Namespaces: w.snapshot.Namespaces,
		Storage: w.snapshot.Storage, Devices: w.snapshot.Devices, DaemonSets: w.snapshot.DaemonSets,
	})
	for i, p := range w.podAt {
		p.be(s.cluster.TenantAt(i))
	}
	for _, m := range w.nodeAt {
		s.add(w, m)
	}
	s.seated = 0
}

// ours are the taints by which a node is closed for a while; see machine.open.
func ours(t corev1.Taint) bool {
	return t.Key == contract.TaintDraining || t.Key == corev1.TaintNodeUnschedulable || contract.IsKubeProxyTaint(t)
}

// add takes a node into the cluster, with what is on it.
func (s *scheduler) add(w *World, m *machine) {
	m.place = s.cluster.Add(s.cluster.TemplateFrom(&w.snapshot.Nodes[m.index], ours))
	for _, p := range m.pods {
		s.know(p)
		s.cluster.Put(p.tenant, m.place)
	}
	s.cluster.Settle()
}

// know finds the class of a pod.
func (s *scheduler) know(p *pod) {
	if p.tenant.Class != nil {
		return
	}
	p.be(s.cluster.Tenant(p.seen))
	s.seated++
}

// be takes over what is known of the pod's class.
func (p *pod) be(t fit.Tenant) {
	p.tenant = t
	p.cpu, p.memory = t.Class.CPUAndMemory()
}

// runs reports whether a DaemonSet has a pod on a node.
func (s *scheduler) runs(w *World, set *fleet.DaemonSet, m *machine) bool {
	p := set.PodOn("", set.Name, w.time())
	return s.cluster.Slots(s.cluster.Tenant(p).Class, m.place).N > 0
}

// join takes a new node into the cluster.
func (s *scheduler) join(w *World, m *machine) {
	s.retry = true
	if s.cluster != nil && !s.stale {
		s.add(w, m)
	}
}

// leave has a removed node take no more pods.
func (s *scheduler) leave(m *machine) {
	s.gone++
	s.stale = s.stale || s.terms
	m.place = nil
}

// seat counts a pod on its node.
func (s *scheduler) seat(p *pod) {
	if s.cluster == nil || s.stale || p.on.place == nil {
		return
	}
	s.know(p)
	s.cluster.Put(p.tenant, p.on.place)
	s.cluster.Settle()
}

// lift takes a pod off its node.
func (s *scheduler) lift(p *pod) {
	if s.cluster == nil || s.stale || p.on.place == nil || p.tenant.Class == nil {
		return
	}
	s.cluster.Lift(p.tenant, p.on.place)
	s.cluster.Settle()
}

// What pods count for in scores that ask for nothing.
// https://github.com/kubernetes/kubernetes/blob/master/pkg/scheduler/util/pod_resources.go
const scoredCPU, scoredMemory = 100, 200 << 20

// best is the feasible node with the highest score; of several of them chance takes one.
func (w *World) best(p *pod) *machine {
	s := &w.scheduler
	feasible := make([]*machine, 0, 16)
	for _, m := range w.nodeAt {
		if m.open && m.place != nil && s.cluster.Slots(p.tenant.Class, m.place).N > 0 {
			feasible = append(feasible, m)
		}
	}
	if len(feasible) < 2 {
		return first(feasible)
	}
	totals := make([]int64, len(feasible))
	w.scoreRoom(p, feasible, totals)
	w.scoreTaints(p, feasible, totals)
	w.scoreSpread(p, feasible, totals)
	most, equal, chosen := int64(math.MinInt64), 0, 0
	for i, total := range totals {
		switch {
		case total > most:
			most, equal, chosen = total, 1, i
		case total == most:
			if equal++; w.chance.N(equal) == 0 {
				chosen = i
			}
		}
	}
	return feasible[chosen]
}

func first(list []*machine) *machine {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// scoreRoom is LeastAllocated and BalancedAllocation of cpu and memory.
// https://github.com/kubernetes/kubernetes/tree/master/pkg/scheduler/framework/plugins/noderesources
func (w *World) scoreRoom(p *pod, feasible []*machine, totals []int64) {
	least, balanced := w.spec.Scheduler.LeastAllocated, w.spec.Scheduler.BalancedAllocation
	for i, m := range feasible {
		cpu, memory := max(p.cpu, scored(p.cpu, scoredCPU)), max(p.memory, scored(p.memory, scoredMemory))
		for _, o := range m.pods {
			cpu, memory = cpu+scored(o.cpu, scoredCPU), memory+scored(o.memory, scoredMemory)
		}
		cpu, memory = min(cpu, m.cpu), min(memory, m.memory)
		totals[i] += least * (((m.cpu-cpu)*100/m.cpu + (m.memory-memory)*100/m.memory) / 2)
		totals[i] += balanced * int64((1-math.Abs(float64(cpu)/float64(m.cpu)-float64(memory)/float64(m.memory))/2)*100)
	}
}

func scored(asked, otherwise int64) int64 {
	if asked == 0 {
		return otherwise
	}
	return asked
}

// scoreTaints is TaintToleration: the fewer taints that prefer others, the better.
func (w *World) scoreTaints(p *pod, feasible []*machine, totals []int64) {
	counts := make([]int64, len(feasible))
	for i, m := range feasible {
		for _, t := range w.snapshot.Nodes[m.index].Taints {
			if t.Effect == corev1.TaintEffectPreferNoSchedule && !p.tenant.Class.Tolerates(t) {
				counts[i]++
			}
		}
	}
	if most := slices.Max(counts); most > 0 {
		for i := range totals {
			totals[i] += w.spec.Scheduler.TaintToleration * (100 - 100*counts[i]/most)
		}
	}
}

// scoreSpread is PodTopologySpread by its default constraints: pods of one controller by hosts
// and zones.
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints
func (w *World) scoreSpread(p *pod, feasible []*machine, totals []int64) {
	if w.spec.Scheduler.PodTopologySpread == 0 || p.replica == nil || p.seen.Owner == nil || len(p.seen.Spec.TopologySpreadConstraints) > 0 {
		return
	}
	zones := map[string]float64{}
	hosts := make([]float64, len(feasible))
	for i, m := range feasible {
		for _, o := range m.pods {
			if o.replica != nil && o.replica.workload == p.replica.workload && !o.leaving {
				hosts[i]++
			}
		}
		zones[m.zone] += hosts[i]
	}
	raw := make([]int64, len(feasible))
	for i, m := range feasible {
		byHost := hosts[i]*math.Log(float64(len(feasible)+2)) + 2
		byZone := zones[m.zone]*math.Log(float64(len(zones)+2)) + 4
		raw[i] = int64(math.Round(byHost + byZone))
	}
	most, fewest := slices.Max(raw), slices.Min(raw)
	for i := range totals {
		if most > 0 {
			totals[i] += w.spec.Scheduler.PodTopologySpread * (100 * (most + fewest - raw[i]) / most)
		}
	}
}
