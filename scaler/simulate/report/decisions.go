package report

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/chart"
	"windlass.dev/windlass/scaler/simulate/world"
)

// mostListed bounds how many decisions a page has, those of all runs together.
const mostListed = 6000

// lanes are the kinds of decisions, in the words of people.
var lanes = []struct{ kind, name, colour string }{
	{"grow", "scale-up", chart.Colours[2]},
	{"request-drain", "scale-down", chart.Colours[1]},
	{"cancel-drain", "cancelled", chart.Colours[3]},
	{"terminate", "termination", chart.Colours[5]},
	{"", "other", chart.Colours[7]},
}

func laneOf(kind string) int {
	n := slices.IndexFunc(lanes, func(l struct{ kind, name, colour string }) bool { return l.kind == kind })
	if n < 0 {
		return len(lanes) - 1
	}
	return n
}

// listed are the decisions of a run that the page has, with words on how many these are.
func (r Report) listed(n int) ([]world.Decision, string) {
	run := &r.Runs[n]
	list := run.Decisions[:min(len(run.Decisions), max(1, mostListed/len(r.Runs)))]
	all := len(run.Decisions) + run.Hidden
	if len(list) == all || len(list) == 0 {
		return list, fmt.Sprintf("%d decisions", all)
	}
	return list, fmt.Sprintf("the first %d of %d decisions, up to %s", len(list), all, r.axis().Clock(list[len(list)-1].At))
}

func (r Report) words(d world.Decision) string {
	return r.axis().Clock(d.At) + " " + d.Text + "\n" + d.Verdict
}

// strip marks decisions over time, in a lane for each kind. A mark shows what was decided about
// there and with which verdicts; it leads to the first of them in the list.
func (r Report) strip(b *strings.Builder, n int) {
	list, about := r.listed(n)
	if len(list) == 0 {
		return
	}
	drawn := make([]chart.Lane, len(lanes))
	for i, l := range lanes {
		drawn[i] = chart.Lane{Name: l.name, Colour: l.colour}
	}
	for i, d := range list {
		l := &drawn[laneOf(d.Kind)]
		l.Marks = append(l.Marks, chart.Mark{At: d.At, Text: r.words(d), Link: fmt.Sprintf("d%d-%d", n, i)})
	}
	fmt.Fprintf(b, "<h3>%s</h3>\n<p>the mouse shows each with its verdict, a click leads to the list below</p>", about)
	chart.Lanes(b, r.axis(), drawn)
}

// list has the decisions as text.
func (r Report) list(b *strings.Builder, n int) {
	list, about := r.listed(n)
	fmt.Fprintf(b, "<details><summary>%s</summary><table>\n", about)
	for i, d := range list {
		fmt.Fprintf(b, "<tr id=\"d%d-%d\"><td>%s</td><td>%s</td><td>%s</td></tr>\n", n, i, r.axis().Clock(d.At), html.EscapeString(d.Text), html.EscapeString(d.Verdict))
	}
	b.WriteString("</table></details>\n")
}
