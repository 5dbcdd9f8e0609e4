package plan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// BenchmarkBalance: what an evaluation costs by --consolidate=balance where prices are known, as a
// multiple of the same by unneeded; with swaps, of the same by balance while all replacements are
// backed off. Both are the least processor time of several evaluations, as planners that know the
// cluster take it. That multiple is of the same work in the same run, and says more than one of a
// plain loop would.
func BenchmarkBalance(b *testing.B) {
	const nodes = 1_000
	compare(b, "homogeneous", homogeneous(50*nodes).priced(), 1.3, consolidating(policy.ConsolidateUnneeded), wantGrown(nodes))
	compare(b, "hard", tangled(nodes, nodes/10).priced().aged(), 1.3, consolidating(policy.ConsolidateUnneeded), wantRemoved(nodes/2))
	compare(b, "due", tangled(nodes, nodes/10).priced().aged().marked(), 1.3, consolidating(policy.ConsolidateUnneeded), wantRemoved(nodes/2))
	compare(b, "swaps", swappable(nodes), 5, withoutSwaps, wantSwap)
	compare(b, "no swaps", unswappable(nodes), 5, withoutSwaps, wantNoSwap)
}

// variant is another evaluation of the same cluster.
type variant func(fleet.Snapshot, policy.Policy) (fleet.Snapshot, policy.Policy)

func consolidating(mode string) variant {
	return func(s fleet.Snapshot, p policy.Policy) (fleet.Snapshot, policy.Policy) {
		p.Consolidate = mode
		return s, p
	}
}

// withoutSwaps backs the replacements of all groups off.
func withoutSwaps(s fleet.Snapshot, p policy.Policy) (fleet.Snapshot, policy.Policy) {
	s.State.ReplacementBackOffs = map[string]fleet.BackOff{}
	for _, g := range s.Groups {
		s.State.ReplacementBackOffs[g.Name] = fleet.BackOff{Until: s.Now.Add(time.Hour), Count: 1, Cause: "a test"}
	}
	return s, p
}

func compare(b *testing.B, name string, c *city, most float64, reference variant, check func(*testing.B, plan.Plan)) {
	least := math.Inf(1)
	evaluate := func(b *testing.B, s fleet.Snapshot, p policy.Policy) (got plan.Plan, took float64) {
		planner := plan.NewPlanner()
		planner.Decide(s, p)
		took = math.Inf(1)
		for b.Loop() {
			began := processorTime()
			got = planner.Decide(s, p)
			took = min(took, (processorTime()-began).Seconds()*1e3)
		}
		b.ReportMetric(0, "ns/op") // it is in ms
		b.ReportMetric(took, "ms")
		b.ReportMetric(float64(got.Steps), "steps")
		return got, took
	}
	p := policy.DefaultPolicy()
	b.Run(name+"/reference", func(b *testing.B) {
		s, p := reference(c.Snapshot, p)
		_, took := evaluate(b, s, p)
		least = min(least, took)
	})
	b.Run(name+"/balance", func(b *testing.B) {
		got, took := evaluate(b, c.Snapshot, p)
		bounded(b, "times", took/least, most)
		check(b, got)
	})
}

// priced gives all nodes a price by what they have.
func (c *city) priced() *city {
	for i := range c.Groups {
		templates := c.Groups[i].NodeTemplates
		for j := range templates {
			t := &templates[j]
			t.PricePerHour = 0.025*t.Allocatable.Cpu().AsApproximateFloat64() + 0.0034*t.Allocatable.Memory().AsApproximateFloat64()/gib
		}
	}
	return c
}

// aged lets all pods that run have run for some days, so that moving them is worth its cost wherever
// it saves a node.
func (c *city) aged() *city {
	for _, p := range c.Pods {
		if p.Node != "" {
			p.Created = fleet.SecondOf(benchNow.Add(-72 * time.Hour))
		}
	}
	return c
}

// swappable: nodes of nine sizes and proportions with pods of a hundred specs. A fifth of them is
// nearly empty, and due; the others are three fifths full, so that one of another group would take
// the pods of several for less.
func swappable(nodes int) *city {
	const groups, specs = 9, 100
	c := newCity()
	machines := someMachines(groups)
	for i, m := range machines {
		c.group(fmt.Sprintf("group-%d", i), m, nodes)
	}
	templates := make([]template, specs)
	for i := range templates {
		name := fmt.Sprint("app-", i)
		templates[i] = pods(50*(1+c.dice.Int64N(8)), 128*mib*(1+c.dice.Int64N(12))).labelled(labelApp, name).owned(name)
	}
	for i := range nodes {
		m := machines[i%groups]
		n := c.node(i%groups, m, benchZones[i/groups%len(benchZones)])
		full := int64(6)
		if i%5 == 0 {
			n.Taints = append(n.Taints, contract.UnneededTaint(benchNow.Add(-time.Hour)))
			full = 1
		}
		for milli, memory := m.milliCPU*full/10, m.memory*full/10; ; {
			t := draw(c, templates...)
			requests := t.spec.Containers[0].Resources.Requests
			milli, memory = milli-requests.Cpu().MilliValue(), memory-requests.Memory().Value()
			if milli < 0 || memory < 0 {
				break
			}
			c.run(t, n)
		}
	}
	return c.priced().aged()
}

// unswappable: the same, and a pod on each node has just come, of a spec of its own: its node is
// soon empty anyway, and no replacement is worth what it costs.
func unswappable(nodes int) *city {
	c := swappable(nodes)
	for i := range c.Nodes {
		c.run(pods(int64(10+i%50), 16*mib).labelled(labelApp, fmt.Sprint("young-", i)).owned(fmt.Sprint("young-", i)), &c.Nodes[i])
		c.Pods[len(c.Pods)-1].Created = fleet.SecondOf(benchNow.Add(-time.Minute))
	}
	return c
}

func wantGrown(nodes int) func(*testing.B, plan.Plan) {
	return func(b *testing.B, got plan.Plan) {
		if n := grown(got); n != nodes {
			b.Errorf("%d new nodes, want %d", n, nodes)
		}
	}
}

// wantRemoved wants at least so many nodes to be unneeded.
func wantRemoved(least int) func(*testing.B, plan.Plan) {
	return func(b *testing.B, got plan.Plan) {
		unneeded := 0
		for _, v := range got.Verdicts {
			if v.Of == verdict.OfNode && (v.Reason == verdict.NodeUnneeded || v.Reason == verdict.NodeScalingDown) {
				unneeded++
			}
		}
		if unneeded < least {
			b.Errorf("%d nodes are unneeded, want %d at least", unneeded, least)
		}
	}
}

// wantSwap wants a replacement to be found.
func wantSwap(b *testing.B, got plan.Plan) {
	if got.State.Replacement == nil {
		b.Error("no replacement is found")
	}
}

func wantNoSwap(b *testing.B, got plan.Plan) {
	if got.State.Replacement != nil {
		b.Errorf("a replacement is found: %v", got.State.Replacement)
	}
	if len(got.Actions) == 0 {
		b.Error("nothing is done")
	}
}
