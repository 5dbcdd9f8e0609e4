package fit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/fit/upstream"
)

// Place is a node, or one that will come, with the pods on it.
type Place struct {
	// Name is for people.
	Name string

	cluster  *Cluster
	index    int32
	template *NodeTemplate
	// opened numbers a place that is not there yet; 0 for a node that is.
	opened int
	// expected is true if no pod goes there: it stands for its domains. See Expect.
	expected bool
	// closed is true if its node is to be removed, and touched is the trial in which the
	// place was changed last.
	closed  bool
	touched int
	// shunning counts the pods there beside which no pod is thought to fit.
	shunning int
	// domains are those that the place is in, by topology; votes is which
	// electorates it belongs to.
	domains []int32
	votes   []bool
	// tenants are the pods there; lent says that the list is a Crew's.
	tenants []Tenant
	lent    bool
	ports   []hostPort
	// host is what plugins for volumes and devices know of it.
	host *upstream.Host
	own  *corev1.Node
}

// Add takes a node that is there, or comes for certain, into the cluster. Every node belongs
// in, also those that no pod shall go to: what is on them counts for where others fit. It is
// never removed.
func (c *Cluster) Add(l *NodeTemplate) *Place {
	if c.lore.added == len(c.lore.places) {
		c.lore.places = append(c.lore.places, &Place{})
	}
	p := c.lore.places[c.lore.added]
	c.lore.added++
	*p = Place{Name: l.Name, cluster: c, template: l}
	c.enter(p)
	return p
}

// Open takes a node into the cluster that is not there yet. It has a host name of
// its own. Revert takes it out again.
func (c *Cluster) Open(name string, l *NodeTemplate) *Place {
	c.opened++
	c.steps += int64(2 + len(c.topologies) + len(c.electorates))
	p := &Place{Name: name, cluster: c, template: l, opened: c.opened}
	c.enter(p)
	c.log = append(c.log, change{place: p, what: opened})
	return p
}

// enter gives a place its number, its domains and its columns.
func (c *Cluster) enter(p *Place) {
	if last := len(c.spare) - 1; last >= 0 {
		p.index = c.spare[last]
		c.spare = c.spare[:last]
		c.places[p.index] = p
	} else {
		p.index = int32(len(c.places))
		c.places = append(c.places, p)
		for r := range c.free {
			c.free[r] = append(c.free[r], 0)
		}
	}
	for r := range c.free {
		c.free[r][p.index] = p.template.room.at(r)
	}
	if len(c.topologies) > 0 {
		p.domains = make([]int32, len(c.topologies))
		for i, t := range c.topologies {
			p.domains[i] = p.domain(t)
		}
	}
	if len(c.electorates) > 0 {
		p.votes = make([]bool, len(c.electorates))
		for i, e := range c.electorates {
			p.votes[i] = c.elects(e, p)
			c.enroll(e, p, 1)
		}
	}
	if p.expected {
		return
	}
	p.ports = p.template.ports
	c.countDaemons(p, 1)
	if c.routed {
		p.settle()
	}
}

// leave takes an opened place out, which is empty again.
func (c *Cluster) leave(p *Place) {
	if p.host != nil {
		c.lore.filters.Drop(p.host)
		p.host = nil
	}
	if !p.expected {
		c.countDaemons(p, -1)
	}
	for _, e := range c.electorates {
		c.enroll(e, p, -1)
	}
	if i, known := c.byLabel[corev1.LabelHostname]; known {
		c.topologies[i].free = append(c.topologies[i].free, p.domains[i])
	}
	c.places[p.index] = nil
	c.spare = append(c.spare, p.index)
}

// domain is the one that the place is in.
func (p *Place) domain(t *topology) int32 {
	if p.opened > 0 && t.key == corev1.LabelHostname {
		return t.fresh("")
	}
	if value, has := p.template.labels[t.key]; has {
		return t.domain(value)
	}
	return none
}

// nodeName of a place that is opened is none that a node can have.
func (p *Place) nodeName() string {
	if p.opened > 0 {
		return fmt.Sprintf("(new %d)", p.opened)
	}
	return p.template.Name
}

// node is the place as kube-scheduler's plugins see it.
func (p *Place) node() *corev1.Node {
	if p.own == nil {
		labels := p.template.labels
		if p.opened > 0 {
			labels = maps.Clone(labels)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[corev1.LabelHostname] = p.nodeName()
		}
		p.own = nodeOf(p.template, p.nodeName(), labels)
	}
	return p.own
}

// imagined is a place of this template outside of the cluster, for static questions.
func (c *Cluster) imagined(l *NodeTemplate) *Place {
	return &Place{Name: l.Name, cluster: c, template: l}
}

// Tenants lists the pods that were given a seat here. The slice is the caller's.
func (p *Place) Tenants() []Tenant { return slices.Clone(p.tenants) }

// Seated are the same pods, to be read before anybody is given a seat here or taken off.
func (p *Place) Seated() []Tenant { return slices.Clip(p.tenants) }

// Free is how many thousandths of a cpu and bytes of memory are free there, and Room of how many.
func (p *Place) Free() (milli, bytes int64) { return p.left(cpu), p.left(memory) }
func (p *Place) Room() (milli, bytes int64) {
	return p.template.room.at(cpu), p.template.room.at(memory)
}

// Template is what decides what fits the place when it is empty.
func (p *Place) Template() *NodeTemplate { return p.template }

// left is what is free of a resource.
func (p *Place) left(resource int) int64 {
	if resource < len(p.cluster.free) {
		return p.cluster.free[resource][p.index]
	}
	return p.template.room.at(resource)
}
