package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// beginRetirements finds the nodes that nobody needs: all of them together
// could go at once, for the pods of every one have a place on nodes that stay.
// Each keeps on itself since when that is so, and is retired when it has been
// so for long enough. Those that are unneeded the longest are asked first, so
// that one look does not undo what the last one found.
func (d *decision) beginRetirements() {
	r := d.newRetirement()
	for _, n := range r.candidates() {
		if reason, why := r.mayGo(n); reason != "" {
			n.say(reason, why)
			continue
		}
		r.unneeded(n)
	}
	for _, n := range d.nodes {
		d.unmark(n)
		d.sayStage(n)
	}
}

// retirement is one search for nodes that nobody needs.
type retirement struct {
	*decision
	// stay are the nodes that pods could be moved to, the fullest first.
	stay []*node
	// leaving counts for each group the nodes on their way out that still count
	// as desired.
	leaving map[*group]int
	// draining counts the nodes with pods on them that are being drained without
	// hurry, and those whose turn it is, of at most allowed.
	draining, allowed int
	remains           remains
	// unsettled says that pods are given seats on nodes that are not open yet, or not
	// there.
	unsettled bool
}

func (d *decision) newRetirement() *retirement {
	r := &retirement{decision: d, leaving: map[*group]int{}, allowed: d.drainLimit(), unsettled: d.unsettled()}
	for _, n := range d.in(retiring, terminating) {
		if n.kept || n.instance == nil || !n.instance.Live() {
			continue
		}
		r.leaving[n.group]++
	}
	r.draining = d.underWay() + d.turns
	for _, n := range d.in(serving, cordoned, returning, unready) {
		r.remains.add(n)
	}
	d.standInBoth()
	r.stay = d.in(serving)
	used := map[*node]float64{}
	for _, n := range r.stay {
		used[n] = d.utilization(n)
	}
	slices.SortStableFunc(r.stay, func(a, b *node) int { return cmp.Compare(used[b], used[a]) })
	return r
}

func (d *decision) drainLimit() int {
	if d.policy.MaxDrainParallelism > 0 {
		return d.policy.MaxDrainParallelism
	}
	return max(2, len(d.nodes)/10)
}

// candidates are the Ready nodes of our groups: those marked the longest first,
// then the emptiest.
func (r *retirement) candidates() []*node {
	var list []*node
	used := map[*node]float64{}
	for _, n := range r.in(serving, cordoned) {
		if n.group == nil || !n.instance.Live() {
			continue
		}
		list = append(list, n)
		used[n] = r.utilization(n)
	}
	slices.SortStableFunc(list, func(a, b *node) int {
		sinceA, markedA := marked(a)
		sinceB, markedB := marked(b)
		if markedA != markedB {
			return map[bool]int{true: -1, false: 1}[markedA]
		}
		return cmp.Or(sinceA.Compare(sinceB), cmp.Compare(used[a], used[b]))
	})
	return list
}

func (r *retirement) retire(n *node, since time.Time, occupied bool) {
	if occupied {
		r.draining++
	}
	r.do(Retire{
		Group: n.group.Name, Node: n.ref(), ID: contract.RetireID(n.instance.ID, since), Kind: contract.KindScaleDown,
		Why: fmt.Sprintf("nobody has needed it since %s", clockTime(since)),
	})
}

// unmark takes the mark off a node that is needed again, so that its clock
// starts anew.
func (d *decision) unmark(n *node) {
	stays := n.stage == serving || n.stage == cordoned || n.stage == returning || n.kept
	if !stays || n.gone || n.group == nil {
		return
	}
	if _, ok, _ := contract.Unneeded(n.Taints); ok {
		d.do(Unmark{Group: n.group.Name, Node: n.ref(), Why: cmp.Or(n.message, "it stays")})
	}
}
