package compare

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/shadow/record"
)

// doing is one scale-up or scale-down of a side, of which several records may tell.
type doing struct {
	Doing
	removes bool
	// until is when a record told of it last.
	until time.Time
	// failed: the node stays after all; meant: a record says that it was meant to go, and not only
	// that it went.
	failed, meant bool
	// bare: only an instance is named; ended: a record tells of the end of the node's instance.
	bare, ended bool
	// ownedBy are the owners of the first of its pods, see owners.
	ownedBy []string
	// taken: it has its counterpart.
	taken bool
}

// size is by how many nodes it grows; 0 where that is not known.
func (d *doing) size() int { return max(0, d.To-d.From) }

// others reports whether no autoscaler asked for it.
func (d *doing) others() bool { return d.By == record.ByAutoScaling }

// sides are what was done on both, each in the order of dates, and what explains that something
// was not.
type sides struct {
	grown, removed Both[[]*doing]
	// excuses are records that say why something was not done, by side and by what they are about.
	excuses Both[map[about][]excuse]
}

// told is how near records of one scale-up are to each other.
const told = 2 * time.Minute

// drain is how near those of one scale-down are: from the taint to the end of the instance.
const drain = 2 * time.Hour

// ranks are whom a record names, the most telling first.
var ranks = []string{record.ByAutoscaler, record.ByAutoScaling, record.ByUnknown}

func rank(by string) int {
	if i := slices.Index(ranks, by); i >= 0 {
		return i
	}
	return len(ranks)
}

// order is that of records by what they say, so that those of one date have one order however they
// came.
func order(a, b record.Record) int {
	if n := a.At.Compare(b.At); n != 0 {
		return n
	}
	return cmp.Compare(a.Text(), b.Text())
}

// same reports whether two records say the same: the log has what was read directly, too.
func same(a, b record.Record) bool {
	return a.Seen != nil && b.Seen != nil && a.At.Equal(b.At) && a.Text() == b.Text()
}

// sidesOf reads records, which are in order.
func sidesOf(all []record.Record) (s sides) {
	s.excuses = Both[map[about][]excuse]{map[about][]excuse{}, map[about][]excuse{}}
	names := nodesOf(all)
	byRank := make([][]record.Record, len(ranks)+1)
	for _, r := range all {
		switch {
		case r.Seen != nil:
			i := rank(r.Seen.By)
			byRank[i] = append(byRank[i], r)
			if x := r.Seen; x.Kind == record.Failed || x.Kind == record.Unhelped {
				excused(s.excuses.World, x.Node, x.Group, x.Pods, excuse{r.At, x.Why})
			}
		case r.Diverged != nil:
			d := r.Diverged
			excused(s.excuses.Windlass, d.Node, d.Group, nil, excuse{r.At, cmp.Or(d.Why, d.Is)})
		}
	}
	var world, windlass growths
	for _, list := range byRank[:len(ranks)] { // of a claim there is no growth
		for _, r := range list {
			if (r.Seen.Kind == record.ScaleUp || r.Seen.Kind == record.DesiredChanged) && (r.Seen.To > r.Seen.From || r.Seen.To == 0) {
				world.add(doingOf(r, r.Seen.By))
			}
		}
	}
	for _, r := range byRank[len(ranks)] {
		if r.Seen.Kind == record.ScaleUp {
			world.claim(doingOf(r, r.Seen.By))
		}
	}
	for _, r := range all {
		if r.Decided != nil && r.Decided.Kind == record.Grow {
			windlass.add(doingOf(r, ""))
		}
	}
	s.grown = Both[[]*doing]{world.list, windlass.list}
	s.removed = Both[[]*doing]{removalsOf(all, names), decidedRemovals(all)}
	for _, list := range [][]*doing{s.grown.World, s.grown.Windlass, s.removed.World, s.removed.Windlass} {
		slices.SortStableFunc(list, func(a, b *doing) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Node, b.Node), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
		})
	}
	return s
}

