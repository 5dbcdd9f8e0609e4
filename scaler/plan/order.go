package plan

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// podOrder sorts pods by namespace and name. It remembers the order of the last look:
// most pods are the same in the next one, and only the others are compared.
type podOrder struct {
	sorted []*fleet.Pod
	rank   map[*fleet.Pod]int32
}

// of is the pods in order, in a slice that nobody may change.
func (o *podOrder) of(pods []*fleet.Pod) []*fleet.Pod {
	old, fresh := o.split(pods)
	if len(old) == len(o.sorted) && len(fresh) == 0 {
		return o.sorted
	}
	slices.SortFunc(fresh, byName)
	o.sorted, o.rank = merged(old, fresh), nil
	return o.sorted
}

// number makes up the ranks of the last look, of which the first has no need.
func (o *podOrder) number() {
	if o.rank != nil {
		return
	}
	o.rank = make(map[*fleet.Pod]int32, len(o.sorted))
	for i, p := range o.sorted {
		o.rank[p] = int32(i)
	}
}

// split gives the pods that were there in the last look in their order, and the others
// in any.
func (o *podOrder) split(pods []*fleet.Pod) (old, fresh []*fleet.Pod) {
	if len(o.sorted) == 0 {
		return nil, slices.Clone(pods)
	}
	o.number()
	seats := make([]*fleet.Pod, len(o.sorted))
	for _, p := range pods {
		if i, known := o.rank[p]; known && seats[i] == nil {
			seats[i] = p
		} else {
			fresh = append(fresh, p)
		}
	}
	return slices.DeleteFunc(seats, func(p *fleet.Pod) bool { return p == nil }), fresh
}

// merged makes one sorted list of two.
func merged(a, b []*fleet.Pod) []*fleet.Pod {
	if len(a) == 0 {
		return b
	}
	out := make([]*fleet.Pod, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byName(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func byName(a, b *fleet.Pod) int {
	if by := cmp.Compare(a.Namespace, b.Namespace); by != 0 {
		return by
	}
	if by := cmp.Compare(a.Name, b.Name); by != 0 {
		return by
	}
	return cmp.Compare(a.UID, b.UID)
}
