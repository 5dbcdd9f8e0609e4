package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Cluster knows classes and static verdicts, and remembers every change to its
// places, so that a what-if costs what it changes and can be taken back.
type Cluster struct {
	names      *names
	bySpec     map[*corev1.PodSpec]*Class
	byKey      map[string]*Class
	repulsions []repulsion
	verdicts   map[verdictKey]Reasons
	log        []change
}

// New prepares for the pods of a cluster: all of them, because each may keep
// others away.
func New(pods []*fleet.Pod) *Cluster {
	c := &Cluster{
		names:    newNames(),
		bySpec:   map[*corev1.PodSpec]*Class{},
		byKey:    map[string]*Class{},
		verdicts: map[verdictKey]Reasons{},
	}
	for _, p := range pods {
		if !p.Ended() {
			c.repulsions = append(c.repulsions, repulsions(p)...)
		}
	}
	return c
}

// Tenant finds a pod's class.
func (c *Cluster) Tenant(p *fleet.Pod) Tenant {
	if slices.ContainsFunc(c.repulsions, func(r repulsion) bool { return r.repels(p) }) {
		terms := append(unseen(specOf(p)), "the anti-affinity of other pods")
		return Tenant{p, c.interned(newClass(c.names, specOf(p), terms))}
	}
	if class, ok := c.bySpec[p.Spec]; ok {
		return Tenant{p, class}
	}
	class := c.interned(newClass(c.names, specOf(p), unseen(specOf(p))))
	c.bySpec[p.Spec] = class
	return Tenant{p, class}
}

func specOf(p *fleet.Pod) *corev1.PodSpec {
	if p.Spec == nil {
		return &corev1.PodSpec{}
	}
	return p.Spec
}

func (c *Cluster) interned(class *Class) *Class {
	if known, ok := c.byKey[class.Key]; ok {
		return known
	}
	c.byKey[class.Key] = class
	return class
}

// Place is a node, or a node that will come, with the pods on it.
//
// A node that will come may not be settled yet: it could look in one of several
// ways, because Auto Scaling chooses its zone. Every pod that takes a seat
// leaves only those looks that it fits.
type Place struct {
	// Name is for people.
	Name string

	could   []*Looks
	used    vector
	ports   []hostPort
	tenants []Tenant
}

// NewPlace makes an empty place that could look like any of these; there must
// be one at least.
func NewPlace(name string, could ...*Looks) *Place { return &Place{Name: name, could: could} }

// Tenants lists the pods that have a seat here. The slice is the caller's.
func (p *Place) Tenants() []Tenant { return slices.Clone(p.tenants) }

// Looks lists what the place may still look like.
func (p *Place) Looks() []*Looks { return p.could }

// Fits says what keeps a class off a place; nothing does if it fits. Where the
// place could look in several ways, one that fits is enough, and else the
// nearest miss is told, the first of several.
func (c *Cluster) Fits(class *Class, p *Place) Reasons {
	var nearest Reasons
	for _, l := range p.could {
		why := c.fits(class, p, l)
		if len(why) == 0 {
			return nil
		}
		if nearest == nil || why.Nearer(nearest) {
			nearest = why
		}
	}
	return nearest
}

func (c *Cluster) fits(class *Class, p *Place, l *Looks) Reasons {
	why := slices.Clip(c.static(class, l))
	for _, wanted := range class.ports {
		if slices.ContainsFunc(p.ports, wanted.clashes) {
			why = append(why, Reason{Rule: RulePort, What: wanted.String()})
		}
	}
	for _, r := range class.requests {
		if have := l.room.at(r.resource) - p.used.at(r.resource); r.n > have {
			why = append(why, Reason{Rule: RuleResources, What: string(c.names.names[r.resource]), Need: r.n, Have: have})
		}
	}
	return why
}

// admits is Fits without the reasons, for the many times when only the answer
// counts.
func (c *Cluster) admits(class *Class, p *Place, l *Looks) bool {
	for _, r := range class.requests {
		if r.n > l.room.at(r.resource)-p.used.at(r.resource) {
			return false
		}
	}
	for _, wanted := range class.ports {
		if slices.ContainsFunc(p.ports, wanted.clashes) {
			return false
		}
	}
	return len(c.static(class, l)) == 0
}

// Seat gives the pod a seat at the first place that it fits, and nil if it fits
// none.
func (c *Cluster) Seat(t Tenant, places []*Place) *Place {
	for _, p := range places {
		if c.TrySeat(t, p) {
			return p
		}
	}
	return nil
}

// TrySeat gives the pod a seat at p if it fits.
func (c *Cluster) TrySeat(t Tenant, p *Place) bool {
	fitting := 0
	for _, l := range p.could {
		if c.admits(t.Class, p, l) {
			fitting++
		}
	}
	if fitting == 0 {
		return false
	}
	could := p.could
	if fitting < len(p.could) {
		could = nil
		for _, l := range p.could {
			if c.admits(t.Class, p, l) {
				could = append(could, l)
			}
		}
	}
	c.put(t, p, could)
	return true
}

// Put gives the pod a seat whether it fits or not: it is there already.
func (c *Cluster) Put(t Tenant, p *Place) { c.put(t, p, p.could) }

func (c *Cluster) put(t Tenant, p *Place, could []*Looks) {
	c.log = append(c.log, change{place: p, could: p.could, tenant: t, seat: len(p.tenants), ports: len(p.ports)})
	p.could = could
	p.tenants = append(p.tenants, t)
	p.ports = append(p.ports, t.Class.ports...)
	for _, r := range t.Class.requests {
		p.used.add(r.resource, r.n)
	}
}

// change remembers one seat that was given.
type change struct {
	place  *Place
	could  []*Looks
	tenant Tenant
	seat   int // how many had one before
	ports  int
}

// Mark is a moment to which Revert goes back.
type Mark int

// Fork begins a what-if.
func (c *Cluster) Fork() Mark { return Mark(len(c.log)) }

// Revert takes back every seat given since, the last first.
func (c *Cluster) Revert(to Mark) {
	for len(c.log) > int(to) {
		last := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		p := last.place
		p.could = last.could
		p.tenants = p.tenants[:last.seat]
		p.ports = p.ports[:last.ports]
		for _, r := range last.tenant.Class.requests {
			p.used.add(r.resource, -r.n)
		}
	}
}
