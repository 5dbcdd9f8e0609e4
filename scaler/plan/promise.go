package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// A group grows because its shape promises that a new node takes a pod. If the shape
// is wrong in any way, the node comes, does not take the pod, and the shape promises
// it another one, up to the group's maximum. So a promise is remembered until nodes
// have come of it. If none of them would take the pod, even with nothing on it but
// what belongs to the node, the group is not grown for pods of that class for a
// while, which doubles each time. The promise is made anew, and believed, as soon as
// the definition of the group's nodes changes, or what DaemonSets they run.

const (
	// settling is how long a node that has become Ready may still come to take the
	// pod for which it came: drivers register a moment later.
	settling = time.Minute
	// distrust is for how long a group is not grown for pods that its node did not
	// take: for longer than such a node stays, and at most for a working day.
	distrust, mostDistrust = 30 * time.Minute, 8 * time.Hour
	// watched is how long a promise is remembered of which nothing came.
	watched = 2 * time.Hour
	// mostPromises bounds fleet.State.Promises.
	mostPromises = 100
)

// distrusted is a group that is not grown for a class.
type distrusted struct {
	group *group
	class *fit.Class
}

// testPromises finds out which groups have not kept what they promised to pods that
// have no place.
func (d *decision) testPromises() {
	if len(d.state.Promises) == 0 {
		return
	}
	waiting := d.leftByClass()
	for _, key := range slices.Sorted(maps.Keys(d.state.Promises)) {
		p := d.state.Promises[key]
		name, definition, class := fleet.ParsePromiseKey(key)
		g := d.groupOf(name)
		if g == nil || d.now.After(cmp.Or(p.Until, p.At).Add(watched)) {
			delete(d.state.Promises, key)
			continue
		}
		if t, waits := waiting[class]; waits && definition == d.definition(g) {
			d.state.Promises[key] = d.test(g, t, p)
		}
	}
}

// leftByClass is a pod of each class that is without a place, by the hash of its key.
func (d *decision) leftByClass() map[string]fit.Tenant {
	seen := map[*fit.Class]bool{}
	waiting := map[string]fit.Tenant{}
	note := func(pods []fit.Tenant) {
		for _, t := range pods {
			if !seen[t.Class] {
				seen[t.Class] = true
				waiting[hashed(t.Class.Key)] = t
			}
		}
	}
	note(d.left)
	for _, g := range d.gangs {
		note(g.pods)
	}
	return waiting
}

// test looks at the nodes that came of a promise.
func (d *decision) test(g *group, t fit.Tenant, p fleet.Promise) fleet.Promise {
	if d.now.Before(p.Until) {
		d.doubt(g, t, fmt.Sprintf("%s; not tried again before %s", p.Why, clockTime(p.Until)), p.Until)
		return p
	}
	n, why := d.broken(g, t, p)
	if n == nil {
		return p
	}
	if settled := n.ReadySince.Add(settling); d.now.Before(settled) {
		d.doubt(g, t, fmt.Sprintf("node %s has just come for it: %s", n.Name, why.Of(n.Name)), settled)
		return p
	}
	p.Count++
	p.Until = d.now.Add(doubled(distrust, p.Count, mostDistrust))
	p.Why = fmt.Sprintf("node %s came for it and does not take it: %s", n.Name, why.Of(n.Name))
	d.doubt(g, t, fmt.Sprintf("%s; not tried again before %s", p.Why, clockTime(p.Until)), p.Until)
	return p
}

// broken is the first node that came of a promise, if none of them takes the pod, and
// what it has against it.
func (d *decision) broken(g *group, t fit.Tenant, p fleet.Promise) (first *node, why fit.Reasons) {
	for _, n := range g.nodes {
		if n.stage != serving || !n.came().After(p.At) || !slices.Contains(p.Zones, n.Zone()) {
			continue
		}
		reasons := d.against(t.Class, n)
		if len(reasons) == 0 {
			return nil, nil
		}
		if first == nil {
			first, why = n, reasons
		}
	}
	return first, why
}

// came is when a node came to its group: when it registered or, as it may have done so
// in a warm pool long before, when it was Ready again after that.
func (n *node) came() time.Time {
	if n.group.WarmPool != nil {
		return n.ReadySince
	}
	return n.Created
}

