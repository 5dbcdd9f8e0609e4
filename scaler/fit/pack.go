package fit

import (
	"cmp"
	"slices"
)

// Packing is the answer to how many new nodes pods need.
type Packing struct {
	// Places are the new nodes with the pods on them, in the order in which they
	// were opened.
	Places []*Place
	// From is for each place which of the supplies it is of, by index.
	From []int
	// Seats are those that the pods got at places that were there before.
	Seats []Seat
	// Left are the pods that fit no new node, or none within the limit, or about which no
	// more may be asked.
	Left []Tenant
}

// Seat is a place that a pod was given.
type Seat struct {
	Tenant
	At *Place
}

// Supply is where new nodes of one group come from.
type Supply struct {
	// Name is for people; the new places are called after it.
	Name string
	// Template are those of a new node, one for each zone.
	Template []*NodeTemplate
	// Have counts the group's nodes in each of these zones.
	Have []int
	// Limit is how many new nodes there may be at most.
	Limit int
	// Opens says for which classes a new node may be opened, nil for all: others have what room the
	// new nodes leave.
	Opens func(*Class) bool
	// Rank orders several supplies: a lower one is tried first. Those of equal rank
	// take turns, the one with the fewest nodes first.
	Rank int
	// Steered is true if the zone of every new node is ours to choose. If not, Auto Scaling
	// launches where the group has fewest, and of several such zones we take the first to be
	// it.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html
	Steered bool
	// Detour is how many more nodes may be opened, where the zone is not ours to
	// choose, for no other reason than that the one after them is in the zone that
	// a pod needs.
	Detour int
}

// Next lists the zones, as indices of Template, that one more node may be in, those in which
// the group would have fewest first.
func (s Supply) Next(opened []int) []int {
	order := make([]int, len(s.Template))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(s.Have[a]+opened[a], s.Have[b]+opened[b])
	})
	if !s.Steered {
		return order[:min(1, len(order))]
	}
	return order
}

// Pack puts pods onto new nodes, at most so many: pods of greater priority first, then the
// largest, those of one class as they come, each at the first node that it fits. If
// there is none, a node is opened of the first supply that has one for it. Those for which
// none may be opened come last. The new nodes stay open. Each pod on a new node may open a
// place there, among those that are there, to a pod that goes where others are or spreads
// evenly with them: such a pod asks these first.
//
// Where few pods wait, those that spread over hosts may come before larger ones, if that
// takes fewer nodes. Of many, the largest first take fewest.
func (c *Cluster) Pack(pods []Tenant, there []*Place, most int, supplies ...Supply) Packing {
	var looks []*NodeTemplate
	for _, s := range supplies {
		looks = append(looks, s.Template...)
	}
	order := stretches(pods, largest(looks))
	start := c.Fork()
	packed := c.pack(order, there, most, supplies)
	other := hostsFirst(order)
	if len(packed.Places) < 2 || len(pods) > fewPods || slices.EqualFunc(order, other, func(a, b stretch) bool { return a.batchKey == b.batchKey }) {
		return packed
	}
	c.Revert(start)
	if second := c.pack(other, there, most, supplies); len(second.Left) <= len(packed.Left) && len(second.Places) < len(packed.Places) {
		return second
	}
	c.Revert(start)
	return c.pack(order, there, most, supplies)
}

// fewPods are as many as are packed in more than one order.
const fewPods = 100

func (c *Cluster) pack(order []stretch, there []*Place, most int, supplies []Supply) Packing {
	p := packer{Cluster: c, row: c.NewRow(nil), there: c.NewRow(there), most: most, sources: make([]*source, len(supplies))}
	for i, s := range supplies {
		p.sources[i] = newSource(i, s)
	}
	var others []stretch
	for _, s := range order {
		c.ration.Ask(s.pods[0].Pod.Namespace) // whose the work is to find out who opens nodes
		if !slices.ContainsFunc(p.sources, func(from *source) bool { return from.opens(s.class) }) {
			others = append(others, s)
			continue
		}
		p.left = append(p.left, p.each(s.pods, func(t Tenant) bool { return p.find(t) || p.open(t) })...)
	}
	for _, s := range others {
		p.left = append(p.left, p.each(s.pods, p.find)...)
	}
	return Packing{Places: p.row.places, From: p.from, Seats: p.seats, Left: p.left}
}

// each seats pods of one class one after the other, up to the first that is refused: the others would
// be too. It returns that and those behind it. Pods about which no more may be asked are left.
func (p *packer) each(pods []Tenant, seat func(Tenant) bool) (rest []Tenant) {
	for i, t := range pods {
		// To ask for every pod takes longer than to seat it.
		ask := i%askedAgain == 0 || p.ration.Low()
		if ask && !p.ration.Ask(t.Pod.Namespace) {
			p.left = append(p.left, t)
			continue
		}
		if !seat(t) {
			return pods[i:]
		}
	}
	return nil
}

