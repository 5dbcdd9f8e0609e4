package fit

import (
	"cmp"
	"fmt"
	"slices"
)

// Inter-pod affinity and anti-affinity as kube-scheduler's InterPodAffinity has
// them.
// https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity

// keptOff reports whether and how anti-affinity keeps a class off a place: its own, or that
// of pods that are in the same domain.
func (c *Cluster) keptOff(m *member, p *Place) refusal {
	answer := fits
	for _, tallies := range [][]*tally{m.keepsOff, m.repelled} {
		for _, t := range tallies {
			if t.at(p) == 0 {
				continue
			}
			if c.stays(t.topology) {
				return lasting
			}
			answer = passing
		}
	}
	return answer
}

// gathered reports whether those are in the domains of a place that the class wants to be
// with, or it may be the first of them.
func (m *member) gathered(p *Place) bool {
	together := true
	for _, t := range m.gathers {
		if p.domains[t.over] == none {
			return false
		}
		together = together && t.at(p) > 0
	}
	return together || m.first && m.alone()
}

// alone reports whether none of those that the class wants to be with is anywhere.
func (m *member) alone() bool {
	for _, t := range m.gathers {
		if t.occupied > 0 {
			return false
		}
	}
	return true
}

// apart returns what affinity and anti-affinity have against a place.
func (c *Cluster) apart(m *member, p *Place) Reasons {
	var why Reasons
	say := func(format string, args ...any) {
		why = append(why, Reason{Rule: RuleInterPodAffinity, What: fmt.Sprintf(format, args...)})
	}
	if !m.gathered(p) {
		for i, t := range m.gathers {
			term := m.affinity[i]
			switch {
			case p.domains[t.over] == none:
				say("affinity with %s: it has no label %s", term.text, term.topology)
			case t.at(p) == 0:
				say("no other pod matches its affinity with %s %s", term.text, c.where(p, t.over))
			}
		}
	}
	for i, t := range m.keepsOff {
		if t.at(p) > 0 {
			other := c.witness(p, t.over, func(o *member) bool { return t.counted(o) })
			say("anti-affinity with %s, and pod %s is there (%s)", m.anti[i].text, other, t.topology)
		}
	}
	for _, t := range m.repelled {
		if t.at(p) > 0 {
			other := c.witness(p, t.over, func(o *member) bool { return o.owns(t) })
			say("anti-affinity with %s of pod %s (%s)", forPeople(c.lore.selectors.list[t.selectors[0]].pods), other, t.topology)
		}
	}
	return why
}

func (m *member) owns(t *tally) bool {
	for _, term := range m.anti {
		if term.repelled == t.selectors[0] && term.topology == t.topology {
			return true
		}
	}
	return false
}

// witness names the first pod, by name, of those in the domain that will do.
func (c *Cluster) witness(p *Place, over int, will func(*member) bool) string {
	first := ""
	for _, other := range c.places {
		if other == nil || other.domains[over] != p.domains[over] {
			continue
		}
		for t := range other.residents() {
			c.steps++
			if !will(c.members[t.Class.id]) {
				continue
			}
			if key := t.Pod.Key(); first == "" || cmp.Compare(key, first) < 0 {
				first = key
			}
		}
	}
	return first
}

// Follows reports whether pods of another class, by where they are, may open places to a
// class: it must be with them, or spreads evenly with them.
func (c *Cluster) Follows(class, other *Class) bool {
	m, o := c.member(class), c.member(other)
	counts := func(t *tally) bool { return len(t.selectors) > 0 && t.counted(o) }
	return slices.ContainsFunc(m.gathers, counts) ||
		slices.ContainsFunc(m.spreads, func(s spreadCheck) bool { return counts(s.tally) })
}

// Unrelated reports whether where other pods are has no say in where the class goes, but for
// the room that they take.
func (c *Cluster) Unrelated(class *Class) bool {
	m := c.member(class)
	return len(m.keepsOff)+len(m.repelled)+len(m.gathers)+len(m.spreads)+len(m.ports) == 0 && m.own == nil
}
