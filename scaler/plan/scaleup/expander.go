package scaleup

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// expanders keep the best of some options, several if they are equally good.
var expanders = map[string]func(*ScaleUp, []option) []option{
	policy.LeastWaste: func(_ *ScaleUp, list []option) []option { return least(list, option.waste) },
	policy.LeastNodes: func(_ *ScaleUp, list []option) []option { return least(list, option.nodesPerPod) },
	policy.MostPods:   func(_ *ScaleUp, list []option) []option { return least(list, option.podsLeft) },
	policy.Priority:   (*ScaleUp).preferred,
	policy.Price:      (*ScaleUp).cheapest,
	policy.Random:     (*ScaleUp).random,
}

// best is the option that the chain of expanders chooses. Of those that it finds equally good it is
// the one that takes the most pods, then the cheapest as far as prices are known, then the one with
// the fewest GPUs that were not asked for, with the fewest nodes, with the fewest resources of
// another kind that were not asked for, then the first by name.
func (d *ScaleUp) best(options []option) option {
	for _, name := range d.Policy.Expanders() {
		options = expanders[name](d, options)
	}
	options = least(options, option.podsLeft)
	if priced := slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.hourly == 0 }); len(priced) > 0 {
		cheapest := least(priced, func(o option) float64 { return o.hourly })[0].hourly
		options = slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.hourly > cheapest })
	}
	return slices.MinFunc(options, func(a, b option) int {
		return cmp.Or(
			cmp.Compare(a.idleGPUs, b.idleGPUs),
			cmp.Compare(a.nodes, b.nodes),
			cmp.Compare(a.idleKinds, b.idleKinds),
			cmp.Compare(a.group.Name, b.group.Name),
		)
	})
}

// clearly is how much less a better group costs for what its nodes have: sizes and families that
// differ by less are told apart by how pods fill them.
const clearly = 1.25

// better reports whether people prefer a group to another one, or its nodes clearly cost less for what
// they have. Where their prices do not compare, as one is not known or that of the dearest of several
// types, it is better without GPUs, or on spot.
func (d *ScaleUp) better(g, than *cluster.Group) bool {
	if a, b := d.tierOf(g), d.tierOf(than); a != b {
		return a < b
	}
	if a, b := priceForWork(g), priceForWork(than); a > 0 && b > 0 {
		return a*clearly < b
	}
	if a, b := hasGPUs(g), hasGPUs(than); a != b {
		return b
	}
	return g.Spot && !than.Spot
}

// priceForWork is what a new node costs for each cpu that it has, or the memory that costs as much; 0
// where that is not known.
func priceForWork(g *cluster.Group) float64 {
	if ofSeveralTypes(g) {
		return 0
	}
	has := g.NodeTemplates[0].Allocatable
	return g.Price() / cluster.Work(has.Cpu().MilliValue(), has.Memory().Value())
}

func hasGPUs(g *cluster.Group) bool {
	for name, q := range g.NodeTemplates[0].Allocatable {
		if cluster.IsGPU(name) && !q.IsZero() {
			return true
		}
	}
	return false
}

// tierOf is which of the priorities a group has, from 0 for the highest.
func (d *ScaleUp) tierOf(g *cluster.Group) int {
	if i := slices.IndexFunc(d.priorities, func(t tier) bool { return t.has(g.Name) }); i >= 0 {
		return i
	}
	return len(d.priorities)
}

// option is a group that could take pods, and what its new nodes would be.
type option struct {
	group *cluster.Group
	// pods is how many it would take, on how many nodes, and how many it would
	// leave.
	pods, nodes, left int
	// free is the share of cpu and memory that would stay free, and usable what pods of the usual
	// shape could use of it.
	free, usable float64
	// work is what the pods request, by cluster.WorkOf.
	work float64
	// hourly is what the nodes cost in an hour, in dollars; 0 where that is not
	// known.
	hourly float64
	// idleGPUs are those of the nodes that were not asked for, and idleKinds how many other
	// resources that device plugins report are there and asked for by none of the pods.
	idleGPUs  int64
	idleKinds int
}

func (d *ScaleUp) newOption(g *cluster.Group, packing fit.Packing) option {
	o := option{group: g, nodes: len(packing.Places), left: len(packing.Left), free: fit.Waste(packing.Places)}
	if d.Policy.Consolidate == policy.ConsolidateBalance {
		o.usable = d.usable(packing.Places)
	}
	var pods []fit.Tenant
	for _, p := range packing.Places {
		pods = append(pods, p.Seated()...)
	}
	for _, s := range packing.Seats {
		pods = append(pods, s.Tenant)
	}
	o.pods = len(pods)
	for _, t := range pods {
		o.work += cluster.WorkOf(t.Class)
	}
	for name, q := range g.NodeTemplates[0].Allocatable {
		if !cluster.ByPlugin(name) || q.IsZero() {
			continue
		}
		var asked int64
		for _, t := range pods {
			asked += d.Fit.Requested(t.Class, name)
		}
		switch {
		case cluster.IsGPU(name):
			o.idleGPUs += max(0, q.Value()*int64(o.nodes)-asked)
		case asked == 0:
			o.idleKinds++
		}
	}
	if price := g.Price(); price > 0 {
		o.hourly = price * float64(o.nodes)
	}
	return o
}

