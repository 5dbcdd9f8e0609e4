package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"windlass.dev/windlass/scaler/chart"
)

// Rank makes the report that of a sweep over some flags: runs by dollars, and those marked that
// no other beats.
func (r *Report) Rank(flags []string) {
	r.Sweep = flags
	slices.SortStableFunc(r.Runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.mean(), b.mean()), cmp.Compare(a.evictionRate(), b.evictionRate()))
	})
	least := math.Inf(1) // evictions of those that cost less
	for i := 0; i < len(r.Runs); {
		bill, rate := r.Runs[i].mean(), r.Runs[i].evictionRate()
		for ; i < len(r.Runs) && r.Runs[i].mean() == bill; i++ {
			r.Runs[i].Unbeaten = rate < least && r.Runs[i].evictionRate() == rate
		}
		least = min(least, rate)
	}
}

// evictionRate is the mean of all seeds.
func (r Run) evictionRate() float64 { return meanOf(r.EvictionRates) }

func meanOf(list []float64) (mean float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	return mean
}

// unbeaten says what marks runs of a sweep.
const unbeaten = "no other costs less without more evictions, or has fewer without costing more"

// ranking is the table of a sweep: a line for each run.
func (r Report) ranking() [][]string {
	bill, rate := "bill, $", "evictions per 1,000 pod-hours"
	if r.times() > 1 {
		bill, rate = bill+", mean of all seeds", rate+", mean"
	}
	lines := [][]string{slices.Concat([]string{""}, r.Sweep, []string{bill, "÷ bound", rate, "pending p99 beyond boot, s", "launches", "scale-downs"})}
	for _, run := range r.Runs {
		cells := []string{""}
		if run.Unbeaten {
			cells[0] = "*"
		}
		for _, name := range r.Sweep {
			cells = append(cells, run.Swept[name])
		}
		lines = append(lines, append(cells, fmt.Sprintf("%.2f", run.mean()), fmt.Sprintf("%.3f", over(run.mean(), run.Bound)), fmt.Sprintf("%.1f", run.evictionRate()),
			fmt.Sprint(run.Beyond.P99), fmt.Sprint(run.Launches), fmt.Sprint(run.ScaleDowns)))
	}
	return lines
}

// scatter draws the runs of a sweep by dollars and evictions. A line joins those that no other
// beats, and runs of equal figures share a dot.
func (r Report) scatter(b *strings.Builder) {
	if r.Sweep == nil || len(r.Runs) == 0 {
		return
	}
	title := "evictions per 1,000 pod-hours, by dollars"
	if r.times() > 1 {
		title += ", means of all seeds"
	}
	c := chart.Chart{Title: title, Shape: chart.Dots, Series: []chart.Series{
		{Name: "another costs less without more evictions, or has fewer without costing more", Colour: chart.Colours[7]},
		{Name: unbeaten, Colour: chart.Colours[0]},
	}}
	most := 0.0
	for _, run := range r.Runs {
		most = max(most, run.evictionRate())
	}
	step, end := c.Scale(most)
	y := func(rate float64) float64 { return chart.High - chart.High*rate/end }

	bills := chart.Chart{Unit: "$"}
	least, top := r.Runs[0].mean(), r.Runs[len(r.Runs)-1].mean() // Rank has put them in order
	apart := chart.Fourth(max(top-least, 0.04, top*1e-9))        // bills have cents
	from := apart * math.Floor(least/apart+1e-9)
	columns := max(1, math.Ceil((top-from)/apart-1e-9))
	x := func(dollars float64) float64 { return chart.Wide * (dollars - from) / (columns * apart) }

	c.Begin(b)
	c.Across(b, step, end, y)
	for n := range int(columns) + 1 {
		dollars := from + apart*float64(n)
		chart.Upright(b, x(dollars), chart.High, n, bills.Amount(dollars, apart))
	}
	chart.Stretched(b, chart.High)
	fmt.Fprintf(b, "<polyline stroke=\"%s\" points=\"", c.Series[1].Colour)
	for _, run := range r.Runs {
		if run.Unbeaten {
			fmt.Fprintf(b, "%.1f,%.1f ", x(run.mean()), y(run.evictionRate()))
		}
	}
	b.WriteString("\"/>\n</svg>\n")
	for i, s := range c.Series { // the unbeaten ones on top
		for j, n := 0, 0; j < len(r.Runs); j += n {
			run, names := r.Runs[j], ""
			for n = 0; j+n < len(r.Runs) && r.Runs[j+n].mean() == run.mean() && r.Runs[j+n].evictionRate() == run.evictionRate(); n++ {
				names += r.Runs[j+n].Name + "\n"
			}
			if run.Unbeaten == (i == 1) {
				fmt.Fprintf(b, "<circle cx=\"%.2f%%\" cy=\"%.1f\" r=\"5\" fill=\"%s\"><title>%s%s\n%.1f evictions per 1,000 pod-hours</title></circle>\n",
					x(run.mean())*100/chart.Wide, y(run.evictionRate()), s.Colour, html.EscapeString(names), bills.Amount(run.mean(), 0.01), run.evictionRate())
			}
		}
	}
	b.WriteString("</svg></div>\n")
}
