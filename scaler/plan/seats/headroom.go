package seats

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Headroom is room that stays free for pods to come. There is one way to reckon it: pods that stand
// for them are seated beside all real ones, on nodes that serve, that are upcoming and that the
// plan launches. Groups grow for those without a seat, and no node is removed if then there might
// be seats for fewer, wherever its pods land. So what triggered scale-up never allows scale-down.
//
// A flag, tags of groups and CapacityBuffers ask for it. What buffers keep adds up, as they have
// nothing to do with each other. Flag and tags each count all room by themselves: that of a
// group counts for the cluster's too.

// Headroom is the room that people want kept, in one group or in the whole cluster.
type Headroom struct {
	Group *cluster.Group // nil for the whole cluster
	// Buffer is that which asks for the room; nil where a flag or a group's tag does.
	Buffer *Buffer
	Asked  fleet.Headroom
	// Tenant is one of the pods for which there shall be room, and stands for all.
	Tenant fit.Tenant
	// Wanted is how many there shall be room for. Short is how many of them have no seat and
	// get none, and Why says why not.
	Wanted, Short int
	Why           verdict.Details
}

func (h *Headroom) String() string {
	if h.Buffer != nil {
		return "buffer " + h.Buffer.Key()
	}
	name := "the cluster's headroom"
	if h.Group != nil {
		name = fmt.Sprintf("the headroom of group %s", h.Group.Name)
	}
	if h.Asked.Percent > 0 {
		name += " of " + h.Asked.String()
	}
	return name
}

// Size says what the pods request.
func (h *Headroom) Size() string {
	if h.Buffer != nil {
		return "of its template"
	}
	var words []string
	each := h.Asked.Piece()
	for _, name := range slices.Sorted(maps.Keys(each)) {
		q := each[name]
		words = append(words, fmt.Sprintf("%s %s", q.String(), name))
	}
	if len(words) == 0 {
		return "that request nothing"
	}
	return "of " + strings.Join(words, ", ")
}

const isWanted = "{headroom}: room for {wanted} {wanted:pod|pods} {size} is wanted"

// IsWanted says for how many pods room is.
func (h *Headroom) IsWanted(wanted int) verdict.Details {
	return verdict.Say(isWanted, verdict.HeadRoom(h.String()), verdict.Wanted(wanted), verdict.Size(h.Size()))
}

// Keeps says the same of what is kept for it.
func (h *Headroom) Keeps(wanted int) verdict.Details {
	return verdict.Say("kept for "+isWanted, verdict.HeadRoom(h.String()), verdict.Wanted(wanted), verdict.Size(h.Size()))
}

