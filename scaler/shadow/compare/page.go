package compare

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/scaler/chart"
)

const (
	// mostColumns bounds how many moments a chart has, mostMarked how many doings the page lists of
	// each kind.
	mostColumns = 720
	mostMarked  = 2000
	// mostGroups is how many groups a chart tells apart.
	mostGroups = 7
)

// Page is one page of HTML that needs nothing else, and runs nothing: both timelines as SVG, with
// what was done and where it diverges.
func (c *Comparison) Page() string {
	var b strings.Builder
	lines := []string{c.span()}
	for _, m := range c.lacks() {
		lines = append(lines, "missing: "+m)
	}
	chart.Head(&b, c.Result(), lines)
	for _, part := range c.tables() {
		chart.Figures(&b, part)
	}
	if first := c.First; first != nil {
		fmt.Fprintf(&b, "<h2>First divergence: %s</h2>\n<p>%s</p>\n<p><b>The world</b> %s</p>\n<p><b>Windlass</b> %s</p>\n", html.EscapeString(first.what()), moment(first.At), html.EscapeString(first.World.String()), html.EscapeString(first.Windlass.String()))
	}
	if c.From.Before(c.To) {
		c.timelines(&b)
	}
	c.lists(&b)
	b.WriteString(chart.Foot)
	return b.String()
}

// axis is the time of the span.
func (c *Comparison) axis() chart.Axis {
	return chart.Axis{Start: c.From.UTC(), Seconds: max(1, int64(c.To.Sub(c.From).Seconds()))}
}

func (c *Comparison) second(at time.Time) int64 { return int64(at.Sub(c.From).Seconds()) }

// timelines draws nodes of both sides, pending pods, and marks.
func (c *Comparison) timelines(b *strings.Builder) {
	a := c.axis()
	columns := c.columns(a)
	charts := []chart.Chart{
		{Title: "nodes by group: the world", Shape: chart.Areas},
		{Title: "nodes by group: Windlass", Shape: chart.Areas},
		{Title: "pending pods", Shape: chart.Lines, Fold: math.Max},
	}
	names, place := c.drawn()
	for i, name := range names {
		for side := range 2 {
			charts[side].Series = append(charts[side].Series, chart.Series{Name: name, Colour: chart.Colours[i], Values: make([]float64, len(columns))})
		}
	}
	pending := [2][]float64{make([]float64, len(columns)), make([]float64, len(columns))}
	queued := c.waiting()
	column := 0
	for i, h := range c.held {
		for column < len(columns)-1 && columns[column] < c.second(h.From) {
			column++
		}
		// What holds at the end of a column stands for it, of pending pods the most in it.
		for j := column; j < len(columns) && (j == column || columns[j] <= c.second(h.To)); j++ {
			for side, n := range []int{h.sample.Pending, queued[i]} {
				pending[side][j] = max(pending[side][j], float64(n))
			}
			if columns[j] > c.second(h.To) {
				continue
			}
			for side := range 2 {
				for _, s := range charts[side].Series {
					s.Values[j] = 0
				}
			}
			for _, g := range h.sample.Groups {
				at := place[g.Group]
				charts[0].Series[at].Values[j] += float64(g.World.Nodes)
				charts[1].Series[at].Values[j] += float64(g.Windlass.Nodes)
			}
		}
	}
	charts[2].Series = []chart.Series{
		{Name: "the world", Colour: chart.Colours[5], Values: pending[0]},
		{Name: "Windlass", Colour: chart.Colours[0], Values: pending[1], Dashes: "4 3"},
	}
	b.WriteString("<h2>Timelines</h2>\n<p>the mouse shows each mark with its reason, a click leads to the lists below</p>\n")
	top := max(charts[0].Top(), charts[1].Top())
	charts[0].Plot(b, a, columns, top)
	chart.Lanes(b, a, c.lanes(false))
	charts[1].Plot(b, a, columns, top)
	chart.Lanes(b, a, c.lanes(true))
	b.WriteString("<h3>divergences, and what was not seen</h3>\n")
	chart.Lanes(b, a, c.diverging(a))
	charts[2].Plot(b, a, columns, 0)
}

// columns are the moments of a chart, the last of which is the end.
func (c *Comparison) columns(a chart.Axis) (at []int64) {
	n := max(1, min(mostColumns, a.Seconds/60))
	for i := range n + 1 {
		at = append(at, a.Seconds*i/n)
	}
	return at
}

// drawn names what charts tell apart, the dearest first and the others together, and says which
// group is which.
func (c *Comparison) drawn() (names []string, place map[string]int) {
	groups := slices.Clone(c.Groups)
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Compare(b.World.NodeHours+b.Windlass.NodeHours, a.World.NodeHours+a.Windlass.NodeHours)
	})
	place = map[string]int{}
	for i, g := range groups {
		place[g.sampled] = min(i, mostGroups)
		if i < mostGroups {
			names = append(names, g.Group)
		}
	}
	if more := len(groups) - mostGroups; more > 0 {
		names = append(names, fmt.Sprintf("%d more group%s", more, s(more)))
	}
	return names, place
}

