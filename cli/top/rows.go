package top

import (
	"cmp"
	"slices"
	"strings"

	"windlass.dev/windlass/cli/view"
)

// orders are those in which nodes are shown. Nodes of equal rank come by name.
var orders = []struct {
	name    string
	compare func(a, b *view.NodeLine) int
}{
	{"name", func(a, b *view.NodeLine) int { return 0 }},
	{"group", func(a, b *view.NodeLine) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Zone, b.Zone))
	}},
	{"stage", func(a, b *view.NodeLine) int { return cmp.Compare(rank(a.Stage), rank(b.Stage)) }},
	{"cpu", func(a, b *view.NodeLine) int { return cmp.Compare(b.CPU, a.CPU) }},
	{"memory", func(a, b *view.NodeLine) int { return cmp.Compare(b.Memory, a.Memory) }},
	{"pods", func(a, b *view.NodeLine) int { return cmp.Compare(b.Pods, a.Pods) }},
	{"price", func(a, b *view.NodeLine) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) }},
	{"age", func(a, b *view.NodeLine) int { return b.Created.Compare(a.Created) }},
}

// Sorts are the names of the orders.
func Sorts() (names []string) {
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

func rank(s view.Stage) int { return slices.Index(view.Stages, s) }

// filter are conditions that hold together.
type filter []term

// term is a condition: a field that has a value, or any text that has it.
type term struct{ field, value string }

func newFilter(text string) (f filter) {
	for _, word := range strings.Fields(strings.ToLower(text)) {
		field, value, named := strings.Cut(word, "=")
		if !named || !slices.Contains([]string{"group", "zone", "stage", "type"}, field) {
			field, value = "", word
		}
		f = append(f, term{field, value})
	}
	return f
}

// passes reports whether all conditions hold of a node.
func (f filter) passes(l *view.NodeLine) bool {
	for _, t := range f {
		if !t.holds(l) {
			return false
		}
	}
	return true
}

// holds compares a group with its whole name, so that group=web is not web-canary, too, a stage by
// its beginning, so that stage=ready is not notready, and the rest with a part: a zone is told by
// its end.
func (t term) holds(l *view.NodeLine) bool {
	switch t.field {
	case "group":
		return strings.ToLower(l.Group) == t.value
	case "zone":
		return strings.Contains(l.Zone, t.value)
	case "stage":
		return strings.HasPrefix(string(l.Stage), t.value)
	case "type":
		return strings.Contains(l.Type, t.value)
	}
	for _, text := range []string{l.Name, l.Group, l.Zone, l.Type, string(l.Stage), string(l.Reason)} {
		if strings.Contains(strings.ToLower(text), t.value) {
			return true
		}
	}
	return false
}

// sums are of all nodes, and how long names are.
type sums struct {
	dollars           float64
	pending           int
	name, group, zone int
}

// rebuild settles which nodes are shown. It is called when the cluster, the filter or the order
// changes, and not for each key or frame.
func (m *Model) rebuild() {
	lines := m.world.Lines
	m.shown, m.sums = m.shown[:0], sums{}
	drained := map[string]int{}
	for i, l := range lines {
		m.sums.add(l)
		if l.Drain.Node != "" {
			drained[l.Name] = max(m.drained[l.Name], l.Drain.Left)
		}
		if m.filter.passes(l) {
			m.shown = append(m.shown, i)
		}
	}
	for _, p := range m.world.Pending {
		m.sums.pending += p.Count
	}
	m.drained = drained
	compare, sign := orders[m.order].compare, 1
	if m.reversed {
		sign = -1
	}
	if m.order > 0 || m.reversed {
		slices.SortFunc(m.shown, func(a, b int) int { return sign * cmp.Or(compare(lines[a], lines[b]), a-b) })
	}
	at := slices.IndexFunc(m.shown, func(i int) bool { return lines[i].Name == m.selected })
	switch {
	case m.keys == 0:
		at = 0 // nobody has chosen one yet
	case at < 0:
		at = m.at // its neighbour
	}
	m.selectAt(at)
	if at := slices.IndexFunc(m.world.Pending, func(p view.PendingLine) bool { return p.Example == m.waiting }); at >= 0 {
		m.pendingAt = at
	}
	m.selectPending(m.pendingAt)
	m.onPending = m.onPending && len(m.world.Pending) > 0
}

func (s *sums) add(l *view.NodeLine) {
	s.dollars += l.PricePerHour
	s.name, s.group = max(s.name, len(view.ShortName(l.Name))), max(s.group, len(l.Group))
	s.zone = max(s.zone, len(l.Zone))
}

// selectAt selects the node at a place, or the nearest one.
func (m *Model) selectAt(at int) {
	m.at = clamp(at, len(m.shown))
	if m.selected = ""; len(m.shown) > 0 {
		m.selected = m.world.Lines[m.shown[m.at]].Name
	}
}

// selectPending does so among the pending pods.
func (m *Model) selectPending(at int) {
	m.pendingAt = clamp(at, len(m.world.Pending))
	if m.waiting = ""; m.onPending && len(m.world.Pending) > 0 {
		m.waiting = m.world.Pending[m.pendingAt].Example
	}
}

func clamp(at, length int) int { return max(0, min(at, length-1)) }
