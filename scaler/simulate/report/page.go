package report

import (
	"fmt"
	"html"
	"strings"

	"windlass.dev/windlass/scaler/simulate/world"
)

// Page is one page of HTML that needs nothing else: a section for each run, with charts as SVG.
// Text of decisions and verdicts shows where the mouse rests.
func (r Report) Page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title><style>%s</style></head><body>
<h1>%s</h1>
`, html.EscapeString(r.Trace), style, html.EscapeString(r.Trace))
	var table strings.Builder
	_ = r.Table(&table) // a builder takes everything
	fmt.Fprintf(&b, "<pre>%s</pre>\n", html.EscapeString(table.String()))
	for i := range r.Runs {
		r.section(&b, &r.Runs[i])
	}
	b.WriteString("</body></html>\n")
	return b.String()
}

const style = `body{font:14px system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}
svg{width:100%;height:auto;background:#fafafa}text{font-size:11px;fill:#444}pre{overflow:auto}
.key{margin:.3em 1em .3em 0;display:inline-block}.key i{display:inline-block;width:.9em;height:.9em;margin-right:.3em}
details{max-height:40em;overflow:auto}td{padding:.1em .6em;vertical-align:top}`

// colours distinguish lines and areas, for most kinds of eyes.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#000000"}

const (
	wide, high  = 1000.0, 200.0
	left, right = 50.0, 60.0
	bottom      = 20.0
	mostMarks   = 1500
	mostListed  = 2000
)

// chart is one picture over the time of the trace.
type chart struct {
	*strings.Builder
	seconds int64
	top     float64
}

func newChart(b *strings.Builder, title string, seconds int64, top float64) chart {
	c := chart{b, max(1, seconds), max(top, 1e-9)}
	fmt.Fprintf(b, "<h3>%s</h3>\n<svg viewBox=\"0 0 %g %g\">\n", html.EscapeString(title), left+wide+right, high+bottom)
	for i := range 3 {
		value := c.top * float64(i) / 2
		fmt.Fprintf(b, "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"2\" y=\"%.1f\">%.4g</text>\n", left, wide+left, c.y(value), c.y(value), c.y(value)-2, value)
	}
	for i := range 9 {
		at := c.seconds * int64(i) / 8
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%g\">%s</text>\n", c.x(at), high+bottom-4, clock(at))
	}
	return c
}

// clock is a moment as people read it.
func clock(seconds int64) string {
	return fmt.Sprintf("%dd %02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60)
}

func (c chart) x(at int64) float64      { return left + wide*float64(at)/float64(c.seconds) }
func (c chart) y(value float64) float64 { return high - (high-12)*value/c.top }
func (c chart) end()                    { c.WriteString("</svg>\n") }

func (c chart) key(name, colour string) {
	fmt.Fprintf(c, "<span class=\"key\"><i style=\"background:%s\"></i>%s</span>\n", colour, html.EscapeString(name))
}

// line draws values at samples.
func (c chart) line(samples []world.Sample, colour string, value func(i int) float64) {
	fmt.Fprintf(c, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour)
	for i, s := range samples {
		fmt.Fprintf(c, "%.1f,%.1f ", c.x(s.At), c.y(value(i)))
	}
	c.WriteString("\"/>\n")
}

// area draws what lies between two values at samples.
func (c chart) area(samples []world.Sample, colour, title string, from, to func(i int) float64) {
	fmt.Fprintf(c, "<polygon fill=\"%s\" points=\"", colour)
	for i, s := range samples {
		fmt.Fprintf(c, "%.1f,%.1f ", c.x(s.At), c.y(to(i)))
	}
	for i := len(samples) - 1; i >= 0; i-- {
		fmt.Fprintf(c, "%.1f,%.1f ", c.x(samples[i].At), c.y(from(i)))
	}
	fmt.Fprintf(c, "\"><title>%s</title></polygon>\n", html.EscapeString(title))
}

func (r Report) section(b *strings.Builder, run *Run) {
	fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(run.Name))
	if len(run.Samples) == 0 {
		return
	}
	r.dollars(b, run)
	r.rates(b, run)
	r.nodes(b, run)
	pending := func(i int) float64 { return float64(run.Samples[i].Pending) }
	c := newChart(b, "pending pods", r.Seconds, most(len(run.Samples), pending))
	c.area(run.Samples, colours[5], "pending pods", func(int) float64 { return 0 }, pending)
	c.end()
	evicted := func(i int) float64 { return float64(run.Samples[i].Evictions - run.Samples[max(0, i-1)].Evictions) }
	c = newChart(b, "evictions between two samples", r.Seconds, most(len(run.Samples), evicted))
	c.area(run.Samples, colours[3], "evictions", func(int) float64 { return 0 }, evicted)
	c.end()
	run.decisions(b)
}

func most(n int, value func(i int) float64) (top float64) {
	for i := range n {
		top = max(top, value(i))
	}
	return top
}

// dollars has the bill beside both yardsticks, and a mark for each decision.
func (r Report) dollars(b *strings.Builder, run *Run) {
	c := newChart(b, "dollars so far", r.Seconds, run.Dollars)
	bill := func(i int) float64 { return run.Samples[i].Dollars }
	c.line(run.Samples, colours[0], bill)
	n := min(len(r.Bound), len(run.Samples))
	c.line(run.Samples[:n], colours[7], func(i int) float64 { return r.Bound[i] })
	c.line(run.Samples[:n], colours[2], func(i int) float64 { return r.Repack[i] })
	step := 1 + len(run.Decisions)/mostMarks
	at := 0
	for i := 0; i < len(run.Decisions); i += step {
		d := run.Decisions[i]
		for at+1 < len(run.Samples) && run.Samples[at].At < d.At {
			at++
		}
		fmt.Fprintf(c, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" fill-opacity=\".5\"><title>%s</title></circle>\n", c.x(d.At), c.y(bill(at)), markOf(d.Kind), html.EscapeString(clock(d.At)+" "+d.Text+"\n"+d.Verdict))
	}
	c.end()
	c.key("bill", colours[0])
	c.key("bound", colours[7])
	c.key("packed anew", colours[2])
	for _, kind := range []string{"grow", "request-drain", "terminate", "cancel-drain"} {
		c.key(names[kind], markOf(kind))
	}
}

// rates has dollars an hour, between each two samples.
func (r Report) rates(b *strings.Builder, run *Run) {
	rate := func(sum func(i int) float64) func(i int) float64 {
		return func(i int) float64 {
			i = max(1, i)
			return over(3600*(sum(i)-sum(i-1)), float64(run.Samples[i].At-run.Samples[i-1].At))
		}
	}
	n := min(len(r.Bound), len(run.Samples))
	if n < 2 {
		return
	}
	bill := rate(func(i int) float64 { return run.Samples[i].Dollars })
	bound, packed := rate(func(i int) float64 { return r.Bound[i] }), rate(func(i int) float64 { return r.Repack[i] })
	c := newChart(b, "dollars an hour", r.Seconds, max(most(n, bill), most(n, bound), most(n, packed)))
	c.line(run.Samples[:n], colours[0], bill)
	c.line(run.Samples[:n], colours[7], bound)
	c.line(run.Samples[:n], colours[2], packed)
	c.end()
}

// names are what people call the kinds of actions that have a colour.
var names = map[string]string{"grow": "scale-up", "request-drain": "scale-down", "terminate": "termination", "cancel-drain": "drain cancelled"}

func markOf(kind string) string {
	switch kind {
	case "grow":
		return colours[2]
	case "request-drain":
		return colours[1]
	case "terminate":
		return colours[5]
	case "cancel-drain":
		return colours[3]
	}
	return colours[8]
}

// nodes has those that are paid for, one group upon the other.
func (r Report) nodes(b *strings.Builder, run *Run) {
	upTo := func(groups int) func(i int) float64 {
		return func(i int) (sum float64) {
			for _, n := range run.Samples[i].Nodes[:groups] {
				sum += float64(n)
			}
			return sum
		}
	}
	c := newChart(b, "nodes that are paid for, by group", r.Seconds, most(len(run.Samples), upTo(len(run.Bills))))
	for g, bill := range run.Bills {
		c.area(run.Samples, colours[g%len(colours)], fmt.Sprintf("%s: $%.2f", bill.Group, bill.Dollars()), upTo(g), upTo(g+1))
	}
	c.end()
	for g, bill := range run.Bills {
		c.key(fmt.Sprintf("%s, %s, $%.2f", bill.Group, bill.Type, bill.Dollars()), colours[g%len(colours)])
	}
}

// decisions lists the first of them.
func (run *Run) decisions(b *strings.Builder) {
	listed := run.Decisions[:min(len(run.Decisions), mostListed)]
	fmt.Fprintf(b, "<details><summary>%d decisions", len(run.Decisions)+run.Hidden)
	if more := len(run.Decisions) + run.Hidden - len(listed); more > 0 {
		fmt.Fprintf(b, ", the last %d of them not listed", more)
	}
	b.WriteString("</summary><table>\n")
	for _, d := range listed {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td></tr>\n", clock(d.At), html.EscapeString(d.Text), html.EscapeString(d.Verdict))
	}
	b.WriteString("</table></details>\n")
}
