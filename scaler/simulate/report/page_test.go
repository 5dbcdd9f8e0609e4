package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/scaler/simulate/world"
)

// elements are what a page is made of. None of them runs, and none is fetched.
var elements = "html head meta title style body h1 h2 h3 p code div table tr th td span svg g a line rect text polyline polygon path circle details summary"

// read checks that a page is well-formed, consists of elements that are harmless, refers to itself
// alone and has each place that it refers to; and returns how often it has each element, and its
// text.
func read(page string) (count map[string]int, text string, err error) {
	decoder := xml.NewDecoder(strings.NewReader(page))
	if !strings.HasPrefix(page, "<!DOCTYPE html>\n") {
		return nil, "", errors.New("there is no doctype")
	}
	count, known := map[string]int{}, map[string]bool{}
	for _, name := range strings.Fields(elements) {
		known[name] = true
	}
	ids, links := map[string]bool{}, map[string]bool{}
	var words strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		switch token := token.(type) {
		case xml.CharData:
			words.Write(token)
		case xml.StartElement:
			count[token.Name.Local]++
			if !known[token.Name.Local] {
				return nil, "", fmt.Errorf("element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				switch name := a.Name.Local; {
				case name == "id":
					ids[a.Value] = true
				case name == "href" && strings.HasPrefix(a.Value, "#"):
					links[a.Value[1:]] = true
				case name == "href" || name == "src" || name == "style" || strings.HasPrefix(name, "on"):
					return nil, "", fmt.Errorf("attribute %s=%q", name, a.Value)
				}
			}
		}
	}
	for link := range links {
		if !ids[link] {
			return nil, "", fmt.Errorf("a link to %s, which is nowhere", link)
		}
	}
	if at := regexp.MustCompile(`(?i)https?:|url\(|@import`).FindString(page); at != "" {
		return nil, "", fmt.Errorf("it refers to something else: %s", at)
	}
	return count, words.String(), nil
}

// hostile are names that would become something else in a page that took them for its own.
var hostile = []string{"</script><b>", "</title><img src=x onerror=alert(1)>", `"><i a="`, "a'b", "&lt;", "]]>", "<!--", "</svg>", "web", "日本"}

func drawReport(t *rapid.T) Report {
	name := rapid.SampledFrom(hostile)
	n := rapid.IntRange(0, 500).Draw(t, "samples")
	groups := rapid.IntRange(0, 40).Draw(t, "groups")
	r := Report{
		Trace: name.Draw(t, "trace"), Start: time.Date(2026, 1, 5, 7, 13, 0, 0, time.UTC), Seconds: rapid.Int64Range(1, 366*24*3600).Draw(t, "seconds"),
		Seed: rapid.Uint64().Draw(t, "seed"), Prices: name.Draw(t, "prices"), Pods: rapid.IntRange(0, 9999).Draw(t, "pods"),
	}
	random := rapid.Uint64().Draw(t, "values")
	next := func(below uint64) uint64 { // there are too many to draw each
		random = random*6364136223846793005 + 1442695040888963407
		return (random >> 33) % below
	}
	amount := rapid.SampledFrom([]uint64{1, 3, 1e6})
	below := func(most uint64) []float64 { // dollars so far, which never fall
		sums, sum := make([]float64, n), 0.0
		for i := range sums {
			sum += float64(next(most)) / 100
			sums[i] = sum
		}
		return sums
	}
	r.Bound, r.Repack = below(amount.Draw(t, "bound")), below(amount.Draw(t, "packed anew"))
	most := amount.Draw(t, "largest")
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		run := Run{
			Name: name.Draw(t, "name"), Flags: name.Draw(t, "flags"), Swept: map[string]string{hostile[0]: name.Draw(t, "value")}, Hidden: int(next(3) * 1000),
			Dollars: float64(next(most)), BySeed: []float64{float64(next(most)) / 3}, EvictionRates: []float64{float64(next(most)) / 7},
		}
		for g := range groups {
			run.Bills = append(run.Bills, world.Bill{Group: hostile[g%len(hostile)], Type: fmt.Sprint(hostile[next(10)], g%15), Price: 0.1, Seconds: int64(next(9999))})
		}
		for i, dollars := range below(most) {
			s := world.Sample{At: r.Seconds * int64(i) / int64(n), Dollars: dollars, Evictions: i * int(most), Pending: int(next(most))}
			for range groups {
				s.Nodes = append(s.Nodes, int(next(most)))
			}
			run.Samples = append(run.Samples, s)
		}
		kinds := []string{"grow", "request-drain", "terminate", "cancel-drain", "complete-hook"}
		for i := range rapid.IntRange(0, 1500).Draw(t, "decisions") {
			run.Decisions = append(run.Decisions, world.Decision{At: r.Seconds * int64(i) / 1500, Kind: kinds[next(5)], Text: hostile[next(10)], Verdict: fmt.Sprintf("node %s: Verdict%d.%d", hostile[next(10)], len(r.Runs), i)})
		}
		r.Runs = append(r.Runs, run)
	}
	if rapid.Bool().Draw(t, "sweep") {
		r.Rank([]string{hostile[0]})
	}
	return r
}

