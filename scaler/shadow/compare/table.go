package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Table writes the comparison for people: the first line is the result.
func (c *Comparison) Table(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s\n", c.Result(), c.span())
	for _, m := range c.lacks() {
		fmt.Fprintln(out, "missing:", m)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, part := range c.parts() {
		fmt.Fprintln(table)
		for _, cells := range part {
			fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
	}
	return table.Flush()
}

// Result is the comparison in a sentence.
func (c *Comparison) Result() string {
	a := c.Agreement
	if !c.Shadow {
		up, down := c.within(c.sides.grown.World), c.within(c.sides.removed.World)
		return fmt.Sprintf("Nothing to compare with: the world has %d scale-up%s and %d scale-down%s, and there is no log of a shadow.", len(up), s(len(up)), len(down), s(len(down)))
	}
	agreed, diverged := a.ScaleUps.Agreed+a.ScaleDowns.Agreed, a.ScaleUps.Diverged+a.ScaleDowns.Diverged
	text := "Neither side did anything"
	if n := agreed + diverged; n > 0 {
		text = fmt.Sprintf("Windlass would have done the same %d of %d times (%.0f %%)", agreed, n, 100*float64(agreed)/float64(n))
	}
	less := c.Total.World.Dollars - c.Total.Windlass.Dollars
	switch word := "less"; {
	case math.Abs(less) < 0.005:
		text += ", for the same dollars"
	default:
		if less < 0 {
			word = "more"
		}
		text += fmt.Sprintf(", for $%.2f %s than $%.2f", math.Abs(less), word, c.Total.World.Dollars)
	}
	switch w, l := c.Pending.World, c.Pending.Windlass; {
	case w.Pods+l.Pods == 0:
	case w.Pods == 0 || l.Pods == 0:
		text += fmt.Sprintf("; Windlass would have served %d pending pod%s, and the world served %d", l.Pods, s(l.Pods), w.Pods)
	case l.P50 == w.P50:
		text += fmt.Sprintf("; its pods would have been pending for %s at the median, as they were", l.P50)
	default:
		text += fmt.Sprintf("; its pods would have been pending for %s at the median, not %s", l.P50, w.P50)
	}
	return text + "."
}

func s(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// span is which time it is of.
func (c *Comparison) span() string {
	text := fmt.Sprintf("%s to %s", moment(c.From), moment(c.To))
	if c.Shadow {
		text += fmt.Sprintf(", of which the log has seen %s", c.Seen)
	}
	return fmt.Sprintf("%s; the same means at most %s apart for scale-ups, %s for scale-downs", text, c.Windows.ScaleUp, c.Windows.ScaleDown)
}

func moment(t time.Time) string { return t.UTC().Format("Mon 2006-01-02 15:04:05") }

// String is a duration to the second, without units of which it has none at its end.
func (d Duration) String() string {
	text := time.Duration(d).Round(time.Second).String()
	for _, none := range []struct{ end, cut string }{{"m0s", "0s"}, {"h0m", "0m"}} {
		if strings.HasSuffix(text, none.end) {
			text = strings.TrimSuffix(text, none.cut)
		}
	}
	return text
}

// lacks has the gaps beside what else is missing.
func (c *Comparison) lacks() []string {
	var list []string
	for i, g := range c.Gaps {
		if i == mostShown {
			list = append(list, fmt.Sprintf("%d more gaps", len(c.Gaps)-i))
			break
		}
		list = append(list, fmt.Sprintf("%s to %s: %s", moment(g.From), moment(g.To), g.Why))
	}
	return append(list, c.Missing...)
}

// mostShown bounds how many divergences, notes, gaps and groups people are shown in the table.
const mostShown = 30

// tables are the figures.
func (c *Comparison) tables() [][][]string {
	if !c.Shadow {
		return nil
	}
	a := c.Agreement
	counts := [][]string{{"", "agreed", "diverged", "undecided", "by others"}}
	for _, row := range []struct {
		name string
		Count
	}{{"scale-ups", a.ScaleUps}, {"scale-downs", a.ScaleDowns}} {
		counts = append(counts, []string{row.name, fmt.Sprint(row.Agreed), fmt.Sprint(row.Diverged), fmt.Sprint(row.Undecided), fmt.Sprint(row.Others)})
	}
	w, l := c.Pending.World, c.Pending.Windlass
	figures := [][]string{
		{"", "world", "Windlass"},
		{"node-hours", fmt.Sprintf("%.1f", c.Total.World.NodeHours), fmt.Sprintf("%.1f", c.Total.Windlass.NodeHours)},
		{"dollars", fmt.Sprintf("%.2f", c.Total.World.Dollars), fmt.Sprintf("%.2f", c.Total.Windlass.Dollars)},
		{"pods that got a node", fmt.Sprint(w.Pods), fmt.Sprint(l.Pods)},
		{"pending p50, p90, max", fmt.Sprintf("%s, %s, %s", w.P50, w.P90, w.Max), fmt.Sprintf("%s, %s, %s", l.P50, l.P90, l.Max)},
		{"pending together", w.Sum.String(), l.Sum.String()},
		{"pods that ended pending", fmt.Sprint(w.Unserved), fmt.Sprint(l.Unserved)},
	}
	quiet := [][]string{{"minutes in which neither did anything", fmt.Sprintf("%d of %d", a.QuietMinutes, a.Minutes)}}
	all := [][][]string{counts, quiet, figures}
	if len(c.Groups) == 0 {
		return all
	}
	groups := [][]string{{"group", "node-hours: world", "Windlass", "dollars: world", "Windlass"}}
	for i, g := range c.Groups {
		if i == mostShown {
			groups = append(groups, []string{fmt.Sprintf("%d more", len(c.Groups)-i)})
			break
		}
		groups = append(groups, []string{g.Group, fmt.Sprintf("%.1f", g.World.NodeHours), fmt.Sprintf("%.1f", g.Windlass.NodeHours), fmt.Sprintf("%.2f", g.World.Dollars), fmt.Sprintf("%.2f", g.Windlass.Dollars)})
	}
	return append(all, groups)
}

// parts are the tables, and what was done and diverges.
func (c *Comparison) parts() (all [][][]string) {
	if !c.Shadow {
		return c.doneByWorld()
	}
	all = c.tables()
	if c.First != nil {
		all = append(all, [][]string{{fmt.Sprintf("first divergence, %s: %s", moment(c.First.At), c.First.what())}, {"the world: " + c.First.World.String()}, {"Windlass: " + c.First.Windlass.String()}})
	}
	if len(c.ByKind) > 0 {
		kinds := [][]string{{"DIVERGENCE", "TIMES", ""}}
		for _, k := range Kinds {
			if n := c.ByKind[k.Kind]; n > 0 {
				kinds = append(kinds, []string{string(k.Kind), fmt.Sprint(n), k.Says})
			}
		}
		list := [][]string{{"AT", "DIVERGENCE", "THE WORLD", "WINDLASS"}}
		for i, d := range c.Divergences {
			if i == mostShown {
				list = append(list, []string{fmt.Sprintf("%d more", len(c.Divergences)-i), "", "-o json and --html have them"})
				break
			}
			list = append(list, []string{moment(d.At), string(d.Kind), d.World.brief(), d.Windlass.brief()})
		}
		all = append(all, kinds, list)
	}
	return all
}

// doneByWorld is what is known without a shadow.
func (c *Comparison) doneByWorld() [][][]string {
	list := [][]string{{"AT", "BY", "THE WORLD"}}
	all := slices.Concat(c.within(c.sides.grown.World), c.within(c.sides.removed.World))
	for _, d := range all[:min(len(all), mostShown)] {
		list = append(list, []string{moment(d.At), d.By, d.String()})
	}
	if more := len(all) - mostShown; more > 0 {
		list = append(list, []string{fmt.Sprintf("%d more", more), "", "--html has them"})
	}
	return [][][]string{list}
}

// within are those of the span.
func (c *Comparison) within(list []*doing) []*doing {
	return slices.DeleteFunc(slices.Clone(list), func(d *doing) bool { return !c.in(d.At) })
}

func (d *Divergence) what() string {
	for _, k := range Kinds {
		if k.Kind == d.Kind {
			return k.Says
		}
	}
	return string(d.Kind)
}

// brief is what was done, without why; where nothing was, a dash.
func (d Doing) brief() string {
	var text string
	switch {
	case d.At.IsZero():
		return "-"
	case d.Node != "":
		text = "removed " + d.Node
	default:
		text = fmt.Sprintf("grew %s %d→%d", d.Group, d.From, d.To)
	}
	if d.PodCount > 0 && d.Node == "" && len(d.Pods) > 0 {
		text += " for " + d.Pods[0]
		if d.PodCount > 1 {
			text += fmt.Sprintf(" and %d more", d.PodCount-1)
		}
	}
	return text + " at " + d.At.UTC().Format(time.TimeOnly)
}

func (d Doing) String() string {
	if d.At.IsZero() {
		return "did nothing: " + d.Why
	}
	return d.brief() + ": " + cmp.Or(d.Why, unsaid)
}
