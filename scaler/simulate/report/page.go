package report

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/chart"
	"windlass.dev/windlass/scaler/simulate/world"
)

// Page is one page of HTML that needs nothing else, and runs nothing: a section for each run,
// with charts as SVG. Values, decisions and verdicts show where the mouse rests; a click on a
// decision leads to it in the list of all.
func (r Report) Page() string {
	var b strings.Builder
	chart.Head(&b, r.Trace, r.played())
	chart.Figures(&b, r.table())
	r.scatter(&b)
	if r.Sweep != nil {
		r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return !run.Unbeaten })
	}
	r.overview(&b)
	all, tops := make([][]chart.Chart, len(r.Runs)), map[int]float64{}
	for i := range r.Runs {
		all[i] = r.charts(&r.Runs[i])
		for j, c := range all[i] {
			tops[j] = max(tops[j], c.Top())
		}
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(run.Name))
		if run.Flags != "" {
			fmt.Fprintf(&b, "<p><code>%s</code></p>\n", html.EscapeString(run.Flags))
		}
		for j, c := range all[i] {
			c.Plot(&b, r.axis(), times(run.Samples), tops[j])
			if j == 0 {
				r.strip(&b, i)
			}
		}
		run.bills(&b)
		r.list(&b, i)
	}
	b.WriteString(chart.Foot)
	return b.String()
}

func (r Report) axis() chart.Axis {
	return chart.Axis{Start: r.Start.UTC(), Seconds: max(1, r.Seconds)}
}

// times are those of samples.
func times(samples []world.Sample) []int64 {
	at := make([]int64, len(samples))
	for i, s := range samples {
		at[i] = s.At
	}
	return at
}

// overview has the bills of all runs in one chart.
func (r Report) overview(b *strings.Builder) {
	if len(r.Runs) < 2 || len(r.Runs[0].Samples) < 2 {
		return
	}
	var bills []chart.Series
	for i := range r.Runs {
		line := r.Runs[i].bill(r.Runs[i].Name)
		line.Colour = chart.Colours[i%6] // not the yellow, nor the grey
		if i >= 6 {
			line.Dashes = fmt.Sprintf("%d 3", 3*(i/6))
		}
		bills = append(bills, line)
	}
	for _, c := range r.dollars(bills) {
		c.Plot(b, r.axis(), times(r.Runs[0].Samples), 0) // samples are of equal moments in all runs
	}
}

// charts are those of a run, in the same order for each.
func (r Report) charts(run *Run) []chart.Chart {
	if len(run.Samples) < 2 {
		return nil
	}
	apart := length(run.Samples[1].At - run.Samples[0].At)
	pending, evicted := make([]float64, len(run.Samples)), make([]float64, len(run.Samples))
	for i, s := range run.Samples {
		pending[i] = float64(s.Pending)
		evicted[i] = float64(s.Evictions - run.Samples[max(0, i-1)].Evictions)
	}
	return append(r.dollars([]chart.Series{run.bill("bill")}), r.nodes(run),
		chart.Chart{Title: fmt.Sprintf("pending pods, the most at once in each %s", apart), Shape: chart.Bars, Fold: math.Max, Series: []chart.Series{{Name: "pending pods", Colour: chart.Colours[5], Values: pending}}},
		chart.Chart{Title: fmt.Sprintf("evictions in each %s", apart), Shape: chart.Bars, Fold: func(a, b float64) float64 { return a + b }, Series: []chart.Series{{Name: "evictions", Colour: chart.Colours[3], Values: evicted}}})
}

// bill is what was paid so far.
func (run *Run) bill(name string) chart.Series {
	s := chart.Series{Name: name, Colour: chart.Colours[0]}
	for _, at := range run.Samples {
		s.Values = append(s.Values, at.Dollars)
	}
	return s
}

