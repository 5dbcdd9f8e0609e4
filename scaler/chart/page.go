package chart

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Head begins a page, with its title and some paragraphs.
func Head(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/><title>%s</title><style>%s%s</style></head><body>
<h1>%s</h1>
`, html.EscapeString(title), Drawing, style, html.EscapeString(title))
	for _, line := range lines {
		fmt.Fprintf(b, "<p>%s</p>\n", html.EscapeString(line))
	}
}

// Foot ends a page.
const Foot = "</body></html>\n"

// style is for light and dark, and for narrow windows.
const style = `:root{color-scheme:light dark}body{font:14px/1.4 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em}
h1,h2,h3,p{margin:.2em 0;overflow-wrap:anywhere}h2{margin-top:2em;border-top:1px solid}h3{margin-top:1.2em}
.plot{padding:8px 24px 24px 76px}.plot svg{display:block;width:100%}.key span{margin-right:1.2em;display:inline-block}.key svg{margin-right:.4em}
.hover rect{fill:transparent}.hover rect:hover{fill:currentColor;fill-opacity:.15}a rect:hover,circle:hover{fill:currentColor}
.wide,details{overflow:auto;max-height:40em}.figures{max-height:none;margin:1em 0}table{border-collapse:collapse}td,th{padding:.1em 1.4em .1em 0;text-align:left;vertical-align:top;font-weight:400}
th{white-space:nowrap}.figures td,.figures th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}.figures tr{border-bottom:1px solid rgba(128,128,128,.25)}:target{background:rgba(230,159,0,.4)}
@media(max-width:640px){.plot{padding-right:12px}.n1{display:none}th{white-space:normal}}`

// Figures writes a table of numbers, the first line of which names its columns.
func Figures(b *strings.Builder, lines [][]string) {
	b.WriteString("<div class=\"wide figures\"><table>\n")
	for i, cells := range lines {
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

// Plot writes a chart with its title and its key.
func (c Chart) Plot(b *strings.Builder, a Axis, samples []int64, top float64) {
	if len(c.Series) == 0 {
		return // nothing was paid for
	}
	c.Begin(b)
	c.Draw(b, a, samples, top, true)
	b.WriteString("</svg></div>\n")
}

// Begin writes the title and the key, and begins the picture.
func (c Chart) Begin(b *strings.Builder) {
	fmt.Fprintf(b, "<h3>%s</h3>\n<p class=\"key\">", html.EscapeString(c.Title))
	for _, s := range c.Series {
		if len(c.Series) > 1 {
			fmt.Fprintf(b, "<span><svg width=\"18\" height=\"10\">%s</svg>%s</span>\n", c.Mark(s), html.EscapeString(s.Name))
		}
	}
	fmt.Fprintf(b, "</p><div class=\"plot\"><svg class=\"chart\" height=\"%g\">\n", High)
}

// Lane is marks of one kind over time.
type Lane struct {
	Name, Colour string
	Marks        []Mark
}

// Mark is something at a moment.
type Mark struct {
	At int64
	// Text shows where the mouse rests; Link is the id of an element to which a click leads.
	Text, Link string
}

const (
	// mostShown is how many bytes of marks show at one place. Browsers cut such text off.
	mostShown = 900
	// mostMarks bounds how many places a lane has: as many as a mouse can tell apart.
	mostMarks = 360
	lane      = 18.0
)

// Lanes writes marks over time, those of one place together. A click leads to the first of them.
// Lanes without marks are left out.
func Lanes(b *strings.Builder, a Axis, lanes []Lane) {
	lanes = slices.DeleteFunc(slices.Clone(lanes), func(l Lane) bool { return len(l.Marks) == 0 })
	height := lane * float64(len(lanes))
	fmt.Fprintf(b, "<div class=\"plot\"><svg class=\"chart\" height=\"%g\">\n", height)
	for row, l := range lanes {
		fmt.Fprintf(b, "<text x=\"-6\" y=\"%g\" text-anchor=\"end\">%s</text>\n", lane*float64(row)+12, html.EscapeString(l.Name))
	}
	a.Ticks(b, height)
	Stretched(b, height)
	for row, l := range lanes {
		var at [mostMarks][]Mark
		for _, m := range l.Marks {
			column := max(0, min(mostMarks-1, int(a.X(m.At)/Wide*mostMarks)))
			at[column] = append(at[column], m)
		}
		for column, marks := range at {
			if len(marks) == 0 {
				continue
			}
			fmt.Fprintf(b, "<a href=\"#%s\"><rect x=\"%.1f\" y=\"%g\" width=\"%.1f\" height=\"%g\" fill=\"%s\"><title>%s</title></rect></a>\n",
				marks[0].Link, Wide*float64(column)/mostMarks, lane*float64(row)+1, Wide/mostMarks, lane-2, l.Colour, html.EscapeString(shown(marks)))
		}
	}
	b.WriteString("</svg></svg></div>\n")
}

// shown is what the marks of a place show.
func shown(marks []Mark) string {
	text := marks[0].Text
	for n, m := range marks[1:] {
		next := "\n\n" + m.Text
		if len(text)+len(next) > mostShown {
			return fmt.Sprintf("%s\n\nand %d more: click for the list", text, len(marks)-1-n)
		}
		text += next
	}
	return text
}
