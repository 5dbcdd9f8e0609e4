package report

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/scaler/simulate/world"
)

// chart is a picture over time: SVG in two layers. What is drawn has a width of 1000 units and
// is stretched; words, in percent of the width, keep their size however narrow the page is.
type chart struct {
	title string
	shape shape
	// unit stands before each value; values are whole where there is none.
	unit   string
	series []series
	// fold makes one value of several samples; the last one stands for them where it is nil.
	fold func(a, b float64) float64
}

type shape int

const (
	lines shape = iota
	areas       // one upon the other
	bars
	dots // not over time
)

// series has a value at each sample.
type series struct {
	name, colour string
	// dashes are those of a line; solid where it is empty.
	dashes string
	values []float64
}

// ink is the colour of text, in light and in dark.
const ink = "currentColor"

// colours distinguish lines and areas, for most kinds of eyes.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"}

const (
	wide, high = 1000.0, 200.0
	// mostColumns bounds how many places of a chart show their values.
	mostColumns = 240
)

// drawing is the style of charts, in the page and alone.
const drawing = `svg{overflow:visible}text{font:11px system-ui,sans-serif;fill:currentColor}polyline{fill:none;stroke-width:2;stroke-linejoin:round}
polyline,.grid{vector-effect:non-scaling-stroke}.grid{stroke:currentColor;stroke-opacity:.15}`

// axis is the time of a trace.
type axis struct {
	start   time.Time
	seconds int64
}

func (r Report) axis() axis { return axis{r.Start.UTC(), max(1, r.Seconds)} }

func (a axis) x(at int64) float64 { return wide * float64(at) / float64(a.seconds) }

const week = 7 * 24 * time.Hour

// clock is a moment as people read it, and as verdicts name it.
func (a axis) clock(at int64) string {
	layout := "Mon 15:04:05"
	if a.seconds > int64(week.Seconds()) {
		layout = "Mon 2 Jan 15:04:05"
	}
	return a.start.Add(time.Duration(at) * time.Second).Format(layout)
}

// steps are how far words below a chart may be apart.
var steps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, week, 2 * week, 4 * week, 8 * week,
}

// ticks writes a line and words at round moments. Every second word may go where it is narrow.
func (a axis) ticks(b *strings.Builder, height float64) {
	whole := time.Duration(a.seconds) * time.Second
	step := steps[len(steps)-1]
	for _, s := range steps {
		if whole/s <= 9 {
			step = s
			break
		}
	}
	first := a.start.Truncate(step)
	for at, n := first, 0; !at.After(a.start.Add(whole)); at = at.Add(step) {
		if at.Before(a.start) {
			continue
		}
		layout := "15:04"
		if at.Equal(at.Truncate(24 * time.Hour)) {
			layout = "Mon"
			if whole > week {
				layout = "2 Jan"
			}
		}
		upright(b, a.x(int64(at.Sub(a.start).Seconds())), height, n, at.Format(layout))
		n++
	}
}

// upright writes a line with a word below it, the nth of a chart.
func upright(b *strings.Builder, x, height float64, n int, word string) {
	x *= 100 / wide
	fmt.Fprintf(b, "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%g\"/><text class=\"n%d\" x=\"%.2f%%\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", x, x, height+3, n%2, x, height+15, word)
}

// top is the largest value.
func (c chart) top() (top float64) {
	for i := range c.samples() {
		sum := 0.0
		for _, s := range c.series {
			if c.shape == areas {
				sum += s.values[i]
			} else {
				sum = max(sum, s.values[i])
			}
		}
		top = max(top, sum)
	}
	return top
}

func (c chart) samples() int {
	if len(c.series) == 0 {
		return 0
	}
	return len(c.series[0].values)
}

// scale is how far lines across a chart are apart, and up to where it goes.
func (c chart) scale(top float64) (step, end float64) {
	if top <= 0 {
		top = 1
	}
	step = fourth(top)
	if c.unit == "" && c.shape != dots {
		step = max(1, step)
	}
	return step, step * math.Ceil(top/step-1e-9)
}

// fourth is a round value of which four or fewer make a span.
func fourth(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span/4)))
	for _, by := range []float64{1, 2, 5} {
		if step*by >= span/4*(1-1e-9) {
			return step * by
		}
	}
	return step * 10
}

// amount is a value with its unit, as finely as steps of a scale want it.
func (c chart) amount(value, step float64) string {
	return c.unit + strconv.FormatFloat(value, 'f', max(0, -int(math.Floor(math.Log10(step)+1e-9))), 64)
}

