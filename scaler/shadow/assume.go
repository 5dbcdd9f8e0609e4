package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/shadow/record"
)

// Assume has an action be done that was decided of what See showed last, as far as that shows, and
// records it. Drains and terminations take no time here: a node of which a scale-down begins is gone.
func (s *Shadow) Assume(a action.Action) plan.Result {
	r := plan.Result{Action: a, Done: s.assumes(a.Lane()), Ended: s.now}
	if !r.Done {
		return r
	}
	t := action.TraitsOf(a)
	switch x := a.(type) {
	case action.Mark:
		s.mark(x.Node, func(n *Node) { n.Unneeded = x.Since })
		return r
	case action.Unmark:
		s.mark(x.Node, func(n *Node) { n.Unneeded = time.Time{} })
		return r
	case action.Steer:
		s.mark(x.Node, func(n *Node) { n.Fill = &x.Fill })
		return r
	case action.Grow:
		launched := s.launch(x)
		if x.Token != "" {
			r.Answer = &launch.Answer{Seen: true, Came: x.Count} // more than are assumed would be asked for again at once
		}
		if launched > 0 {
			s.decided(t.Kind, record.Decided{Group: x.Group, From: x.From, To: x.From + launched, Pods: keys(x.For), PodCount: len(x.For), Why: x.Why})
		}
		return r
	case action.Lower:
		s.revision++
		s.memory.group(x.Group).Lowered += max(0, x.From-x.To)
		s.decided(t.Kind, record.Decided{Group: x.Group, From: x.From, To: x.To, Why: x.Why})
		return r
	case action.RequestDrain:
		if x.Kind != contract.KindScaleDown {
			break // the world takes it, and moves its pods
		}
		if s.remove(x.Group, s.instanceOf(x.Node), x.Node, true) {
			s.decided(t.Kind, record.Decided{Group: x.Group, Node: x.Node.Name, Why: x.Why})
		}
		return r
	case action.Terminate:
		if s.remove(x.Group, x.Instance, x.Node, x.Decrement) {
			s.decided(t.Kind, record.Decided{Group: x.Group, Node: cmp.Or(x.Node.Name, x.Instance), Why: x.Why})
		}
		return r
	}
	if !t.Routine && t.Turn < action.ForNobody && !t.Hook { // what follows from the world's own doings would fill the log
		d := record.Decided{Kind: t.Kind, Node: cmp.Or(t.Node.Name, t.Instance), Why: a.String()}
		s.once(t.Key, record.Record{At: s.now, Decided: &d})
	}
	return r
}

// assumes reports whether what is done with a group is assumed.
func (s *Shadow) assumes(group string) bool {
	return !s.observedOnly || slices.ContainsFunc(s.world.Groups, func(g fleet.Group) bool { return g.Name == group && g.Observed })
}

func (s *Shadow) decided(kind string, d record.Decided) {
	d.Kind = kind
	s.record(record.Record{At: s.now, Decided: &d})
}

func keys(pods []action.PodRef) (names []string) {
	for _, p := range pods[:min(len(pods), record.MostPods)] {
		names = append(names, p.String())
	}
	return names
}

// mark changes what would stand on a node.
func (s *Shadow) mark(ref action.NodeRef, change func(*Node)) {
	n, known := s.memory.Nodes[ref.Name]
	if !known && len(s.memory.Nodes) >= mostNodes {
		s.full("nodes with marks", mostNodes)
		return
	}
	if i := slices.IndexFunc(s.world.Nodes, func(n fleet.Node) bool { return n.Name == ref.Name && n.UID == ref.UID }); i >= 0 && n.UID != ref.UID {
		n = Node{UID: ref.UID}
		n.Unneeded, _, _ = contract.Unneeded(s.world.Nodes[i].Taints) // a value that is no time is no mark
	}
	n.UID = ref.UID
	change(&n)
	s.memory.Nodes[ref.Name] = n
	s.revision++
}

// launch assumes instances, and says how many.
func (s *Shadow) launch(x action.Grow) int {
	i := slices.IndexFunc(s.shown.Groups, func(g fleet.Group) bool { return g.Name == x.Group })
	if i < 0 {
		return 0
	}
	count := x.Count
	if x.Token == "" {
		count = x.To - x.From
	}
	if room := mostAssumed - s.memory.instances(); count > room {
		s.full("assumed instances", mostAssumed)
		count = room
	}
	g := s.memory.group(x.Group)
	zones := s.shown.Groups[i].Zones
	live := map[string]int{}
	for _, i := range slices.Concat(s.shown.Groups[i].Instances, instances(g.Assumed)) {
		live[i.Zone]++
	}
	for range count {
		zone := x.Zone
		if zone == "" && len(zones) > 0 { // Auto Scaling launches where there are fewest
			zone = slices.MinFunc(zones, func(a, b string) int { return cmp.Compare(live[a], live[b]) })
		}
		live[zone]++
		s.memory.Names++
		g.Assumed = append(g.Assumed, Assumed{
			ID: fmt.Sprintf("i-f%016x", s.memory.Names), Node: fmt.Sprintf("%s-assumed-%d", x.Group, s.memory.Names), Zone: zone, At: s.now, Ready: s.now.Add(bootTime),
		})
		s.revision++
	}
	return max(0, count)
}

// remove has an instance be gone, of the world or an assumed one; false where it was before, or is
// not assumed.
func (s *Shadow) remove(group, instance string, node action.NodeRef, decrement bool) bool {
	g := s.memory.group(group)
	if i := slices.IndexFunc(g.Assumed, func(a Assumed) bool { return a.ID == instance }); i >= 0 {
		g.Assumed = slices.Delete(slices.Clone(g.Assumed), i, i+1)
		s.revision++
		return true
	}
	if _, gone := s.memory.Gone[instance]; gone || instance == "" {
		return false
	}
	if len(s.memory.Gone) >= mostGone {
		s.full("removed nodes", mostGone)
		return false
	}
	s.memory.Gone[instance] = Gone{Group: group, Node: node.Name, UID: node.UID, At: s.now, Decrement: decrement}
	s.revision++
	return true
}

func (s *Shadow) instanceOf(ref action.NodeRef) string {
	for i := range s.shown.Nodes {
		if n := &s.shown.Nodes[i]; n.Name == ref.Name && n.UID == ref.UID {
			return n.InstanceID()
		}
	}
	return ""
}
