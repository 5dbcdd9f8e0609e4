package shadow

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/shadow/seen"
)

// watch finds out what happened from one snapshot to the next. It is not kept over a restart: what
// happened meanwhile was not seen.
type watch struct {
	// nodes are those of groups, by name, and desired the groups' capacities; nil before the first.
	nodes   map[string]groupNode
	desired map[string]int
	pending map[types.UID]pending
	// served are the pods that had a place on Windlass' side when the process before ended: it has
	// recorded them. nil after the first.
	served  map[types.UID]string
	tainted map[string]time.Time
	sample  *record.Sample
	sampled time.Time
}

type groupNode struct{ group, instance string }

// pending is a pod that waits on a side, or on both.
type pending struct {
	key             string
	since           time.Time
	world, windlass bool
}

// mostPending bounds how many pods are followed.
const mostPending = 30_000

func newWatch(placed map[types.UID]string) watch {
	return watch{pending: map[types.UID]pending{}, served: maps.Clone(placed), tainted: map[string]time.Time{}}
}

// see takes both sides at a moment; with observedOnly of groups that are observed: what happens to the
// others is Windlass' doing.
func (w *watch) see(world, windlass fleet.Snapshot, observedOnly bool) (records []record.Record) {
	others := map[string]bool{} // instances of groups of which nothing is recorded
	world.Groups = slices.DeleteFunc(slices.Clone(world.Groups), func(g fleet.Group) bool {
		if g.Observed || !observedOnly {
			return false
		}
		for _, i := range g.Instances {
			others[i.ID] = true
		}
		return true
	})
	at := world.Now
	add := func(s record.Seen) { records = append(records, record.Record{At: at, Seen: &s}) }
	w.seeNodes(world, others, add)
	w.seeDesired(world, add)
	for i := range world.Nodes {
		n := &world.Nodes[i]
		r, is := seen.OfTaint(n.Name, w.nodes[n.Name].group, n.Taints)
		if is && !others[n.InstanceID()] && !w.tainted[n.Name].Equal(r.At) {
			w.tainted[n.Name] = r.At
			records = append(records, r)
		}
	}
	records = append(records, w.seePods(world, windlass)...)
	sample := sampleOf(world, windlass)
	since := at.Sub(w.sampled)
	if changed := w.sample == nil || !reflect.DeepEqual(sample, *w.sample); changed || since >= record.SampleEvery || since < 0 {
		w.sample, w.sampled = &sample, at
		records = append(records, record.Record{At: at, Sample: &sample})
	}
	return records
}

func (w *watch) seeNodes(world fleet.Snapshot, others map[string]bool, add func(record.Seen)) {
	byInstance := map[string]string{}
	for i := range world.Groups {
		for _, instance := range world.Groups[i].Instances {
			byInstance[instance.ID] = world.Groups[i].Name
		}
	}
	now, there := map[string]groupNode{}, map[string]string{}
	for i := range world.Nodes {
		n := &world.Nodes[i]
		id := n.InstanceID()
		there[n.Name] = id
		group := cmp.Or(byInstance[id], w.nodes[n.Name].group)
		if group == "" || id == "" || others[id] {
			continue
		}
		is := groupNode{group, id}
		now[n.Name] = is
		if w.nodes != nil && w.nodes[n.Name] != is {
			add(record.Seen{By: record.ByUnknown, Kind: record.NodeCame, Group: group, Node: n.Name, Instance: id})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if was := w.nodes[name]; now[name] != was && there[name] != was.instance {
			add(record.Seen{By: record.ByUnknown, Kind: record.NodeGone, Group: was.group, Node: name, Instance: was.instance})
		}
	}
	maps.DeleteFunc(w.tainted, func(name string, _ time.Time) bool { _, is := there[name]; return !is })
	w.nodes = now
}

func (w *watch) seeDesired(world fleet.Snapshot, add func(record.Seen)) {
	now := map[string]int{}
	for i := range world.Groups {
		g := &world.Groups[i]
		now[g.Name] = g.Desired
		if was, known := w.desired[g.Name]; known && was != g.Desired {
			add(record.Seen{By: record.ByUnknown, Kind: record.DesiredChanged, Group: g.Name, From: was, To: g.Desired})
		}
	}
	w.desired = now
}

// seePods follows the pods that were pending: until when on which side.
func (w *watch) seePods(world, windlass fleet.Snapshot) (records []record.Record) {
	bound := func(p pending, side record.Side, node string) {
		records = append(records, record.Record{At: world.Now, Bound: &record.Bound{Pod: p.key, Side: side, PendingSince: p.since, Node: node}})
	}
	there := map[types.UID]bool{}
	for _, p := range world.Pods {
		if !followed(p) {
			if _, was := w.pending[p.UID]; !was {
				continue
			}
		}
		there[p.UID] = true
		f, was := w.pending[p.UID]
		if !was {
			if len(w.pending) >= mostPending {
				continue
			}
			_, served := w.served[p.UID]
			f = pending{key: p.Key(), since: p.Created.Time(), world: true, windlass: !served}
		}
		if f.world && p.Node != "" {
			f.world = false
			bound(f, record.World, p.Node)
		}
		w.pending[p.UID] = f
	}
	w.served = nil
	for _, p := range windlass.Pods {
		if f, was := w.pending[p.UID]; was && f.windlass && p.Node != "" {
			f.windlass = false
			w.pending[p.UID] = f
			bound(f, record.Windlass, p.Node)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.pending)) {
		f := w.pending[uid]
		if !there[uid] { // it has ended before
			if f.world {
				bound(f, record.World, "")
			}
			if f.windlass {
				bound(f, record.Windlass, "")
			}
			f.world, f.windlass = false, false
		}
		if !f.world && !f.windlass {
			delete(w.pending, uid)
		}
	}
	return records
}

// followed reports whether a pod waits for a node.
func followed(p *fleet.Pod) bool {
	return p.Node == "" && p.Scheduling == fleet.Unschedulable && !p.Ended() && p.Deleted.IsZero()
}

// sampleOf is how many nodes there are on both sides, and what they cost.
func sampleOf(world, windlass fleet.Snapshot) (s record.Sample) {
	other := map[string]*fleet.Group{}
	for i := range windlass.Groups {
		other[windlass.Groups[i].Name] = &windlass.Groups[i]
	}
	for i := range world.Groups {
		g := &world.Groups[i]
		s.Groups = append(s.Groups, record.GroupSample{Group: g.Name, World: sizeOf(g), Windlass: sizeOf(other[g.Name])})
	}
	for _, p := range world.Pods {
		if followed(p) {
			s.Pending++
		}
	}
	return s
}

// sizeOf counts what is paid for: all instances but those in a warm pool, until they are gone.
func sizeOf(g *fleet.Group) record.Size {
	size := record.Size{Desired: g.Desired}
	for _, i := range g.Instances {
		if i.Warmed() || i.State == fleet.Terminated {
			continue
		}
		size.Nodes++
		size.DollarsPerHour += cmp.Or(i.PricePerHour, g.Price())
	}
	return size
}
