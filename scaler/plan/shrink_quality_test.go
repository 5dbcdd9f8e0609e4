package plan_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// How good the choice is of the nodes that go: against a bound that no choice beats, and
// against the best there is where that can be found.

// BenchmarkPackingQuality: 200 random clusters of mixed node templates. What the nodes that are
// needed cost is divided by a lower bound, and so is what a plain first fit leaves that
// asks the least utilised nodes first.
func BenchmarkPackingQuality(b *testing.B) {
	const towns = 200
	var ours, plain float64
	for b.Loop() {
		ours, plain = 0, 0
		for seed := range uint64(towns) {
			c := mixedTown(seed)
			bound := c.leastCost()
			ours += c.costWithout(unneeded(plan.Decide(c.Snapshot, anyUtilization()))) / bound / towns
			plain += c.costWithout(c.plainFirstFit()) / bound / towns
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours, "of-bound")
	b.ReportMetric(plain, "first-fit-of-bound")
	if ours > plain {
		b.Errorf("what is left costs %.3f of the bound, and %.3f by a plain first fit", ours, plain)
	}
}

// anyUtilization is a policy by which only room decides.
func anyUtilization() policy.Policy {
	p := byThreshold()
	p.UtilizationThreshold = 1
	return p
}

// mixedTown is 20 to 60 nodes of two to five groups, with prices by what they have, give
// or take a fifth, and pods that fill a tenth to two thirds of each.
func mixedTown(seed uint64) *city {
	c := newCity()
	c.dice = rand.New(rand.NewPCG(seed, 3))
	machines := someMachines(15)
	c.dice.Shuffle(len(machines), func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
	machines = machines[:2+c.dice.IntN(4)]
	for i, m := range machines {
		c.group(fmt.Sprintf("group-%d", i), m, 100)
		price := (float64(m.milliCPU)/1000 + float64(m.memory)/(10*gib)) * 0.03 * (0.8 + 0.4*c.dice.Float64())
		for s := range c.Groups[i].NodeTemplates {
			c.Groups[i].NodeTemplates[s].PricePerHour = price
		}
	}
	for i := range 20 + c.dice.IntN(41) {
		group := c.dice.IntN(len(machines))
		m := machines[group]
		n := c.node(group, m, benchZones[i%len(benchZones)])
		full := 0.1 + 0.55*c.dice.Float64()
		for milli, memory := int64(0), int64(0); ; {
			cpu, mem := 100*(1+c.dice.Int64N(20)), 128*mib*(1+c.dice.Int64N(40))
			milli, memory = milli+cpu, memory+mem
			if float64(milli) > full*float64(m.milliCPU) || float64(memory) > full*float64(m.memory) {
				break
			}
			c.run(pods(cpu, mem).owned("web"), n)
		}
	}
	return c
}

// unneeded are the nodes that a plan finds so, by name.
func unneeded(p plan.Plan) map[string]bool {
	names := map[string]bool{}
	for _, v := range p.Verdicts {
		if v.Of == verdict.OfNode && (v.Reason == verdict.NodeUnneeded || v.Reason == verdict.NodeScalingDown) {
			names[v.Name] = true
		}
	}
	return names
}

// prices are those of the nodes, by name.
func prices(s fleet.Snapshot) map[string]float64 {
	of := map[string]float64{}
	for _, n := range s.Nodes {
		for _, g := range s.Groups {
			if slices.ContainsFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == n.InstanceID() }) {
				of[n.Name] = g.NodeTemplates[0].PricePerHour
			}
		}
	}
	return of
}

func (c *city) costWithout(gone map[string]bool) float64 {
	cost := 0.0
	for name, price := range prices(c.Snapshot) {
		if !gone[name] {
			cost += price
		}
	}
	return cost
}

// leastCost is the least that nodes cost which have room for all pods together, if nodes
// and pods could be divided at will: the linear program of cpu and memory, by its dual.
// That is largest where the worth of cpu and of memory make two of the node templates, or one and
// an axis, cost just what they have.
func (c *city) leastCost() float64 {
	type line struct{ cpu, memory, price float64 }
	var nodes, lines []line
	price := prices(c.Snapshot)
	for _, n := range c.Nodes {
		l := line{float64(n.Allocatable.Cpu().MilliValue()), float64(n.Allocatable.Memory().Value()) / mib, price[n.Name]}
		nodes = append(nodes, l)
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	lines = append(lines, line{1, 0, 0}, line{0, 1, 0})
	var cpu, memory float64
	for _, p := range c.Pods {
		requests := p.Spec.Containers[0].Resources.Requests
		cpu, memory = cpu+float64(requests.Cpu().MilliValue()), memory+float64(requests.Memory().Value())/mib
	}
	best := 0.0
	for i, a := range lines {
		for _, b := range lines[i+1:] {
			det := a.cpu*b.memory - b.cpu*a.memory
			x, y := (a.price*b.memory-b.price*a.memory)/det, (a.cpu*b.price-b.cpu*a.price)/det
			if math.Abs(det) < 1e-9 || x < 0 || y < 0 {
				continue
			}
			value := x*cpu + y*memory
			for _, n := range nodes {
				value -= max(0, x*n.cpu+y*n.memory-n.price)
			}
			best = max(best, value)
		}
	}
	return best
}

// plainFirstFit empties one node after the other, the least utilised first, into the first
// nodes that take its pods.
func (c *city) plainFirstFit() map[string]bool {
	cluster := clusterOf(c.Snapshot)
	used := map[string]float64{}
	on := map[string][]*fleet.Pod{}
	for _, p := range c.Pods {
		on[p.Node] = append(on[p.Node], p)
	}
	place := map[string]*fit.Place{}
	var names []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		place[n.Name] = cluster.Add(cluster.TemplateFrom(n, nothing))
		var cpu, memory int64
		for _, p := range on[n.Name] {
			cluster.Put(cluster.Tenant(p), place[n.Name])
			requests := p.Spec.Containers[0].Resources.Requests
			cpu, memory = cpu+requests.Cpu().MilliValue(), memory+requests.Memory().Value()
		}
		used[n.Name] = max(float64(cpu)/float64(n.Allocatable.Cpu().MilliValue()), float64(memory)/float64(n.Allocatable.Memory().Value()))
		names = append(names, n.Name)
	}
	order := slices.Clone(names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(used[a], used[b]) })
	gone := map[string]bool{}
	for _, name := range order {
		start := cluster.Fork()
		fits := true
		for _, t := range place[name].Tenants() {
			cluster.Lift(t, place[name])
			fits = fits && slices.ContainsFunc(names, func(to string) bool {
				return to != name && !gone[to] && cluster.TrySeat(t, place[to])
			})
		}
		if gone[name] = fits; !fits {
			cluster.Revert(start)
		}
	}
	return gone
}