// against is what the node itself has against a class: without the pods that could as
// well be elsewhere, and without what pods elsewhere have to do with it, which may
// have changed since the promise.
func (d *decision) against(c *fit.Class, n *node) fit.Reasons {
	start := d.fit.Fork()
	defer d.fit.Revert(start)
	for _, t := range n.place.Tenants() {
		if drainable.MustBePlacedAgain(t.Pod) {
			d.fit.Lift(t, n.place)
		}
	}
	return slices.DeleteFunc(d.fit.Fits(c, n.place), func(r fit.Reason) bool {
		return r.Rule == fit.RulePodTopologySpread || r.Rule == fit.RuleInterPodAffinity
	})
}

// doubt keeps a group from growing for a class in this look.
func (d *decision) doubt(g *group, t fit.Tenant, why string, until time.Time) {
	if d.doubts == nil {
		d.doubts = map[distrusted]string{}
	}
	d.doubts[distrusted{g, t.Class}] = why
	d.clock.at(until)
	if !g.doubted {
		g.doubted = true // one pod is told of, and others have their own verdicts
		g.note(fmt.Sprintf("pod %s: %s", t.Pod.Key(), why))
	}
}

// closeFor closes the groups that are not grown for a class, until reopen is called.
func (d *decision) closeFor(c *fit.Class) (reopen func()) {
	if len(d.doubts) == 0 {
		return func() {}
	}
	for _, g := range d.groups {
		g.closed = d.doubts[distrusted{g, c}]
	}
	return func() {
		for _, g := range d.groups {
			g.closed = ""
		}
	}
}

// believing separates the pods that every group may grow for from the others.
func (d *decision) believing(pods []fit.Tenant) (all, some []fit.Tenant) {
	if len(d.doubts) == 0 {
		return pods, nil
	}
	doubting := map[*fit.Class]bool{}
	for x := range d.doubts {
		doubting[x.class] = true
	}
	for _, t := range pods {
		if doubting[t.Class] {
			some = append(some, t)
		} else {
			all = append(all, t)
		}
	}
	return all, some
}

// promise remembers for which pods a group grows: for each new node that of its pods
// for which it was opened. What came before of a promise that still stands counts on.
func (d *decision) promise(g *group) {
	zones := map[*fit.Class][]string{}
	for _, p := range g.fresh {
		tenants := p.Seated()
		if len(tenants) == 0 {
			continue
		}
		c := tenants[0].Class
		if zone := p.Looks().Zone; !slices.Contains(zones[c], zone) {
			zones[c] = append(zones[c], zone)
		}
	}
	for c, where := range zones {
		key := fleet.PromiseKey(g.Name, d.definition(g), hashed(c.Key))
		p, made := d.state.Promises[key]
		if !made || p.At.Before(p.Until) {
			p = fleet.Promise{At: d.now, Until: p.Until, Count: p.Count, Why: p.Why}
		}
		p.Zones = append(p.Zones, where...)
		slices.Sort(p.Zones)
		p.Zones = slices.Compact(p.Zones)
		d.state.Promises[key] = p
	}
	d.forgetPromises()
}

// forgetPromises keeps the newest, and those that were broken before the others.
func (d *decision) forgetPromises() {
	many := len(d.state.Promises) - mostPromises
	if many <= 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(d.state.Promises), func(a, b string) int {
		p, q := d.state.Promises[a], d.state.Promises[b]
		return cmp.Or(cmp.Compare(min(p.Count, 1), min(q.Count, 1)), p.At.Compare(q.At), cmp.Compare(a, b))
	})
	for _, key := range keys[:many] {
		delete(d.state.Promises, key)
	}
}

// definition is a hash of what new nodes of the group are planned to be like, before
// anything is learned from those that are there: what is learned comes and goes with
// them.
func (d *decision) definition(g *group) string {
	if g.definition == "" {
		parts := []any{g.Template}
		for i, s := range g.planned {
			s.PricePerHour = 0
			parts = append(parts, s, g.looks[i].Daemons())
		}
		text, err := json.Marshal(parts)
		if err != nil {
			panic(fmt.Sprintf("shapes always encode: %v", err))
		}
		g.definition = hashed(string(text))
	}
	return g.definition
}

// hashed is a short text that stands for a long one, the same in every process.
func hashed(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
