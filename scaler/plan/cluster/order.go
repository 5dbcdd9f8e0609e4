package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"windlass.dev/windlass/pkg/fleet"
)

// PodOrder sorts pods by namespace and name. It keeps the order of the last evaluation: most pods
// are in the same row of the next one, and only the others are compared.
type PodOrder struct {
	given, sorted []*fleet.Pod
	// rows are those of given, in the order of sorted.
	rows []int32
}

// of is the pods in order, in a slice that must not be changed.
func (o *PodOrder) of(pods []*fleet.Pod) []*fleet.Pod {
	if slices.Equal(o.given, pods) {
		return o.sorted
	}
	old, fresh := o.split(pods)
	sortRows(pods, fresh)
	o.given, o.rows = slices.Clone(pods), merged(pods, old, fresh)
	o.sorted = make([]*fleet.Pod, len(pods))
	for i, row := range o.rows {
		o.sorted[i] = pods[row]
	}
	return o.sorted
}

// split gives the rows in which the pods of the last evaluation still are, in their order,
// and the others in any.
func (o *PodOrder) split(pods []*fleet.Pod) (old, fresh []int32) {
	old = make([]int32, 0, len(o.rows))
	for _, row := range o.rows {
		if int(row) < len(pods) && pods[row] == o.given[row] {
			old = append(old, row)
		}
	}
	fresh = make([]int32, 0, len(pods)-len(old))
	for i, p := range pods {
		if i >= len(o.given) || o.given[i] != p {
			fresh = append(fresh, int32(i))
		}
	}
	return old, fresh
}

// sortRows sorts rows as byName does their pods, but compares names that stand side by
// side: pods lie all over the memory.
func sortRows(pods []*fleet.Pod, rows []int32) {
	type entry struct {
		name           string
		namespace, row int32
	}
	numbers := namespaceNumbers(pods, rows)
	list := make([]entry, len(rows))
	for i, row := range rows {
		list[i] = entry{pods[row].Name, numbers[pods[row].Namespace], row}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if a.namespace != b.namespace {
			return cmp.Compare(a.namespace, b.namespace)
		}
		if by := strings.Compare(a.name, b.name); by != 0 {
			return by
		}
		return cmp.Compare(pods[a.row].UID, pods[b.row].UID)
	})
	for i, e := range list {
		rows[i] = e.row
	}
}

// namespaceNumbers numbers the namespaces of these pods in their order.
func namespaceNumbers(pods []*fleet.Pod, rows []int32) map[string]int32 {
	numbers := map[string]int32{}
	for _, row := range rows {
		numbers[pods[row].Namespace] = 0
	}
	for i, namespace := range slices.Sorted(maps.Keys(numbers)) {
		numbers[namespace] = int32(i)
	}
	return numbers
}

// merged makes one list of two that are sorted.
func merged(pods []*fleet.Pod, a, b []int32) []int32 {
	if len(a) == 0 {
		return b
	}
	out := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byName(pods[a[0]], pods[b[0]]) <= 0 {
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
