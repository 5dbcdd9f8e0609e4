package plan

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// podOrder sorts pods by namespace and name. It remembers the order of the last look:
// most pods are in the same row of the next one, and only the others are compared.
type podOrder struct {
	given, sorted []*fleet.Pod
	// rows are those of given, in the order of sorted.
	rows []podRow
}

// podRow is a pod with its index among those that were given.
type podRow struct {
	pod *fleet.Pod
	row int32
}

// of is the pods in order, in a slice that nobody may change.
func (o *podOrder) of(pods []*fleet.Pod) []*fleet.Pod {
	if slices.Equal(o.given, pods) {
		return o.sorted
	}
	old, fresh := o.split(pods)
	slices.SortFunc(fresh, func(a, b podRow) int { return byName(a.pod, b.pod) })
	o.given, o.rows = slices.Clone(pods), merged(old, fresh)
	o.sorted = make([]*fleet.Pod, len(pods))
	for i, r := range o.rows {
		o.sorted[i] = r.pod
	}
	return o.sorted
}

// split gives the rows in which the pods of the last look still are, in their order,
// and the others in any.
func (o *podOrder) split(pods []*fleet.Pod) (old, fresh []podRow) {
	old = make([]podRow, 0, len(o.rows))
	for _, r := range o.rows {
		if int(r.row) < len(pods) && pods[r.row] == r.pod {
			old = append(old, r)
		}
	}
	fresh = make([]podRow, 0, len(pods)-len(old))
	for i, p := range pods {
		if i >= len(o.given) || o.given[i] != p {
			fresh = append(fresh, podRow{p, int32(i)})
		}
	}
	return old, fresh
}

// merged makes one sorted list of two.
func merged(a, b []podRow) []podRow {
	if len(a) == 0 {
		return b
	}
	out := make([]podRow, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byName(a[0].pod, b[0].pod) <= 0 {
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