// TestPageLaws: whatever was simulated and whatever things are called, a page is well-formed and
// harmless, refers to nothing else, has the names as they are and each decision that it lists with
// its verdict, and is bounded. Nothing in a chart has a place that is none. Of a sweep it has charts
// of the runs that no other beats, and a dot for all with the same figures.
func TestPageLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReport(t)
		page := r.Page()
		count, text, err := read(page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Fatal("there is a place that is none")
		}
		for _, name := range []string{r.Trace, r.Prices} {
			if !strings.Contains(text, name) {
				t.Fatalf("the page does not show %q as it is", name)
			}
		}
		if r.Sweep != nil {
			dots := map[[2]float64]bool{}
			for _, run := range r.Runs {
				dots[[2]float64{run.mean(), run.evictionRate()}] = true
				if !strings.Contains(text, run.Name) || !strings.Contains(text, run.Swept[hostile[0]]) {
					t.Fatalf("the page does not show %q with %q", run.Name, run.Swept)
				}
			}
			if got := count["circle"] - 2; len(r.Runs) > 0 && got != len(dots) {
				t.Fatalf("%d dots beside those of the key, want %d", got, len(dots))
			}
			r.Runs = slices.DeleteFunc(r.Runs, func(run Run) bool { return !run.Unbeaten })
		}
		if count["h2"] != len(r.Runs) {
			t.Fatalf("charts of %d runs, want %d", count["h2"], len(r.Runs))
		}
		decisions, shown := 0, map[string]bool{}
		for _, verdict := range regexp.MustCompile(`Verdict[\d.]+`).FindAllString(text, -1) {
			shown[verdict] = true
		}
		for i, run := range r.Runs {
			listed, about := r.listed(i)
			decisions += len(listed)
			if !strings.Contains(text, run.Name) || !strings.Contains(text, about) {
				t.Fatalf("the page does not show %q with %q", run.Name, about)
			}
			for _, d := range listed {
				if _, name, _ := strings.Cut(d.Verdict, ": "); !shown[name] {
					t.Fatalf("the page does not show %q", d.Verdict)
				}
			}
		}
		if decisions > mostListed || decisions > 0 && len(r.Bound) > 1 && count["a"] == 0 || count["a"] > decisions {
			t.Fatalf("%d marks of %d decisions", count["a"], decisions)
		}
		if most := 2<<20 + len(r.Runs)*(1<<20); len(page) > most {
			t.Fatalf("%d bytes, more than %d", len(page), most)
		}
	})
}