// newImaginary makes a pod that stands for headroom: of the least priority, so that it
// comes after all others, and in a group at home on its nodes.
func newImaginary(h fleet.Headroom, taints []corev1.Taint) *fleet.Pod {
	spec := &corev1.PodSpec{
		Priority:   new(int32(math.MinInt32)),
		Containers: []corev1.Container{{Name: "room", Resources: corev1.ResourceRequirements{Requests: h.Piece()}}},
	}
	for _, t := range taints {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return &fleet.Pod{Name: "headroom of " + h.String(), Spec: spec}
}

// findHeadrooms finds the headrooms that are asked for: in one list those that add up, and each
// of the others in a list of its own, that of the cluster last.
func (k *Cache) findHeadrooms(d *Seats) {
	if list := d.sizeBuffers(); len(list) > 0 {
		d.Headrooms = append(d.Headrooms, list)
	}
	kept := map[string]*fleet.Pod{}
	add := func(g *cluster.Group, asked fleet.Headroom) {
		if asked.IsZero() {
			return
		}
		taints := ownTaints(g)
		key := fmt.Sprint(asked, taints)
		pod, known := k.imagined[key]
		if !known {
			pod = newImaginary(asked, taints)
		}
		kept[key] = pod
		h := &Headroom{Group: g, Asked: asked, Tenant: d.Fit.Tenant(pod), Wanted: asked.Pods}
		if asked.Percent > 0 {
			h.Wanted = h.Percentage(d.Requested(g))
		}
		d.Headrooms = append(d.Headrooms, []*Headroom{h})
	}
	for _, g := range d.Groups {
		add(g, g.Headroom)
	}
	add(nil, d.Policy.Headroom)
	k.imagined = kept
}

// ownTaints are those of the group's new nodes; none of no group.
func ownTaints(g *cluster.Group) []corev1.Taint {
	if g == nil || len(g.NodeTemplates) == 0 {
		return nil
	}
	return g.NodeTemplates[0].Taints
}

// Requested is what pods request on the nodes of a group or, for nil, on all. Those that
// wait count when they have one: of some there will never be a node. On no node more counts than it
// has: whoever binds a pod himself may request a million cores on any.
func (d *Seats) Requested(of *cluster.Group) (milli, bytes int64) {
	for _, n := range d.Nodes {
		if of != nil && n.Group != of {
			continue
		}
		mostMilli, mostBytes := n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
		nodeMilli, nodeBytes := int64(0), int64(0)
		for i, p := range n.Pods {
			if p.Ended() || !p.Deleted.IsZero() || drainable.BelongsToNode(p) || d.Expendable(p) {
				continue
			}
			c, m := d.Tenant(n, i).Class.CPUAndMemory()
			nodeMilli, nodeBytes = min(nodeMilli+c, mostMilli), min(nodeBytes+m, mostBytes)
		}
		milli, bytes = milli+nodeMilli, bytes+nodeBytes
	}
	return milli, bytes
}

// Percentage is how many pieces the percentage of so much is.
func (h *Headroom) Percentage(milli, bytes int64) int {
	ofCPU, ofMemory := h.Tenant.Class.CPUAndMemory()
	return h.PercentOf(max(float64(milli)/float64(ofCPU), float64(bytes)/float64(ofMemory)))
}

// PercentOf is the percentage of so many pieces, rounded up; nothing where none was asked for.
func (h *Headroom) PercentOf(pieces float64) int {
	return int(math.Ceil(h.Asked.Percent / 100 * pieces))
}

// HeadRoomPods are the pods of headrooms that add up, in the order in which they are placed, and
// whose each is. All those of one are one and the same.
func (d *Seats) HeadRoomPods(list []*Headroom) (pods []fit.Tenant, of map[*fleet.Pod]*Headroom) {
	of = map[*fleet.Pod]*Headroom{}
	for _, h := range list {
		pods = append(pods, slices.Repeat([]fit.Tenant{h.Tenant}, h.Wanted)...)
		of[h.Tenant.Pod] = h
	}
	return d.InOrder(pods), of
}

// SeatHeadRoom lets each of these pods seek a seat, and returns the seats and who has none. Of
// equal pods of one namespace none is asked after the first that found none.
func SeatHeadRoom(pods []fit.Tenant, seek func(fit.Tenant) *fit.Place) (have []cluster.Move, left []fit.Tenant) {
	refused := map[Asking]bool{}
	for _, t := range pods {
		like := Asking{t.Class, t.Pod.Namespace}
		if !refused[like] {
			if p := seek(t); p != nil {
				have = append(have, cluster.Move{Pod: t, To: p})
				continue
			}
			refused[like] = true
		}
		left = append(left, t)
	}
	return have, left
}

// HeadRoomRow is where the pods of a headroom, or of such as add up, find room without another
// node, the best first.
func (d *Seats) HeadRoomRow(list []*Headroom) *fit.Row {
	h := list[0] // all of them are kept in the same nodes
	return d.Fit.NewRow(slices.Concat(h.Homes(d.In(cluster.Serving)), h.Homes(slices.Values(d.cancelled())), h.Homes(d.In(cluster.Upcoming)), d.UnregisteredPlaces(h), d.freshOf(h)))
}

// Homes are the places of those of the nodes that count for the headroom.
func (h *Headroom) Homes(nodes iter.Seq[*cluster.Node]) []*fit.Place {
	var list []*fit.Place
	for n := range nodes {
		if h.Has(n) && n.Open {
			list = append(list, n.Place)
		}
	}
	return list
}

func (h *Headroom) Has(n *cluster.Node) bool { return h.Group == nil || n.Group == h.Group }

// UnregisteredPlaces are those of upcoming nodes that have not registered yet.
func (d *Seats) UnregisteredPlaces(h *Headroom) []*fit.Place {
	registered := d.PlacesIn(cluster.Upcoming)
	return slices.DeleteFunc(slices.Clone(d.Upcoming), func(p *fit.Place) bool {
		return slices.Contains(registered, p) || h.Group != nil && !slices.Contains(h.Group.Templates, p.Template())
	})
}

// freshOf are those of the nodes that groups shall grow by that count for a headroom.
func (d *Seats) freshOf(h *Headroom) []*fit.Place {
	if h.Group != nil {
		return h.Group.Fresh
	}
	return d.AllFresh()
}

// AllFresh are the nodes that groups shall grow by.
func (d *Seats) AllFresh() []*fit.Place {
	var list []*fit.Place
	for _, g := range d.Groups {
		list = append(list, g.Fresh...)
	}
	return list
}

// LackingHeadroom is a pod of each headroom for which there is too little room without another
// node.
func (d *Seats) LackingHeadroom() (lacking []fit.Tenant) {
	start := d.Fit.Fork()
	for _, list := range d.Headrooms {
		pods, _ := d.HeadRoomPods(list)
		_, left := SeatHeadRoom(pods, d.HeadRoomRow(list).Seat)
		lacking = append(lacking, left...)
		d.Fit.Revert(start)
	}
	return lacking
}
