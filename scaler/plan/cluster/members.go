package cluster

import (
	"slices"

	"windlass.dev/windlass/pkg/fleet"
)

// members are the instances of all groups, one after the other. Where each id stands is kept for as
// long as the same ids stand there: to see that costs less than to write them down again.
type members struct {
	list []member
	live []*fleet.Instance // of which groups have parts, until the next evaluation uses it again
	ids  []string
	at   map[string]int32
}

// member is an instance in its group, with its node. Of several Nodes of one instance node is the
// first, and least one that is not up, if there is any.
type member struct {
	group       *Group
	instance    *fleet.Instance
	node, least *Node
}

// membersOf lists the instances of groups, and those that are live in each group.
func (r *Register) membersOf(groups []*Group) *members {
	m := &r.members
	clear(m.list)
	m.list = m.list[:0]
	clear(m.live)
	m.live = m.live[:0]
	for _, g := range groups {
		first := len(m.live)
		for i := range g.Instances {
			instance := &g.Instances[i]
			m.list = append(m.list, member{group: g, instance: instance})
			if instance.Live() {
				m.live = append(m.live, instance)
			}
		}
		g.Live = slices.Clip(m.live[first:])
	}
	if !m.same() {
		m.index()
	}
	return m
}

func (m *members) same() bool {
	if len(m.ids) != len(m.list) {
		return false
	}
	for i, id := range m.ids {
		if m.list[i].instance.ID != id {
			return false
		}
	}
	return true
}

// index writes down where each id stands. Of two groups that have it, the last counts.
func (m *members) index() {
	m.ids, m.at = m.ids[:0], make(map[string]int32, len(m.list))
	for i := range m.list {
		id := m.list[i].instance.ID
		m.ids, m.at[id] = append(m.ids, id), int32(i)
	}
}

// of is the member with an id; nil for none.
func (m *members) of(id string) *member {
	if at, known := m.at[id]; known {
		return &m.list[at]
	}
	return nil
}

// NodeOf is the Node of an instance of a group, of several one that is not up; nil without one.
func (d *Cluster) NodeOf(g *Group, i *fleet.Instance) *Node {
	if m := d.members.of(i.ID); m != nil && m.group == g {
		return m.least
	}
	return nil
}