// TestChoiceAgainstBruteForce holds the choice against all choices, in small clusters
// where pods have rules. What is chosen can go. Where dearer sets could go, too, is
// counted: that is the price of not searching.
func TestChoiceAgainstBruteForce(t *testing.T) {
	const towns, most = 400, 0.1
	asked, worse, lost := 0, 0, 0.0
	for seed := range uint64(towns) {
		c := smallTown(seed)
		price := prices(c.Snapshot)
		chosen := unneeded(plan.Decide(c.Snapshot, anyUtilization()))
		saved := func(names map[string]bool) float64 {
			sum := 0.0
			for _, n := range c.Nodes {
				if names[n.Name] {
					sum += price[n.Name]
				}
			}
			return sum
		}
		if can, sure := c.canGo(chosen); sure && !can {
			t.Errorf("town %d: %v cannot all go", seed, chosen)
		}
		best, sure := saved(chosen), true
		for set := range 1 << len(c.Nodes) {
			names := map[string]bool{}
			for i, n := range c.Nodes {
				names[n.Name] = set>>i&1 == 1
			}
			if saved(names) <= best+1e-9 {
				continue
			}
			can, certain := c.canGo(names)
			sure = sure && certain
			if can && certain {
				best = saved(names)
			}
		}
		if !sure {
			continue // too many ways to try
		}
		asked++
		if left := c.costWithout(nil) - best; best > saved(chosen)+1e-9 {
			worse++
			lost += (best - saved(chosen)) / max(left, best-saved(chosen))
		}
	}
	t.Logf("of %d clusters %d keep more than the best choice would (%.1f%%), on average %.1f%% more over all", asked, worse, 100*float64(worse)/float64(asked), 100*lost/float64(asked))
	if float64(worse) > most*float64(asked) {
		t.Errorf("%d of %d clusters keep more than the best choice would, want at most %.0f%%", worse, asked, most*100)
	}
}

// smallTown is two to seven nodes of two node templates, with up to twelve pods that have rules.
func smallTown(seed uint64) *city {
	c := newCity()
	c.dice = rand.New(rand.NewPCG(seed, 4))
	for i, m := range []machine{{kind: "small", milliCPU: 2_000, memory: 8 * gib}, {kind: "large", milliCPU: 4_000, memory: 8 * gib}} {
		c.group(m.kind, m, 10)
		for s := range c.Groups[i].NodeTemplates {
			c.Groups[i].NodeTemplates[s].PricePerHour = 0.1 * float64(1+i)
		}
	}
	c.Nodes = make([]fleet.Node, 0, 7)
	free := map[*fleet.Node]int64{}
	var nodes []*fleet.Node
	for i := range 2 + c.dice.IntN(6) {
		group := c.dice.IntN(2)
		m := machine{kind: []string{"small", "large"}[group], milliCPU: int64(2_000 * (1 + group)), memory: 8 * gib}
		n := c.node(group, m, benchZones[i%len(benchZones)])
		nodes, free[n] = append(nodes, n), m.milliCPU
	}
	for app := range 2 + c.dice.IntN(4) {
		name := fmt.Sprintf("app-%d", app)
		cpu := 100 * (2 + c.dice.Int64N(12))
		template := pods(cpu, gib/4).labelled(labelApp, name).owned(name)
		switch c.dice.IntN(6) {
		case 0:
			template = template.apart(likes(labelApp, name), corev1.LabelHostname)
		case 1:
			template = template.apart(likes(labelApp, name), corev1.LabelTopologyZone)
		case 2:
			template.spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: draw(c, benchZones...)}
		}
		for range 1 + c.dice.IntN(3) {
			if on := nodes[c.dice.IntN(len(nodes))]; free[on] >= cpu {
				free[on] -= cpu
				c.run(template, on)
			}
		}
	}
	return c
}

// canGo says whether these nodes can all go, by trying every way to place their pods, and
// whether it is sure.
func (c *city) canGo(gone map[string]bool) (can, sure bool) {
	cluster := clusterOf(c.Snapshot)
	var movers []mover
	var places []*fit.Place
	for i := range c.Nodes {
		n := &c.Nodes[i]
		place := cluster.Add(cluster.TemplateFrom(n, nothing))
		if !gone[n.Name] {
			places = append(places, place)
		}
		for _, p := range c.Pods {
			switch {
			case p.Node != n.Name:
			case gone[n.Name] && drainable.MustBePlacedAgain(p):
				movers = append(movers, mover{cluster.Tenant(p), nil})
			default:
				cluster.Put(cluster.Tenant(p), place)
			}
		}
	}
	steps := 50_000
	can = assignable(cluster, movers, places, &steps)
	return can, steps >= 0
}
