package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/simulate/dice"
)

// group is an Auto Scaling group.
type group struct {
	name  string
	index int
	// tariffs are what its instances cost, which may differ by zone.
	tariffs []*tariff
	// ended are the moments at which nodes of it were scaled down that no launch has
	// followed yet.
	ended []int64
	// retries is true if Auto Scaling will try again to launch.
	retries bool
	chance  *dice.Dice
}

// tariff is a price, in US dollars an hour, with the seconds that instances were billed at it, and how many are
// now.
type tariff struct {
	price   float64
	seconds int64
	billed  int
}

// tariff is that of a zone.
func (g *group) tariff(w *World, zone string) *tariff {
	price := w.group(g.name).TemplateIn(zone).PricePerHour
	i := slices.IndexFunc(g.tariffs, func(t *tariff) bool { return t.price == price })
	return g.tariffs[max(i, 0)]
}

func (g *group) billed() (n int) {
	for _, t := range g.tariffs {
		n += t.billed
	}
	return n
}

// machine is an instance, and from its boot on a node.
type machine struct {
	name  string
	group *group
	zone  string
	id    string
	// launched is when it was asked for, and billed is true while it is paid for.
	launched int64
	billed   bool
	// index is that of its node in the snapshot; none before it has joined or when it is removed.
	index int
	place *fit.Place
	// open is true if pods may come.
	open        bool
	cpu, memory int64
	pods        []*pod
	// hosted is true if a pod of the trace has ever been on it.
	hosted bool
	// marked is since when it bears the unneeded taint.
	marked int64
	drain  *drain
}

const none = -1

func (w *World) addGroup(g fleet.Group, index int) {
	var tariffs []*tariff
	for _, t := range append(slices.Clone(g.NodeTemplates), g.TemplateIn("")) { // one at the least
		if !slices.ContainsFunc(tariffs, func(known *tariff) bool { return known.price == t.PricePerHour }) {
			tariffs = append(tariffs, &tariff{price: t.PricePerHour})
		}
	}
	instances := slices.Clone(g.Instances)
	for i := range instances {
		instances[i].PricePerHour = ownPrice(&g, instances[i].Zone)
	}
	g.Instances = nil
	w.groups[g.Name] = &group{name: g.Name, index: index, tariffs: tariffs, chance: dice.New(w.seed, "launches of "+g.Name)}
	w.snapshot.Groups = append(w.snapshot.Groups, g)
	w.group(g.Name).Instances = instances
	w.reconcile(w.groups[g.Name])
}

// ownPrice is what an instance of the group says that it costs: what it is billed for, if the group
// has several types and buys in one way.
func ownPrice(g *fleet.Group, zone string) float64 {
	if g.Mixed && (g.Spot || g.Synchronous) {
		return g.TemplateIn(zone).PricePerHour
	}
	return 0
}

func (w *World) group(name string) *fleet.Group { return &w.snapshot.Groups[w.groups[name].index] }

func (w *World) instance(m *machine) *fleet.Instance {
	if m.group == nil {
		return nil
	}
	list := w.group(m.group.name).Instances
	for i := range list {
		if list[i].ID == m.id {
			return &list[i]
		}
	}
	return nil
}

// launch is one launch call for a zone: it launches all instances, or none for want of capacity.
func (w *World) launch(g *group, zone string, count int) bool {
	if g.chance.Below(w.spec.LaunchFailures) {
		w.ledger.LaunchFailures++
		return false
	}
	for range count {
		w.launchOne(g, zone)
	}
	return true
}

func (w *World) launchOne(g *group, zone string) {
	w.launched++
	w.changed = true
	// A snapshot has names of its own, such as web-2.
	m := &machine{name: fmt.Sprintf("%s-s%d", g.name, w.launched), group: g, zone: zone, id: fmt.Sprintf("i-5%016x", w.launched), launched: w.now, index: none, marked: none}
	seen := w.group(g.name)
	seen.Instances = append(seen.Instances, fleet.Instance{ID: m.id, Zone: zone, Type: seen.TemplateIn(zone).InstanceType, State: fleet.Pending, Template: seen.Template, Protected: true, PricePerHour: ownPrice(seen, zone)})
	w.instances[m.id] = m
	w.bill(m)
	w.ledger.Launches++
	g.ended = slices.DeleteFunc(g.ended, func(at int64) bool { return w.now-at > relaunched })
	if len(g.ended) > 0 {
		g.ended = g.ended[1:]
		w.ledger.Relaunches++
	}
	w.in(int64(w.spec.Boot.Seconds()), func() { w.join(m) })
}

// relaunched is how soon after a scale-down of its group a launch counts as one that undoes it.
const relaunched = 600

func (w *World) bill(m *machine) {
	if m.group != nil && !m.billed {
		m.billed = true
		m.group.tariff(w, m.zone).billed++
	}
}

