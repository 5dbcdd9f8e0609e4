package scaleup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/template"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// A group grows because its node template promises that a new node takes a pod. If the node
// template is wrong in any way, the node comes, does not take the pod, and the node template
// promises it another one, up to the group's maximum. So a promise is persisted until nodes have
// come of it. If none of them would take the pod, even with nothing on it but what belongs to the
// node, the group is not grown for pods of that class for a while, which doubles each time. The
// first node that takes such a pod after all ends that, and the promise is made anew, and believed,
// as soon as the definition of the group's nodes changes, or the DaemonSets' templates do. Cordons
// break no promise, nor does a taint that may be one of people: a node that is barred by these alone
// tells nothing of the next one.

const (
	// settling is how long a node that has become Ready may still come to take the
	// pod for which it came: drivers register and features are labelled a while later.
	settling = 5 * time.Minute
	// ownTaints is for how long after it has become Ready a node bears what taints it came with:
	// a later one may be of people.
	ownTaints = 2 * settling
	// distrust is for how long a group is not grown for pods that its node did not
	// take: for longer than such a node stays, and at most for a working day.
	distrust, mostDistrust = 30 * time.Minute, 8 * time.Hour
	// watched is how long a promise is persisted of which nothing came.
	watched = 2 * time.Hour
	// mostPromises bounds fleet.State.Promises.
	mostPromises = 100
	// manyBroken promises of one group say that its nodes are not what their template promises, for
	// any pod.
	manyBroken = mostPromises / 2
)

// distrusted is a group that is not grown for a class.
type distrusted struct {
	group *cluster.Group
	class *fit.Class
}

// TestPromises finds out which groups have not kept what they promised to pods that
// have no place.
func (d *ScaleUp) TestPromises() {
	if len(d.State.Promises) == 0 {
		return
	}
	waiting := d.leftByBody()
	broken := map[*cluster.Group][]time.Time{}
	for _, key := range slices.Sorted(maps.Keys(d.State.Promises)) {
		p := d.State.Promises[key]
		name, definition, body := fleet.ParsePromiseKey(key)
		g := d.GroupOf(name)
		if g == nil || d.Now.After(cmp.Or(p.Until, p.At).Add(watched)) {
			delete(d.State.Promises, key)
			continue
		}
		if pods := waiting[body]; len(pods) > 0 && definition == d.Definition(g) {
			d.test(g, pods, key, p)
		}
		if until := d.State.Promises[key].Until; d.Now.Before(until) {
			broken[g] = append(broken[g], until)
		}
	}
	for g, until := range broken {
		if len(until) < manyBroken || g.Ill != nil {
			continue
		}
		slices.SortFunc(until, time.Time.Compare)
		fewer := until[len(until)-manyBroken]
		g.Ill = verdict.Say("{count} kinds of pods do not fit the nodes that were launched for them", verdict.Count(len(until))).Then(notBefore(fewer))
		d.Clock.At(fewer)
	}
}

// leftByBody is a pod of each class that is without a place, by the hash of what the
// class itself asks for.
func (d *ScaleUp) leftByBody() map[string][]fit.Tenant {
	seen := map[*fit.Class]bool{}
	waiting := map[string][]fit.Tenant{}
	note := func(pods []fit.Tenant) {
		for _, t := range pods {
			if !seen[t.Class] {
				seen[t.Class] = true
				body := template.Hashed(t.Class.Body())
				waiting[body] = append(waiting[body], t)
			}
		}
	}
	note(d.left)
	for _, g := range d.gangs {
		note(g.pods)
	}
	note(d.LackingHeadroom())
	return waiting
}

