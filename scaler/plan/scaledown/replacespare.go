package scaledown

import (
	"cmp"
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// emptyOnto chooses nodes that are needed, and whose pods fit a cheaper node that has none: Auto
// Scaling launched it after the pods that it was asked for ran elsewhere, or the replacement for
// which it came was given up. It stays, as another like it would be launched to replace them. They
// are unneeded like all nodes whose pods have other places: nothing but their marks is persisted,
// and whether the cluster is quiet does not matter. rest are those that may go beside them.
func (r *nodeSearch) emptyOnto(list []*candidate) (chosen, rest []*candidate) {
	spares := r.spares()
	if len(spares) == 0 {
		return nil, list
	}
	r.part = shareSpares
	sources := slices.DeleteFunc(r.replaceableNodes(spares[0].Group.Price(), mostBalanced), func(c *candidate) bool {
		unneeded := slices.ContainsFunc(list, func(other *candidate) bool { return other.Node == c.Node })
		return unneeded || r.replaced[c.Node]
	})
	slices.SortStableFunc(sources, func(a, b *candidate) int {
		return cmp.Or(cluster.CompareBool(a.since.IsZero(), b.since.IsZero()), a.since.Compare(b.since))
	})
	all, refused := r.ledger(), map[zoneOfGroup]bool{}
	for _, n := range spares {
		kind := zoneOfGroup{n.Group, n.Zone()}
		if len(sources) == 0 || refused[kind] {
			continue
		}
		x := r.dearerThan(n, sources, all)
		if refused[kind] = x == nil; x == nil {
			continue
		}
		if !slices.ContainsFunc(x.set, func(c *candidate) bool { return !r.overdue(c) }) {
			for _, c := range x.set {
				r.missed[c.Node] = true
			}
			sources = slices.DeleteFunc(sources, func(c *candidate) bool { return slices.Contains(x.set, c) })
			continue
		}
		r.row = r.Fit.NewRow([]*fit.Place{n.Place})
		for _, c := range x.set {
			r.tryToGo(c)
			c.Node.Reason, c.Node.Details = "", nil
			c.beside = verdict.Say("its pods fit node {node}, which costs less", verdict.Node(n.Name))
		}
		n.Say(verdict.NodeNeeded, verdict.Say("it costs less than {nodes}, whose pods fit it", verdict.Nodes(cluster.Names(x.nodes()))))
		chosen = append(chosen, x.set...)
		sources = slices.DeleteFunc(sources, func(c *candidate) bool { return c.Leaves })
		list = slices.DeleteFunc(list, func(c *candidate) bool { return c.Node == n })
	}
	for _, c := range sources {
		r.missed[c.Node] = r.spent(r.part)
	}
	return chosen, list
}

// overdue reports whether a marked node should have gone for as long as a replacement may take: none is
// kept for it any more, and its own mark stays until that has gone.
func (r *nodeSearch) overdue(c *candidate) bool {
	if c.since.IsZero() {
		return false
	}
	until := c.due(r.Policy).Add(r.replacementTime())
	r.Clock.At(until)
	return !r.Now.Before(until)
}

// spares are the nodes without pods that may take those of dearer ones, the cheapest first.
func (r *nodeSearch) spares() []*cluster.Node {
	if !r.wantsReplacements() {
		return nil
	}
	list := slices.DeleteFunc(r.In(cluster.Serving), func(n *cluster.Node) bool {
		if n.Group == nil || n.Group.Price() <= 0 || !n.Instance.Live() || !n.Open || r.replaced[n] {
			return true
		}
		if n.Group.Excess() > 0 || r.WhyReplacing(n.Group) != nil {
			return true // others decide now which nodes the group keeps
		}
		_, occupied := n.Occupied(r.Now)
		return occupied || len(n.Place.Seated()) > 0 || r.Now.Before(n.Settled(r.Policy))
	})
	slices.SortStableFunc(list, func(a, b *cluster.Node) int { return cmp.Compare(a.Group.Price(), b.Group.Price()) })
	return list
}

// dearerThan are nodes whose pods all fit one without pods that costs less, if that pays: of those that
// were chosen in an earlier evaluation what they disrupt is not weighed again.
func (r *nodeSearch) dearerThan(n *cluster.Node, sources []*candidate, all ledger) *proposal {
	pays := func(x *proposal) bool {
		if slices.ContainsFunc(x.set, func(c *candidate) bool { return c.since.IsZero() }) {
			return x.whyRefused(all) == nil
		}
		return x.whyUnpaid() == nil
	}
	for i := range sources {
		if r.spent(r.part) {
			return nil
		}
		if x := r.gather(sources, i, proposal{group: n.Group}, func(try func(goes func(*candidate) bool)) { r.onto(n.Place, try) }, pays); x != nil {
			return x
		}
	}
	return nil
}