func (o option) ofSeveralTypes() bool { return ofSeveralTypes(o.group) }

// ofSeveralTypes reports whether a group's mixed instances policy names more than one: such a node
// template has none.
func ofSeveralTypes(g *cluster.Group) bool { return g.Mixed && g.NodeTemplates[0].InstanceType == "" }

func (o option) waste() float64 { return o.free }

func (o option) podsLeft() float64 { return float64(o.left) }

func (o option) nodesPerPod() float64 { return float64(o.nodes) / float64(o.pods) }

// least keeps the options with the smallest figure.
func least(options []option, figure func(option) float64) []option {
	smallest := figure(slices.MinFunc(options, func(a, b option) int { return cmp.Compare(figure(a), figure(b)) }))
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return figure(o) > smallest })
}

// worthOfFree is what room that new nodes have left is worth of its price, as far as pods of the
// usual shape can use it. Other pods will come: of several sizes at the same price for a cpu the one
// that fits best is taken, and not the smallest, which leaves the most pieces. On public traces that
// saves a seventh where pods come one by one and stay, and nothing elsewhere.
const worthOfFree = 0.95

// usable is the share of these places that pods of the usual shape can use still, 0 to 1: free cpu
// without memory serves none of them, nor does the reverse.
func (d *ScaleUp) usable(places []*fit.Place) float64 {
	usable, all, usual := 0.0, 0.0, d.usualShape()
	for _, p := range places {
		usable += cluster.Work(usual.Most(p.Free()))
		all += cluster.Work(p.Room())
	}
	return usable / all
}

// usualShape is what all pods together request.
func (d *ScaleUp) usualShape() seats.Load {
	if d.shape == (seats.Load{}) {
		for _, n := range d.Nodes {
			d.shape = d.shape.Plus(d.LoadOf(n))
		}
		for _, t := range d.left {
			d.shape = d.shape.Plus(seats.LoadOfPod(t))
		}
	}
	return d.shape
}

// cheapest keeps those that cost least for what they take. A group whose price is
// not known comes last, and says so.
func (d *ScaleUp) cheapest(options []option) []option {
	known := slices.DeleteFunc(slices.Clone(options), func(o option) bool { return o.hourly == 0 })
	if len(known) == 0 {
		return options
	}
	for _, o := range options {
		if o.hourly == 0 {
			o.group.Note(verdict.Say("the price of its nodes is not known, so the expander price chooses it last: add it to --price-file"))
		}
	}
	// The price of a group with several types is that of the dearest, and its node template the
	// smallest: the next expander of a chain compares it with the cheapest.
	var mixed []option
	if len(d.Policy.Expanders()) > 1 {
		mixed = slices.DeleteFunc(slices.Clone(known), func(o option) bool { return !o.ofSeveralTypes() })
		if known = slices.DeleteFunc(known, option.ofSeveralTypes); len(known) == 0 {
			return mixed
		}
	}
	return append(least(known, func(o option) float64 { return o.hourly * (1 - worthOfFree*o.usable) / o.work }), mixed...)
}

// prefer reads the priorities where the expander asks for them. Without them, or if
// they cannot be read, all groups are as good.
func (d *ScaleUp) prefer(text *string) {
	if !d.Policy.AsksForPriorities() {
		return
	}
	problem := verdict.Say("ConfigMap " + contract.ConfigMapPriorities + " is not there, so no group is preferred")
	if text != nil {
		var err error
		if d.priorities, err = parsePriorities(*text); err == nil {
			return
		}
		problem = verdict.Say("ConfigMap "+contract.ConfigMapPriorities+" is not valid, so no group is preferred: {cause}", verdict.Cause(err.Error()))
	}
	for _, g := range d.Groups {
		g.Note(problem)
	}
}

// preferred keeps the groups of the highest priority that has one.
func (d *ScaleUp) preferred(options []option) []option {
	if d.priorities == nil {
		return options
	}
	for _, tier := range d.priorities {
		var chosen []option
		for _, o := range options {
			if tier.has(o.group.Name) {
				chosen = append(chosen, o)
			}
		}
		if len(chosen) > 0 {
			return chosen
		}
	}
	for _, o := range options {
		o.group.Note(verdict.Say("ConfigMap " + contract.ConfigMapPriorities + " gives it no priority"))
	}
	return options
}

// random keeps one by lot: the first by a hash of its name and of the pod that has
// waited for the longest, so that the lot falls anew when others wait.
func (d *ScaleUp) random(options []option) []option {
	lot := func(o option) uint64 {
		sum := sha256.Sum256([]byte(o.group.Name + "\n" + d.oldestLeft()))
		return binary.BigEndian.Uint64(sum[:])
	}
	return []option{slices.MinFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(lot(a), lot(b)), cmp.Compare(a.group.Name, b.group.Name))
	})}
}
