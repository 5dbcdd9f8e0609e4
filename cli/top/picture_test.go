package top_test

import (
	"fmt"
	"html"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/docs/section"
)

// TestPicture: the picture in README is what the view shows of the cluster in testdata/picture.yaml,
// which is made up, and small.
func TestPicture(t *testing.T) {
	text, err := os.ReadFile("testdata/picture.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const width, height = 100, 19
	u := &user{t: t}
	u.begin(top.Options{Sort: "group"})
	for _, left := range []string{"5", "2"} { // a drain that goes on has a bar
		var w view.World
		if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "LEFT", left)), &w); err != nil {
			t.Fatal(err)
		}
		u.see(w)
	}
	u.press("home")
	u.tell(tea.WindowSizeMsg{Width: width, Height: height})
	picture := svg(u.model.View().Content, width, height)
	if len(picture) > 40<<10 {
		t.Errorf("the picture has %d bytes", len(picture))
	}
	section.HoldFile(t, "../../docs/top.svg", picture)
}

// classes are those of the codes of colours that the view has.
var classes = map[string]string{"\x1b[1m": "b", "\x1b[2m": "f", "\x1b[31m": "r", "\x1b[32m": "g", "\x1b[33m": "y"}

// svg draws a screen. Letters are placed by the width of the line, whatever font there is.
func svg(content string, width, height int) string {
	const letter, line, margin = 8.4, 18, 12
	var b strings.Builder
	w, h := float64(width)*letter+2*margin, height*line+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="kubectl windlass top">`+"\n", w, h)
	b.WriteString(`<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}.b{font-weight:bold}.f{fill:#8892a2}.r{fill:#e57373}.g{fill:#81c784}.y{fill:#e6c15c}</style>` + "\n")
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#1e222a"/>`+"\n")
	for i, text := range strings.Split(content, "\n") {
		text = strings.TrimRight(text, " ")
		if text == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%.1f">%s</text>`+"\n", margin, margin+14+i*line, float64(ansi.StringWidth(text))*letter, spans(text))
	}
	return b.String() + "</svg>\n"
}

// spans turns codes into elements.
func spans(text string) string {
	var b strings.Builder
	for text != "" {
		at := strings.IndexByte(text, '\x1b')
		if at < 0 {
			break
		}
		b.WriteString(html.EscapeString(text[:at]))
		end := strings.IndexByte(text[at:], 'm') + at + 1
		if class, begins := classes[text[at:end]]; begins {
			b.WriteString(`<tspan class="` + class + `">`)
		} else {
			b.WriteString(`</tspan>`)
		}
		text = text[end:]
	}
	return b.String() + html.EscapeString(text)
}
