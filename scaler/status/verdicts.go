package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// mostNamed is how many pods of a class the verdicts name.
const mostNamed = 500

// Bill is what nodes cost, and what that figure is.
type Bill struct {
	Book prices.Book
	Spot prices.Spot
	statuspage.Prices
}

// NewVerdicts draws what programs read of a plan.
func NewVerdicts(s fleet.Snapshot, p plan.Plan, bill Bill) statuspage.Verdicts {
	return statuspage.Verdicts{
		Groups: groupVerdicts(s, p.Verdicts), Nodes: nodeVerdicts(s, p.Verdicts, bill), Pods: podVerdicts(p.Verdicts), Prices: bill.Prices,
	}
}

func groupVerdicts(s fleet.Snapshot, verdicts []*verdict.Verdict) []statuspage.Group {
	said, upcoming := map[string]verdict.Verdict{}, map[string]bool{}
	for _, v := range verdicts {
		switch {
		case v.Of == verdict.OfGroup:
			said[v.Name] = *v
		case v.Of == verdict.OfNode && v.Reason == verdict.NodeUpcoming:
			upcoming[v.Name] = true
		}
	}
	ready, joined := readyInstances(s), map[string]bool{}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; !upcoming[n.Name] {
			joined[n.InstanceID()] = true
		}
	}
	rests := backOffs(s)
	list := make([]statuspage.Group, 0, len(s.Groups))
	for i := range s.Groups {
		g := &s.Groups[i]
		line := statuspage.Group{
			Name: g.Name, Min: g.Min, Max: g.Max, Desired: g.Desired, Spot: g.Spot, Both: g.Both, PricePerHour: g.Price(),
			BackOffs: rests[g.Name], Verdict: inWords(said[g.Name]),
		}
		for _, fault := range g.Faults[:min(maxFaults, len(g.Faults))] {
			line.Faults = append(line.Faults, statuspage.Cut(fault))
		}
		live := 0
		for _, i := range g.Instances {
			switch {
			case i.Terminating():
				line.Terminating++
			case i.Live():
				live++
				if !i.Protected {
					line.Unprotected++
				}
				if ready[i.ID] {
					line.Ready++
				}
				if !joined[i.ID] {
					line.Upcoming++
				}
			}
		}
		line.Upcoming += max(0, g.Desired-live)
		list = append(list, line)
	}
	slices.SortFunc(list, func(a, b statuspage.Group) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// backOffs are those that last, by group.
func backOffs(s fleet.Snapshot) map[string][]statuspage.BackOff {
	all := map[string][]statuspage.BackOff{}
	for key, b := range s.State.BackOffs {
		if !s.Now.Before(b.Until) {
			continue
		}
		group, zone, cause := fleet.ParseBackOffKey(key)
		all[group] = append(all[group], statuspage.BackOff{Zone: zone, Cause: statuspage.Cut(cmp.Or(b.Cause, cause)), Until: b.Until.UTC()})
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b statuspage.BackOff) int {
			return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Cause, b.Cause), a.Until.Compare(b.Until))
		})
	}
	return all
}

func nodeVerdicts(s fleet.Snapshot, verdicts []*verdict.Verdict, bill Bill) []statuspage.Node {
	groups := make(map[string]*fleet.Group, len(s.Groups))
	for i := range s.Groups {
		groups[s.Groups[i].Name] = &s.Groups[i]
	}
	nodes := make(map[string]*fleet.Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	list := make([]statuspage.Node, 0, len(nodes))
	for _, v := range verdicts {
		n := nodes[v.Name]
		if v.Of != verdict.OfNode || n == nil {
			continue
		}
		line := bill.Of(n, groups[v.Group])
		line.Group, line.Verdict = v.Group, inWords(*v)
		list = append(list, line)
	}
	return list
}

// Of is what a node costs, and how its instance was bought: as EKS or Karpenter writes on the node,
// or as its group buys, which may be nil. Of a node in no group, and of one that buys both, nothing
// else tells.
func (b Bill) Of(n *fleet.Node, g *fleet.Group) statuspage.Node {
	line := statuspage.Node{Name: n.Name, Both: true}
	if g != nil {
		line.Spot, line.Both = g.Spot, g.Both
	}
	if kind, ok := n.Labels[contract.LabelCapacityType]; ok {
		line.Spot, line.Both = kind == contract.CapacitySpot, false
	} else if kind, ok := n.Labels[contract.LabelKarpenterCapacityType]; ok {
		line.Spot, line.Both = kind == contract.KarpenterSpot, false
	}
	region, o := n.Labels[corev1.LabelTopologyRegion], prices.Offer{Zone: n.Labels[corev1.LabelTopologyZone], Type: n.Labels[corev1.LabelInstanceTypeStable]}
	line.PricePerHour = b.Book.Of(region, o.Type)
	if line.Spot {
		line.OnDemandPerHour = line.PricePerHour
		line.PricePerHour, line.SpotReported = b.Book.OfSpot(b.Spot, region, o, b.SpotFactor)
	}
	return line
}

func podVerdicts(verdicts []*verdict.Verdict) []statuspage.Pods {
	type class struct {
		reason         verdict.Reason
		group, message string
	}
	at, messages := map[class]int{}, verdict.Messages{}
	list := []statuspage.Pods{}
	for _, v := range verdicts {
		if v.Of != verdict.OfPod {
			continue
		}
		key := class{v.Reason, v.Group, messages.Of(v)}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, statuspage.Pods{Group: v.Group, Verdict: inWords(*v)})
		}
		list[i].Count++
		if list[i].Count <= mostNamed {
			list[i].Names = append(list[i].Names, v.Name)
		}
	}
	return list
}

// inWords says each detail as a sentence, with its parameters beside it.
func inWords(v verdict.Verdict) statuspage.Verdict {
	said := statuspage.Verdict{Reason: v.Reason, Details: make([]statuspage.Detail, 0, len(v.Details))}
	for _, d := range v.Details {
		detail := statuspage.Detail{Text: d.String()}
		if len(d.Params) > 0 {
			detail.Params = make(map[string]any, len(d.Params))
			flatten(detail.Params, d)
		}
		said.Details = append(said.Details, detail)
	}
	return said
}

// flatten puts parameters of causes beside those of what they cause, which win.
func flatten(all map[string]any, d verdict.Detail) {
	for _, p := range d.Params {
		if _, said := all[p.Name]; said {
			continue
		}
		switch value := p.Value.(type) {
		case verdict.Details:
		case time.Time:
			all[p.Name] = value.UTC().Format(time.RFC3339)
		case time.Duration:
			all[p.Name] = value.String()
		default:
			all[p.Name] = value
		}
	}
	for _, p := range d.Params {
		if inner, nested := p.Value.(verdict.Details); nested {
			for _, d := range inner {
				flatten(all, d)
			}
		}
	}
}
