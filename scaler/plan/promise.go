package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// A group grows because its shape promises that a new node takes a pod. If the shape
// is wrong in any way, the node comes, does not take the pod, and the shape promises
// it another one, up to the group's maximum. So a promise is remembered until nodes
// have come of it. If none of them would take the pod, even with nothing on it but
// what belongs to the node, the group is not grown for pods of that class for a
// while, which doubles each time. The first node that takes such a pod after all ends
// that, and the promise is made anew, and believed, as soon as the definition of the
// group's nodes changes, or the DaemonSets do. Taints and cordons break no promise:
// they come and go, and those of all new nodes are learned.

const (
	// settling is how long a node that has become Ready may still come to take the
	// pod for which it came: drivers register and features are labelled a while later.
	settling = 5 * time.Minute
	// distrust is for how long a group is not grown for pods that its node did not
	// take: for longer than such a node stays, and at most for a working day.
	distrust, mostDistrust = 30 * time.Minute, 8 * time.Hour
	// watched is how long a promise is remembered of which nothing came.
	watched = 2 * time.Hour
	// mostPromises bounds fleet.State.Promises.
	mostPromises = 100
	// manyBroken promises of one group say that its nodes are not what they are said to
	// be, whoever asks.
	manyBroken = mostPromises / 2
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
	waiting := d.leftByBody()
	broken := map[*group][]time.Time{}
	for _, key := range slices.Sorted(maps.Keys(d.state.Promises)) {
		p := d.state.Promises[key]
		name, definition, body := fleet.ParsePromiseKey(key)
		g := d.groupOf(name)
		if g == nil || d.now.After(cmp.Or(p.Until, p.At).Add(watched)) {
			delete(d.state.Promises, key)
			continue
		}
		if pods := waiting[body]; len(pods) > 0 && definition == d.definition(g) {
			d.test(g, pods, key, p)
		}
		if until := d.state.Promises[key].Until; d.now.Before(until) {
			broken[g] = append(broken[g], until)
		}
	}
	for g, until := range broken {
		if len(until) < manyBroken || g.ill != "" {
			continue
		}
		slices.SortFunc(until, time.Time.Compare)
		fewer := until[len(until)-manyBroken]
		g.ill = fmt.Sprintf("its nodes did not take %d kinds of pods that they came for; not tried again before %s", len(until), clockTime(fewer))
		d.clock.at(fewer)
	}
}

// leftByBody is a pod of each class that is without a place, by the hash of what the
// class itself asks for.
func (d *decision) leftByBody() map[string][]fit.Tenant {
	seen := map[*fit.Class]bool{}
	waiting := map[string][]fit.Tenant{}
	note := func(pods []fit.Tenant) {
		for _, t := range pods {
			if !seen[t.Class] {
				seen[t.Class] = true
				body := hashed(t.Class.Body())
				waiting[body] = append(waiting[body], t)
			}
		}
	}
	note(d.left)
	for _, g := range d.gangs {
		note(g.pods)
	}
	note(d.lackingHeadRoom())
	return waiting
}

// test looks at the nodes that came of a promise to pods that differ only in what
// others have to do with them.
func (d *decision) test(g *group, pods []fit.Tenant, key string, p fleet.Promise) {
	came := d.cameOf(g, p)
	for _, n := range came {
		if d.takes(n, pods) {
			delete(d.state.Promises, key) // it was kept
			return
		}
	}
	if d.now.Before(p.Until) {
		d.doubt(g, pods, fmt.Sprintf("%s; not tried again before %s", p.Why, clockTime(p.Until)), p.Until)
		return
	}
	if len(came) == 0 {
		return
	}
	first := slices.MinFunc(came, func(a, b *node) int { return a.ReadySince.Compare(b.ReadySince) })
	why := d.against(pods[0].Class, first)
	if settled := first.ReadySince.Add(settling); d.now.Before(settled) {
		d.doubt(g, pods, fmt.Sprintf("node %s has just come for it: %s", first.Name, why.Of(first.Name)), settled)
		return
	}
	p.Count++
	p.Until = d.now.Add(doubled(distrust, p.Count, mostDistrust))
	p.Why = contract.Shorten(fmt.Sprintf("node %s came for it and does not take it: %s", first.Name, why.Of(first.Name)), mostCause)
	d.state.Promises[key] = p
	d.doubt(g, pods, fmt.Sprintf("%s; not tried again before %s", p.Why, clockTime(p.Until)), p.Until)
}

