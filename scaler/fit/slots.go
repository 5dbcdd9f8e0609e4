package fit

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Slots is how many more pods of a class a place takes, as far as room goes.
type Slots struct {
	N int
	// Beside is how many other pods it takes beside these by their mere number, and Over
	// how much room is left then, in thousandths of what one asks for: of that resource of
	// which it is least, but for the number of pods; 1000 for that much and more.
	Beside int
	Over   int64
}

// Slots counts those of a place beside the pods that are on it.
func (c *Cluster) Slots(class *Class, p *Place) Slots {
	m := c.member(class)
	if c.ask(m, p) != fits {
		return Slots{}
	}
	slots := int64(math.MaxInt32)
	for _, a := range m.asks {
		slots = min(slots, p.left(a.resource)/a.n)
	}
	if m.lonely() {
		slots = min(slots, 1)
	}
	over := int64(1000)
	for _, a := range m.asks {
		if left := p.left(a.resource) - slots*a.n; a.resource != podCount && left < a.n {
			over = min(over, int64(float64(left)*1000/float64(a.n)))
		}
	}
	return Slots{int(slots), int(min(p.left(podCount)-slots, math.MaxInt32)), over}
}

// lonely reports whether no two pods of the class fit one node, by their host ports or by
// anti-affinity.
func (m *member) lonely() bool {
	return len(m.ports) > 0 || slices.ContainsFunc(m.anti, func(t podTerm) bool {
		return t.topology == corev1.LabelHostname && m.matched.has(t.selected)
	})
}

// CouldTake reports whether a new node of one of these templates may take the class, as far
// as its resources, labels and taints go: whatever else is in the cluster.
func (c *Cluster) CouldTake(class *Class, looks []*NodeTemplate) bool {
	m := c.member(class)
	for _, l := range looks {
		if c.couldHold(m, l) {
			return true
		}
	}
	return false
}

// Share is how much of what a class asks for a pod of another one uses, in thousandths
// and rounded up: of that resource of which it is most, but for the number of pods.
func (c *Class) Share(of *Class) int64 {
	share := int64(0)
	for _, a := range c.asks {
		for _, used := range of.takes {
			if used.resource == a.resource && a.resource != podCount {
				share = max(share, int64(min(math.Ceil(float64(used.n)*1000/float64(a.n)), mostShare)))
			}
		}
	}
	return share
}

// mostShare bounds a share, so that sums of them can be counted.
const mostShare = 1e12