// unbill ends the bill of an instance. One that never hosted a pod was launched in vain.
func (w *World) unbill(m *machine) {
	if m.billed {
		m.billed = false
		m.group.tariff(w, m.zone).billed--
		if !m.hosted && m.launched >= 0 {
			w.ledger.Idle++
		}
	}
}

// join makes a node of an instance that has booted, unless it has been ended before.
func (w *World) join(m *machine) {
	instance := w.instance(m)
	if instance == nil || !instance.Live() {
		return
	}
	g := w.group(m.group.name)
	instance.State = fleet.InService
	if slices.ContainsFunc(g.Hooks, func(h fleet.Hook) bool { return h.Transition == fleet.OnLaunch }) {
		instance.State = fleet.PendingWait
	}
	template := g.TemplateIn(m.zone)
	w.addNode(m, template.Node(m.name, m.zone, m.id, w.time()))
	w.runDaemons(m)
	w.mayBeInterrupted(m)
}

// mayBeInterrupted draws when a spot instance is interrupted.
func (w *World) mayBeInterrupted(m *machine) {
	if w.group(m.group.name).Spot && w.spec.Interruptions > 0 {
		w.in(1+int64(m.group.chance.Exp(3600/w.spec.Interruptions)), func() { w.interrupt(m) })
	}
}

func (w *World) addNode(m *machine, n fleet.Node) {
	m.index = len(w.snapshot.Nodes)
	m.cpu, m.memory = n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
	w.snapshot.Nodes, w.nodeAt = append(w.snapshot.Nodes, n), append(w.nodeAt, m)
	w.machines[m.name] = m
	w.snapshot.Agents[m.name] = n.Ready
	w.reopen(m)
	w.scheduler.join(w, m)
	w.changed = true
}

// runDaemons has the pods of DaemonSets run on a new node.
func (w *World) runDaemons(m *machine) {
	if len(w.snapshot.DaemonSets) == 0 {
		return
	}
	w.scheduler.learn(w)
	for i := range w.snapshot.DaemonSets {
		set := &w.snapshot.DaemonSets[i]
		if !w.scheduler.runs(w, set, m) {
			continue
		}
		w.born++
		name := fmt.Sprintf("%s-s%d", set.Name, w.born)
		w.enter(&pod{made: w.now, seen: set.PodOn(m.name, name, w.time())})
	}
}

// adopt takes over a node of a snapshot.
func (w *World) adopt(n fleet.Node) {
	m := &machine{name: n.Name, zone: n.Zone(), id: n.InstanceID(), launched: none, index: none, marked: none, hosted: true}
	for i := range w.snapshot.Groups {
		if slices.ContainsFunc(w.snapshot.Groups[i].Instances, func(i fleet.Instance) bool { return i.ID == m.id && m.id != "" }) {
			m.group = w.groups[w.snapshot.Groups[i].Name]
		}
	}
	if i := w.instance(m); i != nil {
		w.instances[m.id] = m
		if !i.Terminating() {
			w.bill(m)
			w.mayBeInterrupted(m)
		}
	}
	if since, marked, err := contract.Unneeded(n.Taints); marked && err == nil {
		m.marked = w.secondsAt(since)
	}
	w.addNode(m, n)
}

// awaitNode has an instance of a snapshot join that has no node yet.
func (w *World) awaitNode(name string, i fleet.Instance) {
	if !i.Live() || slices.ContainsFunc(w.nodeAt, func(m *machine) bool { return m.id == i.ID }) {
		return
	}
	m := w.nodeless(name, i)
	w.bill(m)
	w.in(int64(w.spec.Boot.Seconds()), func() { w.join(m) })
}

// nodeless is the machine of an instance of a snapshot that has no node.
func (w *World) nodeless(group string, i fleet.Instance) *machine {
	m := &machine{name: group + "-" + i.ID, group: w.groups[group], zone: i.Zone, id: i.ID, launched: none, index: none, marked: none, hosted: true}
	w.instances[m.id] = m
	return m
}

// goOnGoing has an instance of a snapshot that is being terminated come to its end. One that no hook holds
// yet is held at once by those that are completed here.
func (w *World) goOnGoing(name string, i fleet.Instance) {
	if !i.Terminating() || i.Retained() {
		return
	}
	m := w.instances[i.ID]
	if m == nil {
		m = w.nodeless(name, i)
	}
	switch {
	case i.State == fleet.TerminatingWait && w.holds(m): // it is completed
	case i.State == fleet.TerminatingWait: // of others, or nobody knows whose it is: the hook ends by its own time
		longest := time.Duration(0)
		for _, h := range w.group(name).Hooks {
			if h.Transition == fleet.OnTerminate {
				longest = max(longest, h.Heartbeat.Duration)
			}
		}
		w.in(int64(longest/time.Second), func() {
			if now := w.instance(m); now != nil && now.State == fleet.TerminatingWait {
				w.shutDown(m)
			}
		})
	case i.State == fleet.Terminating && w.holds(m):
		w.instance(m).State = fleet.TerminatingWait
	default:
		w.shutDown(m)
	}
}

