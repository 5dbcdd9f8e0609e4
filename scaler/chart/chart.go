// Package chart draws pictures over time as SVG, for pages of HTML that need nothing else and run
// nothing.
package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// Chart is a picture over time: SVG in two layers. What is drawn has a width of 1000 units and
// is stretched; words, in percent of the width, keep their size however narrow the page is.
type Chart struct {
	Title string
	Shape Shape
	// Unit stands before each value; values are whole where there is none.
	Unit   string
	Series []Series
	// Fold makes one value of several samples; the last one stands for them where it is nil.
	Fold func(a, b float64) float64
}

type Shape int

const (
	Lines Shape = iota
	Areas       // one upon the other
	Bars
	Dots // not over time
)

// Series has a value at each sample.
type Series struct {
	Name, Colour string
	// Dashes are those of a line; solid where it is empty.
	Dashes string
	Values []float64
}

// Ink is the colour of text, in light and in dark.
const Ink = "currentColor"

// Colours distinguish lines and areas, for most kinds of eyes.
var Colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"}

const (
	Wide, High = 1000.0, 200.0
	// mostColumns bounds how many places of a chart show their values.
	mostColumns = 240
)

// Drawing is the style of charts, in the page and alone.
const Drawing = `svg{overflow:visible}text{font:11px system-ui,sans-serif;fill:currentColor}polyline{fill:none;stroke-width:2;stroke-linejoin:round}
polyline,.grid{vector-effect:non-scaling-stroke}.grid{stroke:currentColor;stroke-opacity:.15}`

// Axis is the time of all charts of a page.
type Axis struct {
	Start   time.Time
	Seconds int64
}

func (a Axis) X(at int64) float64 { return Wide * float64(at) / float64(a.Seconds) }

const week = 7 * 24 * time.Hour

// Clock is a moment as people read it, and as verdicts name it.
func (a Axis) Clock(at int64) string {
	layout := "Mon 15:04:05"
	if a.Seconds > int64(week.Seconds()) {
		layout = "Mon 2 Jan 15:04:05"
	}
	return a.Start.Add(time.Duration(at) * time.Second).Format(layout)
}

// steps are how far words below a chart may be apart.
var steps = []time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 2 * 24 * time.Hour, week, 2 * week, 4 * week, 8 * week,
}

// Ticks writes a line and words at round moments. Every second word may go where it is narrow.
func (a Axis) Ticks(b *strings.Builder, height float64) {
	whole := time.Duration(a.Seconds) * time.Second
	step := steps[len(steps)-1]
	for _, s := range steps {
		if whole/s <= 9 {
			step = s
			break
		}
	}
	first := a.Start.Truncate(step)
	for at, n := first, 0; !at.After(a.Start.Add(whole)); at = at.Add(step) {
		if at.Before(a.Start) {
			continue
		}
		layout := "15:04"
		if at.Equal(at.Truncate(24 * time.Hour)) {
			layout = "Mon"
			if whole > week {
				layout = "2 Jan"
			}
		}
		Upright(b, a.X(int64(at.Sub(a.Start).Seconds())), height, n, at.Format(layout))
		n++
	}
}

// Upright writes a line with a word below it, the nth of a chart.
func Upright(b *strings.Builder, x, height float64, n int, word string) {
	x *= 100 / Wide
	fmt.Fprintf(b, "<line class=\"grid\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"%g\"/><text class=\"n%d\" x=\"%.2f%%\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", x, x, height+3, n%2, x, height+15, word)
}

// Top is the largest value.
func (c Chart) Top() (top float64) {
	for i := range c.samples() {
		sum := 0.0
		for _, s := range c.Series {
			if c.Shape == Areas {
				sum += s.Values[i]
			} else {
				sum = max(sum, s.Values[i])
			}
		}
		top = max(top, sum)
	}
	return top
}

func (c Chart) samples() int {
	if len(c.Series) == 0 {
		return 0
	}
	return len(c.Series[0].Values)
}

// Scale is how far lines across a chart are apart, and up to where it goes.
func (c Chart) Scale(top float64) (step, end float64) {
	if top <= 0 {
		top = 1
	}
	step = Fourth(top)
	if c.Unit == "" && c.Shape != Dots {
		step = max(1, step)
	}
	return step, step * math.Ceil(top/step-1e-9)
}

// Fourth is a round value of which four or fewer make a span.
func Fourth(span float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(span/4)))
	for _, by := range []float64{1, 2, 5} {
		if step*by >= span/4*(1-1e-9) {
			return step * by
		}
	}
	return step * 10
}

