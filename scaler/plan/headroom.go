package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// Head-room is room that stays free for pods to come. One figure tells how much of it
// there is: how many pods of its size have room beside all real ones, on nodes that
// serve. Groups grow while that, with what is coming, is less than what is wanted, and no
// node goes if it might then be less, wherever its pods land. So what brought a node
// never lets it go again, and what let one go never brings another.
//
// Each head-room is kept by itself: room of a group counts for the cluster's too.

// headRoom is the room that people want kept, in one group or in the whole cluster.
type headRoom struct {
	group *group // nil for the whole cluster
	// buffer is that which asks for the room; nil where a flag or a group's tag does.
	buffer *buffer
	asked  fleet.HeadRoom
	// tenant is one of the pods for which there shall be room, and stands for all.
	tenant fit.Tenant
	// wanted is how many there shall be room for.
	wanted int
}

func (h *headRoom) String() string {
	if h.buffer != nil {
		return "buffer " + h.buffer.Key()
	}
	name := "the cluster's head-room"
	if h.group != nil {
		name = fmt.Sprintf("the head-room of group %s", h.group.Name)
	}
	if h.asked.Percent > 0 {
		name += " of " + h.asked.String()
	}
	return name
}

// size says what the pods request.
func (h *headRoom) size() string {
	if h.buffer != nil {
		return "of its template"
	}
	var words []string
	each := h.asked.Piece()
	for _, name := range slices.Sorted(maps.Keys(each)) {
		q := each[name]
		words = append(words, fmt.Sprintf("%s %s", q.String(), name))
	}
	if len(words) == 0 {
		return "that request nothing"
	}
	return "of " + strings.Join(words, ", ")
}

// imaginary says that the pod is one for which head-room is kept: the API server gives
// real ones a UID.
func imaginary(p *fleet.Pod) bool { return p.UID == "" }

// newImaginary makes a pod that stands for head-room: of the least priority, so that it
// comes after all others, and in a group at home on its nodes.
func newImaginary(h fleet.HeadRoom, taints []corev1.Taint) *fleet.Pod {
	spec := &corev1.PodSpec{
		Priority:   new(int32(math.MinInt32)),
		Containers: []corev1.Container{{Name: "room", Resources: corev1.ResourceRequirements{Requests: h.Piece()}}},
	}
	for _, t := range taints {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect})
	}
	return &fleet.Pod{Name: "head-room of " + h.String(), Spec: spec}
}

// findHeadRooms finds the head-rooms that are asked for, that of the cluster last, as
// what groups keep counts for it.
func (k *cache) findHeadRooms(d *decision) {
	kept := map[string]*fleet.Pod{}
	add := func(g *group, asked fleet.HeadRoom) {
		if asked.IsZero() {
			return
		}
		taints := g.ownTaints()
		key := fmt.Sprint(asked, taints)
		pod, known := k.imagined[key]
		if !known {
			pod = newImaginary(asked, taints)
		}
		kept[key] = pod
		h := &headRoom{group: g, asked: asked, tenant: d.fit.Tenant(pod), wanted: asked.Pods}
		if asked.Percent > 0 {
			h.wanted = h.percentage(d.requested(g))
		}
		d.headRooms = append(d.headRooms, h)
	}
	for _, g := range d.groups {
		add(g, g.HeadRoom)
	}
	add(nil, d.policy.HeadRoom)
	k.imagined = kept
}

// ownTaints are those of the group's new nodes; none of no group.
func (g *group) ownTaints() []corev1.Taint {
	if g == nil || len(g.Shapes) == 0 {
		return nil
	}
	return g.Shapes[0].Taints
}

// requested is what pods request on the nodes of a group or, for nil, on all. Those that
// wait count when they have one: of some there will never be a node.
func (d *decision) requested(of *group) (milli, bytes int64) {
	for i, p := range d.pods {
		if p.Ended() || !p.Deleted.IsZero() || drainable.BelongsToNode(p) || d.expendable(p) {
			continue
		}
		if n := d.node(p.Node); n == nil || of != nil && n.group != of {
			continue
		}
		c, m := d.fit.TenantAt(i).Class.CPUAndMemory()
		milli, bytes = milli+c, bytes+m
	}
	return milli, bytes
}

// percentage is how many pieces the percentage of so much is.
func (h *headRoom) percentage(milli, bytes int64) int {
	ofCPU, ofMemory := h.tenant.Class.CPUAndMemory()
	return h.percentOf(max(float64(milli)/float64(ofCPU), float64(bytes)/float64(ofMemory)))
}

// percentOf is the percentage of so many pieces, rounded up; nothing where none was asked for.
func (h *headRoom) percentOf(pieces float64) int {
	return int(math.Ceil(h.asked.Percent / 100 * pieces))
}

// roomFor counts the pods of a head-room that have room on nodes that serve, that come,
// or that the plan brings.
func (d *decision) roomFor(h *headRoom) int {
	sum := 0
	for _, p := range slices.Concat(h.homes(d.in(serving, coming)), h.homes(d.kept()), d.unregisteredPlaces(h), d.freshOf(h)) {
		sum += d.fit.Slots(h.tenant.Class, p).N
	}
	return sum
}