// holds reports whether a hook that is completed here holds a machine that goes; the others hold it for nobody.
func (w *World) holds(m *machine) bool {
	return m.index != none && slices.ContainsFunc(w.group(m.group.name).Hooks, func(h fleet.Hook) bool {
		return h.Transition == fleet.OnTerminate && slices.Contains(w.policy.TerminationHooks, h.Name)
	})
}

// node changes the node of a machine. Maps and slices of it are shared: they are replaced, never
// written to.
func (w *World) node(m *machine, change func(*fleet.Node)) {
	if m.index == none {
		return
	}
	change(&w.snapshot.Nodes[m.index])
	w.reopen(m)
	w.changed = true
}

// reopen finds out whether pods may come to a node.
func (w *World) reopen(m *machine) {
	n := &w.snapshot.Nodes[m.index]
	_, draining := contract.Draining(n.Taints)
	open := n.Ready && !n.Unschedulable && !draining
	w.scheduler.retry = w.scheduler.retry || open && !m.open
	m.open = open
}

func annotate(n *fleet.Node, key, value string) {
	n.Annotations = maps.Clone(n.Annotations)
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[key] = value
}

func strip(n *fleet.Node, keys ...string) {
	n.Annotations = maps.Clone(n.Annotations)
	for _, key := range keys {
		delete(n.Annotations, key)
	}
}

// takeDown begins the termination of an instance. Its bill ends; it is removed when it has
// shut down, or when its hook is completed and it has.
func (w *World) takeDown(m *machine) {
	instance := w.instance(m)
	w.unbill(m)
	instance.TerminatingSince = w.time()
	w.changed = true
	if w.holds(m) {
		instance.State = fleet.TerminatingWait
		return
	}
	w.shutDown(m)
}

func (w *World) shutDown(m *machine) {
	if i := w.instance(m); i != nil {
		i.State = fleet.TerminatingProceed // no hook holds it any more
	}
	w.changed = true
	w.in(int64(w.spec.Shutdown.Seconds()), func() { w.vanish(m) })
}

// vanish removes instance and node, with whatever is on it.
func (w *World) vanish(m *machine) {
	w.unbill(m)
	if m.group != nil {
		g := w.group(m.group.name)
		g.Instances = slices.DeleteFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == m.id })
	}
	delete(w.instances, m.id)
	w.changed = true
	m.drain = nil
	w.draining = slices.DeleteFunc(w.draining, func(o *machine) bool { return o == m })
	if m.index != none {
		m.open = false
		w.lose(m)
		last := len(w.nodeAt) - 1
		w.nodeAt[m.index], w.snapshot.Nodes[m.index] = w.nodeAt[last], w.snapshot.Nodes[last]
		w.nodeAt[m.index].index = m.index
		w.nodeAt, w.snapshot.Nodes = w.nodeAt[:last], w.snapshot.Nodes[:last]
		m.index = none
		delete(w.machines, m.name)
		delete(w.snapshot.Agents, m.name)
		w.scheduler.leave(m)
	}
	if m.group != nil {
		w.reconcile(m.group)
	}
}

// reconcile is Auto Scaling: it launches what a group lacks, where it has fewest.
func (w *World) reconcile(g *group) {
	seen := w.group(g.name)
	live := map[string]int{}
	lacks := seen.Desired
	for _, i := range seen.Instances {
		if i.Live() {
			live[i.Zone]++
			lacks--
		}
	}
	if lacks <= 0 || len(seen.Zones) == 0 || slices.Contains(seen.Suspended, "Launch") {
		return
	}
	zone := slices.MinFunc(seen.Zones, func(a, b string) int { return live[a] - live[b] })
	for range lacks {
		if w.launch(g, zone, 1) {
			live[zone]++
			zone = slices.MinFunc(seen.Zones, func(a, b string) int { return live[a] - live[b] })
			continue
		}
		seen.Failures = slices.Insert(seen.Failures, 0, noCapacity(w, zone))
		seen.Failures = seen.Failures[:min(len(seen.Failures), 5)]
		if !g.retries {
			g.retries = true
			w.in(60, func() { g.retries = false; w.reconcile(g) })
		}
		w.changed = true
		return
	}
}

func noCapacity(w *World, zone string) fleet.Failure {
	return fleet.Failure{At: w.time(), Zone: zone, Cause: "InsufficientInstanceCapacity", Text: "InsufficientInstanceCapacity: the zone has no capacity now"}
}
