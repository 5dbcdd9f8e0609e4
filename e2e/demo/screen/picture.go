package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
)

// The smallest picture that is drawn; on a smaller terminal it is cut.
const (
	MinWidth  = 60
	MinHeight = 16
)

// Picture draws a State into exactly height lines of at most width characters.
func Picture(s story.State, width, height int) []Line {
	width, height = max(width, MinWidth), max(height, MinHeight)
	lines := head(s, width)
	lines = append(lines, groups(s)...)
	room := height - len(lines)
	nodeLines := nodes(s, max(3, room-below(s)))
	lines = append(lines, nodeLines...)
	lines = append(lines, waiting(s))
	if verdicts := verdicts(s, verdictRows(height-len(lines))); len(verdicts) > 0 {
		lines = append(lines, verdicts...)
	}
	lines = append(lines, feed(s, height-len(lines))...)
	for len(lines) < height {
		lines = append(lines, nil)
	}
	lines = lines[:height]
	for i, l := range lines {
		lines[i] = l.cut(width)
	}
	return lines
}

// below is how many lines are kept free below the nodes: for the waiting pods,
// a title, and the last of what happened.
func below(s story.State) int { return 3 + min(4, len(s.Feed)) }

// verdictRows is how much of the room left is for verdicts, their title
// included: a third, for at most five verdicts.
func verdictRows(room int) int { return min(6, room/3) }

func head(s story.State, width int) []Line {
	clock := fmt.Sprintf("%s  %s", minutes(s.Elapsed), s.Now.UTC().Format(time.TimeOnly))
	const name = "windlass demo"
	lines := []Line{
		{{name, Title}, {strings.Repeat(" ", max(2, width-len(name)-len(clock))), Plain}, {clock, Faint}},
	}
	if s.Act.Number == 0 {
		return append(lines, nil, nil, nil)
	}
	awaited := Line{{"waits for  ", Faint}, {strings.Join(s.Act.Awaited, "; "), Busy}}
	if len(s.Act.Awaited) == 0 {
		awaited = text(Good, "all of it came true")
	}
	return append(lines,
		Line{{fmt.Sprintf("act %d of %d  ", s.Act.Number, s.Act.Of), Faint}, {s.Act.Title, Title}, {"  " + s.Act.About, Plain}},
		awaited, nil)
}