// cameOf are the nodes that came of a promise.
func (d *decision) cameOf(g *group, p fleet.Promise) []*node {
	var came []*node
	for _, n := range g.nodes {
		if n.stage == serving && n.came().After(p.At) && slices.Contains(p.Zones, n.Zone()) {
			came = append(came, n)
		}
	}
	return came
}

// takes says that a node takes one of these pods, or has taken its like.
func (d *decision) takes(n *node, pods []fit.Tenant) bool {
	for _, t := range pods {
		alike := func(other fit.Tenant) bool { return other.Class == t.Class }
		if slices.ContainsFunc(n.place.Seated(), alike) || len(d.against(t.Class, n)) == 0 {
			return true
		}
	}
	return false
}

// came is when a node came to its group: when it registered or, as it may have done so
// in a warm pool long before, when it was Ready again after that.
func (n *node) came() time.Time {
	if n.group.WarmPool != nil {
		return n.ReadySince
	}
	return n.Created
}

// against is what the node itself has against a class: without the pods that do not
// belong to it, and without taints and what pods elsewhere have to do with it, which
// may have changed since the promise.
func (d *decision) against(c *fit.Class, n *node) fit.Reasons {
	start := d.fit.Fork()
	defer d.fit.Revert(start)
	for _, t := range n.place.Tenants() {
		if !drainable.BelongsToNode(t.Pod) {
			d.fit.Lift(t, n.place)
		}
	}
	return slices.DeleteFunc(d.fit.Fits(c, n.place), func(r fit.Reason) bool {
		return r.Rule == fit.RulePodTopologySpread || r.Rule == fit.RuleInterPodAffinity || r.Rule == fit.RuleTaint || r.Rule == fit.RuleUnschedulable
	})
}

// doubt keeps a group from growing for a class in this look.
func (d *decision) doubt(g *group, pods []fit.Tenant, why string, until time.Time) {
	if d.doubts == nil {
		d.doubts = map[distrusted]string{}
	}
	for _, t := range pods {
		d.doubts[distrusted{g, t.Class}] = why
	}
	d.clock.at(until)
	if !g.doubted {
		g.doubted = true // one pod is told of, and others have their own verdicts
		g.note(called(pods[0].Pod) + ": " + why)
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
		key := fleet.PromiseKey(g.Name, d.definition(g), hashed(c.Body()))
		p, made := d.state.Promises[key]
		if !made || p.At.Before(p.Until) {
			p = fleet.Promise{At: d.now, Until: p.Until, Count: p.Count, Why: p.Why}
		}
		p.Zones = slices.Concat(p.Zones, where) // never into the list of the given state
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

// definition is a hash of what new nodes of the group are defined to be, and of the
// DaemonSets. Nothing that is learned from nodes is in it: that comes and goes with
// them.
func (d *decision) definition(g *group) string {
	if g.definition == "" {
		if d.daemonsText == "" {
			d.daemonsText = encoded(d.daemons)
		}
		g.definition = hashed(g.definedAs() + d.daemonsText)
	}
	return g.definition
}

// defined is the same without the DaemonSets, and with the resources, but for memory, which
// is guessed by what was seen.
func (d *decision) defined(g *group) string {
	var rooms []corev1.ResourceList
	for _, s := range g.planned {
		room := maps.Clone(s.Allocatable)
		delete(room, corev1.ResourceMemory)
		rooms = append(rooms, room)
	}
	return hashed(g.definedAs() + encoded(rooms))
}

// definedAs is the group's definition as text.
func (g *group) definedAs() string {
	type shape struct {
		InstanceType, Image string
		Labels              map[string]string
		Taints              []corev1.Taint
	}
	var shapes []shape
	for _, s := range g.planned {
		shapes = append(shapes, shape{s.InstanceType, s.Image, s.Labels, s.Taints})
	}
	return encoded([]any{g.Template, shapes})
}

// encoded is the canonical text of what always encodes.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("shapes and DaemonSets always encode: %v", err))
	}
	return string(text)
}

// hashed is a short text that stands for a long one, the same in every process.
func hashed(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}
