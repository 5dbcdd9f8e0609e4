package view

import (
	"cmp"
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/statuspage"
)

// Lever is something that would lower the cost: by this much at the most, and by itself. Levers
// overlap, so their sum says nothing.
type Lever struct {
	DollarsPerHour float64 `json:"dollarsPerHour"`
	What           string  `json:"what"`
	Do             string  `json:"do"`
}

const (
	// leastLever is which share of the cost a lever has to be worth.
	leastLever = 0.01
	// lopsided is how much more of one resource than of the other is idle where a type of another
	// shape would waste less.
	lopsided = 0.25
)

// held are the reasons for which nodes stay that people can change.
var held = []statuspage.Reason{"BlockedByPod", "NeededAsHeadroom", "Held", "GroupAtMin", "ScaleDownStopped", "Retained"}

// inUse are those of nodes that stay for what runs on them. What is idle there is so by their shape.
var inUse = []statuspage.Reason{"Needed", "NoPlaceForPods"}

// shape is what is idle on the nodes in use of a group.
type shape struct {
	nodes     int
	free, all share
	dollars   float64
}

// onDemand is what would cost less as spot.
type onDemand struct {
	nodes   int
	dollars float64 // that it would cost less
}

func (c *Cost) levers(shapes map[string]*shape, demand onDemand) {
	list := []Lever{}
	worth := func(dollars float64, what, do string) {
		if dollars > 0 && dollars >= leastLever*c.DollarsPerHour {
			list = append(list, Lever{rounded(dollars), what, do})
		}
	}
	for _, r := range c.Reasons {
		if !slices.Contains(held, statuspage.Reason(r.Name)) {
			continue
		}
		what := fmt.Sprintf("nodes kept as %s: %d", r.Name, r.Nodes)
		if r.MostBy != "" {
			what += fmt.Sprintf(", by %s: %d", r.MostBy, r.MostNodes)
		}
		worth(r.DollarsPerHour, what, r.Do)
	}
	for name, s := range shapes {
		cpu, memory := ratio(s.free.cpu, s.all.cpu), ratio(s.free.memory, s.all.memory)
		do := "smaller instances, or requests that are nearer to what pods use"
		switch {
		case memory-cpu > lopsided:
			do = "instances with less memory to a core"
		case cpu-memory > lopsided:
			do = "instances with more memory to a core"
		}
		worth(s.dollars, fmt.Sprintf("nodes in use of %s: %d, with %.0f%% of cpu and %.0f%% of memory not requested", name, s.nodes, 100*cpu, 100*memory), do)
	}
	worth(demand.dollars, fmt.Sprintf("nodes of groups on demand: %d", demand.nodes), "a group that buys spot, for pods that bear interruptions")
	slices.SortFunc(list, func(a, b Lever) int {
		return cmp.Or(cmp.Compare(b.DollarsPerHour, a.DollarsPerHour), cmp.Compare(a.What, b.What))
	})
	c.Levers = list
}