// TestChartsHoldWhatTheyDraw: no line, area, bar or dot leaves its chart, whichever of bill, bound
// and packed anew is the largest.
func TestChartsHoldWhatTheyDraw(t *testing.T) {
	drawn := regexp.MustCompile(`<(polyline|polygon|path|circle)[^>]* (?:points|d|cx)="([^"]*)"(?: cy="([^"]*)")?`)
	number := regexp.MustCompile(`-?[0-9.]+`)
	rapid.Check(t, func(t *rapid.T) {
		for _, e := range drawn.FindAllStringSubmatch(drawReport(t).Page(), -1) {
			var at []float64
			for _, word := range number.FindAllString(e[2]+" "+e[3], -1) {
				value, err := strconv.ParseFloat(word, 64)
				if err != nil {
					t.Fatal(err)
				}
				at = append(at, value)
			}
			var x, y []float64
			switch e[1] {
			case "path": // MxyVyHxVy
				for bar := range slices.Chunk(at, 5) {
					x, y = append(x, bar[0], bar[3]-1), append(y, bar[1], bar[2], bar[4]) // a bar has a width at the end, too
				}
			case "circle":
				x, y = []float64{at[0] * wide / 100}, at[1:]
			default:
				for place := range slices.Chunk(at, 2) {
					x, y = append(x, place[0]), append(y, place[1])
				}
			}
			if len(y) > 0 && (slices.Min(x) < 0 || slices.Max(x) > wide || slices.Min(y) < 0 || slices.Max(y) > high) {
				t.Fatalf("a %s reaches from %v,%v to %v,%v; want 0,0 to %v,%v", e[1], slices.Min(x), slices.Min(y), slices.Max(x), slices.Max(y), wide, high)
			}
		}
	})
}

// TestBillsAreWhole: a list that is cut has the dearest groups and says what the others come to.
func TestBillsAreWhole(t *testing.T) {
	cell := regexp.MustCompile(`<tr><td>([^<]*)</td><td>[^<]*</td><td>[^<]*</td><td>([^<]*)</td><td>([^<]*)</td></tr>`)
	for _, groups := range []int{1, mostBills, mostBills + 1, 3 * mostBills} {
		var run Run
		for g := range groups {
			run.Bills = append(run.Bills, world.Bill{Group: fmt.Sprint("g", g), Type: "m5.large", Price: 0.36, Seconds: 3600 * int64(g%700)})
		}
		var b strings.Builder
		run.bills(&b)
		rows := cell.FindAllStringSubmatch(b.String(), -1)
		hours, dollars, last := 0.0, 0.0, math.Inf(1)
		for i, row := range rows {
			h, err1 := strconv.ParseFloat(row[2], 64)
			d, err2 := strconv.ParseFloat(row[3], 64)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			hours, dollars = hours+h, dollars+d
			if i < mostBills && d > last {
				t.Fatalf("%d groups: %s costs more than the one before", groups, row[1])
			}
			last = d
		}
		want := 0
		for g := range groups {
			want += g % 700
		}
		if math.Abs(hours-float64(want)) > 0.1 || math.Abs(dollars-0.36*float64(want)) > 0.01 {
			t.Errorf("%d groups: %.1f node-hours and $%.2f are listed, want %d and $%.2f", groups, hours, dollars, want, 0.36*float64(want))
		}
		if more := groups - mostBills; more == 1 && rows[mostBills][1] != "1 more group" || more > 1 && rows[mostBills][1] != fmt.Sprintf("%d more groups", more) {
			t.Errorf("%d groups: the last line is of %q", groups, rows[len(rows)-1][1])
		}
	}
}

// TestMarkShowsVerdicts: a mark shows each of its decisions with its verdict, as many as a browser
// shows; of more it says how many.
func TestMarkShowsVerdicts(t *testing.T) {
	r := Report{Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Seconds: 3600}
	var list []world.Decision
	var marks []int
	for i := range 30 {
		list, marks = append(list, world.Decision{At: int64(i), Text: fmt.Sprintf("drain n%d", i), Verdict: fmt.Sprintf("node n%d: ScalingDown: unneeded since 00:00:00", i)}), append(marks, i)
	}
	if got, want := r.shown(list, marks[:2]), "Mon 00:00:00 drain n0\nnode n0: ScalingDown: unneeded since 00:00:00\n\nMon 00:00:01 drain n1\nnode n1: ScalingDown: unneeded since 00:00:00"; got != want {
		t.Errorf("two decisions show as\n%s\nwant\n%s", got, want)
	}
	got := r.shown(list, marks)
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
		step, end := chart{unit: c.unit}.scale(c.top)
		if word := (chart{unit: c.unit}).amount(step, step); step != c.step || end != c.end || word != c.word {
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
		axis{start, c.seconds}.ticks(&b, 0)
		var words []string
		for _, word := range regexp.MustCompile(`>([^<]+)</text>`).FindAllStringSubmatch(b.String(), -1) {
			words = append(words, word[1])
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s and %d s: %s, want %s", c.start, c.seconds, got, c.want)
		}
	}
}