// test examines the nodes that came of a promise to pods that differ only in what others have to do
// with them.
func (d *ScaleUp) test(g *cluster.Group, pods []fit.Tenant, key string, p fleet.Promise) {
	type refusal struct {
		node  *cluster.Node
		class *fit.Class
	}
	var refused []refusal
	for _, n := range d.cameOf(g, p) {
		if d.takes(n, pods) {
			delete(d.State.Promises, key) // it was kept
			return
		}
		i := slices.IndexFunc(pods, func(t fit.Tenant) bool { return d.promised(t.Class, n) })
		if i >= 0 && !d.barred(pods[i].Class, n) {
			refused = append(refused, refusal{n, pods[i].Class})
		}
	}
	if d.Now.Before(p.Until) {
		d.doubt(g, pods, verdict.Quote(p.Why).Then(notBefore(p.Until)), p.Until)
		return
	}
	if len(refused) == 0 {
		return
	}
	earliest := slices.MinFunc(refused, func(a, b refusal) int { return a.node.ReadySince.Compare(b.node.ReadySince) })
	first, why := earliest.node, d.against(earliest.class, earliest.node)
	if settled := first.ReadySince.Add(settling); d.Now.Before(settled) {
		d.doubt(g, pods, verdict.Say("node {node} was just launched for it, and it does not fit there: {lack}", verdict.Node(first.Name), verdict.Lack(why.Of(first.Name))), settled)
		return
	}
	p.Count++
	p.Until = d.Now.Add(launch.Doubled(distrust, p.Count, mostDistrust))
	p.Why = contract.Shorten(fmt.Sprintf("node %s was launched for it, and it does not fit there: %s", first.Name, why.Of(first.Name)), cluster.MostCause)
	d.State.Promises[key] = p
	d.doubt(g, pods, verdict.Quote(p.Why).Then(notBefore(p.Until)), p.Until)
}

func notBefore(t time.Time) verdict.Details {
	return verdict.Say("not tried again before {until}", verdict.Until(t))
}

// cameOf are the nodes that came of a promise.
func (d *ScaleUp) cameOf(g *cluster.Group, p fleet.Promise) []*cluster.Node {
	var came []*cluster.Node
	for _, n := range g.Nodes {
		if n.Stage == cluster.Serving && Came(n).After(p.At) && slices.ContainsFunc(p.Zones, func(zone string) bool { return mayBeOf(zone, n) }) {
			came = append(came, n)
		}
	}
	return came
}

// mayBeOf reports whether a node may have come of a launch in a zone. Where an external provider puts its
// machines is for it to say, and its template may not.
func mayBeOf(zone string, n *cluster.Node) bool {
	return n.Group.External || zone == "" || zone == n.InstanceZone()
}

// takes reports whether a node takes one of these pods, or has taken its like.
func (d *ScaleUp) takes(n *cluster.Node, pods []fit.Tenant) bool {
	for _, t := range pods {
		alike := func(other fit.Tenant) bool { return other.Class == t.Class }
		if slices.ContainsFunc(n.Place.Seated(), alike) || len(d.against(t.Class, n)) == 0 {
			return true
		}
	}
	return false
}

// promised reports whether a new node in the zone of that one may take a class: of pods that differ
// only in their volumes each may be bound to its own zone.
func (d *ScaleUp) promised(c *fit.Class, n *cluster.Node) bool {
	there := slices.DeleteFunc(slices.Clone(n.Group.Templates), func(l *fit.NodeTemplate) bool { return !mayBeOf(l.Zone, n) })
	why, _ := d.Fit.FitsNew(c, there)
	return !slices.ContainsFunc(why, func(r fit.Reason) bool { return r.Rule == fit.RuleVolumeBinding })
}

// Came is when a node came to its group: when it registered or, as it may have done so
// in a warm pool long before, when it was Ready again after that.
func Came(n *cluster.Node) time.Time {
	if n.Group.WarmPool != nil {
		return n.ReadySince
	}
	return n.Created
}

