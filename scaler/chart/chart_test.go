package chart

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestMarksShow: a mark shows each thing of its place, as many as a browser shows; of more it says
// how many.
func TestMarksShow(t *testing.T) {
	var list []Mark
	for i := range 30 {
		list = append(list, Mark{Text: fmt.Sprintf("Mon 00:00:%02d drain n%d\nnode n%d: ScalingDown: unneeded since 00:00:00", i, i, i)})
	}
	if got, want := shown(list[:2]), "Mon 00:00:00 drain n0\nnode n0: ScalingDown: unneeded since 00:00:00\n\nMon 00:00:01 drain n1\nnode n1: ScalingDown: unneeded since 00:00:00"; got != want {
		t.Errorf("two decisions show as\n%s\nwant\n%s", got, want)
	}
	got := shown(list)
	shows := strings.Count(got, "ScalingDown")
	if want := fmt.Sprintf("and %d more: click for the list", 30-shows); shows < 5 || len(got) > mostShown+50 || !strings.HasSuffix(got, want) {
		t.Errorf("30 decisions show %d, in %d bytes; want a few, and %q at the end of\n%s", shows, len(got), want, got)
	}
}

// TestScale: lines across a chart are at round values, few, and up to the largest; whole where
// things are counted.
func TestScale(t *testing.T) {
	for _, c := range []struct {
		unit      string
		top       float64
		step, end float64
		word      string
	}{
		{"$", 796.58, 200, 800, "$200"}, {"$", 30.59, 10, 40, "$10"}, {"$", 0.07, 0.02, 0.08, "$0.02"}, {"$", 0, 0.5, 1, "$0.5"},
		{"", 0, 1, 1, "1"}, {"", 1, 1, 1, "1"}, {"", 3, 1, 3, "1"}, {"", 86, 50, 100, "50"}, {"", 4e6, 1e6, 4e6, "1000000"},
	} {
		step, end := Chart{Unit: c.unit}.Scale(c.top)
		if word := (Chart{Unit: c.unit}).Amount(step, step); step != c.step || end != c.end || word != c.word {
			t.Errorf("up to %v: steps of %v up to %v, as %s; want %v, %v, %s", c.top, step, end, word, c.step, c.end, c.word)
		}
	}
}

// TestTicks: words below a chart are at round moments of the clock, which verdicts name, and few.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		start   string
		seconds int64
		want    string
	}{
		{"2026-01-05T00:00:00Z", 2 * 24 * 3600, "Mon 06:00 12:00 18:00 Tue 06:00 12:00 18:00 Wed"},
		{"2026-11-23T16:41:07Z", 24 * 3600, "18:00 21:00 Tue 03:00 06:00 09:00 12:00 15:00"},
		{"2026-01-05T00:00:00Z", 7 * 24 * 3600, "Mon Tue Wed Thu Fri Sat Sun Mon"},
		{"2026-01-05T00:00:00Z", 30 * 24 * 3600, "5 Jan 12 Jan 19 Jan 26 Jan 2 Feb"},
		{"2026-01-05T00:00:00Z", 100, "Mon 00:01"},
	} {
		start, err := time.Parse(time.RFC3339, c.start)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		Axis{start, c.seconds}.Ticks(&b, 0)
		var words []string
		for _, word := range regexp.MustCompile(`>([^<]+)</text>`).FindAllStringSubmatch(b.String(), -1) {
			words = append(words, word[1])
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s and %d s: %s, want %s", c.start, c.seconds, got, c.want)
		}
	}
}
