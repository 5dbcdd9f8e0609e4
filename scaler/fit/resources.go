package fit

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
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

// vectorOf takes a list as kube-scheduler does: cpu in thousandths, everything
// else in whole units.
func (n *names) vectorOf(list corev1.ResourceList) vector {
	var v vector
	for name, q := range list {
		v.add(n.of(name), units(name, q))
	}
	return v
}

// most is what an amount is cut to: more than any node has, and so little that
// a few of them add up without overflow. A request for 9.3P of cpu would be a
// negative number of thousandths, and fit everywhere.
const most = int64(1) << 60

func units(name corev1.ResourceName, q resource.Quantity) int64 {
	if name != corev1.ResourceCPU {
		return min(q.Value(), most)
	}
	if q.Value() >= most/1000 {
		return most
	}
	return q.MilliValue()
}

// Requests is what a pod asks for: its containers, sidecars, init containers
// and overhead together, and the one pod that it is itself.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	if spec == nil {
		return nil
	}
	return helper.PodRequests(&corev1.Pod{Spec: *spec}, helper.PodResourcesOptions{})
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