func doingOf(r record.Record, by string) *doing {
	d := &doing{until: r.At, Doing: Doing{At: r.At, By: by}}
	if x := r.Seen; x != nil {
		d.Group, d.Node, d.From, d.To, d.Pods, d.PodCount, d.Why = x.Group, x.Node, x.From, x.To, x.Pods, x.PodCount, x.Why
	}
	if x := r.Decided; x != nil {
		d.Group, d.Node, d.From, d.To, d.Pods, d.PodCount, d.Why = x.Group, x.Node, x.From, x.To, x.Pods, x.PodCount, x.Why
	}
	return d
}

// growths are those of a side so far, the most telling first.
type growths struct {
	list []*doing
	// at has those of which a record tells in so many times told since the epoch.
	at map[place][]*doing
}

type place struct {
	group string
	slot  int64
}

func placeOf(group string, at time.Time) place {
	return place{group, at.Unix() / int64(told/time.Second)}
}

// note finds it again by the record's date.
func (g *growths) note(d *doing, at time.Time) {
	if g.at == nil {
		g.at = map[place][]*doing{}
	}
	if p := placeOf(d.Group, at); !slices.Contains(g.at[p], d) {
		g.at[p] = append(g.at[p], d)
	}
}

// add takes a record over: of a scale-up that is known already, or of another one.
func (g *growths) add(d *doing) {
	if known := g.known(d); known != nil {
		known.until = later(known.until, d.until)
		g.note(known, d.At)
		if d.By == known.By { // whoever decided knows when
			known.At = earlier(known.At, d.At)
		}
		return
	}
	if d.To <= d.From {
		return // it says of one, and nothing of it
	}
	g.list = append(g.list, d)
	g.note(d, d.At)
}

// known is the scale-up that a record is of: of the same group, near in time, and of nodes of which
// both tell. Whoever decides names the same figures each time.
func (g *growths) known(d *doing) *doing {
	p := placeOf(d.Group, d.At)
	for _, k := range slices.Concat(g.at[p], g.at[place{p.group, p.slot - 1}], g.at[place{p.group, p.slot + 1}]) {
		near := d.At.Sub(k.until) <= told && k.At.Sub(d.until) <= told
		of := d.From < k.To && k.From < d.To
		if d.By == k.By && (d.By == record.ByAutoscaler || d.By == "") {
			of = d.From == k.From && d.To == k.To
		}
		if near && (of || d.To <= d.From) {
			return k
		}
	}
	return nil
}

// claim adds the pods that tenants' Events name to a scale-up that is known.
func (g *growths) claim(d *doing) {
	known := g.known(d)
	if known == nil {
		return
	}
	for _, pod := range d.Pods {
		if slices.Contains(known.Pods, pod) {
			continue
		}
		known.PodCount++
		if len(known.Pods) < record.MostPods {
			known.Pods = append(slices.Clip(known.Pods), pod)
		}
	}
}

// nodesOf are the nodes of instances, as far as a record names both.
func nodesOf(all []record.Record) map[string]string {
	names := map[string]string{}
	for _, r := range all {
		if r.Seen != nil && r.Seen.Instance != "" && r.Seen.Node != "" {
			names[r.Seen.Instance] = r.Seen.Node
		}
	}
	return names
}

// removalsOf are the scale-downs of the world.
func removalsOf(all []record.Record, names map[string]string) (list []*doing) {
	open := map[string]*doing{}
	for _, r := range all {
		s := r.Seen
		if s == nil || s.By == record.ByClaim {
			continue
		}
		node := cmp.Or(s.Node, names[s.Instance], s.Instance)
		if node == "" {
			continue
		}
		d := open[node]
		if d != nil && (r.At.Sub(d.until) > drain || s.Kind == record.NodeCame) {
			delete(open, node)
			d = nil
		}
		switch s.Kind {
		case record.ScaleDown, record.Tainted, record.NodeGone:
			if d == nil || d.failed {
				d = doingOf(r, s.By)
				d.Node, d.removes, d.bare = node, true, node == s.Instance
				open[node], list = d, append(list, d)
			}
			d.until, d.meant, d.ended = r.At, d.meant || s.Kind != record.NodeGone, d.ended || s.Instance != ""
			if rank(s.By) < rank(d.By) {
				d.By, d.Why = s.By, s.Why
			}
			d.Group = cmp.Or(d.Group, s.Group)
		case record.Failed:
			if d != nil {
				d.failed = true
			}
		}
	}
	list = unnamed(list)
	// What only went may have been lost: no autoscaler has said that it was to go.
	return slices.DeleteFunc(list, func(d *doing) bool { return d.failed || !d.meant })
}

