package report

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/simulate/world"
)

// Page is one page of HTML that needs nothing else, and runs nothing: a section for each run,
// with charts as SVG. Values, decisions and verdicts show where the mouse rests; a click on a
// decision leads to it in the list of all.
func (r Report) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/><title>%s</title><style>%s%s</style></head><body>
<h1>%s</h1>
`, html.EscapeString(r.Trace), drawing, style, html.EscapeString(r.Trace))
	for _, line := range r.played() {
		fmt.Fprintf(&b, "<p>%s</p>\n", html.EscapeString(line))
	}
	r.figures(&b)
	r.scatter(&b)
	if r.Sweep != nil {
		r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return !run.Unbeaten })
	}
	r.overview(&b)
	all, tops := make([][]chart, len(r.Runs)), map[int]float64{}
	for i := range r.Runs {
		all[i] = r.charts(&r.Runs[i])
		for j, c := range all[i] {
			tops[j] = max(tops[j], c.top())
		}
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(run.Name))
		if run.Flags != "" {
			fmt.Fprintf(&b, "<p><code>%s</code></p>\n", html.EscapeString(run.Flags))
		}
		for j, c := range all[i] {
			r.plot(&b, c, run.Samples, tops[j])
			if j == 0 {
				r.strip(&b, i)
			}
		}
		run.bills(&b)
		r.list(&b, i)
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

// style is for light and dark, and for narrow windows.
const style = `:root{color-scheme:light dark}body{font:14px/1.4 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}
h1,h2,h3,p{margin:.2em 0;overflow-wrap:anywhere}h2{margin-top:2em;border-top:1px solid}h3{margin-top:1.2em}
.plot{padding:8px 24px 24px 76px}.plot svg{display:block;width:100%}.key span{margin-right:1.2em;display:inline-block}.key svg{margin-right:.4em}
.hover rect{fill:transparent}.hover rect:hover{fill:currentColor;fill-opacity:.15}a rect:hover,circle:hover{fill:currentColor}
.wide,details{overflow:auto;max-height:40em}.figures{max-height:none;margin:1em 0}table{border-collapse:collapse}td,th{padding:.1em 1.4em .1em 0;text-align:left;vertical-align:top;font-weight:400}
th{white-space:nowrap}.figures td,.figures th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.figures tr{border-bottom:1px solid rgba(128,128,128,.25)}:target{background:rgba(230,159,0,.4)}
@media(max-width:640px){.plot{padding-right:12px}.n1{display:none}th{white-space:normal}}`

// figures is the table.
func (r Report) figures(b *strings.Builder) {
	b.WriteString("<div class=\"wide figures\"><table>\n")
	for i, cells := range r.table() {
		b.WriteString("<tr>")
		for j, cell := range cells {
			kind := "td"
			if i == 0 || j == 0 {
				kind = "th"
			}
			fmt.Fprintf(b, "<%s>%s</%s>", kind, html.EscapeString(cell), kind)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

// plot writes a chart with its title and its key.
func (r Report) plot(b *strings.Builder, c chart, samples []world.Sample, top float64) {
	if len(c.series) == 0 {
		return // nothing was paid for
	}
	c.begin(b)
	c.draw(b, r.axis(), samples, top, true)
	b.WriteString("</svg></div>\n")
}

// begin writes the title and the key, and begins the picture.
func (c chart) begin(b *strings.Builder) {
	fmt.Fprintf(b, "<h3>%s</h3>\n<p class=\"key\">", html.EscapeString(c.title))
	for _, s := range c.series {
		if len(c.series) > 1 {
			fmt.Fprintf(b, "<span><svg width=\"18\" height=\"10\">%s</svg>%s</span>\n", c.mark(s), html.EscapeString(s.name))
		}
	}
	fmt.Fprintf(b, "</p><div class=\"plot\"><svg class=\"chart\" height=\"%g\">\n", high)
}

// overview has the bills of all runs in one chart.
func (r Report) overview(b *strings.Builder) {
	if len(r.Runs) < 2 || len(r.Runs[0].Samples) < 2 {
		return
	}
	var bills []series
	for i := range r.Runs {
		line := r.Runs[i].bill(r.Runs[i].Name)
		line.colour = colours[i%6] // not the yellow, nor the grey
		if i >= 6 {
			line.dashes = fmt.Sprintf("%d 3", 3*(i/6))
		}
		bills = append(bills, line)
	}
	for _, c := range r.dollars(bills) {
		r.plot(b, c, r.Runs[0].Samples, 0) // samples are of equal moments in all runs
	}
}

// charts are those of a run, in the same order for each.
func (r Report) charts(run *Run) []chart {
	if len(run.Samples) < 2 {
		return nil
	}
	apart := length(run.Samples[1].At - run.Samples[0].At)
	pending, evicted := make([]float64, len(run.Samples)), make([]float64, len(run.Samples))
	for i, s := range run.Samples {
		pending[i] = float64(s.Pending)
		evicted[i] = float64(s.Evictions - run.Samples[max(0, i-1)].Evictions)
	}
	return append(r.dollars([]series{run.bill("bill")}), r.nodes(run),
		chart{title: fmt.Sprintf("pending pods, the most at once in each %s", apart), shape: bars, fold: math.Max, series: []series{{name: "pending pods", colour: colours[5], values: pending}}},
		chart{title: fmt.Sprintf("evictions in each %s", apart), shape: bars, fold: func(a, b float64) float64 { return a + b }, series: []series{{name: "evictions", colour: colours[3], values: evicted}}})
}

// bill is what was paid so far.
func (run *Run) bill(name string) series {
	s := series{name: name, colour: colours[0]}
	for _, at := range run.Samples {
		s.values = append(s.values, at.Dollars)
	}
	return s
}

// dollars are two charts, so far and an hour, of bills beside both yardsticks.
func (r Report) dollars(bills []series) []chart {
	sums := slices.Clone(bills)
	if n := len(r.Bound); n > 0 && n == len(bills[0].values) && n == len(r.Repack) {
		sums = append(sums,
			series{name: "packed anew", colour: colours[7], values: r.Repack},
			series{name: "bound", colour: ink, values: r.Bound})
	}
	samples := r.Runs[0].Samples
	rates := slices.Clone(sums)
	for i, s := range sums {
		rates[i].values = make([]float64, len(s.values))
		for j := range s.values {
			at := max(1, j)
			rates[i].values[j] = over(3600*(s.values[at]-s.values[at-1]), float64(samples[at].At-samples[at-1].At))
		}
		sums[i].name += fmt.Sprintf(" $%.2f", s.values[len(s.values)-1])
	}
	return []chart{{title: "dollars so far", unit: "$", series: sums}, {title: "dollars an hour", unit: "$", series: rates}}
}

// nodes has those that are paid for, by instance type: those that cost most in all runs at the
// bottom, the least of many together.
func (r Report) nodes(run *Run) chart {
	cost := map[string]float64{}
	for i := range r.Runs {
		for _, bill := range r.Runs[i].Bills {
			cost[bill.Type] += bill.Dollars()
		}
	}
	types := slices.SortedFunc(maps.Keys(cost), func(a, b string) int { return cmp.Or(cmp.Compare(cost[b], cost[a]), cmp.Compare(a, b)) })
	types = slices.DeleteFunc(types, func(name string) bool { return cost[name] <= 0 })
	c := chart{title: "nodes that are paid for, by instance type", shape: areas}
	others := len(colours) - 1
	place, dollars := map[string]int{}, make([]float64, min(len(types), others+1))
	for i, name := range types {
		place[name] = min(i, others)
		if i <= others {
			c.series = append(c.series, series{name: name, colour: colours[i], values: make([]float64, len(run.Samples))})
		}
	}
	if more := len(types) - others; more > 1 {
		c.series[others].name = fmt.Sprintf("%d more types", more)
	}
	for g, bill := range run.Bills {
		i, drawn := place[bill.Type]
		if !drawn {
			continue
		}
		dollars[i] += bill.Dollars()
		for j, s := range run.Samples {
			c.series[i].values[j] += float64(s.Nodes[g])
		}
	}
	for i := range c.series {
		c.series[i].name += fmt.Sprintf(" $%.2f", dollars[i])
	}
	return c
}

// mostBills bounds how many groups a run lists.
const mostBills = 500

// bills lists what each group cost, the dearest first, and the others together.
func (run *Run) bills(b *strings.Builder) {
	b.WriteString("<details><summary>bill by group</summary><table>\n<tr><th>group</th><th>type</th><th>$ an hour</th><th>node-hours</th><th>$</th></tr>\n")
	dearest := slices.Clone(run.Bills)
	slices.SortStableFunc(dearest, func(a, b world.Bill) int { return cmp.Compare(b.Dollars(), a.Dollars()) })
	listed := min(len(dearest), mostBills)
	for _, bill := range dearest[:listed] {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%g</td><td>%.1f</td><td>%.2f</td></tr>\n", html.EscapeString(bill.Group), html.EscapeString(bill.Type), bill.Price, float64(bill.Seconds)/3600, bill.Dollars())
	}
	if more := dearest[listed:]; len(more) > 0 {
		rest := world.Ledger{Bills: more}
		fmt.Fprintf(b, "<tr><td>%d more group%s</td><td></td><td></td><td>%.1f</td><td>%.2f</td></tr>\n", len(more), strings.Repeat("s", min(1, len(more)-1)), rest.NodeHours(), rest.Dollars())
	}
	b.WriteString("</table></details>\n")
}
