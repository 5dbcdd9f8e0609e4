package report

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/harmless"
	"windlass.dev/windlass/scaler/chart"
	"windlass.dev/windlass/scaler/simulate/world"
)

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
		count, text, err := harmless.Read(page)
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
				x, y = []float64{at[0] * chart.Wide / 100}, at[1:]
			default:
				for place := range slices.Chunk(at, 2) {
					x, y = append(x, place[0]), append(y, place[1])
				}
			}
			if len(y) > 0 && (slices.Min(x) < 0 || slices.Max(x) > chart.Wide || slices.Min(y) < 0 || slices.Max(y) > chart.High) {
				t.Fatalf("a %s reaches from %v,%v to %v,%v; want 0,0 to %v,%v", e[1], slices.Min(x), slices.Min(y), slices.Max(x), slices.Max(y), chart.Wide, chart.High)
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
		billed := 0
		for _, bill := range run.Bills {
			if bill.Seconds > 0 {
				billed++
			}
		}
		if more := billed - mostBills; more == 1 && rows[mostBills][1] != "1 more bill" || more > 1 && rows[mostBills][1] != fmt.Sprintf("%d more bills", more) {
			t.Errorf("%d groups: the last line is of %q", groups, rows[len(rows)-1][1])
		}
	}
}