// waiting is how many pods are pending on Windlass' side when each sample is taken: those that it has
// served later, and those of the world of which no record says that they were served.
func (c *Comparison) waiting() []int {
	own, world := c.queuedAt(c.queued.Windlass), c.queuedAt(c.queued.World)
	for i, h := range c.held {
		own[i] += max(0, h.sample.Pending-world[i])
	}
	return own
}

// queuedAt counts pods at each sample.
func (c *Comparison) queuedAt(queued []Gap) []int {
	var from, to []time.Time
	for _, q := range queued {
		from, to = append(from, q.From), append(to, q.To)
	}
	byDate := func(a, b time.Time) int { return a.Compare(b) }
	slices.SortFunc(from, byDate)
	slices.SortFunc(to, byDate)
	counts := make([]int, len(c.held))
	begun, ended := 0, 0
	for i, h := range c.held {
		for begun < len(from) && !from[begun].After(h.From) {
			begun++
		}
		for ended < len(to) && !to[ended].After(h.From) {
			ended++
		}
		counts[i] = max(0, begun-ended)
	}
	return counts
}

// done lists what a side did in the span, with the ids of their lines.
func (c *Comparison) done(windlass, removed bool) (list []*doing, id string) {
	both, id := c.sides.grown, "g"
	if removed {
		both, id = c.sides.removed, "r"
	}
	side := both.World
	if windlass {
		side, id = both.Windlass, id+"l"
	}
	for _, d := range side {
		if c.in(d.At) && len(list) < mostMarked {
			list = append(list, d)
		}
	}
	return list, id
}

// lanes are the marks of one side.
func (c *Comparison) lanes(windlass bool) (lanes []chart.Lane) {
	for i, name := range []string{"scale-up", "scale-down"} {
		l := chart.Lane{Name: name, Colour: chart.Colours[2-i]}
		list, id := c.done(windlass, i == 1)
		for n, d := range list {
			l.Marks = append(l.Marks, chart.Mark{At: c.second(d.At), Text: d.Doing.String(), Link: fmt.Sprint(id, n)})
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// diverging are the marks of divergences and of gaps.
func (c *Comparison) diverging(a chart.Axis) []chart.Lane {
	diverged, gaps := chart.Lane{Name: "diverged", Colour: chart.Colours[5]}, chart.Lane{Name: "not seen", Colour: chart.Colours[7]}
	for i, d := range c.Divergences {
		diverged.Marks = append(diverged.Marks, chart.Mark{At: c.second(d.At), Text: fmt.Sprintf("%s\nthe world %s\nWindlass %s", d.what(), d.World, d.Windlass), Link: fmt.Sprint("v", i)})
	}
	for _, g := range c.Gaps[:min(len(c.Gaps), mostMarked)] {
		// A mark each hundredth or so of the chart has it look as long as it was.
		for at := c.second(g.From); at < c.second(g.To); at += max(1, a.Seconds/400) {
			gaps.Marks = append(gaps.Marks, chart.Mark{At: at, Text: fmt.Sprintf("%s to %s: %s", moment(g.From), moment(g.To), g.Why), Link: "gaps"})
		}
	}
	return []chart.Lane{diverged, gaps}
}

// lists has all that marks lead to.
func (c *Comparison) lists(b *strings.Builder) {
	row := func(id string, cells ...string) {
		fmt.Fprintf(b, "<tr id=\"%s\">", id)
		for _, cell := range cells {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(cell))
		}
		b.WriteString("</tr>\n")
	}
	a, n := c.axis(), 0
	for _, times := range c.ByKind {
		n += times
	}
	fmt.Fprintf(b, "<h2 id=\"gaps\">Lists</h2>\n<details open=\"\"><summary>divergences: %d</summary><table>\n<tr><th>at</th><th>what</th><th>the world</th><th>Windlass</th></tr>\n", n)
	for i, d := range c.Divergences {
		row(fmt.Sprint("v", i), a.Clock(c.second(d.At)), d.what(), d.World.String(), d.Windlass.String())
	}
	b.WriteString("</table></details>\n")
	for i, name := range []string{"scale-ups of the world", "scale-downs of the world", "scale-ups of Windlass", "scale-downs of Windlass"} {
		list, id := c.done(i >= 2, i%2 == 1)
		fmt.Fprintf(b, "<details><summary>%s: %d</summary><table>\n", name, len(list))
		for n, d := range list {
			row(fmt.Sprint(id, n), a.Clock(c.second(d.At)), d.By, d.Doing.String())
		}
		b.WriteString("</table></details>\n")
	}
	fmt.Fprintf(b, "<details><summary>where the shadow followed the world: %d</summary><table>\n", len(c.Notes))
	for i, n := range c.Notes {
		row(fmt.Sprint("f", i), a.Clock(c.second(n.At)), cmp.Or(n.Node, n.Group), "assumed: "+n.Assumed, "is: "+n.Is, n.Why)
	}
	b.WriteString("</table></details>\n")
}
