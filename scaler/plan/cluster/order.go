package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// PodOrder sorts pods by namespace and name, and knows the traits of each. It keeps the order of the
// last evaluation: most pods are in the same row of the next one, and only the others are compared.
type PodOrder struct {
	given, sorted []*fleet.Pod
	// rows are those of given, in the order of sorted.
	rows []int32
	// traits are those of given, row by row, and homes numbers the nodes' names in them.
	traits []podTraits
	homes  map[string]int32
}

// podTraits are what every evaluation asks of every pod. They stand side by side, while pods lie all
// over the memory.
type podTraits struct {
	// home numbers the name of the pod's node; nowhere if it has none.
	home int32
	// restless: time alone may change what the rules say of it, whatever its owner; see Cluster.watch.
	restless bool
	// speaks: it has terms about other pods.
	speaks bool
	// ending: it is being deleted.
	ending bool
}

const nowhere = -1

// of is the pods in order, in a slice that must not be changed.
func (o *PodOrder) of(pods []*fleet.Pod) []*fleet.Pod {
	if slices.Equal(o.given, pods) {
		return o.sorted
	}
	old, fresh := o.split(pods)
	o.describe(pods, fresh)
	sortRows(pods, fresh)
	o.given, o.rows = append(o.given[:0], pods...), merged(pods, old, fresh)
	o.sorted = make([]*fleet.Pod, len(pods))
	for i, row := range o.rows {
		o.sorted[i] = pods[row]
	}
	return o.sorted
}

// describe finds the traits of pods that are new in their rows.
func (o *PodOrder) describe(pods []*fleet.Pod, fresh []int32) {
	if len(o.homes) > 2*len(pods)+1000 { // most of these nodes are gone
		o.homes, fresh = nil, make([]int32, len(pods))
		for i := range fresh {
			fresh[i] = int32(i)
		}
	}
	if o.homes == nil {
		o.homes = map[string]int32{}
	}
	o.traits = append(o.traits[:min(len(o.traits), len(pods))], make([]podTraits, max(0, len(pods)-len(o.traits)))...)
	for _, row := range fresh {
		p := pods[row]
		o.traits[row] = podTraits{home: o.home(p.Node), restless: restless(p), speaks: fit.CountTerms(p.Spec) > 0, ending: !p.Deleted.IsZero()}
	}
}

func (o *PodOrder) home(name string) int32 {
	if name == "" {
		return nowhere
	}
	number, known := o.homes[name]
	if !known {
		number = int32(len(o.homes))
		o.homes[name] = number
	}
	return number
}

// traitsOf are those of the pod in a row of the order.
func (o *PodOrder) traitsOf(row int) podTraits { return o.traits[o.rows[row]] }

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

// merged makes one list of two that are sorted: the first is long and the other short, so that the
// places of the few are sought.
func merged(pods []*fleet.Pod, long, short []int32) []int32 {
	if len(long) == 0 {
		return short
	}
	out := make([]int32, 0, len(long)+len(short))
	for _, row := range short {
		step := 1 // grows, as the place is near where many are put in
		for step < len(long) && byName(pods[long[step]], pods[row]) <= 0 {
			step *= 2
		}
		reach := long[:min(step+1, len(long))]
		at, _ := slices.BinarySearchFunc(reach, row, func(a, b int32) int {
			if byName(pods[a], pods[b]) <= 0 {
				return -1
			}
			return 1
		})
		out, long = append(append(out, long[:at]...), row), long[at:]
	}
	return append(out, long...)
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