// ending is how long after Cluster Autoscaler's decision the instance is terminated at the latest:
// a drain has ten minutes, and its delays.
const ending = 20 * time.Minute

// unnamed leaves out instances whose node no record names, each where Cluster Autoscaler has removed
// a node of unknown instance before it: one is the other.
func unnamed(list []*doing) []*doing {
	var open []*doing
	return slices.DeleteFunc(list, func(d *doing) bool {
		open = slices.DeleteFunc(open, func(o *doing) bool { return d.At.Sub(o.At) > ending })
		switch {
		case !d.bare && d.By == record.ByAutoscaler && !d.ended:
			open = append(open, d)
		case d.bare && d.By == record.ByUnknown && len(open) > 0:
			open = open[1:]
			return true
		}
		return false
	})
}

// decidedRemovals are the scale-downs that Windlass decided: drains that were not cancelled, and what
// was ended without one.
func decidedRemovals(all []record.Record) (list []*doing) {
	open := map[string]*doing{}
	for _, r := range all {
		if r.Seen != nil && r.Seen.Kind == record.NodeCame {
			delete(open, r.Seen.Node)
		}
		if r.Diverged != nil && r.Diverged.Is == record.InUse {
			delete(open, r.Diverged.Node) // what is decided of it later is another one
		}
		x := r.Decided
		if x == nil || x.Node == "" {
			continue
		}
		d := open[x.Node]
		if d != nil && r.At.Sub(d.until) > drain {
			d = nil
		}
		switch x.Kind {
		case record.RequestDrain, record.Terminate:
			if d == nil || d.failed {
				d = doingOf(r, "")
				d.removes = true
				open[x.Node], list = d, append(list, d)
			}
			d.until = r.At
		case record.CancelDrain:
			if d != nil {
				d.failed = true
			}
		}
	}
	return slices.DeleteFunc(list, func(d *doing) bool { return d.failed })
}

// about is what an excuse is of: a node, a pod, a group, or all where it is empty.
type about struct{ kind, name string }

type excuse struct {
	at  time.Time
	why string
}

func excused(by map[about][]excuse, node, group string, pods []string, e excuse) {
	of := about{}
	switch {
	case node != "":
		of = about{"node", node}
	case group != "" && len(pods) == 0:
		of = about{"group", group}
	case len(pods) > 0:
		for _, p := range pods {
			by[about{"pod", p}] = append(by[about{"pod", p}], e)
		}
		return
	}
	by[of] = append(by[of], e)
}

// done is what a side did; where it did nothing, why not, as far as a record near the other's says:
// of the node or a pod, or else of the group, or else of all.
func (s *sides) done(d, other *doing, side record.Side, window time.Duration) Doing {
	if d != nil {
		return d.Doing
	}
	excuses := s.excuses.World
	if side == record.Windlass {
		excuses = s.excuses.Windlass
	}
	var keys []about
	if other.removes {
		keys = append(keys, about{"node", other.Node})
	} else {
		for _, p := range other.Pods {
			keys = append(keys, about{"pod", p})
		}
		keys = append(keys, about{"group", other.Group})
	}
	for _, key := range append(keys, about{}) {
		list := excuses[key]
		first, _ := slices.BinarySearchFunc(list, other.At.Add(-window), func(e excuse, at time.Time) int { return e.at.Compare(at) })
		if first < len(list) && list[first].at.Sub(other.At) <= window {
			return Doing{Why: list[first].why}
		}
	}
	return Doing{Why: unsaid}
}
