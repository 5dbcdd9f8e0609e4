package shadow

import (
	"fmt"
	"maps"
	"slices"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/shadow/record"
)

// follow takes over what the world has done since it was seen last. Of groups that a scaler acts on by
// now nothing stays assumed.
func (s *Shadow) follow() {
	groups, nodes, instances := map[string]*fleet.Group{}, map[string]*fleet.Node{}, map[string]bool{}
	others := map[string]bool{} // instances of which nothing is assumed
	for i := range s.world.Groups {
		g := &s.world.Groups[i]
		if s.observedOnly && !g.Observed {
			for _, i := range g.Instances {
				others[i.ID] = true
			}
			continue
		}
		groups[g.Name] = g
		for _, i := range g.Instances {
			instances[i.ID] = true
		}
	}
	for i := range s.world.Nodes {
		nodes[s.world.Nodes[i].Name] = &s.world.Nodes[i]
	}
	m := &s.memory
	for name := range m.Groups {
		if groups[name] == nil {
			delete(m.Groups, name)
			s.revision++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		s.followGroup(groups[name])
	}
	assumed := map[string]bool{}
	for _, g := range m.Groups {
		for _, a := range g.Assumed {
			assumed[a.Node] = true
		}
	}
	for name, n := range m.Nodes {
		if is := nodes[name]; (is == nil || is.UID != n.UID || others[is.InstanceID()]) && !assumed[name] {
			delete(m.Nodes, name)
			s.revision++
		}
	}
	// The world has removed it, too.
	for id, g := range m.Gone {
		n := nodes[g.Node]
		if there := n != nil && n.UID == g.UID && g.Node != ""; !there && !instances[id] || others[id] {
			delete(m.Gone, id)
			s.revision++
		}
	}
	for id, at := range m.Returned {
		if age := s.now.Sub(at); age >= returnedTime || age < -returnedTime || !instances[id] {
			delete(m.Returned, id)
			s.revision++
		}
	}
	for key, at := range m.Decided {
		if age := s.now.Sub(at); age > decidedTime || age < -decidedTime { // a clock that jumped
			delete(m.Decided, key)
		}
	}
}

// followGroup has instances that the world launches stand for those that were assumed.
func (s *Shadow) followGroup(is *fleet.Group) {
	g, seen := s.memory.Groups[is.Name], true
	if g == nil {
		g, seen = s.memory.group(is.Name), false
	}
	if rise := is.Desired - g.Desired; seen && rise > 0 && len(g.Assumed) > 0 {
		g.Assumed = g.Assumed[min(rise, len(g.Assumed)):]
		s.revision++
	}
	if is.Desired != g.Desired {
		g.Lowered = 0 // somebody has said anew what it wants
	}
	g.Desired = is.Desired
	late := 0
	for late < len(g.Assumed) && s.now.Sub(g.Assumed[late].At) >= followTime {
		late++
	}
	for _, a := range g.Assumed[late:] {
		if a.At.Sub(s.now) > followTime { // a clock that jumped back: none is assumed for that long
			late = len(g.Assumed)
			break
		}
	}
	if late > 0 {
		s.diverged(record.Diverged{Group: is.Name, Assumed: fmt.Sprintf("%d more instances", late),
			Is: fmt.Sprintf("%d desired: the world has not launched them in %s", is.Desired, followTime)})
		g.Assumed = g.Assumed[late:]
	}
}

// returned has a node count again that would be gone. It is not scaled down again for returnedTime: the
// planner may find places where this does not.
func (s *Shadow) returned(id, why string) {
	g := s.memory.Gone[id]
	delete(s.memory.Gone, id)
	if len(s.memory.Returned) < mostGone {
		s.memory.Returned[id] = s.now
	}
	s.diverged(record.Diverged{Group: g.Group, Node: g.Node, Assumed: "removed", Is: record.InUse, Why: why})
}
