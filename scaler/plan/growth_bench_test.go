package plan_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// What an evaluation costs in which groups grow: Decide as a whole, scale-down
// included. Each benchmark reports its bound beside its figure, as target-UNIT
// for UNIT, and fails only if the plan is wrong. Machines differ: so time is bounded
// as a multiple of what a plain loop takes on the same machine, see plainly.

// BenchmarkHomogeneous: 50,000 equal pods without controllers trigger the launch of 1,000 nodes to
// an empty cluster, as in Cluster Autoscaler's BenchmarkRunOnceScaleUp.
func BenchmarkHomogeneous(b *testing.B) {
	c := homogeneous(50_000)
	right := answer{placed: 50_000, nodes: between{1_000, 1_000}}
	b.Run("cold", func(b *testing.B) {
		measure(b, c, right, bounds{loops: 5.4, mb: 30}, func() *plan.Planner { return plan.NewPlanner() })
	})
	b.Run("kept", func(b *testing.B) {
		planner := plan.NewPlanner()
		planner.Decide(c.Snapshot, policy.DefaultPolicy())
		measure(b, c, right, bounds{loops: 2, mb: 30}, func() *plan.Planner { return planner })
	})
}

// BenchmarkHeterogeneous: 10,000 pods of 1,000 specs wait in a cluster of 5,000
// nodes with 50,000 pods, and 20 groups over 3 zones could grow.
func BenchmarkHeterogeneous(b *testing.B) {
	measure(b, heterogeneous(), answer{placed: 10_000, nodes: between{100, 1_000}}, bounds{loops: 7.6}, plan.NewPlanner)
}

// BenchmarkAntiAffinity: 50,000 pods come onto 5,000 nodes. On hosts: ten apps of
// 5,000 pods, each with one pod on a node at the most. In zones: 16,667 apps of
// three pods, each with one pod in a zone.
func BenchmarkAntiAffinity(b *testing.B) {
	b.Run("hostname", func(b *testing.B) {
		const apps, each = 10, 5_000
		right := answer{placed: apps * each, nodes: between{each, each}, sound: oneOnANode}
		measure(b, apartOnHosts(apps, each), right, bounds{loops: 2.5}, plan.NewPlanner)
	})
	b.Run("zonal", func(b *testing.B) {
		// A third of the pods is in each zone, and ten fill a node.
		const apps = 16_667
		nodes := 3 * ((apps + 9) / 10)
		right := answer{placed: 3 * apps, nodes: between{nodes, nodes}, sound: oneInAZone}
		measure(b, apartInZones(apps), right, bounds{loops: 8}, plan.NewPlanner)
	})
}

// BenchmarkFifthsMix: 20,000 pods of the mix of Karpenter's benchmark, 40 groups
// over 3 zones, and no node yet. The 4,000 pods that keep away from each other
// need that many nodes.
func BenchmarkFifthsMix(b *testing.B) {
	const pending = 20_000
	right := answer{placed: pending, nodes: between{pending / 5, pending / 4}, sound: soundMix}
	measure(b, fifths(pending), right, bounds{loops: 17}, plan.NewPlanner)
}

// bounds are the targets of a benchmark: as how many of its plain loops it may take, and megabytes
// allocated, of which 0 is no target.
type bounds struct{ loops, mb float64 }

// measure decides again and again, each time with the planner that is given.
func measure(b *testing.B, c *city, right answer, bound bounds, planner func() *plan.Planner) {
	b.Helper()
	policy := policy.DefaultPolicy()
	got := measured(b, c.Snapshot, bound, func() plan.Plan { return planner().Decide(c.Snapshot, policy) })
	b.ReportMetric(float64(grown(got)), "nodes")
	b.ReportMetric(launchedCPUs(c.Snapshot, got), "cpus")
	for _, wrong := range right.wrongs(c, got) {
		b.Error(wrong)
	}
	// What of it goes to growing alone.
	policy.ScaleDown = false
	began := time.Now()
	planner().Decide(c.Snapshot, policy)
	b.ReportMetric(float64(time.Since(began))/float64(time.Millisecond), "ms-without-scale-down")
}

