package fit

// Load is what pods take of each resource, wherever they are.
type Load struct{ takes []int64 }

// Add makes the load heavier by a pod of the class.
func (l *Load) Add(class *Class) {
	for _, a := range class.takes {
		for len(l.takes) <= a.resource {
			l.takes = append(l.takes, 0)
		}
		l.takes[a.resource] += a.n
	}
}

// MightHold reports whether the place could take a pod of the class with a load on it that is
// not there now. It costs less than to put the load there and to ask. No is for good: no
// pod of the class fits there with that load before something leaves the place. Yes is as
// far as resources go, what is static, and the ports of those that are there: what pods
// have against others is not asked.
func (c *Cluster) MightHold(class *Class, load Load, p *Place) bool {
	m := c.member(class)
	for _, a := range m.asks {
		if a.resource < len(load.takes) && a.n > c.free[a.resource][p.index]-load.takes[a.resource] && !c.delegates(m, p, a.resource) {
			return false
		}
	}
	return c.holds(m, p)
}

// MightHoldWithout reports whether the place could take a pod of the class if pods that are
// there left it, which are the load. It costs less than to let them and to ask. No is for
// good: no pod of the class fits there before others leave the place. Yes is as far as
// resources go and what is static.
func (c *Cluster) MightHoldWithout(class *Class, load Load, p *Place) bool {
	m := c.member(class)
	for _, a := range m.asks {
		if a.n > c.free[a.resource][p.index]+load.of(a.resource) && !c.delegates(m, p, a.resource) {
			return false
		}
	}
	return c.admits(m.demands, p)
}

func (l *Load) of(resource int) int64 {
	if resource >= len(l.takes) {
		return 0
	}
	return l.takes[resource]
}
