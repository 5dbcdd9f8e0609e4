package top

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// The smallest screen that there is room for.
const (
	MinWidth  = 60
	MinHeight = 14
)

// Screen is all of it, in lines that are no longer than the terminal is wide, and no more than it
// is high. Only what is seen is made.
func (m *Model) Screen() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	if m.width < MinWidth || m.height < MinHeight {
		return m.tooSmall()
	}
	lines := make([]string, 0, m.height)
	for i, text := range m.captions() {
		style := plain
		if i == 0 {
			style = title
		}
		lines = append(lines, m.line(cell{text, style}))
	}
	lines = append(lines, m.head(), m.groups())
	room := m.height - len(lines) - 2 // the said and the foot
	if m.pane != nil {
		lines = append(lines, m.inPane(room)...)
	} else {
		lines = append(lines, m.rows(room-m.pendingRows()-m.recentRows())...)
		lines = append(lines, m.pending()...)
		lines = append(lines, m.recent()...)
	}
	return strings.Join(append(lines, m.saying(), m.foot()), "\n")
}

func (m *Model) tooSmall() string {
	text := fmt.Sprintf("windlass top needs %d×%d characters, and this terminal has %d×%d", MinWidth, MinHeight, m.width, m.height)
	lines := strings.Split(ansi.Hardwrap(text, m.width, false), "\n")
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

// captions are those that there is room for.
func (m *Model) captions() []string { return m.caption[:clamp(m.height-MinHeight, len(m.caption)+1)] }

// line puts cells one after the other, as far as they have room.
func (m *Model) line(cells ...cell) string {
	var b strings.Builder
	room := m.width
	for _, c := range cells {
		text := fit(c.text, room)
		room -= ansi.StringWidth(text)
		b.WriteString(paint(text, c.style))
	}
	return b.String()
}

func (m *Model) head() string {
	clock := ""
	if !m.now.IsZero() {
		clock = view.Clock(m.now) + " UTC"
	}
	nodes, with := fmt.Sprintf("  %d nodes", len(m.world.Lines)), ""
	if len(m.filter) > 0 {
		nodes, with = fmt.Sprintf("  %d of%s with ", len(m.shown), nodes[1:]), strings.Join(strings.Fields(m.typed), " ")
	}
	order := orders[m.order].name
	if m.reversed {
		order += " reversed"
	}
	doubt := ""
	if m.world.Problem != "" {
		doubt = " error"
	}
	cells := []cell{
		{"windlass", title}, {doubt, bad}, {nodes, plain}, {with, busy},
		{fmt.Sprintf(", %.2f $/h  drains %d  pending pods %d", m.sums.dollars, len(m.drained), m.sums.pending), plain}, {"  by " + order, faint},
	}
	width := 0
	for _, c := range cells {
		width += ansi.StringWidth(c.text)
	}
	if gap := m.width - width - len(clock); gap > 1 && clock != "" {
		cells = append(cells, cell{strings.Repeat(" ", gap) + clock, faint})
	}
	return m.line(cells...)
}

// groups are on one line, as many as there is room for.
func (m *Model) groups() string {
	if len(m.world.Groups) == 0 {
		return m.line(cell{"no group is known", faint})
	}
	var cells []cell
	for _, g := range m.world.Groups {
		style := plain
		if g.Ready != g.Desired {
			style = busy
		}
		cells = append(cells, cell{g.Name + " ", title}, cell{fmt.Sprintf("%d/%d of %d-%d", g.Ready, g.Desired, g.Min, g.Max), style}, cell{" " + string(g.Reason) + "  ", faint})
	}
	return m.line(cells...)
}

// rowsShown is how many nodes the screen has room for.
func (m *Model) rowsShown() int {
	return max(1, m.height-len(m.captions())-5-m.pendingRows()-m.recentRows())
}

// rows are the head of the table and nodes, of which one is selected.
func (m *Model) rows(height int) []string {
	height-- // the head
	if m.at < m.first {
		m.first = m.at
	}
	m.first = max(0, min(max(m.first, m.at-height+1), len(m.shown)-height))
	name, widths := m.widths()
	lines := []string{m.row("  ", cell{"NODE", faint}, name, cell{"STAGE", faint}, widths, func(i, _ int) cell { return cell{columns[i].head, faint} })}
	for i := m.first; i < min(m.first+height, len(m.shown)); i++ {
		l := m.world.Lines[m.shown[i]]
		mark, style := "  ", plain
		if i == m.at && !m.onPending {
			mark, style = "> ", title
		}
		lines = append(lines, m.row(mark, cell{fitName(l.Name, name), style}, name, m.stage(l, m.width), widths, func(i, width int) cell { return columns[i].cell(m, l, width) }))
	}
	if len(m.shown) == 0 {
		text := "  there is no node"
		if len(m.filter) > 0 {
			text = "  no node passes the filter; esc removes it"
		}
		lines = append(lines, m.line(cell{text, faint}))
	}
	return filled(lines, height+1)
}

func (m *Model) row(mark string, name cell, nameWidth int, stage cell, widths []int, at func(i, width int) cell) string {
	var b strings.Builder
	b.WriteString(paint(mark, name.style) + name.painted(nameWidth, false) + " ")
	room := m.width - len(mark) - nameWidth - 1
	for i, width := range widths {
		if width > 0 {
			b.WriteString(at(i, width).painted(width, columns[i].right) + " ")
			room -= width + 1
		}
	}
	b.WriteString(paint(fit(stage.text, room), stage.style))
	return b.String()
}

// widths are those of names and columns; 0 is a column that is not shown.
func (m *Model) widths() (name int, widths []int) {
	room := m.width - 3 // the mark, and the gap after the name
	for _, c := range columns {
		width := 0
		if m.width >= c.from {
			width = c.width(m, m.width)
			room -= width + 1
		}
		widths = append(widths, width)
	}
	room -= leastStage(m, m.width)
	name = max(4, min(m.sums.name, room))
	more := max(0, (room-name-roomForBlocked)/2) // for each of the two bars
	for i, c := range columns {
		if widths[i] > 0 {
			widths[i] += min(c.more, more)
		}
	}
	return name, widths
}

// pendingRows is how many lines pending pods have, with their title.
func (m *Model) pendingRows() int {
	return 1 + min(len(m.world.Pending), max(2, m.height/8))
}

func (m *Model) pending() []string {
	if len(m.world.Pending) == 0 {
		return []string{m.line(cell{"PENDING PODS  ", faint}, cell{"none", good})}
	}
	room := m.pendingRows() - 1
	first := 0
	if m.onPending {
		first = max(0, m.pendingAt-room+1)
	}
	where := ""
	if more := len(m.world.Pending); more > room {
		where = fmt.Sprintf("  lines %d to %d of %d", first+1, first+room, more)
	}
	lines := []string{m.line(cell{"PENDING PODS" + where, faint})}
	for i := first; i < first+room; i++ {
		p := m.world.Pending[i]
		mark, style := "  ", plain
		if m.onPending && i == m.pendingAt {
			mark, style = "> ", title
		}
		of := p.Example
		if p.Count > 1 {
			of += fmt.Sprintf(" and %d more", p.Count-1)
		}
		lines = append(lines, m.line(cell{mark + of + " ", style}, cell{string(p.Reason), busy}, cell{" " + p.Message, plain}))
	}
	return lines
}

// recentRows is how many lines there are for what happened.
func (m *Model) recentRows() int { return 1 + max(0, min(5, (m.height-30)/3)) }

// recent is what happened last, the latest last.
func (m *Model) recent() (lines []string) {
	list := m.world.Recent[max(0, len(m.world.Recent)-m.recentRows()):]
	for _, e := range list {
		style := title
		if e.Warning {
			style = bad
		}
		lines = append(lines, m.line(cell{view.Clock(e.At) + " ", faint}, cell{e.Event, style}, cell{" " + shortRef(e.Object) + ": " + e.Text, plain}))
	}
	if len(list) == 0 {
		lines = append(lines, m.line(cell{"no Event yet", faint}))
	}
	return filled(lines, m.recentRows())
}

// shortRef is a reference such as node/NAME, with a short name.
func shortRef(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	return kind + "/" + view.ShortName(name)
}

// inPane is the pane: its title, and as much of its text as there is room for.
func (m *Model) inPane(height int) []string {
	p := m.pane
	p.port.SetWidth(m.width)
	p.port.SetHeight(height - 1)
	p.port.SetContent(printed(p.answer, m.width))
	where := ""
	if more := p.port.TotalLineCount(); more > height-1 {
		where = fmt.Sprintf("  lines %d to %d of %d", p.port.YOffset()+1, min(more, p.port.YOffset()+height-1), more)
	}
	lines := []string{m.line(cell{p.title, title}, cell{where, faint})}
	for line := range strings.Lines(p.port.View()) {
		lines = append(lines, fit(strings.TrimRight(line, " \n"), m.width))
	}
	return filled(lines, height)
}

// saying is the line for what was done and what failed, and for what should be mended.
func (m *Model) saying() string {
	switch {
	case m.typing:
		return m.line(cell{"filter: ", title}, cell{m.typed + "_", plain}, cell{"   (text, group=, zone=, stage=, type=)", faint})
	case m.pane != nil && m.pane.question != nil:
		return m.line(cell{m.pane.question.ask + "? y/n", busy})
	case m.said != "":
		style := good
		if strings.HasPrefix(m.said, "error: ") {
			style = bad
		}
		return m.line(cell{m.said, style})
	case m.world.Problem != "":
		return m.line(cell{"error: " + m.world.Problem, bad})
	case len(m.world.Faults) > 0:
		f := m.world.Faults[0]
		return m.line(cell{fmt.Sprintf("to mend (%d): ", len(m.world.Faults)), bad}, cell{f.Of + ": " + f.Text, plain})
	}
	return ""
}

func (m *Model) foot() string {
	keys := ofRows
	switch {
	case m.pane != nil && m.pane.question != nil:
		keys = ofQuestion
	case m.pane != nil:
		keys = ofPane
	}
	var cells []cell
	for _, k := range keys {
		cells = append(cells, cell{k.Help().Key + " ", title}, cell{k.Help().Desc + "  ", plain})
	}
	return m.line(cells...)
}

// messages are those that are cut on the screen, in full.
func (m *Model) messages() string {
	var b strings.Builder
	part := func(head string, lines ...string) {
		if len(lines) == 0 {
			return
		}
		b.WriteString(head + "\n")
		for _, text := range lines {
			b.WriteString("  " + contract.OneLine(text) + "\n")
		}
	}
	if m.last != "" {
		part("said last", m.last)
	}
	if m.world.Problem != "" {
		part("what may be out of date", m.world.Problem)
	}
	var faults, groups []string
	for _, f := range m.world.Faults {
		faults = append(faults, strings.TrimSuffix(f.Of+": "+f.Text+"; do: "+f.Do, "; do: "))
	}
	for _, g := range m.world.Groups {
		groups = append(groups, fmt.Sprintf("%s %d/%d of %d-%d %s: %s", g.Name, g.Ready, g.Desired, g.Min, g.Max, g.Reason, g.Message))
	}
	part(fmt.Sprintf("to mend (%d)", len(faults)), faults...)
	part("groups", groups...)
	if b.Len() == 0 {
		return "there is none"
	}
	return b.String()
}

func helpText() string {
	var b strings.Builder
	for _, column := range all {
		for _, k := range column {
			fmt.Fprintf(&b, "%-8s %s\n", k.Help().Key, k.Help().Desc)
		}
	}
	b.WriteString(`
CPU and MEMORY are what pods request of a node. BUY is how it is paid for: spot, or od on demand.
What is left of a drain is counted in pods; its bar begins when this view first sees it.
A filter has words that all hold: any text, or group=, zone=, stage=, type=. esc removes it.
What d, u and h write is asked about first. m shows in full what the screen cuts.
`)
	return b.String()
}

// filled has exactly so many lines.
func filled(lines []string, height int) []string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:max(0, height)]
}
