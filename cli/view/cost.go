package view

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/pkg/statuspage"
)

// HoursAMonth is what AWS's own calculator takes a month for.
const HoursAMonth = 730

// Cost is what the nodes cost now.
type Cost struct {
	AsOf            AsOf    `json:"asOf"`
	Nodes           int     `json:"nodes"`
	DollarsPerHour  float64 `json:"dollarsPerHour"`
	DollarsPerMonth float64 `json:"dollarsPerMonth"`
	// Prices says what the figures are made of.
	Prices string `json:"prices"`
	// SpotReported counts spot nodes that cost what EC2 reported at SpotAt; the others cost what
	// is assumed. SpotNote says why EC2's prices are not known, or not taken as they are.
	SpotReported int       `json:"spotReported"`
	SpotAt       time.Time `json:"spotAt,omitzero"`
	SpotNote     string    `json:"spotNote,omitempty"`
	// SpotFactor is the assumed price of spot instances as a share of that on demand, and
	// Discount what is paid on demand as a share of the list price.
	SpotFactor float64 `json:"spotFactor"`
	Discount   float64 `json:"discountFactor"`
	// Unpriced counts nodes whose price is not known: the sums lack them.
	Unpriced int `json:"unpriced,omitempty"`
	// Idle is what is paid for room that no pod requests.
	Idle Idle `json:"idle"`
	// Headroom is what nodes cost that stay for room that is kept free, and SpotSaving what
	// spot instances would cost more on demand.
	Headroom   float64 `json:"headroomDollarsPerHour"`
	SpotSaving float64 `json:"spotSavingDollarsPerHour"`

	Groups   []CostOf `json:"groups"`
	Capacity []CostOf `json:"capacityTypes"`
	Reasons  []CostOf `json:"reasons"`
	// Levers are what would lower the cost, the most first.
	Levers []Lever `json:"levers"`
}

