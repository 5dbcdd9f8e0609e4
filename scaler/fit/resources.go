package fit

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/scaler/fit/upstream"
)

// Resources are numbered, so that a vector of amounts is a slice: the usual
// ones first, others as they are met.
const (
	cpu    = iota // in thousandths
	memory        // in bytes
	ephemeral
	podCount
)

// names numbers resources.
type names struct {
	index map[corev1.ResourceName]int
	names []corev1.ResourceName
}

func newNames() *names {
	n := &names{index: map[corev1.ResourceName]int{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		n.of(name)
	}
	return n
}

func (n *names) of(name corev1.ResourceName) int {
	if i, ok := n.index[name]; ok {
		return i
	}
	i := len(n.names)
	n.index[name] = i
	n.names = append(n.names, name)
	return i
}

// vector is an amount for each resource number; what is beyond its end is 0.
type vector []int64

func (v vector) at(i int) int64 {
	if i < len(v) {
		return v[i]
	}
	return 0
}

func (v *vector) add(i int, n int64) {
	for len(*v) <= i {
		*v = append(*v, 0)
	}
	(*v)[i] += n
}

// amount is what a pod asks of one resource.
type amount struct {
	resource int
	n        int64
}

// counted reports whether kube-scheduler counts a resource at all.
func counted(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	return upstream.Countable(name)
}

// vectorOf takes what a node has as kube-scheduler does: cpu in thousandths,
// everything else in whole units.
func (n *names) vectorOf(list corev1.ResourceList) vector {
	var v vector
	for name, q := range list {
		if counted(name) {
			v.add(n.of(name), Units(name, q))
		}
	}
	return v
}

// taken is what kube-scheduler counts as used by a pod that asks for a list.
func (n *names) taken(list corev1.ResourceList) []amount { return n.amounts(list, Units) }

// asked is what a pod that asks for a list needs free.
func (n *names) asked(list corev1.ResourceList) []amount { return n.amounts(list, needed) }

// amounts are those of a list that are not nothing, by number, with the one pod that asks
// for it.
func (n *names) amounts(list corev1.ResourceList, of func(corev1.ResourceName, resource.Quantity) int64) []amount {
	amounts := []amount{{podCount, 1}}
	for name, q := range list {
		if name == corev1.ResourcePods || !counted(name) {
			continue
		}
		if r := of(name, q); r != 0 {
			amounts = append(amounts, amount{n.of(name), r})
		}
	}
	slices.SortFunc(amounts, func(a, b amount) int { return cmp.Compare(a.resource, b.resource) })
	return amounts
}

// needed is what must be free. What a pod asks for as nothing or less it has everywhere,
// even where more than all is used.
func needed(name corev1.ResourceName, q resource.Quantity) int64 {
	if q.Sign() > 0 && beyond(name, q) {
		return most
	}
	return max(0, Units(name, q))
}

// most is what a request is cut to: more than any node has. kube-scheduler itself
// takes a request for 9.3P of cpu for one of nothing, because the number of its
// thousandths overflows; no node is launched for such a pod.
const most = int64(1) << 60

func beyond(name corev1.ResourceName, q resource.Quantity) bool {
	if name == corev1.ResourceCPU {
		return q.CmpInt64(most/1000) >= 0
	}
	return q.CmpInt64(most) >= 0
}

// Units is an amount as requests are counted: in thousandths for cpu, and otherwise in
// whole units, rounded up.
func Units(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// figure prints an amount for people: 1.93 cpu, 7.2Gi, 3.
func figure(name corev1.ResourceName, n int64) string {
	if n >= most { // it was cut
		return "≥" + figure(name, most-1)
	}
	switch {
	case name == corev1.ResourceCPU:
		return trimmed(float64(n)/1000, 3)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return bytes(n)
	}
	return strconv.FormatInt(n, 10)
}

func bytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if n >= unit.size || n <= -unit.size {
			return trimmed(float64(n)/float64(unit.size), 2) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func trimmed(f float64, digits int) string {
	text := strconv.FormatFloat(f, 'f', digits, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}
