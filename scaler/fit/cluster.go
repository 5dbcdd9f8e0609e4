package fit

import (
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// Cluster is a simulated cluster: its nodes, what is on them, and an undo log, so that a
// what-if costs what it changes and can be undone. It is of no use any more once its Rules
// begin another evaluation.
type Cluster struct {
	lore  *lore
	world World
	// classes are those of the world's pods, nil for one that ended.
	classes []*Class

	topologies []*topology
	byLabel    map[string]int
	// electorates and tallies count pods for spread and inter-pod terms.
	electorates  []*electorate
	byElectorate map[string]*electorate
	// wary are the electorates that lose a place when it is closed.
	wary    []*electorate
	tallies map[tallyKey]*tally
	// counting and owning are the tallies by the first of their selectors.
	counting, owning map[int][]*tally

	// members are the classes that were met, by their numbers; matched lists those
	// that a selector matches.
	members []*member
	matched map[int][]*member
	// routed is true if some pod has volumes or devices, so that every place is a host to
	// kube-scheduler's plugins.
	routed bool

	// places are by their numbers; nil where one was removed.
	places []*Place
	spare  []int32
	// free is what is left of each resource at each place.
	free [][]int64

	// daemons are the DaemonSets as tenants of new nodes.
	daemons []Tenant

	singles map[single]verdict
	log     []change
	undos   []func()
	opened  int
	// steps counts what was asked, and ration divides it; nil where work is not bounded.
	steps  int64
	ration *Ration
	// trial numbers the what-if that goes on, of so many; 0 while there is none.
	trial, trials int
}

func newCluster(l *lore, w World, classes []*Class, daemons []*fleet.Pod) *Cluster {
	l.reuse()
	c := &Cluster{
		lore: l, world: w, classes: classes,
		byLabel:      map[string]int{},
		byElectorate: map[string]*electorate{},
		tallies:      map[tallyKey]*tally{}, counting: map[int][]*tally{}, owning: map[int][]*tally{},
		matched: map[int][]*member{},
		singles: map[single]verdict{},
		places:  make([]*Place, 0, len(l.places)), free: l.free,
	}
	for _, class := range classes {
		if class != nil {
			c.member(class)
		}
	}
	for _, p := range daemons {
		t := Tenant{p, l.daemonClass(p)}
		c.member(t.Class)
		c.daemons = append(c.daemons, t)
	}
	return c
}

// Tenant finds a pod's class. The pod should be one of the world's: terms of others
// that are met only now do not count for classes that are known.
func (c *Cluster) Tenant(p *fleet.Pod) Tenant {
	return Tenant{p, c.lore.tenantOf(p)}
}

// TenantAt is that of the pod of that index in the world. It costs less than to look
// for it.
func (c *Cluster) TenantAt(i int) Tenant {
	if c.classes[i] == nil {
		return c.Tenant(c.world.Pods[i])
	}
	return Tenant{c.world.Pods[i], c.classes[i]}
}

// member is a class in this cluster: what it counts for and what counts for it.
type member struct {
	*Class
	// joins are the tallies that a pod of the class counts in.
	joins []*tally
	// keepsOff count whom the class keeps away from, repelled those who keep it away.
	keepsOff, repelled []*tally
	// gathers count those that it wants to be with, all of them by the same selectors; first
	// is true if it may be the first of them.
	gathers []*tally
	first   bool
	spreads []spreadCheck
}

// member finds what a class is here. Its tallies exist from then on.
func (c *Cluster) member(class *Class) *member {
	if class.id < len(c.members) && c.members[class.id] != nil {
		return c.members[class.id]
	}
	for len(c.members) <= class.id {
		c.members = append(c.members, nil)
	}
	m := &member{Class: class}
	c.members[class.id] = m
	c.columns(class)
	if class.own != nil && !c.routed {
		c.route()
	}
	for _, s := range class.matched.ids {
		c.matched[s] = append(c.matched[s], m)
		for _, t := range c.counting[s] {
			if t.counted(m) {
				m.joins = append(m.joins, t)
			}
		}
		m.repelled = append(m.repelled, c.owning[s]...)
	}
	c.own(m)
	return m
}

// own makes the tallies of a class's own terms.
func (c *Cluster) own(m *member) {
	for _, term := range m.anti {
		m.keepsOff = append(m.keepsOff, c.tally(matching, []int{term.selected}, term.topology, nil))
		t := c.tally(owning, []int{term.repelled}, term.topology, nil)
		m.joins = append(m.joins, t)
	}
	if len(m.affinity) > 0 {
		var all []int
		for _, term := range m.affinity {
			all = append(all, term.selected)
		}
		slices.Sort(all)
		all = slices.Compact(all)
		m.first = !slices.ContainsFunc(all, func(s int) bool { return !m.matched.has(s) })
		for _, term := range m.affinity {
			m.gathers = append(m.gathers, c.tally(matching, all, term.topology, nil))
		}
	}
	for i := range m.spread {
		m.spreads = append(m.spreads, c.spreading(m, &m.spread[i]))
	}
}

// tally finds or makes one.
func (c *Cluster) tally(p purpose, selectors []int, key string, e *electorate) *tally {
	k := tallyKey{purpose: p, selector: none, topology: key, electorate: -1}
	if len(selectors) > 0 {
		k.selector = int32(selectors[0])
	}
	if len(selectors) > 1 {
		k.others = fmt.Sprint(selectors[1:])
	}
	if e != nil {
		k.electorate = e.id
	}
	if t, known := c.tallies[k]; known {
		return t
	}
	t := &tally{tallyKey: k, over: c.topology(key), electorate: e, selectors: selectors}
	c.tallies[k] = t
	if len(selectors) == 0 {
		return t // no pod counts
	}
	if p == owning {
		c.owning[selectors[0]] = append(c.owning[selectors[0]], t)
		for _, m := range c.matched[selectors[0]] {
			m.repelled = append(m.repelled, t)
		}
		return t
	}
	c.counting[selectors[0]] = append(c.counting[selectors[0]], t)
	for _, m := range c.matched[selectors[0]] {
		if t.counted(m) {
			m.joins = append(m.joins, t)
		}
	}
	c.recount(t)
	return t
}

// counted reports whether pods of a class count in a tally that does not go by owners.
func (t *tally) counted(m *member) bool {
	if t.purpose == spreading && m.terminating {
		return false
	}
	for _, s := range t.selectors {
		if !m.matched.has(s) {
			return false
		}
	}
	return true
}

// recount counts the pods that had their seats before the tally was made.
func (c *Cluster) recount(t *tally) {
	for _, p := range c.places {
		if p == nil {
			continue
		}
		for tenant := range p.residents() {
			if t.counted(c.members[tenant.Class.id]) {
				t.add(p, 1)
			}
		}
	}
}

// topology numbers a label by which nodes are domains.
func (c *Cluster) topology(key string) int {
	if i, known := c.byLabel[key]; known {
		return i
	}
	i := len(c.topologies)
	t := &topology{key: key, domains: map[string]int32{}}
	c.topologies = append(c.topologies, t)
	c.byLabel[key] = i
	for _, p := range c.places {
		if p != nil {
			p.domains = append(p.domains, p.domain(t))
		}
	}
	return i
}

// columns makes room to count what a class asks for.
func (c *Cluster) columns(class *Class) {
	for _, list := range [][]amount{class.asks, class.takes} {
		for _, a := range list {
			for r := len(c.free); r <= a.resource; r++ {
				c.free = slices.Grow(c.free, 1)[:r+1] // a column of the last evaluation may stand there
				c.free[r] = slices.Grow(c.free[r][:0], cap(c.places))[:len(c.places)]
				for i, p := range c.places {
					c.free[r][i] = 0
					if p != nil {
						c.free[r][i] = p.template.room.at(r)
					}
				}
			}
		}
	}
	c.lore.free = c.free
}
