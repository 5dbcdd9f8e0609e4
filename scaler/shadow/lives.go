package shadow

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/shadow/record"
)

// lives follows the pods of the world from the moment at which they come to their end, and what
// groups are made of: what the simulator plays. It is not kept over a restart.
type lives struct {
	// pods are those that are there, by UID; nil before the first snapshot.
	pods   map[types.UID]*alive
	turn   int
	listed time.Time
	// groups are those that were recorded last, without their prices, which change by the hour.
	groups []record.Shape
}

// alive is a pod as it was seen last, and in which turn.
type alive struct {
	pod  *fleet.Pod
	turn int
}

// see takes the world at a moment.
func (l *lives) see(world fleet.Snapshot) (records []record.Record) {
	since := world.Now.Sub(l.listed)
	list := l.pods == nil || since >= record.ListEvery || since < 0
	if l.pods == nil {
		l.pods = map[types.UID]*alive{}
	}
	l.turn++
	news, there := bundle{}, 0
	for _, p := range world.Pods {
		if p.Ended() || drainable.BelongsToNode(p) {
			continue
		}
		there++
		if known := l.pods[p.UID]; known != nil {
			known.pod, known.turn = p, l.turn
			continue
		}
		l.pods[p.UID] = &alive{p, l.turn}
		if !list {
			news.add(p, time.Time{})
		}
	}
	if there < len(l.pods) {
		l.ended(world.Now, &news)
	}
	records = append(records, news.records(world.Now, record.Pods{})...)
	if list {
		l.listed = world.Now
		all := bundle{}
		for _, known := range l.pods {
			all.add(known.pod, time.Time{})
		}
		records = append(records, all.records(world.Now, record.Pods{List: true, Count: len(l.pods)})...)
	}
	return append(records, l.seeGroups(world, list)...)
}

// ended forgets the pods that were not seen in this turn.
func (l *lives) ended(now time.Time, news *bundle) {
	for uid, known := range l.pods {
		if known.turn != l.turn {
			news.add(known.pod, now)
			delete(l.pods, uid)
		}
	}
}

// bundle is pods to be recorded.
type bundle []bundled

type bundled struct {
	of   record.PodsOf // without pods
	life record.Life
}

// add adds a pod; one that is there has no end.
func (b *bundle) add(p *fleet.Pod, ended time.Time) {
	of := record.PodsOf{Namespace: p.Namespace}
	if p.Owner != nil {
		of.Kind, of.Owner = p.Owner.Kind, p.Owner.Name
	}
	if p.Spec != nil {
		for i := range p.Spec.Containers {
			requests := p.Spec.Containers[i].Resources.Requests
			of.MilliCPU += requests.Cpu().MilliValue()
			of.Memory += requests.Memory().Value()
		}
	}
	life := record.Life{Name: p.Name, Created: p.Created.Time().Unix()}
	if !ended.IsZero() {
		life.Ended = ended.Unix()
	}
	*b = append(*b, bundled{of, life})
}

// records has the pods in as many records as they need, in an order of their own. Each is like the
// given one. A list has one even of no pod.
func (b bundle) records(at time.Time, like record.Pods) (records []record.Record) {
	slices.SortFunc(b, func(x, y bundled) int {
		return cmp.Or(
			cmp.Compare(x.of.Namespace, y.of.Namespace), cmp.Compare(x.of.Kind, y.of.Kind), cmp.Compare(x.of.Owner, y.of.Owner),
			cmp.Compare(x.of.MilliCPU, y.of.MilliCPU), cmp.Compare(x.of.Memory, y.of.Memory),
			cmp.Compare(x.life.Name, y.life.Name), cmp.Compare(x.life.Created, y.life.Created), cmp.Compare(x.life.Ended, y.life.Ended),
		)
	})
	for part := range slices.Chunk(b, record.MostLives) {
		pods := like
		for i, one := range part {
			if i == 0 || !reflect.DeepEqual(one.of, part[i-1].of) {
				pods.Of = append(pods.Of, one.of)
			}
			last := &pods.Of[len(pods.Of)-1]
			last.Pods = append(last.Pods, one.life)
		}
		records = append(records, record.Record{At: at, Pods: &pods})
	}
	if len(b) == 0 && like.List {
		records = append(records, record.Record{At: at, Pods: &like})
	}
	return records
}

// seeGroups records all groups where one of them has changed, or where all is listed.
func (l *lives) seeGroups(world fleet.Snapshot, list bool) (records []record.Record) {
	var priced, bare []record.Shape
	for i := range world.Groups[:min(len(world.Groups), record.MostGroups)] {
		s := shapeOf(&world.Groups[i])
		priced = append(priced, s)
		s.DollarsPerHour = 0
		bare = append(bare, s)
	}
	if !list && reflect.DeepEqual(bare, l.groups) {
		return nil
	}
	l.groups = bare
	for part := range slices.Chunk(priced, record.MostShapes) {
		records = append(records, record.Record{At: world.Now, Groups: &record.Groups{Of: part}})
	}
	return records
}

// shapeOf is a group as it can be played: nodes of all zones are taken for equal.
func shapeOf(g *fleet.Group) record.Shape {
	s := record.Shape{Group: g.Name, Zones: g.Zones, Min: g.Min, Max: g.Max, Spot: g.Spot, Unsteered: !g.Synchronous, DollarsPerHour: g.Price()}
	if len(g.NodeTemplates) > 0 {
		t := &g.NodeTemplates[0]
		s.Type, s.Taints = t.InstanceType, t.Taints
		s.MilliCPU, s.Memory, s.Pods = t.Allocatable.Cpu().MilliValue(), t.Allocatable.Memory().Value(), int(t.Allocatable.Pods().Value())
	}
	return s
}
