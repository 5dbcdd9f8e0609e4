package fit

// What an evaluation costs is counted in steps, so that it can be bounded without a clock.
// A step is about as much work as to look at a place. They are counted by what is asked and
// not by what an answer took, since what was learned before makes answers cheaper and must
// not change them.

// Steps counts those that were taken in this cluster so far.
func (c *Cluster) Steps() int64 { return c.steps }

// Spend counts steps that were taken elsewhere.
func (c *Cluster) Spend(steps int) { c.steps += int64(steps) }

// Ration divides steps among the namespaces whose pods are asked about. Half of them is for
// whoever needs it first; the other half they share, so that none takes all of it.
type Ration struct {
	cluster *Cluster
	// pool is what is left for all, and share what each namespace has beside that; spent is
	// how much of it is used up.
	pool, share int64
	spent       map[string]int64
	// current is the namespace that is asked about, since so many steps.
	current string
	since   int64
}

// Ration begins to divide steps among so many namespaces.
func (c *Cluster) Ration(steps int64, namespaces int) *Ration {
	c.ration = &Ration{
		cluster: c, pool: steps / 2, share: steps / 2 / int64(max(1, namespaces)), spent: map[string]int64{}, since: c.steps,
	}
	return c.ration
}

// Ask reports whether more may be asked about pods of a namespace, and counts what comes as its
// own.
func (r *Ration) Ask(namespace string) bool {
	if r == nil {
		return true
	}
	r.settle()
	r.current = namespace
	return r.pool > 0 || r.spent[namespace] < r.share
}

// Spent reports whether no more may be asked about pods of a namespace.
func (r *Ration) Spent(namespace string) bool {
	r.settle()
	return r.pool <= 0 && r.spent[namespace] >= r.share
}

// Tight reports whether some namespace may have spent its share.
func (r *Ration) Tight() bool {
	r.settle()
	return r.pool <= 0
}

// Low reports whether no work is left for all, as far as it was counted: from then on each
// namespace is asked for with each of its pods.
func (r *Ration) Low() bool { return r != nil && r.pool <= 0 }

// askedAgain is for how many equal pods it is asked once whether there is work left.
const askedAgain = 256

// settle counts what the current namespace has cost.
func (r *Ration) settle() {
	cost := r.cluster.steps - r.since
	r.since = r.cluster.steps
	pooled := min(cost, max(0, r.pool))
	r.pool -= pooled
	if cost > pooled {
		r.spent[r.current] += cost - pooled
	}
}

// weight is what it costs to ask one place about a class.
func (m *member) weight() int64 {
	return counting(len(m.keepsOff) + len(m.repelled) + len(m.gathers) + len(m.spreads) + m.demands.compared)
}

// counting is what it costs to ask a place, or to seat a pod there or to lift it, where so many rules
// about other pods count who is where, or about its name are compared with it: four of them are about
// as much work as all else.
func counting(rules int) int64 { return int64(1 + rules/4) }

// ownWeight is what kube-scheduler's plugins cost that are asked about volumes and devices.
const ownWeight = 50