// Idle is what no pod requests. A node's price counts half for its cpu and half for its memory.
type Idle struct {
	CPU            float64 `json:"cpuShare"`
	Memory         float64 `json:"memoryShare"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
}

// CostOf is a part of the cost.
type CostOf struct {
	Name            string  `json:"name"`
	Nodes           int     `json:"nodes"`
	DollarsPerHour  float64 `json:"dollarsPerHour"`
	DollarsPerMonth float64 `json:"dollarsPerMonth"`
	IdlePerHour     float64 `json:"idleDollarsPerHour"`
	// MostBy is what most of these nodes stay for, such as "PDB shop/api", and MostNodes how many.
	MostBy    string `json:"mostBy,omitempty"`
	MostNodes int    `json:"mostNodes,omitempty"`
	Do        string `json:"do,omitempty"`

	causes map[string]int
}

// Rates say what nodes cost where people know better than the scaler.
type Rates struct {
	// Book replaces the scaler's prices; nil keeps them. Source says what it is.
	Book   prices.Book
	Source string
	// SpotFactor is for all spot nodes. Where it is 0 they cost what EC2 reports, and else the
	// scaler's share of the price on demand.
	SpotFactor float64
	// Discount is what is paid on demand as a share of the list price.
	Discount float64
}

// capacities are the capacity types as people read them.
var capacities = map[statuspage.CapacityType]string{
	statuspage.OnDemand: "on demand", statuspage.Spot: "spot", statuspage.UnknownCapacity: SpotOrOnDemand,
}

// SpotOrOnDemand is said of nodes of which nothing tells which of both they are, and of groups
// that buy both.
const SpotOrOnDemand = "spot or on demand"

// NewCost adds up what the nodes cost.
func NewCost(w World, r Rates) Cost {
	c := Cost{
		AsOf:   w.AsOf(),
		Prices: cmp.Or(r.Source, w.Verdicts.Prices.Source), SpotFactor: cmp.Or(r.SpotFactor, w.Verdicts.Prices.SpotFactor), Discount: cmp.Or(r.Discount, 1),
		Groups: []CostOf{}, Capacity: []CostOf{}, Reasons: []CostOf{},
	}
	if r.SpotFactor == 0 {
		c.SpotAt, c.SpotNote = w.Verdicts.Prices.SpotAt, w.Verdicts.Prices.SpotNote
	}
	objects := make(map[string]*corev1.Node, len(w.Nodes))
	for i := range w.Nodes {
		objects[w.Nodes[i].Name] = &w.Nodes[i]
	}
	groups, capacity, reasons := map[string]int{}, map[string]int{}, map[string]int{}
	var free, all share
	shapes, demand := map[string]*shape{}, onDemand{}
	for i := range w.Verdicts.Nodes {
		n := &w.Verdicts.Nodes[i]
		list := listPrice(n, objects[n.Name], r.Book)
		price := list * c.Discount
		if n.Spot {
			price = list * c.SpotFactor
			if n.SpotReported && r.SpotFactor == 0 {
				price = n.PricePerHour
				c.SpotReported++
			}
			c.SpotSaving += max(0, list*c.Discount-price)
		}
		if list == 0 {
			c.Unpriced++
		}
		nodeFree, nodeAll := idleOf(objects[n.Name], w.Requested[n.Name])
		idle := price * nodeFree.of(nodeAll)
		if list > 0 { // as the dollars beside it
			free, all = free.plus(nodeFree), all.plus(nodeAll)
		}
		if n.Group != "" && slices.Contains(inUse, n.Reason) {
			s := cmp.Or(shapes[n.Group], &shape{})
			shapes[n.Group] = s
			*s = shape{s.nodes + 1, s.free.plus(nodeFree), s.all.plus(nodeAll), s.dollars + idle}
		}
		if n.Group != "" && n.Capacity() == statuspage.OnDemand {
			demand.nodes++
			demand.dollars += max(0, price-list*c.SpotFactor)
		}
		c.Nodes++
		c.DollarsPerHour += price
		c.Idle.DollarsPerHour += idle
		if n.Reason == "NeededAsHeadroom" {
			c.Headroom += price
		}
		add(&c.Groups, groups, cmp.Or(n.Group, "in no group"), price, idle, "")
		add(&c.Capacity, capacity, capacities[n.Capacity()], price, idle, "")
		add(&c.Reasons, reasons, string(n.Reason), price, idle, causeOf(n.Verdict))
	}
	c.Idle.CPU, c.Idle.Memory = rounded(ratio(free.cpu, all.cpu)), rounded(ratio(free.memory, all.memory))
	c.DollarsPerMonth = rounded(c.DollarsPerHour * HoursAMonth)
	for _, sum := range []*float64{&c.DollarsPerHour, &c.Idle.DollarsPerHour, &c.Headroom, &c.SpotSaving} {
		*sum = rounded(*sum)
	}
	for _, list := range [][]CostOf{c.Groups, c.Capacity, c.Reasons} {
		finish(list)
	}
	for i := range c.Reasons {
		c.Reasons[i].Do = AdviceOn(KindNode, statuspage.Reason(c.Reasons[i].Name)).Do
	}
	c.levers(shapes, demand)
	return c
}

// listPrice is a node's price on demand, before any discount; 0 where it is not known.
func listPrice(n *statuspage.Node, object *corev1.Node, own prices.Book) float64 {
	if own != nil && object != nil {
		return own.Of(object.Labels[corev1.LabelTopologyRegion], object.Labels[corev1.LabelInstanceTypeStable])
	}
	if n.Spot {
		return n.OnDemandPerHour
	}
	return n.PricePerHour
}

// causeOf names what keeps a node, in a word or two: a budget, an annotation, a pod's rule.
func causeOf(v statuspage.Verdict) string {
	for _, budget := range v.Names("budgets") {
		return "PDB " + budget
	}
	if blockers := v.Names("blockers"); len(blockers) > 0 {
		return blockers[0]
	}
	if annotation := v.Text("annotation"); annotation != "" {
		return annotation
	}
	if room := v.Text("headroom"); room != "" {
		return room
	}
	if v.Reason == "BlockedByPod" {
		return v.Text("cause")
	}
	return ""
}

// rounded leaves no more than is known.
func rounded(sum float64) float64 { return math.Round(sum*1e6) / 1e6 }

func add(list *[]CostOf, at map[string]int, name string, price, idle float64, cause string) {
	i, known := at[name]
	if !known {
		i = len(*list)
		at[name] = i
		*list = append(*list, CostOf{Name: name, causes: map[string]int{}})
	}
	part := &(*list)[i]
	part.Nodes++
	part.DollarsPerHour += price
	part.IdlePerHour += idle
	if cause != "" {
		part.causes[cause]++
	}
}

func finish(list []CostOf) {
	for i := range list {
		part := &list[i]
		part.DollarsPerMonth = rounded(part.DollarsPerHour * HoursAMonth)
		part.DollarsPerHour, part.IdlePerHour = rounded(part.DollarsPerHour), rounded(part.IdlePerHour)
		for cause, nodes := range part.causes {
			if nodes > part.MostNodes || nodes == part.MostNodes && cause < part.MostBy {
				part.MostBy, part.MostNodes = contract.Shorten(cause, 120), nodes
			}
		}
	}
	slices.SortFunc(list, func(a, b CostOf) int {
		return cmp.Or(cmp.Compare(b.DollarsPerHour, a.DollarsPerHour), b.Nodes-a.Nodes, cmp.Compare(a.Name, b.Name))
	})
}

// share is room, in cores and bytes.
type share struct{ cpu, memory float64 }

func (s share) plus(other share) share { return share{s.cpu + other.cpu, s.memory + other.memory} }

// of is which part of a node's price it is.
func (s share) of(all share) float64 {
	return (ratio(s.cpu, all.cpu) + ratio(s.memory, all.memory)) / 2
}

func ratio(part, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return part / all
}

// idleOf is how much of a node no pod requests, and how much there is.
func idleOf(n *corev1.Node, requested corev1.ResourceList) (free, all share) {
	if n == nil {
		return share{}, share{}
	}
	all = shareOf(n.Status.Allocatable)
	used := shareOf(requested)
	return share{max(0, all.cpu-used.cpu), max(0, all.memory-used.memory)}, all
}

func shareOf(list corev1.ResourceList) share {
	return share{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64()}
}

// Names are the groups, the dearest first.
func (c Cost) Names() []string {
	var names []string
	for _, g := range c.Groups {
		if g.Name != "in no group" {
			names = append(names, ref(KindGroup, g.Name))
		}
	}
	return names
}
