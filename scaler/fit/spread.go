package fit

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Topology spread as kube-scheduler's PodTopologySpread has it: a pod may go where
// its domain would then have at most maxSkew more than the domain with the fewest.
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/

// spreadCheck is a constraint of a class with its tally.
type spreadCheck struct {
	*tally
	term *spreadTerm
	// self is 1 where the pods count themselves.
	self int32
}

// electorate are the nodes whose domains and pods count for a constraint: those
// that have all labels of the pod's constraints and, as far as the constraint
// honors that, that it could go to.
type electorate struct {
	id         int
	topologies []int
	// affinity and taints are the demands that are honored, or nil.
	affinity, taints *demands
	// byKind is what was found for kinds of nodes.
	byKind map[*kind]bool
	// places counts the places of the electorate in each domain, domainsOf the
	// domains that have any, both by the index of topologies.
	places    []counts
	domainsOf []int32
}

// spreading makes ready to check a constraint of a class.
func (c *Cluster) spreading(m *member, term *spreadTerm) spreadCheck {
	e := c.electorate(m, term)
	check := spreadCheck{term: term, self: 1}
	if term.all {
		check.tally = c.tally(spreading, nil, term.topology, e)
		return check
	}
	check.tally = c.tally(spreading, []int{term.selected}, term.topology, e)
	if !m.matched.has(term.selected) {
		check.self = 0
	}
	return check
}

func (c *Cluster) electorate(m *member, term *spreadTerm) *electorate {
	e := &electorate{id: len(c.electorates), byKind: map[*kind]bool{}}
	for i := range m.spread {
		e.topologies = append(e.topologies, c.topology(m.spread[i].topology))
	}
	slices.Sort(e.topologies)
	e.topologies = slices.Compact(e.topologies)
	key := fmt.Sprint(e.topologies)
	if term.honorAffinity {
		e.affinity = m.demands
		key += "affinity" + m.demands.affinityKey
	}
	if term.honorTaints {
		e.taints = m.demands
		key += "taints" + m.demands.tolerationsKey
	}
	if known, ok := c.byElectorate[key]; ok {
		return known
	}
	e.places, e.domainsOf = make([]counts, len(e.topologies)), make([]int32, len(e.topologies))
	c.byElectorate[key] = e
	c.electorates = append(c.electorates, e)
	if !e.accepts(c.world.Closing) {
		c.wary = append(c.wary, e)
	}
	for _, p := range c.places {
		if p != nil {
			p.votes = append(p.votes, c.elects(e, p))
			c.enroll(e, p, 1)
		}
	}
	return e
}

// elects reports whether a place belongs to the electorate.
func (c *Cluster) elects(e *electorate, p *Place) bool {
	for _, t := range e.topologies {
		if p.domains[t] == none {
			return false
		}
	}
	if p.closed && !e.accepts(c.world.Closing) {
		return false
	}
	if e.affinity != nil && e.affinity.singular {
		return e.couldGo(p)
	}
	kind := c.lore.kindOf(p.template)
	could, known := e.byKind[kind]
	if !known {
		could = e.couldGo(p)
		e.byKind[kind] = could
	}
	return could
}

func (e *electorate) couldGo(p *Place) bool {
	if e.affinity != nil {
		if ok, _ := e.affinity.required.Match(p.node()); !ok {
			return false
		}
	}
	return e.accepts(p.template.taints)
}

// accepts reports whether nodes with such taints may belong to the electorate.
func (e *electorate) accepts(taints []corev1.Taint) bool {
	return e.taints == nil || !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return !e.taints.tolerates(t) })
}

// enroll counts a place in, or out by -1.
func (c *Cluster) enroll(e *electorate, p *Place, n int32) {
	if !p.votes[e.id] {
		return
	}
	for i, t := range e.topologies {
		if !p.populates(c.topologies[t]) {
			continue
		}
		before := e.places[i].add(p.domains[t], n)
		if before == 0 {
			e.domainsOf[i]++
		}
		if before+n == 0 {
			e.domainsOf[i]--
		}
	}
}

// present is how many domains have a place of the electorate.
func (e *electorate) present(topology int) int32 {
	i, _ := slices.BinarySearch(e.topologies, topology)
	return e.domainsOf[i]
}

// least is what the skew is reckoned from.
func (s *spreadCheck) least() int32 {
	if s.electorate.present(s.over) < s.term.minDomains {
		return 0
	}
	return s.fewest()
}

// most is how many pods a domain may have that takes one more.
func (s *spreadCheck) most() int64 {
	return int64(s.least()) + int64(s.term.maxSkew) - int64(s.self)
}

// allowsIn reports whether one pod more in a domain is not too many.
func (s *spreadCheck) allowsIn(d int32) bool { return int64(s.counts.at(d)) <= s.most() }

// uneven returns what spread has against a place.
func (c *Cluster) uneven(m *member, p *Place) Reasons {
	var why Reasons
	for i := range m.spreads {
		s := &m.spreads[i]
		d := p.domains[s.over]
		switch {
		case d == none:
			why = append(why, Reason{Rule: RulePodTopologySpread, What: fmt.Sprintf("spread %s over %s: it has no such label", s.term.text, s.term.topology)})
		case !s.allowsIn(d) && s.electorate.present(s.over) < s.term.minDomains:
			why = append(why, Reason{Rule: RulePodTopologySpread, What: fmt.Sprintf("spread %s over %s: %d %s, at most %d in each while there are fewer than %d (minDomains), and there are %d",
				s.term.text, s.term.topology, s.at(p), c.where(p, s.over), s.term.maxSkew, s.term.minDomains, s.electorate.present(s.over))})
		case !s.allowsIn(d):
			why = append(why, Reason{Rule: RulePodTopologySpread, What: fmt.Sprintf("spread %s over %s: %d %s, at most %d more than %d",
				s.term.text, s.term.topology, s.at(p), c.where(p, s.over), s.term.maxSkew, s.least())})
		}
	}
	return why
}

// where names the domain of a place.
func (c *Cluster) where(p *Place, topology int) string {
	if value := c.topologies[topology].values[p.domains[topology]]; value != "" {
		return "in " + value
	}
	return "on it"
}
