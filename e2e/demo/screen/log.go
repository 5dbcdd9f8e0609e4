package screen

import (
	"fmt"
	"slices"
	"strings"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/pkg/contract"
)

// Changes tells, one line a change, what is different in a later State.
func Changes(before, after story.State) []string {
	var c changes
	c.act(before.Act, after.Act)
	c.feed(before, after)
	c.groups(before.Groups, after.Groups)
	c.nodes(before.Nodes, after.Nodes)
	if was, is := waitingText(before.Waiting), waitingText(after.Waiting); was != is {
		c.add("waiting  %s", orNone(is))
	}
	c.verdicts(before.Verdicts, after.Verdicts)
	stamp := fmt.Sprintf("%s %6.1fs  ", after.Now.UTC().Format("15:04:05"), after.Elapsed.Seconds())
	for i, line := range c {
		c[i] = strings.TrimRight(stamp+line, " ")
	}
	return c
}

type changes []string

func (c *changes) add(format string, args ...any) {
	*c = append(*c, contract.OneLine(fmt.Sprintf(format, args...)))
}

func (c *changes) act(before, after story.Act) {
	if before.Number != after.Number {
		c.add("act      %d of %d: %s  %s", after.Number, after.Of, after.Title, after.About)
	}
	for _, what := range before.Awaited {
		if before.Number == after.Number && !slices.Contains(after.Awaited, what) {
			c.add("true     %s", what)
		}
	}
}

func (c *changes) groups(before, after []story.GroupLine) {
	for _, g := range after {
		i := slices.IndexFunc(before, func(b story.GroupLine) bool { return b.Name == g.Name })
		if i >= 0 {
			was := before[i]
			was.Verdict = g.Verdict
			if was == g {
				continue
			}
		}
		c.add("group    %s: min %d, desired %d, ready %d, max %d", g.Name, g.Min, g.Desired, g.Ready, g.Max)
	}
}

func (c *changes) nodes(before, after []story.NodeLine) {
	for _, n := range after {
		i := slices.IndexFunc(before, func(b story.NodeLine) bool { return b.Name == n.Name })
		if i >= 0 && before[i].State == n.State && before[i].Detail == n.Detail {
			continue
		}
		c.add("node     %s (%s, %s, %s): %s%s, %s", n.Name, n.Group, n.Zone, n.Type, n.State, detail(n), count(n.Pods, "pod"))
	}
	for _, n := range before {
		if !slices.ContainsFunc(after, func(a story.NodeLine) bool { return a.Name == n.Name }) {
			c.add("node     %s (%s): gone", n.Name, n.Group)
		}
	}
}

func (c *changes) verdicts(before, after []story.Verdict) {
	for _, v := range slices.Backward(after) {
		if !slices.ContainsFunc(before, func(b story.Verdict) bool {
			return b.Of == v.Of && b.Name == v.Name && b.Reason == v.Reason && b.Message == v.Message
		}) {
			c.add("verdict  %s: %s: %s", verdictSubject(v), v.Reason, v.Message)
		}
	}
}

// feed tells of what is new; what happened to more subjects of the same
// happening since is not told again.
func (c *changes) feed(before, after story.State) {
	seen := before.FeedFrom + len(before.Feed)
	for _, h := range after.Feed[min(len(after.Feed), max(0, seen-after.FeedFrom)):] {
		c.add("%s %s", pad(h.By, 8), happening(h))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// count prints a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

func plural(noun string) string {
	if strings.HasSuffix(noun, "s") {
		return noun
	}
	return noun + "s"
}

func detail(n story.NodeLine) string {
	if n.Detail == "" {
		return ""
	}
	return " " + n.Detail
}

func waitingText(waiting []story.WaitingLine) string {
	var parts []string
	for _, w := range waiting {
		parts = append(parts, fmt.Sprintf("%d of %s", w.Count, w.Workload))
	}
	return strings.Join(parts, ", ")
}

func verdictSubject(v story.Verdict) string {
	subject := string(v.Of) + " " + view.ShortName(v.Name)
	if v.Count > 1 {
		subject += fmt.Sprintf(" and %d more", v.Count-1)
	}
	return subject
}

func happening(h story.Happening) string {
	if h.Subject == "" {
		return h.Text
	}
	if h.More > 0 {
		return fmt.Sprintf("%s and %d more: %s", h.Subject, h.More, h.Text)
	}
	return h.Subject + ": " + h.Text
}