// homes are the places of those of the nodes that are open and count for the head-room.
func (h *headRoom) homes(nodes []*node) []*fit.Place {
	return places(slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return !h.has(n) }))
}

func (h *headRoom) has(n *node) bool { return h.group == nil || n.group == h.group }

// unregisteredPlaces are those of nodes that come and have not registered yet.
func (d *decision) unregisteredPlaces(h *headRoom) []*fit.Place {
	registered := places(d.in(coming))
	return slices.DeleteFunc(slices.Clone(d.coming), func(p *fit.Place) bool {
		return slices.Contains(registered, p) || h.group != nil && !slices.Contains(h.group.looks, p.Looks())
	})
}

// freshOf are those of the nodes that groups shall grow by that count for a head-room.
func (d *decision) freshOf(h *headRoom) []*fit.Place {
	if h.group != nil {
		return h.group.fresh
	}
	return d.allFresh()
}

// allFresh are the nodes that groups shall grow by.
func (d *decision) allFresh() []*fit.Place {
	var list []*fit.Place
	for _, g := range d.groups {
		list = append(list, g.fresh...)
	}
	return list
}

// lackingHeadRoom is a pod of each head-room for which there is too little room.
func (d *decision) lackingHeadRoom() []fit.Tenant {
	var list []fit.Tenant
	for _, h := range d.headRooms {
		if d.roomFor(h) < h.wanted {
			list = append(list, h.tenant)
		}
	}
	return append(list, d.lackingBuffers()...)
}

// growForHeadRoom keeps nodes that were to go, and plans new ones, where head-room is
// short when every real pod has its place.
func (d *decision) growForHeadRoom() {
	var putBack []func()
	for _, h := range d.headRooms {
		d.keepForHeadRoom(h)
		room := d.roomFor(h)
		if room >= h.wanted {
			continue
		}
		putBack = append(putBack, d.bringHeadRoom(h, room))
	}
	for _, put := range putBack {
		put()
	}
}

// keepForHeadRoom takes retirements back while head-room is short that their nodes have:
// to keep a node is cheaper than to launch one.
func (d *decision) keepForHeadRoom(h *headRoom) {
	for _, n := range d.in(retiring) {
		if !n.open || n.kept || !h.has(n) || d.roomFor(h) >= h.wanted {
			continue
		}
		start, moved := d.fit.Fork(), n.moved
		d.undoMoves(n)
		if d.fit.Slots(h.tenant.Class, n.place).N == 0 {
			d.fit.Revert(start)
			n.moved = moved
			continue
		}
		d.keep(n, fmt.Sprintf("%s needs it", h))
	}
}

// bringHeadRoom plans nodes for what a head-room lacks. The pods that stand for it are
// taken off them, as the next head-room counts the same room; putBack seats them again.
func (d *decision) bringHeadRoom(h *headRoom, room int) (putBack func()) {
	sizes := map[*group]int{}
	for _, g := range d.groups {
		sizes[g] = len(g.fresh)
		g.aside = h.group != nil && h.group != g
	}
	refused := d.growFor(slices.Repeat([]fit.Tenant{h.tenant}, h.wanted-room))
	if len(refused) > 0 {
		d.sayShort(h, len(refused))
	}
	var undo []func()
	for _, g := range d.groups {
		g.aside = false
		if len(g.fresh) > sizes[g] {
			g.note(fmt.Sprintf("%s: room for %s %s is wanted, and there is for %d", h, counted(h.wanted, "pod"), h.size(), room))
		}
		for _, p := range g.fresh[sizes[g]:] {
			for _, t := range p.Tenants() {
				d.fit.Lift(t, p)
				undo = append(undo, func() { d.fit.Put(t, p) })
			}
		}
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// sayShort tells at the groups that could have it why head-room is short, or at all of
// them if none could. It returns the same for all of them.
func (d *decision) sayShort(h *headRoom, lacks int) (why string) {
	var could []*group
	for _, g := range d.groups {
		if (h.group == nil || h.group == g) && d.fit.CouldTake(h.tenant.Class, g.looks) {
			could = append(could, g)
		}
	}
	if len(could) == 0 {
		could = d.groups
		if h.group != nil {
			could = []*group{h.group}
		}
	}
	defer d.closeFor(h.tenant.Class)()
	misses := make([]miss, len(could))
	unasked := d.unasked[asking{class: h.tenant.Class, namespace: h.tenant.Pod.Namespace}]
	for i, g := range could {
		if misses[i] = (miss{g, nil, d.budgetSpent(h.tenant.Pod.Namespace)}); !unasked {
			misses[i] = d.missOf(h.tenant.Class, g)
		}
		g.short = true
		g.note(fmt.Sprintf("%s: room for %s %s is wanted, and there is none for %d: %s", h, counted(h.wanted, "pod"), h.size(), lacks, misses[i].why))
	}
	return tell(misses)
}

// called names a pod for people, or the head-room that it stands for.
func called(p *fleet.Pod) string {
	if imaginary(p) {
		return p.Name
	}
	return "pod " + p.Key()
}
