package report

import (
	"fmt"
	"html"
	"strings"

	"windlass.dev/windlass/scaler/chart"
)

// Picture is an SVG of its own, for documents: what the first run costs an hour, as the page draws
// it. It has a light ground, as a document does not lend it its colours.
func (r Report) Picture() string {
	const width, left, top, height = 960, 48, 52, 52 + chart.High + 24
	run := &r.Runs[0]
	c := r.charts(run)[1]
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" viewBox=\"0 0 %d %g\" color=\"#1f2328\"><style>%s.title{font-weight:600}</style><rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", width, height, width, height, chart.Drawing)
	fmt.Fprintf(&b, "<text class=\"title\" x=\"12\" y=\"18\">%s: %s</text>\n", html.EscapeString(c.Title), html.EscapeString(r.Trace))
	x := 12
	for _, s := range c.Series {
		fmt.Fprintf(&b, "<g transform=\"translate(%d 27)\">%s<text x=\"24\" y=\"9\">%s</text></g>\n", x, c.Mark(s), html.EscapeString(s.Name))
		x += 48 + 6*len(s.Name)
	}
	fmt.Fprintf(&b, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%g\">\n", left, top, width-left-20, chart.High)
	c.Draw(&b, r.axis(), times(run.Samples), 0, false)
	b.WriteString("</svg>\n</svg>\n")
	return b.String()
}