// measured reports an evaluation in milliseconds, in plain loops and in MB allocated, and returns its
// plan.
func measured(b *testing.B, s fleet.Snapshot, bound bounds, evaluate func() plan.Plan) plan.Plan {
	b.Helper()
	var before, after runtime.MemStats
	var got plan.Plan
	runs := 0
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		got = evaluate()
		runs++
	}
	runtime.ReadMemStats(&after)
	took, loop := b.Elapsed()/time.Duration(runs), plainly(s)
	b.ReportMetric(float64(took)/float64(time.Millisecond), "ms")
	b.ReportMetric(float64(loop)/float64(time.Millisecond), "ms-loop")
	bounded(b, "x-loop", float64(took)/float64(loop), bound.loops)
	if mb := float64(after.TotalAlloc-before.TotalAlloc) / float64(runs) / 1e6; bound.mb > 0 {
		bounded(b, "MB", mb, bound.mb)
	} else {
		b.ReportMetric(mb, "MB")
	}
	b.ReportMetric(0, "ns/op") // it is in ms
	return got
}

// mostPlain is how many pods the plain loop takes at most: it asks about their number squared.
const mostPlain = 50_000

// plainly is how long first fit takes by cpu and memory alone, over plain arrays of new nodes as the
// first group has them: of the pods that wait, or where none does of those that run. That is what
// this machine needs for the least that can be asked. It is the shortest of three times.
func plainly(s fleet.Snapshot) time.Duration {
	var cpu, memory []int64
	take := func(waits bool) {
		for _, p := range s.Pods {
			if len(cpu) < mostPlain && (p.Node == "") == waits {
				requests := p.Spec.Containers[0].Resources.Requests
				cpu, memory = append(cpu, requests.Cpu().MilliValue()), append(memory, requests.Memory().Value())
			}
		}
	}
	if take(true); len(cpu) == 0 {
		take(false)
	}
	of := s.Groups[0].NodeTemplates[0].Allocatable
	shortest := time.Duration(math.MaxInt64)
	for range 3 {
		began := time.Now()
		firstFit(cpu, memory, of.Cpu().MilliValue(), of.Memory().Value())
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}

func firstFit(cpu, memory []int64, ofCPU, ofMemory int64) (nodes int) {
	freeCPU, freeMemory := make([]int64, 0, len(cpu)), make([]int64, 0, len(cpu))
	for i := range cpu {
		at := 0
		for at < len(freeCPU) && (freeCPU[at] < cpu[i] || freeMemory[at] < memory[i]) {
			at++
		}
		if at == len(freeCPU) {
			freeCPU, freeMemory = append(freeCPU, ofCPU), append(freeMemory, ofMemory)
		}
		freeCPU[at], freeMemory[at] = freeCPU[at]-cpu[i], freeMemory[at]-memory[i]
	}
	return len(freeCPU)
}

// bounded reports a figure and its target, which it should not exceed.
func bounded(b *testing.B, unit string, figure, target float64) {
	b.ReportMetric(figure, unit)
	b.ReportMetric(target, "target-"+unit)
}

// between is from and to, both included.
type between struct{ from, to int }

// answer is what is known of the right plan.
type answer struct {
	placed int
	nodes  between // new ones
	// sound says what is wrong with where the pods go; nil asks nothing.
	sound func(c *city, launches []growth) []string
}

func (a answer) wrongs(c *city, got plan.Plan) []string {
	var wrong []string
	placed := 0
	for _, v := range got.Verdicts {
		if v.Of != verdict.OfPod {
			continue
		}
		switch v.Reason {
		case verdict.PodTriggersScaleUp, verdict.PodFitsNode, verdict.PodFitsUpcoming:
			placed++
		default:
			if len(wrong) < 3 {
				wrong = append(wrong, v.String())
			}
		}
	}
	if placed != a.placed {
		wrong = append(wrong, fmt.Sprintf("%d pods have a place, want %d", placed, a.placed))
	}
	if n := grown(got); n < a.nodes.from || n > a.nodes.to {
		wrong = append(wrong, fmt.Sprintf("%d new nodes, want %d to %d", n, a.nodes.from, a.nodes.to))
	}
	if a.sound != nil {
		wrong = append(wrong, a.sound(c, launchesOf(c, got))...)
	}
	return wrong
}

// grown counts the new nodes of a plan.
func grown(p plan.Plan) int {
	n := 0
	for _, a := range p.Actions {
		if g, ok := a.(action.Grow); ok {
			n += g.To - g.From
		}
	}
	return n
}

// growth is a growth with the pods that it is for.
type growth struct {
	zone  string
	nodes int
	pods  []*fleet.Pod
}

func launchesOf(c *city, p plan.Plan) []growth {
	byName := make(map[string]*fleet.Pod, len(c.Pods))
	for i := range c.Pods {
		byName[c.Pods[i].Key()] = c.Pods[i]
	}
	var list []growth
	for _, a := range p.Actions {
		g, ok := a.(action.Grow)
		if !ok {
			continue
		}
		l := growth{zone: g.Zone, nodes: g.To - g.From}
		for _, ref := range g.For {
			l.pods = append(l.pods, byName[ref.String()])
		}
		list = append(list, l)
	}
	return list
}

// oneOnANode: no launch is for more pods of an app than it launches nodes.
func oneOnANode(_ *city, launches []growth) []string {
	var wrong []string
	for _, l := range launches {
		count := map[string]int{}
		for _, p := range l.pods {
			if app := p.Labels[labelApp]; app != "" {
				count[app]++
			}
		}
		for app, n := range count {
			if n > l.nodes {
				wrong = append(wrong, fmt.Sprintf("%d pods of %s on %d nodes", n, app, l.nodes))
			}
		}
	}
	return wrong
}

// oneInAZone: no zone gets two pods of an app.
func oneInAZone(_ *city, launches []growth) []string {
	count := map[string]int{}
	for _, l := range launches {
		for _, p := range l.pods {
			count[l.zone+" "+p.Labels[labelApp]]++
		}
	}
	for where, n := range count {
		if n > 1 {
			return []string{fmt.Sprintf("%d pods in %s", n, where)}
		}
	}
	return nil
}

// soundMix: pods that keep away from each other's host have one each, and pods
// that want to be together in a zone are.
func soundMix(c *city, launches []growth) []string {
	wrong := oneOnANode(c, launches)
	zones := map[string]string{}
	for _, l := range launches {
		for _, p := range l.pods {
			value := p.Labels[labelAffinity]
			if value == "" {
				continue
			}
			if zone, known := zones[value]; known && zone != l.zone {
				return append(wrong, fmt.Sprintf("pods of %s=%s are in %s and in %s", labelAffinity, value, zone, l.zone))
			}
			zones[value] = l.zone
		}
	}
	return wrong
}

// launchedCPUs are those of the nodes that a plan launches, as far as pods may have them.
func launchedCPUs(s fleet.Snapshot, got plan.Plan) float64 {
	each, sum := map[string]float64{}, 0.0
	for _, g := range s.Groups {
		each[g.Name] = g.NodeTemplates[0].Allocatable.Cpu().AsApproximateFloat64()
	}
	for g := range action.Only[action.Grow](got.Actions) {
		sum += each[g.Group] * float64(g.To-g.From)
	}
	return sum
}

// hourly is what the nodes that a plan launches cost in an hour, in dollars.
func hourly(s fleet.Snapshot, got plan.Plan) float64 {
	sum := 0.0
	for g := range action.Only[action.Grow](got.Actions) {
		i := slices.IndexFunc(s.Groups, func(of fleet.Group) bool { return of.Name == g.Group })
		sum += s.Groups[i].Price() * float64(g.To-g.From)
	}
	return sum
}
