package report

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/simulate/world"
)

const (
	// mostListed bounds how many decisions a page has, those of all runs together.
	mostListed = 6000
	// mostShown is how many bytes of decisions show at one mark. Browsers cut such text off.
	mostShown = 900
	// mostMarks bounds how many marks a lane has: as many as a mouse can tell apart.
	mostMarks = 360
	lane      = 18.0
)

// lanes are the kinds of decisions, in the words of people.
var lanes = []struct{ kind, name, colour string }{
	{"grow", "scale-up", colours[2]},
	{"request-drain", "scale-down", colours[1]},
	{"cancel-drain", "cancelled", colours[3]},
	{"terminate", "termination", colours[5]},
	{"", "other", colours[7]},
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
	return list, fmt.Sprintf("the first %d of %d decisions, up to %s", len(list), all, r.axis().clock(list[len(list)-1].At))
}

func (r Report) words(d world.Decision) string {
	return r.axis().clock(d.At) + " " + d.Text + "\n" + d.Verdict
}

// strip marks decisions over time, in a lane for each kind. A mark shows what was decided about
// there and with which verdicts; it leads to the first of them in the list.
func (r Report) strip(b *strings.Builder, n int) {
	list, about := r.listed(n)
	if len(list) == 0 {
		return
	}
	a := r.axis()
	at := make([][mostMarks][]int, len(lanes)) // the decisions of each mark
	for i, d := range list {
		column := min(mostMarks-1, int(a.x(d.At)/wide*mostMarks))
		marks := &at[laneOf(d.Kind)][column]
		*marks = append(*marks, i)
	}
	var drawn []int
	for l := range at {
		if slices.ContainsFunc(at[l][:], func(marks []int) bool { return len(marks) > 0 }) {
			drawn = append(drawn, l)
		}
	}
	height := lane * float64(len(drawn))
	fmt.Fprintf(b, "<h3>%s</h3>\n<p>the mouse shows each with its verdict, a click leads to the list below</p><div class=\"plot\"><svg class=\"chart\" height=\"%g\">\n", about, height)
	for row, l := range drawn {
		fmt.Fprintf(b, "<text x=\"-6\" y=\"%g\" text-anchor=\"end\">%s</text>\n", lane*float64(row)+12, lanes[l].name)
	}
	a.ticks(b, height)
	stretched(b, height)
	for row, l := range drawn {
		for column, marks := range at[l] {
			if len(marks) == 0 {
				continue
			}
			fmt.Fprintf(b, "<a href=\"#d%d-%d\"><rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\" fill=\"%s\"><title>%s</title></rect></a>\n",
				n, marks[0], wide*float64(column)/mostMarks, lane*float64(row)+1, wide/mostMarks, lane-2, lanes[l].colour, html.EscapeString(r.shown(list, marks)))
		}
	}
	b.WriteString("</svg></svg></div>\n")
}

// shown is what a mark shows.
func (r Report) shown(list []world.Decision, marks []int) string {
	text := r.words(list[marks[0]])
	for n, i := range marks[1:] {
		next := "\n\n" + r.words(list[i])
		if len(text)+len(next) > mostShown {
			return fmt.Sprintf("%s\n\nand %d more: click for the list", text, len(marks)-1-n)
		}
		text += next
	}
	return text
}

// list has the decisions as text.
func (r Report) list(b *strings.Builder, n int) {
	list, about := r.listed(n)
	fmt.Fprintf(b, "<details><summary>%s</summary><table>\n", about)
	for i, d := range list {
		fmt.Fprintf(b, "<tr id=\"d%d-%d\"><td>%s</td><td>%s</td><td>%s</td></tr>\n", n, i, r.axis().clock(d.At), html.EscapeString(d.Text), html.EscapeString(d.Verdict))
	}
	b.WriteString("</table></details>\n")
}
