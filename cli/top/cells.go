package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// Styles say nothing that words do not say, too: without colour they are gone.
var (
	plain *lipgloss.Style // which costs nothing
	title = style(lipgloss.NewStyle().Bold(true))
	faint = style(lipgloss.NewStyle().Faint(true))
	good  = style(lipgloss.NewStyle().Foreground(lipgloss.Green))
	busy  = style(lipgloss.NewStyle().Foreground(lipgloss.Yellow))
	bad   = style(lipgloss.NewStyle().Foreground(lipgloss.Red))
)

func style(s lipgloss.Style) *lipgloss.Style { return &s }

func paint(text string, style *lipgloss.Style) string {
	if style == nil || text == "" {
		return text
	}
	return style.Render(text)
}

var stageStyles = map[view.Stage]*lipgloss.Style{
	view.Failed: bad, view.Blocked: bad, view.NotReady: bad, view.Draining: busy, view.Asked: busy, view.Waiting: busy, view.Drained: busy,
	view.Terminating: faint, view.Cordoned: busy, view.Held: title, view.Unneeded: faint, view.Ready: good,
}

// cell is text of a width.
type cell struct {
	text  string
	style *lipgloss.Style
}

func (c cell) painted(width int, right bool) string {
	text := fit(c.text, width)
	room := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if right {
		return room + paint(text, c.style)
	}
	return paint(text, c.style) + room
}

// fit shortens a text to a width, and leaves out what would command the terminal.
func fit(text string, width int) string {
	return ansi.Truncate(contract.OneLine(text), max(0, width), "…")
}

// fitName shortens a name in its middle: nodes differ at the end of theirs.
func fitName(name string, width int) string {
	name = contract.OneLine(view.ShortName(name))
	if over := ansi.StringWidth(name) - width; over > 0 && width > 6 {
		return fit(name, 4) + ansi.TruncateLeft(name, over+4, "")
	}
	return name
}

// column is one of the table of nodes.
type column struct {
	head  string
	right bool
	// from is the width of the screen from which it is shown.
	from int
	// more is how much wider it becomes where there is room left.
	more int
	// width is what it takes on such a screen.
	width func(m *Model, screen int) int
	cell  func(m *Model, l *view.NodeLine, width int) cell
}

func fixed(width int) func(*Model, int) int { return func(*Model, int) int { return width } }

// roomy is the width from which words are not abbreviated, and bars are long.
const roomy = 110

func wider(narrow, wide int) func(*Model, int) int {
	return func(_ *Model, screen int) int {
		if screen >= roomy {
			return wide
		}
		return narrow
	}
}

// leastStage is what the last column has at the least, which takes what the others leave.
func leastStage(m *Model, screen int) int { return wider(15, 30)(m, screen) }

// roomForBlocked is what it has then before bars grow.
const roomForBlocked = 8

// columns of the table; the stage, which is the last, has the rest of the line.
var columns = []column{
	{head: "GROUP", from: 70, width: func(m *Model, screen int) int { return max(5, min(m.sums.group, wider(7, 16)(m, screen))) },
		cell: func(_ *Model, l *view.NodeLine, _ int) cell { return cell{dash(l.Group), plain} }},
	{head: "ZONE", from: 100, width: func(m *Model, _ int) int { return max(4, min(m.sums.zone, 16)) }, cell: func(_ *Model, l *view.NodeLine, _ int) cell { return cell{dash(l.Zone), faint} }},
	{head: "TYPE", from: 150, width: fixed(14), cell: func(_ *Model, l *view.NodeLine, _ int) cell { return cell{dash(l.Type), faint} }},
	{head: "CPU", more: 6, width: fixed(8), cell: func(_ *Model, l *view.NodeLine, width int) cell { return load(l.CPU, width) }},
	{head: "MEMORY", more: 6, width: fixed(8), cell: func(_ *Model, l *view.NodeLine, width int) cell { return load(l.Memory, width) }},
	{head: "PODS", right: true, width: fixed(4), cell: func(_ *Model, l *view.NodeLine, _ int) cell { return cell{strconv.Itoa(l.Pods), plain} }},
	{head: "$/H", right: true, width: fixed(5), cell: func(_ *Model, l *view.NodeLine, _ int) cell { return cell{price(l.PricePerHour), plain} }},
	{head: "BUY", from: 78, width: wider(4, 9), cell: func(_ *Model, l *view.NodeLine, width int) cell { return cell{capacity(l, width), faint} }},
	{head: "AGE", right: true, from: 74, width: fixed(4), cell: func(m *Model, l *view.NodeLine, _ int) cell { return cell{age(m.now, l.Created), plain} }},
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// load is a share as a bar with its figure.
func load(share float64, width int) cell {
	percent := int(math.Round(min(share, 9.99) * 100))
	style := good
	if percent > 90 {
		style = busy
	}
	return cell{bar(share, width-5) + fmt.Sprintf(" %3d%%", percent), style}
}

func bar(share float64, width int) string {
	full := clamp(int(math.Round(share*float64(width))), width+1)
	return strings.Repeat("#", full) + strings.Repeat(".", width-full)
}

// price has as many digits as five characters have room for.
func price(sum float64) string {
	switch {
	case sum == 0:
		return "?"
	case sum < 10:
		return strconv.FormatFloat(sum, 'f', 3, 64)
	}
	return strconv.FormatFloat(sum, 'f', 1, 64)
}

func capacity(l *view.NodeLine, width int) string {
	switch {
	case l.PricePerHour == 0 && !l.Spot && l.Group == "":
		return "-"
	case l.Spot:
		return "spot"
	case width >= 9:
		return "on demand"
	}
	return "od"
}

func age(now, created time.Time) string {
	if now.IsZero() || created.IsZero() {
		return "-"
	}
	return duration.ShortHumanDuration(max(0, now.Sub(created)))
}

// stage is the word, and of a drain how far it is.
func (m *Model) stage(l *view.NodeLine, screen int) cell {
	text := string(l.Stage)
	d := l.Drain
	if most := m.drained[l.Name]; d.Node != "" && l.Stage != view.Asked && l.Stage != view.Terminating && most > 0 {
		text += fmt.Sprintf(" %s %d", bar(1-float64(d.Left)/float64(most), wider(4, 8)(m, screen)), d.Left)
		if screen >= roomy {
			text += " left"
		}
	}
	switch {
	case len(d.BlockedBy) > 0:
		text += " by " + strings.Join(d.BlockedBy, ", ")
	case d.Node == "" && screen >= roomy && l.Reason != "":
		text += " " + string(l.Reason)
	case screen >= roomy:
		text += " " + string(d.Kind)
	}
	return cell{text, stageStyles[l.Stage]}
}
