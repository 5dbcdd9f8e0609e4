package fakegrpc

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Memory is machines that are entries of a list. They come and go at once.
type Memory struct {
	mu     sync.Mutex
	groups []Group
	made   int
}

// NewMemory has these groups.
func NewMemory(groups ...Group) *Memory { return &Memory{groups: groups} }

// Running is a machine that runs.
func Running(id string) *protocol.Instance {
	return &protocol.Instance{Id: id, Status: &protocol.InstanceStatus{InstanceState: protocol.InstanceStatus_instanceRunning}}
}

// Groups are all groups as they are now.
func (m *Memory) Groups() []Group {
	m.mu.Lock()
	defer m.mu.Unlock()
	groups := slices.Clone(m.groups)
	for n := range groups {
		groups[n].Instances = slices.Clone(groups[n].Instances)
	}
	return groups
}

// Change changes a group.
func (m *Memory) Change(name string, change func(*Group) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.groups {
		if m.groups[n].Name == name {
			return change(&m.groups[n])
		}
	}
	return status.Errorf(codes.NotFound, "there is no group %q", name)
}

// Increase adds machines.
func (m *Memory) Increase(name string, by int) error {
	return m.Change(name, func(g *Group) error {
		if by <= 0 || g.Target+by > g.Max {
			return status.Errorf(codes.OutOfRange, "%d more are not within %d", by, g.Max)
		}
		g.Target += by
		for range by {
			m.made++
			g.Instances = append(g.Instances, Running("lab://"+name+"/"+strconv.Itoa(m.made)))
		}
		return nil
	})
}

// Delete ends a machine.
func (m *Memory) Delete(name, id string) error {
	return m.Change(name, func(g *Group) error {
		before := len(g.Instances)
		g.Instances = slices.DeleteFunc(g.Instances, func(i *protocol.Instance) bool { return i.GetId() == id })
		if len(g.Instances) == before {
			return fmt.Errorf("%s has no %s", name, id) // as providers do: code Unknown
		}
		g.Target--
		return nil
	})
}

// Decrease takes back what is not there.
func (m *Memory) Decrease(name string, by int) error {
	return m.Change(name, func(g *Group) error {
		if g.Target-by < len(g.Instances) {
			return fmt.Errorf("%s has %d machines", name, len(g.Instances))
		}
		g.Target -= by
		return nil
	})
}
