package fit

// Row is a list of places in the order in which they are tried, for many pods of
// few classes: a place that has refused a pod is not asked for its like again. No
// room may be freed while it is in use.
type Row struct {
	cluster *Cluster
	places  []*Place
	from    map[*Class]int
}

// NewRow makes a row of places.
func (c *Cluster) NewRow(places []*Place) *Row { return &Row{c, places, map[*Class]int{}} }

// Seat gives the pod a seat at the first place that takes it; nil if none does.
func (r *Row) Seat(t Tenant) *Place {
	p := r.Find(t.Class)
	if p != nil {
		r.cluster.seat(r.cluster.member(t.Class), t, p)
	}
	return p
}

// Find finds the first place that would take a pod of the class.
func (r *Row) Find(class *Class) *Place {
	m := r.cluster.member(class)
	head := true
	for i := r.from[class]; i < len(r.places); i++ {
		answer := r.cluster.ask(m, r.places[i])
		if answer == fits {
			return r.places[i]
		}
		if head = head && answer == lasting; head {
			r.from[class] = i + 1
		}
	}
	return nil
}
