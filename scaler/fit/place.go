package fit

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// World is what decides where pods fit, beside the nodes.
type World struct {
	// Kubernetes is the version of the API server: kube-scheduler's rules follow
	// it. Empty counts as the newest that is known.
	Kubernetes string
	// Pods are all pods, those without a node too, because each may keep others
	// away.
	Pods       []*fleet.Pod
	Namespaces map[string]map[string]string
	Storage    fleet.Storage
	Devices    fleet.Devices
}

// Rules is what is known of kube-scheduler's rules, of classes and of static
// verdicts. It may be kept from look to look: that saves work and changes no
// answer. Not for concurrent use.
type Rules struct{}

// NewRules knows nothing yet.
func NewRules() *Rules { return &Rules{} }

// Cluster is a cluster in thought: its nodes, what is on them, and an undo log,
// so that a what-if costs what it changes and can be taken back.
type Cluster struct {
	names      *names
	bySpec     map[*corev1.PodSpec]*Class
	byKey      map[string]*Class
	repulsions []repulsion
	verdicts   map[verdictKey]Reasons
	log        []change
	opened     int
}

// Cluster begins a look at a world in which there is no node yet.
func (r *Rules) Cluster(w World) *Cluster {
	c := &Cluster{
		names:    newNames(),
		bySpec:   map[*corev1.PodSpec]*Class{},
		byKey:    map[string]*Class{},
		verdicts: map[verdictKey]Reasons{},
	}
	for _, p := range w.Pods {
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

// Place is a node, or one that will come, with the pods on it.
type Place struct {
	// Name is for people.
	Name string

	looks   *Looks
	used    vector
	ports   []hostPort
	tenants []Tenant
}

// Add takes a node that is there, or comes for certain, into the cluster. Every
// node belongs in, also those that no pod shall go to: what is on them counts
// for where others fit.
func (c *Cluster) Add(l *Looks) *Place { return &Place{Name: l.Name, looks: l} }

// Open takes a node into the cluster that is not there yet. It has a host name of
// its own. Revert takes it out again.
func (c *Cluster) Open(name string, l *Looks) *Place {
	c.opened++
	own := *l
	own.node = l.node.DeepCopy()
	own.node.Labels = maps.Clone(l.node.Labels)
	if own.node.Labels == nil {
		own.node.Labels = map[string]string{}
	}
	own.node.Labels[corev1.LabelHostname] = fmt.Sprintf("new-%d", c.opened)
	return &Place{Name: name, looks: &own}
}

// Tenants lists the pods that have a seat here. The slice is the caller's.
func (p *Place) Tenants() []Tenant { return slices.Clone(p.tenants) }

// Looks is what decides what fits the place when it is empty.
func (p *Place) Looks() *Looks { return p.looks }

// Fits says what keeps a class off a place; nothing does if it fits.
func (c *Cluster) Fits(class *Class, p *Place) Reasons {
	why := slices.Clip(c.static(class, p.looks))
	for _, wanted := range class.ports {
		if slices.ContainsFunc(p.ports, wanted.clashes) {
			why = append(why, Reason{Rule: RulePort, What: wanted.String()})
		}
	}
	for _, r := range class.requests {
		if have := p.looks.room.at(r.resource) - p.used.at(r.resource); r.n > have {
			why = append(why, Reason{Rule: RuleResources, What: string(c.names.names[r.resource]), Need: r.n, Have: have})
		}
	}
	return why
}

// FitsNew says what keeps a class off a new node that looks like one of these;
// of several misses it tells the nearest, the first of them.
func (c *Cluster) FitsNew(class *Class, looks []*Looks) Reasons {
	var nearest Reasons
	for _, l := range looks {
		start := c.Fork()
		why := c.Fits(class, c.Open(l.Name, l))
		c.Revert(start)
		if len(why) == 0 {
			return nil
		}
		if nearest == nil || why.Nearer(nearest) {
			nearest = why
		}
	}
	return nearest
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
	if len(c.Fits(t.Class, p)) > 0 {
		return false
	}
	c.Put(t, p)
	return true
}

// Put gives the pod a seat whether it fits or not: it is there already.
func (c *Cluster) Put(t Tenant, p *Place) {
	c.log = append(c.log, change{p, t, true})
	p.put(t)
}

// Lift takes a pod off the place where it has a seat.
func (c *Cluster) Lift(t Tenant, p *Place) {
	c.log = append(c.log, change{p, t, false})
	p.lift(t)
}

func (p *Place) put(t Tenant) {
	p.tenants = append(p.tenants, t)
	p.ports = append(p.ports, t.Class.ports...)
	for _, r := range t.Class.requests {
		p.used.add(r.resource, r.n)
	}
}

func (p *Place) lift(t Tenant) {
	at := slices.IndexFunc(p.tenants, func(x Tenant) bool { return x.Pod == t.Pod })
	if at < 0 {
		return
	}
	p.tenants = slices.Delete(p.tenants, at, at+1)
	for _, port := range t.Class.ports {
		i := slices.Index(p.ports, port)
		p.ports = slices.Delete(p.ports, i, i+1)
	}
	for _, r := range t.Class.requests {
		p.used.add(r.resource, -r.n)
	}
}

// change remembers one seat that was given or taken.
type change struct {
	place  *Place
	tenant Tenant
	given  bool
}

// Mark is a moment to which Revert goes back.
type Mark int

// Fork begins a what-if.
func (c *Cluster) Fork() Mark { return Mark(len(c.log)) }

// Revert takes back all that was changed since, the last first.
func (c *Cluster) Revert(to Mark) {
	for len(c.log) > int(to) {
		last := c.log[len(c.log)-1]
		c.log = c.log[:len(c.log)-1]
		if last.given {
			last.place.lift(last.tenant)
		} else {
			last.place.put(last.tenant)
		}
	}
}