// Amount is a value with its unit, as finely as steps of a scale want it.
func (c Chart) Amount(value, step float64) string {
	return c.Unit + strconv.FormatFloat(value, 'f', max(0, -int(math.Floor(math.Log10(step)+1e-9))), 64)
}

// Draw writes the chart with the scale that its largest value wants, or a larger one.
func (c Chart) Draw(b *strings.Builder, a Axis, samples []int64, top float64, hover bool) {
	step, end := c.Scale(max(top, c.Top()))
	y := func(value float64) float64 { return High - High*value/end }
	c.Across(b, step, end, y)
	a.Ticks(b, High)
	Stretched(b, High)
	under := make([]float64, c.samples())
	for _, s := range c.Series {
		switch c.Shape {
		case Lines:
			fmt.Fprintf(b, "<polyline stroke=\"%s\" stroke-dasharray=\"%s\" points=\"%s\"/>\n", s.Colour, cmp.Or(s.Dashes, "none"), strings.Join(points(a, samples, s.Values, y), " "))
		case Areas:
			upper := make([]float64, len(under))
			for i := range upper {
				upper[i] = under[i] + s.Values[i]
			}
			outline := points(a, samples, upper, y)
			lower := points(a, samples, under, y)
			for i := len(lower) - 1; i >= 0; i-- {
				outline = append(outline, lower[i])
			}
			fmt.Fprintf(b, "<polygon fill=\"%s\" points=\"%s\"/>\n", s.Colour, strings.Join(outline, " "))
			under = upper
		case Bars:
			fmt.Fprintf(b, "<path fill=\"%s\" d=\"", s.Colour)
			for i, value := range s.Values {
				if from := a.X(samples[max(0, i-1)]); value > 0 {
					fmt.Fprintf(b, "M%.1f %gV%.1fH%.1fV%g", from, High, y(value), max(from+1, a.X(samples[i])), High)
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

// Across writes the lines of a scale with their values.
func (c Chart) Across(b *strings.Builder, step, end float64, y func(float64) float64) {
	for value := 0.0; value < end+step/2; value += step {
		fmt.Fprintf(b, "<line class=\"grid\" x1=\"0\" x2=\"100%%\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", y(value), y(value), y(value)+4, c.Amount(value, step))
	}
}

// Stretched begins the layer that is as wide as the page.
func Stretched(b *strings.Builder, height float64) {
	fmt.Fprintf(b, "<svg width=\"100%%\" height=\"%g\" viewBox=\"0 0 %g %g\" preserveAspectRatio=\"none\">\n", height, Wide, height)
}

// points are values at samples, without those between two equal ones.
func points(a Axis, samples []int64, values []float64, y func(float64) float64) []string {
	var list []string
	at := func(i int) string { return strconv.FormatFloat(y(values[i]), 'f', 1, 64) }
	for i := range values {
		if i > 0 && i+1 < len(values) && at(i-1) == at(i) && at(i) == at(i+1) {
			continue
		}
		list = append(list, fmt.Sprintf("%.1f,%s", a.X(samples[i]), at(i)))
	}
	return list
}

// hover shows the values of a moment where the mouse rests.
func (c Chart) hover(b *strings.Builder, a Axis, samples []int64, step float64) {
	b.WriteString("<g class=\"hover\">\n")
	n := c.samples()
	several := max(1, (n+mostColumns-1)/mostColumns)
	for from := 0; from < n; from += several {
		to := min(n, from+several)
		left := a.X(samples[max(0, from-1)])
		fmt.Fprintf(b, "<rect x=\"%.1f\" width=\"%.1f\" height=\"%g\"><title>%s", left, max(1, a.X(samples[to-1])-left), High, a.Clock(samples[to-1]))
		for _, s := range c.Series {
			value := s.Values[to-1]
			if c.Fold != nil {
				for _, other := range s.Values[from : to-1] {
					value = c.Fold(value, other)
				}
			}
			if value > 0 || c.Shape != Areas {
				fmt.Fprintf(b, "\n%s %s", html.EscapeString(s.Name), c.Amount(value, step/10))
			}
		}
		b.WriteString("</title></rect>\n")
	}
	b.WriteString("</g>\n")
}

// Mark is what stands before the name of a series, 18 by 10.
func (c Chart) Mark(s Series) string {
	switch c.Shape {
	case Lines:
		return fmt.Sprintf("<line x2=\"18\" y1=\"5\" y2=\"5\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"/>", s.Colour, cmp.Or(s.Dashes, "none"))
	case Dots:
		return fmt.Sprintf("<circle cx=\"9\" cy=\"5\" r=\"5\" fill=\"%s\"/>", s.Colour)
	}
	return fmt.Sprintf("<rect width=\"18\" height=\"10\" fill=\"%s\"/>", s.Colour)
}
