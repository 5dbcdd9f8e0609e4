package shadow

import (
	"maps"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// overlay is the world with what is assumed.
func (s *Shadow) overlay() fleet.Snapshot {
	out := s.world
	pods, daemons := s.place()
	out.Pods = append(pods, daemons...)
	out.Groups = s.groups()
	out.Nodes = s.nodes()
	out.Agents = s.agents()
	out.State.GiveUps = s.giveUps()
	return out
}

// giveUps keep what was in use again from being scaled down, as a drain that was given up does.
func (s *Shadow) giveUps() map[string]fleet.BackOff {
	if len(s.memory.Returned) == 0 {
		return s.world.State.GiveUps
	}
	all := make(map[string]fleet.BackOff, len(s.memory.Returned))
	for id, at := range s.memory.Returned {
		all[id] = fleet.BackOff{Until: at.Add(returnedTime), Count: 1, Cause: "a pod had no place elsewhere"}
	}
	maps.Copy(all, s.world.State.GiveUps)
	return all
}

// groups are as they would be.
func (s *Shadow) groups() []fleet.Group {
	out := slices.Clone(s.world.Groups)
	for i := range out {
		g := &out[i]
		m := s.memory.Groups[g.Name]
		if m == nil {
			continue
		}
		removed := 0
		g.Instances = slices.DeleteFunc(slices.Clone(g.Instances), func(i fleet.Instance) bool {
			gone, is := s.memory.Gone[i.ID]
			if is && gone.Decrement && i.Live() {
				removed++ // once the world has taken it, its own figure is less
			}
			return is
		})
		for n, assumed := range instances(m.Assumed) {
			if !s.now.Before(m.Assumed[n].Ready) {
				assumed.State = fleet.InService
			}
			assumed.Type, assumed.Template, assumed.Protected = g.TemplateIn(assumed.Zone).InstanceType, g.Template, true
			g.Instances = append(g.Instances, assumed)
		}
		g.Desired = max(0, g.Desired+len(m.Assumed)-removed-m.Lowered)
	}
	return out
}

func instances(assumed []Assumed) (list []fleet.Instance) {
	for _, a := range assumed {
		list = append(list, fleet.Instance{ID: a.ID, Zone: a.Zone, State: fleet.Pending})
	}
	return list
}

// nodes are those that would be there, with what would stand on them.
func (s *Shadow) nodes() []fleet.Node {
	gone := s.goneNodes()
	out := make([]fleet.Node, 0, len(s.world.Nodes))
	for i := range s.world.Nodes {
		n := s.world.Nodes[i]
		if _, is := gone[n.Name]; is {
			continue
		}
		out = append(out, s.memory.marked(n))
	}
	return append(out, s.assumedNodes()...)
}

// marked is a node with what would stand on it.
func (m *Memory) marked(n fleet.Node) fleet.Node {
	would, is := m.Nodes[n.Name]
	if !is {
		return n
	}
	n.Taints = contract.WithoutTaint(slices.Clone(n.Taints), contract.TaintUnneeded)
	if !would.Unneeded.IsZero() {
		n.Taints = contract.WithTaint(n.Taints, contract.UnneededTaint(would.Unneeded))
	}
	if would.Fill != nil {
		n.Taints = contract.WithFillTurn(n.Taints, *would.Fill)
	}
	return n
}

// goneNodes are the instances that would be gone and have nodes, by the nodes' names.
func (s *Shadow) goneNodes() map[string]string {
	names := map[string]string{}
	for id, g := range s.memory.Gone {
		if g.Node != "" {
			names[g.Node] = id
		}
	}
	for i := range s.world.Nodes { // another node has got the name
		n := &s.world.Nodes[i]
		if id, is := names[n.Name]; is && s.memory.Gone[id].UID != n.UID {
			delete(names, n.Name)
		}
	}
	return names
}

// assumedNodes are those of assumed instances that would have booted.
func (s *Shadow) assumedNodes() (nodes []fleet.Node) {
	for i := range s.world.Groups {
		g := &s.world.Groups[i]
		if s.memory.Groups[g.Name] == nil {
			continue
		}
		for _, a := range s.memory.Groups[g.Name].Assumed {
			if s.now.Before(a.Ready) {
				continue
			}
			template := g.TemplateIn(a.Zone)
			n := template.Node(a.Node, a.Zone, a.ID, a.Ready)
			nodes = append(nodes, s.memory.marked(n))
		}
	}
	return nodes
}

// agents are those of the nodes that would be there: an assumed node has one where others have.
func (s *Shadow) agents() map[string]bool {
	all := maps.Clone(s.world.Agents)
	ready := false
	for _, is := range all {
		ready = ready || is
	}
	for _, n := range s.assumedNodes() {
		if ready {
			all[n.Name] = true
		}
	}
	return all
}