// minutes prints a duration as m:ss.
func minutes(d time.Duration) string {
	d = d.Truncate(time.Second)
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func groups(s story.State) []Line {
	lines := []Line{text(Faint, pad("GROUP", 12)+right("MIN", 5)+right("DESIRED", 9)+right("READY", 7)+right("MAX", 5))}
	for _, g := range s.Groups {
		tone := Good
		if g.Ready != g.Desired {
			tone = Busy
		}
		lines = append(lines, Line{
			{pad(g.Name, 12), Title}, {right(fmt.Sprint(g.Min), 5), Faint}, {right(fmt.Sprint(g.Desired), 9), Plain},
			{right(fmt.Sprint(g.Ready), 7), tone}, {right(fmt.Sprint(g.Max), 5), Faint},
			{"  " + bar(g), tone}, {"  " + string(g.Verdict), Faint},
		})
	}
	return append(lines, nil)
}

// bar shows a group's size: ready, wanted and possible.
func bar(g story.GroupLine) string {
	const most = 24
	ready, wanted, full := min(g.Ready, most), min(max(g.Desired, g.Ready), most), min(g.Max, most)
	return strings.Repeat("■", ready) + strings.Repeat("□", wanted-ready) + strings.Repeat("·", max(0, full-wanted))
}

func nodes(s story.State, rows int) []Line {
	lines := []Line{text(Faint, pad("NODE", 17)+pad("GROUP", 8)+pad("ZONE", 11)+pad("TYPE", 11)+right("PODS", 4)+"  STATE")}
	shown := foremost(s.Nodes, rows-2)
	for _, n := range shown {
		lines = append(lines, Line{
			{pad(n.Name, 16) + " ", Plain}, {pad(n.Group, 7) + " " + pad(n.Zone, 10) + " " + pad(n.Type, 10) + " ", Faint},
			{right(fmt.Sprint(n.Pods), 4), Plain}, {"  " + string(n.State), stageTones[n.State]}, {detail(n), Plain},
		})
	}
	switch left := len(s.Nodes) - len(shown); {
	case len(s.Nodes) == 0:
		lines = append(lines, text(Faint, "none"))
	case left > 0:
		lines = append(lines, text(Faint, fmt.Sprintf("… and %d more", left)))
	}
	return append(lines, nil)
}

// foremost keeps as many nodes as there are rows, one of which is needed to
// count the rest. Where all goes well there is the least to see.
func foremost(nodes []story.NodeLine, rows int) []story.NodeLine {
	if len(nodes) <= rows {
		return nodes
	}
	surplus := len(nodes) - max(0, rows-1)
	var kept []story.NodeLine
	for _, n := range slices.Backward(nodes) {
		if n.State == story.Ready && surplus > 0 {
			surplus--
			continue
		}
		kept = append(kept, n)
	}
	slices.Reverse(kept)
	return kept[:len(kept)-surplus]
}

func detail(n story.NodeLine) string {
	if n.Detail == "" {
		return ""
	}
	return " " + n.Detail
}

var stageTones = map[story.Stage]Tone{
	story.Coming: Busy, story.Ready: Good, story.Unneeded: Faint, story.Cordoned: Faint, story.Draining: Busy,
	story.Blocked: Bad, story.Drained: Busy, story.Terminating: Faint, story.Lost: Bad,
}

func waiting(s story.State) Line {
	if len(s.Waiting) == 0 {
		return Line{{"WAITING PODS  ", Faint}, {"none", Good}}
	}
	return Line{{"WAITING PODS  ", Faint}, {waitingText(s.Waiting), Busy}}
}

func waitingText(waiting []story.WaitingLine) string {
	var parts []string
	for _, w := range waiting {
		parts = append(parts, fmt.Sprintf("%d of %s", w.Count, w.Workload))
	}
	return strings.Join(parts, ", ")
}

func verdicts(s story.State, rows int) []Line {
	if rows < 3 || len(s.Verdicts) == 0 {
		return nil
	}
	lines := []Line{nil, text(Faint, "VERDICTS, the latest first")}
	for _, v := range s.Verdicts[:min(rows-2, len(s.Verdicts))] {
		lines = append(lines, Line{{verdictSubject(v) + "  ", Plain}, {string(v.Reason), Busy}, {"  " + v.Message, Plain}})
	}
	return lines
}

func verdictSubject(v story.Verdict) string {
	subject := string(v.Of) + " " + story.ShortName(v.Name)
	if v.Count > 1 {
		subject += fmt.Sprintf(" and %d more", v.Count-1)
	}
	return subject
}

func feed(s story.State, rows int) []Line {
	if rows < 3 {
		return nil
	}
	lines := []Line{nil, text(Faint, "WHAT HAPPENED, the latest last")}
	for _, h := range s.Feed[max(0, len(s.Feed)-(rows-2)):] {
		lines = append(lines, Line{{h.At.UTC().Format(time.TimeOnly) + "  ", Faint}, {pad(h.By, 8), byTones[h.By]}, {happening(h), Plain}})
	}
	return lines
}

var byTones = map[string]Tone{"aws": Busy, "scaler": Good, "agent": Good, "demo": Title}

func happening(h story.Happening) string {
	if h.Subject == "" {
		return h.Text
	}
	if h.More > 0 {
		return fmt.Sprintf("%s and %d more: %s", h.Subject, h.More, h.Text)
	}
	return h.Subject + ": " + h.Text
}
