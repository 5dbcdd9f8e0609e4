// Package simulate plays the life of a cluster in virtual time through the real planner, and
// reports what it cost beside what it must have cost.
//
//	dice    numbers that a seed determines
//	trace   which pods come and when they end
//	world   the cluster: nodes, pods, kube-scheduler, agents, Auto Scaling
//	bound   two yardsticks for the bill
//	report  the figures, as a table, JSON and a page
//
// What the model leaves out is in docs/simulate.md.
package simulate

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/bound"
	"windlass.dev/windlass/scaler/simulate/report"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// repackEvery is how often all pods are packed anew, in seconds.
const repackEvery = 600

// Variant is a policy with the name that it has in the report, the flags that make it, and in a
// sweep the values of those in which variants differ.
type Variant struct {
	Name   string
	Policy policy.Policy
	Flags  string
	Swept  map[string]string
}

// Run plays a trace for each of the policies, in equal worlds, as often as wanted: each time
// with the next seed. The first has all figures, of the others the bill is kept.
func Run(spec world.Spec, t trace.Trace, seed uint64, times int, variants []Variant) (report.Report, error) {
	out := report.Report{Trace: t.Name, Start: t.Start, Seconds: t.Seconds, Seed: seed, Prices: spec.Prices, Lacks: t.Lacks}
	groups := spec.Shapes()
	if t.Snapshot != nil {
		groups = append(groups, t.Snapshot.Groups...)
	}
	if len(groups) == 0 {
		return out, fmt.Errorf("there is no node group: name some in --world")
	}
	rules := measure(&t, groups)
	out.LeftOut = t.Keep(rules.fits)
	out.Pods = len(t.Pods)
	if out.Pods == 0 {
		return out, fmt.Errorf("%s has no pod that fits a node group; %d fit none", t.Name, out.LeftOut)
	}
	var ledgers []*world.Ledger
	bills, rates := make([][]float64, len(variants)), make([][]float64, len(variants))
	for n := range times {
		played, err := playAll(spec, t, seed+uint64(n), variants)
		if err != nil {
			return out, err
		}
		if n == 0 {
			ledgers = played
		}
		for i, l := range played {
			bills[i], rates[i] = append(bills[i], l.Dollars()), append(rates[i], report.RateOf(l))
		}
	}
	var moments []int64
	for _, s := range ledgers[0].Samples { // equal in all
		moments = append(moments, s.At)
	}
	demands := rules.demands(t)
	out.Bound = rules.lp.Lower(demands, moments)
	out.Repack = bound.Repacked(rules.types, rules.paid(t, demands), repackEvery, moments)
	for i, v := range variants {
		out.Add(v.Name, ledgers[i], bills[i], rates[i], int64(spec.Boot.Seconds()))
		out.Runs[i].Flags, out.Runs[i].Swept = v.Flags, v.Swept
	}
	return out, nil
}

// playAll plays the variants side by side, as many at once as there are processors: each has a
// world of its own, and what they share is not written to.
func playAll(spec world.Spec, t trace.Trace, seed uint64, variants []Variant) ([]*world.Ledger, error) {
	ledgers, wrong := make([]*world.Ledger, len(variants)), make([]error, len(variants))
	sideBySide(len(variants), runtime.GOMAXPROCS(0), func(i int) {
		w, err := world.New(spec, t, variants[i].Policy, seed)
		if err == nil {
			ledgers[i], err = w.Run()
		}
		if err != nil {
			wrong[i] = fmt.Errorf("simulating %s: %w", variants[i].Name, err)
		}
	})
	return ledgers, errors.Join(wrong...)
}

// sideBySide does things by their numbers, at most so many at once.
func sideBySide(count, most int, do func(i int)) {
	var all sync.WaitGroup
	turn := make(chan struct{}, most)
	for i := range count {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			do(i)
		})
	}
	all.Wait()
}

// measures are what pods and node types are measured by.
type measures struct {
	cluster *fit.Cluster
	looks   []*fit.NodeTemplate
	classes map[string]*fit.Class
	types   []bound.Type
	lp      bound.LP
	// unpaid are nodes of no group, by name, and room is what they have.
	unpaid map[string]*fit.NodeTemplate
	room   bound.Demand
}

const gibi = 1 << 30