// barred reports whether nothing but a cordon or a taint of people keeps a class off a node. A node
// that was Ready long before is not a new one when it is Ready again.
func (d *ScaleUp) barred(c *fit.Class, n *cluster.Node) bool {
	ready := cluster.Earliest(n.ReadySince, Came(n).Add(d.Policy.MaxNodeStartupTime))
	fresh := d.Now.Before(ready.Add(ownTaints))
	return !slices.ContainsFunc(d.against(c, n), func(r fit.Reason) bool {
		return r.Rule != fit.RuleUnschedulable && (r.Rule != fit.RuleTaint || fresh)
	})
}

// against is what the node itself has against a class: without the pods that do not
// belong to it, and without what pods elsewhere have to do with it, which may have
// changed since the promise.
func (d *ScaleUp) against(c *fit.Class, n *cluster.Node) fit.Reasons {
	start := d.Fit.Fork()
	defer d.Fit.Revert(start)
	for _, t := range n.Place.Tenants() {
		if !drainable.BelongsToNode(t.Pod) {
			d.Fit.Lift(t, n.Place)
		}
	}
	return slices.DeleteFunc(d.Fit.Fits(c, n.Place), func(r fit.Reason) bool {
		return r.Rule == fit.RulePodTopologySpread || r.Rule == fit.RuleInterPodAffinity
	})
}

// doubt keeps a group from growing for a class in this evaluation.
func (d *ScaleUp) doubt(g *cluster.Group, pods []fit.Tenant, why verdict.Details, until time.Time) {
	if d.doubts == nil {
		d.doubts = map[distrusted]verdict.Details{}
	}
	for _, t := range pods {
		d.doubts[distrusted{g, t.Class}] = why
	}
	d.Clock.At(until)
	if !g.Doubted {
		g.Doubted = true // one pod is named, and others have their own verdicts
		g.Note(cluster.Called(pods[0].Pod).And(": {why}", verdict.Why(why)))
	}
}

// closeFor closes the groups that are not grown for a class, until reopen is called.
func (d *ScaleUp) closeFor(c *fit.Class) (reopen func()) {
	if len(d.doubts) == 0 {
		return func() {}
	}
	for _, g := range d.Groups {
		g.Closed = d.doubts[distrusted{g, c}]
	}
	return func() {
		for _, g := range d.Groups {
			g.Closed = nil
		}
	}
}

// believing separates the pods that every group may grow for from the others.
func (d *ScaleUp) believing(pods []fit.Tenant) (all, some []fit.Tenant) {
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

// promise persists for which pods a group grows: for each new node that of its pods for which it
// was opened. What came before of a promise that still stands counts on.
func (d *ScaleUp) promise(g *cluster.Group) {
	zones := map[*fit.Class][]string{}
	for _, p := range g.Fresh {
		tenants := p.Seated()
		if len(tenants) == 0 {
			continue
		}
		c := tenants[0].Class
		if zone := p.Template().Zone; !slices.Contains(zones[c], zone) {
			zones[c] = append(zones[c], zone)
		}
	}
	for c, where := range zones {
		key := fleet.PromiseKey(g.Name, d.Definition(g), template.Hashed(c.Body()))
		p, made := d.State.Promises[key]
		if !made || p.At.Before(p.Until) {
			p = fleet.Promise{At: d.Now, Until: p.Until, Count: p.Count, Why: p.Why}
		}
		p.Zones = slices.Concat(p.Zones, where) // never into the list of the given state
		slices.Sort(p.Zones)
		p.Zones = slices.Compact(p.Zones)
		d.State.Promises[key] = p
	}
	d.forgetPromises()
}

// forgetPromises keeps the newest, and those that were broken before the others.
func (d *ScaleUp) forgetPromises() {
	many := len(d.State.Promises) - mostPromises
	if many <= 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(d.State.Promises), func(a, b string) int {
		p, q := d.State.Promises[a], d.State.Promises[b]
		return cmp.Or(cmp.Compare(min(p.Count, 1), min(q.Count, 1)), p.At.Compare(q.At), cmp.Compare(a, b))
	})
	for _, key := range keys[:many] {
		delete(d.State.Promises, key)
	}
}
