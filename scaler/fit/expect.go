package fit

import corev1 "k8s.io/api/core/v1"

// Expect takes it that nodes of these templates may come. Until over is called, their zones,
// and whatever else nodes share by a label, are domains to spread over, with no pod in them.
// kube-scheduler counts only domains that have a node: with nodes in zone a alone, all pods
// that spread over zones go there. Whoever plans new nodes knows better. It is stricter than
// kube-scheduler, never laxer: what fits meanwhile fits for kube-scheduler too.
// meanwhile fits for kube-scheduler too.
//
// What is opened meanwhile may stay; what was seated or opened before must not be undone
// meanwhile.
func (c *Cluster) Expect(looks []*NodeTemplate) (over func()) {
	expected := make([]*Place, len(looks))
	for i, l := range looks {
		c.opened++
		expected[i] = &Place{Name: l.Name, cluster: c, template: l, opened: c.opened, expected: true}
		c.enter(expected[i])
	}
	return func() {
		for _, p := range expected {
			c.leave(p)
		}
	}
}

// populates reports whether the place makes its domain exist. One that is only expected has
// no host name that could count.
func (p *Place) populates(t *topology) bool {
	return !p.expected || t.key != corev1.LabelHostname
}

// Spreads reports whether pods of the class go only where they are spread evenly enough.
func (c *Class) Spreads() bool { return len(c.spread) > 0 }

// Follows reports whether other pods, by where they are, may open a place to the class: it goes
// where others are, or where it is spread evenly with them.
func (c *Class) Follows() bool { return c.Spreads() || len(c.affinity) > 0 }