// packer is a packing in the making.
type packer struct {
	*Cluster
	sources []*source
	// row are the new nodes.
	row, there *Row
	// most is how many there may be.
	most  int
	from  []int
	seats []Seat
	left  []Tenant
}

// find finds a seat for the pod where there is one.
func (p *packer) find(t Tenant) bool {
	if len(p.row.places) > 0 && t.Class.Follows() {
		if at := p.there.Seat(t); at != nil {
			p.seats = append(p.seats, Seat{t, at})
			return true
		}
	}
	return p.row.Seat(t) != nil
}

// open opens a node for the pod.
func (p *packer) open(t Tenant) bool {
	fresh, from := p.openFor(t)
	p.row.add(fresh...)
	for range fresh {
		p.from = append(p.from, from)
	}
	return len(fresh) > 0
}

// source is a supply that is being drawn from.
type source struct {
	Supply
	index int
	// nodeName is for people.
	nodeName string
	// opened counts for each zone what was drawn.
	opened []int
	drawn  int
}

func newSource(index int, s Supply) *source {
	return &source{Supply: s, index: index, nodeName: "a new node of " + s.Name, opened: make([]int, len(s.Template))}
}

func (s *source) opens(c *Class) bool { return s.Opens == nil || s.Opens(c) }

// nodes is how many the source would have.
func (s *source) nodes() int {
	n := s.drawn
	for _, have := range s.Have {
		n += have
	}
	return n
}

// inTurn orders sources by rank; of equal ones that with the fewest nodes comes
// first.
func inTurn(sources []*source) []*source {
	order := slices.Clone(sources)
	slices.SortStableFunc(order, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.nodes(), b.nodes()))
	})
	return order
}

// openFor opens a new node for the pod and gives it a seat there, and returns of
// which source it is; nil if none would take it. On a detour the nodes before
// that one are opened too, and empty.
func (p *packer) openFor(t Tenant) (fresh []*Place, from int) {
	for _, s := range inTurn(p.sources) {
		if fresh := p.drawFor(t, s); fresh != nil {
			return fresh, s.index
		}
	}
	return nil, 0
}

func (p *packer) drawFor(t Tenant, s *source) []*Place {
	c, room := p.Cluster, min(s.Limit-s.drawn, p.most-len(p.row.places))
	if room <= 0 || !s.opens(t.Class) {
		return nil
	}
	if s.Steered {
		for _, zone := range s.Next(s.opened) {
			if !c.couldHold(c.member(t.Class), s.Template[zone]) {
				continue
			}
			start := c.Fork()
			if at := c.draw(s, zone); c.TrySeat(t, at) {
				return []*Place{at}
			}
			c.Revert(start)
			s.undraw(zone)
		}
		return nil
	}
	if !slices.ContainsFunc(s.Template, func(l *NodeTemplate) bool { return c.couldHold(c.member(t.Class), l) }) {
		return nil
	}
	start := c.Fork()
	var fresh []*Place
	var zones []int
	for len(fresh) <= s.Detour && len(fresh) < room && len(s.Template) > 0 {
		zone := s.Next(s.opened)[0]
		at := c.draw(s, zone)
		fresh, zones = append(fresh, at), append(zones, zone)
		if c.TrySeat(t, at) {
			s.Detour -= len(fresh) - 1
			return fresh
		}
	}
	c.Revert(start)
	for _, zone := range zones {
		s.undraw(zone)
	}
	return nil
}

// draw opens a node of the source in a zone.
func (c *Cluster) draw(s *source, zone int) *Place {
	s.opened[zone]++
	s.drawn++
	return c.Open(s.nodeName, s.Template[zone])
}

// undraw forgets a node that was not kept; Revert has taken it out.
func (s *source) undraw(zone int) {
	s.opened[zone]--
	s.drawn--
}

// Waste is the share of cpu and memory that stays free on these places, 0 to 1,
// the mean of both.
func Waste(places []*Place) float64 {
	var room, used [2]int64
	for _, p := range places {
		for i, r := range []int{cpu, memory} {
			room[i] += p.template.room.at(r)
			used[i] += p.template.room.at(r) - p.left(r)
		}
	}
	sum := 0.0
	for i := range room {
		if room[i] <= 0 { // such a node serves no pod by it
			sum++
			continue
		}
		sum += 1 - float64(used[i])/float64(room[i])
	}
	return sum / 2
}