// dollars are two charts, so far and an hour, of bills beside both yardsticks.
func (r Report) dollars(bills []chart.Series) []chart.Chart {
	sums := slices.Clone(bills)
	if n := len(r.Bound); n > 0 && n == len(bills[0].Values) && n == len(r.Repack) {
		sums = append(sums,
			chart.Series{Name: "packed anew", Colour: chart.Colours[7], Values: r.Repack},
			chart.Series{Name: "bound", Colour: chart.Ink, Values: r.Bound})
	}
	samples := r.Runs[0].Samples
	rates := slices.Clone(sums)
	for i, s := range sums {
		rates[i].Values = make([]float64, len(s.Values))
		for j := range s.Values {
			at := max(1, j)
			rates[i].Values[j] = over(3600*(s.Values[at]-s.Values[at-1]), float64(samples[at].At-samples[at-1].At))
		}
		sums[i].Name += fmt.Sprintf(" $%.2f", s.Values[len(s.Values)-1])
	}
	return []chart.Chart{{Title: "dollars so far", Unit: "$", Series: sums}, {Title: "dollars an hour", Unit: "$", Series: rates}}
}

// nodes has those that are paid for, by instance type: those that cost most in all runs at the
// bottom, the least of many together.
func (r Report) nodes(run *Run) chart.Chart {
	cost := map[string]float64{}
	for i := range r.Runs {
		for _, bill := range r.Runs[i].Bills {
			cost[bill.Type] += bill.Dollars()
		}
	}
	types := slices.SortedFunc(maps.Keys(cost), func(a, b string) int { return cmp.Or(cmp.Compare(cost[b], cost[a]), cmp.Compare(a, b)) })
	types = slices.DeleteFunc(types, func(name string) bool { return cost[name] <= 0 })
	c := chart.Chart{Title: "nodes that are paid for, by instance type", Shape: chart.Areas}
	others := len(chart.Colours) - 1
	place, dollars := map[string]int{}, make([]float64, min(len(types), others+1))
	for i, name := range types {
		place[name] = min(i, others)
		if i <= others {
			c.Series = append(c.Series, chart.Series{Name: name, Colour: chart.Colours[i], Values: make([]float64, len(run.Samples))})
		}
	}
	if more := len(types) - others; more > 1 {
		c.Series[others].Name = fmt.Sprintf("%d more types", more)
	}
	for g, bill := range run.Bills {
		i, drawn := place[bill.Type]
		if !drawn {
			continue
		}
		dollars[i] += bill.Dollars()
		for j, s := range run.Samples {
			c.Series[i].Values[j] += float64(s.Nodes[g])
		}
	}
	for i := range c.Series {
		c.Series[i].Name += fmt.Sprintf(" $%.2f", dollars[i])
	}
	return c
}

// mostBills bounds how many bills a run lists.
const mostBills = 500

// bills lists what each group cost, at each price that its zones have, the dearest first, and the others
// together.
func (run *Run) bills(b *strings.Builder) {
	b.WriteString("<details><summary>bill by group</summary><table>\n<tr><th>group</th><th>type</th><th>$ an hour</th><th>node-hours</th><th>$</th></tr>\n")
	dearest := slices.DeleteFunc(slices.Clone(run.Bills), func(b world.Bill) bool { return b.Seconds == 0 })
	slices.SortStableFunc(dearest, func(a, b world.Bill) int { return cmp.Compare(b.Dollars(), a.Dollars()) })
	listed := min(len(dearest), mostBills)
	for _, bill := range dearest[:listed] {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%g</td><td>%.1f</td><td>%.2f</td></tr>\n", html.EscapeString(bill.Group), html.EscapeString(bill.Type), bill.Price, float64(bill.Seconds)/3600, bill.Dollars())
	}
	if more := dearest[listed:]; len(more) > 0 {
		rest := world.Ledger{Bills: more}
		fmt.Fprintf(b, "<tr><td>%d more bill%s</td><td></td><td></td><td>%.1f</td><td>%.2f</td></tr>\n", len(more), strings.Repeat("s", min(1, len(more)-1)), rest.NodeHours(), rest.Dollars())
	}
	b.WriteString("</table></details>\n")
}