// draw writes the chart with the scale that its largest value wants, or a larger one.
func (c chart) draw(b *strings.Builder, a axis, samples []world.Sample, top float64, hover bool) {
	step, end := c.scale(max(top, c.top()))
	y := func(value float64) float64 { return high - high*value/end }
	c.across(b, step, end, y)
	a.ticks(b, high)
	stretched(b, high)
	under := make([]float64, c.samples())
	for _, s := range c.series {
		switch c.shape {
		case lines:
			fmt.Fprintf(b, "<polyline stroke=\"%s\" stroke-dasharray=\"%s\" points=\"%s\"/>\n", s.colour, cmp.Or(s.dashes, "none"), strings.Join(points(a, samples, s.values, y), " "))
		case areas:
			upper := make([]float64, len(under))
			for i := range upper {
				upper[i] = under[i] + s.values[i]
			}
			outline := points(a, samples, upper, y)
			lower := points(a, samples, under, y)
			for i := len(lower) - 1; i >= 0; i-- {
				outline = append(outline, lower[i])
			}
			fmt.Fprintf(b, "<polygon fill=\"%s\" points=\"%s\"/>\n", s.colour, strings.Join(outline, " "))
			under = upper
		case bars:
			fmt.Fprintf(b, "<path fill=\"%s\" d=\"", s.colour)
			for i, value := range s.values {
				if from := a.x(samples[max(0, i-1)].At); value > 0 {
					fmt.Fprintf(b, "M%.1f %gV%.1fH%.1fV%g", from, high, y(value), max(from+1, a.x(samples[i].At)), high)
				}
			}
			b.WriteString("\"/>\n")
		}
	}
	if hover {
		c.hover(b, a, samples, step)
	}
	b.WriteString("</svg>\n")
}

// across writes the lines of a scale with their values.
func (c chart) across(b *strings.Builder, step, end float64, y func(float64) float64) {
	for value := 0.0; value < end+step/2; value += step {
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", y(value), y(value), y(value)+4, c.amount(value, step))
	}
}

// stretched begins the layer that is as wide as the page.
func stretched(b *strings.Builder, height float64) {
	fmt.Fprintf(b, "<svg width=\"100%%\" height=\"%g\" viewBox=\"0 0 %g %g\" preserveAspectRatio=\"none\">\n", height, wide, height)
}

// points are values at samples, without those between two equal ones.
func points(a axis, samples []world.Sample, values []float64, y func(float64) float64) []string {
	var list []string
	at := func(i int) string { return strconv.FormatFloat(y(values[i]), 'f', 1, 64) }
	for i := range values {
		if i > 0 && i+1 < len(values) && at(i-1) == at(i) && at(i) == at(i+1) {
			continue
		}
		list = append(list, fmt.Sprintf("%.1f,%s", a.x(samples[i].At), at(i)))
	}
	return list
}

// hover shows the values of a moment where the mouse rests.
func (c chart) hover(b *strings.Builder, a axis, samples []world.Sample, step float64) {
	b.WriteString("<g class=\"hover\">\n")
	n := c.samples()
	several := max(1, (n+mostColumns-1)/mostColumns)
	for from := 0; from < n; from += several {
		to := min(n, from+several)
		left := a.x(samples[max(0, from-1)].At)
		fmt.Fprintf(b, "<rect x=\"%.1f\" width=\"%.1f\" height=\"%g\"><title>%s", left, max(1, a.x(samples[to-1].At)-left), high, a.clock(samples[to-1].At))
		for _, s := range c.series {
			value := s.values[to-1]
			if c.fold != nil {
				for _, other := range s.values[from : to-1] {
					value = c.fold(value, other)
				}
			}
			if value > 0 || c.shape != areas {
				fmt.Fprintf(b, "\n%s %s", html.EscapeString(s.name), c.amount(value, step/10))
			}
		}
		b.WriteString("</title></rect>\n")
	}
	b.WriteString("</g>\n")
}

// mark is what stands before the name of a series, 18 by 10.
func (c chart) mark(s series) string {
	switch c.shape {
	case lines:
		return fmt.Sprintf("<line x2=\"18\" y1=\"5\" y2=\"5\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"/>", s.colour, cmp.Or(s.dashes, "none"))
	case dots:
		return fmt.Sprintf("<circle cx=\"9\" cy=\"5\" r=\"5\" fill=\"%s\"/>", s.colour)
	}
	return fmt.Sprintf("<rect width=\"18\" height=\"10\" fill=\"%s\"/>", s.colour)
}