func measure(t *trace.Trace, groups []fleet.Group) measures {
	var world fit.World
	if t.Snapshot != nil {
		world = fit.World{Kubernetes: t.Snapshot.Kubernetes, Namespaces: t.Snapshot.Namespaces, Storage: t.Snapshot.Storage, Devices: t.Snapshot.Devices, DaemonSets: t.Snapshot.DaemonSets}
	}
	m := measures{cluster: fit.NewRules().Cluster(world), classes: map[string]*fit.Class{}}
	for i := range groups {
		for j := range groups[i].NodeTemplates {
			s := &groups[i].NodeTemplates[j]
			m.looks = append(m.looks, m.cluster.TemplateOf(s))
			m.types = append(m.types, bound.Type{
				Name: s.InstanceType, PricePerHour: s.PricePerHour, Pods: int(s.Allocatable.Pods().Value()),
				CPU: float64(s.Allocatable.Cpu().MilliValue()) / 1000, Memory: float64(s.Allocatable.Memory().Value()) / gibi,
			})
		}
	}
	m.lp = bound.NewLP(m.types)
	if t.Snapshot != nil {
		m.leaveOut(t.Snapshot)
	}
	return m
}

func (m measures) class(w trace.Workload) *fit.Class {
	key := fmt.Sprintf("%s/%p", w.Key(), w.Spec)
	c, known := m.classes[key]
	if !known {
		c = m.cluster.Tenant(&fleet.Pod{Namespace: w.Namespace, Name: w.Name, Labels: w.Labels, Annotations: w.Annotations, Owner: w.Owner(), Spec: w.Spec}).Class
		m.classes[key] = c
	}
	return c
}

// fits reports whether a new node of some group would take pods of a workload, as far as
// resources, labels and taints go.
func (m measures) fits(w trace.Workload) bool { return m.cluster.CouldTake(m.class(w), m.looks) }

// demands are what the pods of a trace ask for, within its time, and after them the room of nodes
// that nothing is paid for.
func (m measures) demands(t trace.Trace) []bound.Demand {
	list := make([]bound.Demand, 0, len(t.Pods)+1)
	elsewhere := map[*fit.Class]bool{}
	for _, p := range t.Pods {
		class := m.class(t.Workloads[p.Workload])
		could, known := elsewhere[class]
		if !known {
			could = len(m.unpaid) > 0 && m.cluster.CouldTake(class, slices.Collect(maps.Values(m.unpaid)))
			elsewhere[class] = could
		}
		milli, bytes := class.CPUAndMemory()
		list = append(list, bound.Demand{CPU: float64(milli) / 1000, Memory: float64(bytes) / gibi, Arrive: p.Arrive, Ends: min(p.Ends, t.Seconds), Elsewhere: could || m.givenUnpaid(p)})
	}
	if len(m.unpaid) > 0 {
		list = append(list, bound.Demand{CPU: -m.room.CPU, Memory: -m.room.Memory, Ends: t.Seconds, Elsewhere: true})
	}
	return list
}

// paid are the demands of pods that are on no node that nothing is paid for.
func (m measures) paid(t trace.Trace, demands []bound.Demand) []bound.Demand {
	list := make([]bound.Demand, 0, len(t.Pods))
	for i, p := range t.Pods {
		if !m.givenUnpaid(p) {
			list = append(list, demands[i])
		}
	}
	return list
}

func (m measures) givenUnpaid(p trace.Pod) bool {
	return p.Given != nil && m.unpaid[p.Given.Node] != nil
}

// leaveOut finds the nodes of a snapshot that are in no group, and so on no bill.
func (m *measures) leaveOut(s *fleet.Snapshot) {
	m.unpaid = map[string]*fit.NodeTemplate{}
	paid := map[string]bool{}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			paid[i.ID] = true
		}
	}
	for _, n := range s.Nodes {
		if paid[n.InstanceID()] {
			continue
		}
		m.unpaid[n.Name] = m.cluster.TemplateOf(&fleet.NodeTemplate{Zone: n.Zone(), Allocatable: n.Allocatable, Labels: n.Labels, Taints: n.Taints, DeclaredFeatures: n.DeclaredFeatures})
		m.room.CPU += float64(n.Allocatable.Cpu().MilliValue()) / 1000
		m.room.Memory += float64(n.Allocatable.Memory().Value()) / gibi
	}
}
