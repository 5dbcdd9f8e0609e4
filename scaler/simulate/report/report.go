// Package report has the figures of simulations: as values, as a table, and as a page.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"windlass.dev/windlass/scaler/simulate/world"
)

// Report is the figures of one trace.
type Report struct {
	Trace   string    `json:"trace"`
	Start   time.Time `json:"start"`
	Seconds int64     `json:"seconds"`
	Seed    uint64    `json:"seed"`
	Prices  string    `json:"prices,omitempty"`
	Pods    int       `json:"pods"`
	// LeftOut are pods that fit no node group.
	LeftOut int `json:"leftOut,omitempty"`
	// Lacks is what is not known of the time that is played.
	Lacks []string `json:"lacks,omitempty"`
	Runs  []Run    `json:"runs"`
	// Sweep are the flags in which runs differ, where those are combinations of values.
	Sweep []string `json:"sweep,omitempty"`
	// Bound and Repack are US dollars up to each sample.
	Bound  []float64 `json:"-"`
	Repack []float64 `json:"-"`
}

// Run is the figures of one policy.
type Run struct {
	Name string `json:"name"`
	// Flags are those that were given; what they do not name has its default. Swept are values of
	// those in which the runs of a sweep differ.
	Flags string            `json:"flags,omitempty"`
	Swept map[string]string `json:"swept,omitempty"`
	// Unbeaten is true of a run of a sweep if no other costs less without more evictions, or has
	// fewer without costing more.
	Unbeaten bool    `json:"unbeaten,omitempty"`
	Dollars  float64 `json:"dollars"`
	// BySeed are the bills of all seeds that were played, the first of which is Dollars.
	BySeed []float64 `json:"dollarsBySeed"`
	// OverBound and OverRepack are the bill as multiples of both yardsticks.
	Bound      float64 `json:"bound"`
	Repack     float64 `json:"repack"`
	OverBound  float64 `json:"overBound"`
	OverRepack float64 `json:"overRepack"`
	NodeHours  float64 `json:"nodeHours"`
	PodHours   float64 `json:"podHours"`

	Evictions int `json:"evictions"`
	// EvictionRate is evictions for each 1,000 pod-hours, EvictionRates that of all seeds.
	EvictionRate  float64   `json:"evictionsPer1000PodHours"`
	EvictionRates []float64 `json:"evictionsPer1000PodHoursBySeed"`
	Killed        int       `json:"killed"`
	Lost          int       `json:"lost"`

	// Pending is how long pods waited for a node, Beyond what of that was beyond the time
	// that a node takes to boot.
	Pending  Waits `json:"pendingSeconds"`
	Beyond   Waits `json:"pendingSecondsBeyondBoot"`
	Unserved int   `json:"unserved"`
	Waiting  int   `json:"pendingAtEnd"`

	Launches       int `json:"launches"`
	LaunchFailures int `json:"launchFailures"`
	Idle           int `json:"launchesWithoutPods"`
	Relaunches     int `json:"relaunchesWithin10Minutes"`
	Interruptions  int `json:"interruptions"`

	ScaleDowns int `json:"scaleDowns"`
	Cancelled  int `json:"drainsCancelled"`
	Marks      int `json:"unneededMarks"`
	ShortMarks int `json:"marksClearedWithinAMinute"`

	Evaluations int   `json:"evaluations"`
	Steps       int64 `json:"steps"`

	Bills     []world.Bill     `json:"bills"`
	Samples   []world.Sample   `json:"-"`
	Decisions []world.Decision `json:"-"`
	Hidden    int              `json:"-"`
}

// Waits are seconds: half of all pods wait at most P50.
type Waits struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
}

// waitsOf sorted seconds, less what is not counted.
func waitsOf(sorted []int64, less int64) Waits {
	if len(sorted) == 0 {
		return Waits{}
	}
	at := func(share float64) int64 {
		i := int(math.Ceil(share*float64(len(sorted)))) - 1
		return max(0, sorted[max(0, i)]-less)
	}
	return Waits{P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// RateOf is evictions for each 1,000 pod-hours.
func RateOf(l *world.Ledger) float64 { return over(1000*float64(l.Evictions), l.PodHours()) }

// Add adds what a run came to.
func (r *Report) Add(name string, l *world.Ledger, bySeed, rates []float64, boot int64) {
	run := Run{
		Name: name, Dollars: l.Dollars(), BySeed: bySeed, NodeHours: l.NodeHours(), PodHours: l.PodHours(),
		Evictions: l.Evictions, EvictionRate: RateOf(l), EvictionRates: rates, Killed: l.Killed, Lost: l.Lost, Unserved: l.Unserved, Waiting: l.Pending,
		Launches: l.Launches, LaunchFailures: l.LaunchFailures, Idle: l.Idle, Relaunches: l.Relaunches, Interruptions: l.Interruptions,
		ScaleDowns: l.Drains, Cancelled: l.Cancelled, Marks: l.Marks, ShortMarks: l.ShortMarks,
		Evaluations: l.Evaluations, Steps: l.Steps, Bills: l.Bills, Samples: l.Samples, Decisions: l.Decisions, Hidden: l.Hidden,
		Pending: waitsOf(l.Waits, 0), Beyond: waitsOf(l.Waits, boot),
	}
	if n := len(r.Bound); n > 0 {
		run.Bound, run.Repack = r.Bound[n-1], r.Repack[n-1]
	}
	run.OverBound, run.OverRepack = over(run.Dollars, run.Bound), over(run.Dollars, run.Repack)
	r.Runs = append(r.Runs, run)
}

// over is a quotient, 0 where there is nothing to compare with.
func over(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// rows are the lines of the table. One that has nothing to say of any run is left out.
var rows = []struct {
	name  string
	value func(Run) string
}{
	{"bill, $", func(r Run) string { return fmt.Sprintf("%.2f", r.Dollars) }},
	{"mean, least and most of all seeds, $", func(r Run) string {
		if len(r.BySeed) < 2 {
			return ""
		}
		return fmt.Sprintf("%.2f, %.2f, %.2f", r.mean(), slices.Min(r.BySeed), slices.Max(r.BySeed))
	}},
	{"bound, $", func(r Run) string { return fmt.Sprintf("%.2f", r.Bound) }},
	{"packed anew, $", func(r Run) string { return fmt.Sprintf("%.2f", r.Repack) }},
	{"bill ÷ bound", func(r Run) string { return fmt.Sprintf("%.3f", r.OverBound) }},
	{"bill ÷ packed anew", func(r Run) string { return fmt.Sprintf("%.3f", r.OverRepack) }},
	{"node-hours", func(r Run) string { return fmt.Sprintf("%.1f", r.NodeHours) }},
	{"pod-hours", func(r Run) string { return fmt.Sprintf("%.1f", r.PodHours) }},
	{"evictions", func(r Run) string { return fmt.Sprint(r.Evictions) }},
	{"evictions per 1,000 pod-hours", func(r Run) string { return fmt.Sprintf("%.1f", r.EvictionRate) }},
	{"pods killed with their node", func(r Run) string { return fmt.Sprint(r.Killed) }},
	{"pods not made again", func(r Run) string { return fmt.Sprint(r.Lost) }},
	{"pending p50, p99, max, s", func(r Run) string { return r.Pending.String() }},
	{"the same beyond the boot time, s", func(r Run) string { return r.Beyond.String() }},
	{"pods that ended pending", func(r Run) string { return fmt.Sprint(r.Unserved) }},
	{"pods pending at the end", func(r Run) string { return fmt.Sprint(r.Waiting) }},
	{"launches", func(r Run) string { return fmt.Sprint(r.Launches) }},
	{"launch calls that failed", func(r Run) string { return fmt.Sprint(r.LaunchFailures) }},
	{"launches that never hosted a pod", func(r Run) string { return fmt.Sprint(r.Idle) }},
	{"launches within 10 min of a scale-down", func(r Run) string { return fmt.Sprint(r.Relaunches) }},
	{"spot interruptions", func(r Run) string { return fmt.Sprint(r.Interruptions) }},
	{"scale-downs", func(r Run) string { return fmt.Sprint(r.ScaleDowns) }},
	{"drains cancelled", func(r Run) string { return fmt.Sprint(r.Cancelled) }},
	{"marks cleared within a minute", func(r Run) string { return fmt.Sprintf("%d of %d", r.ShortMarks, r.Marks) }},
	{"evaluations", func(r Run) string { return fmt.Sprint(r.Evaluations) }},
}

func (r Run) mean() float64 { return meanOf(r.BySeed) }

func (w Waits) String() string { return fmt.Sprintf("%d, %d, %d", w.P50, w.P99, w.Max) }

// played is what was played, a line for each.
func (r Report) played() []string {
	seed := fmt.Sprintf("seed %d", r.Seed)
	if n := r.times(); n > 1 {
		seed = fmt.Sprintf("seeds %d to %d", r.Seed, r.Seed+uint64(n-1))
	}
	line := fmt.Sprintf("%s from %s; %d pods; %s", length(r.Seconds), r.Start.UTC().Format("Mon 2006-01-02 15:04 UTC"), r.Pods, seed)
	if r.LeftOut > 0 {
		line += fmt.Sprintf("; %d more pods fit no node group and are left out", r.LeftOut)
	}
	lines := []string{line, "prices: " + cmp.Or(r.Prices, "those of the world file, of no stated date")}
	for _, lack := range r.Lacks {
		lines = append(lines, "not known: "+lack)
	}
	return lines
}

// length is a time without the units of which it has none at its end.
func length(seconds int64) string {
	text := (time.Duration(seconds) * time.Second).String()
	for _, none := range []struct{ end, cut string }{{"m0s", "0s"}, {"h0m", "0m"}} {
		if strings.HasSuffix(text, none.end) {
			text = strings.TrimSuffix(text, none.cut)
		}
	}
	return text
}

// times is how often each policy was played.
func (r Report) times() (n int) {
	for _, run := range r.Runs {
		n = max(n, len(run.BySeed))
	}
	return n
}

// table is the lines of the table, the first of which names its columns: one for each run. That of
// a sweep has a line for each.
func (r Report) table() [][]string {
	if r.Sweep != nil {
		return r.ranking()
	}
	head := []string{""}
	for _, run := range r.Runs {
		head = append(head, run.Name)
	}
	lines := [][]string{head}
	for _, row := range rows {
		cells, said := []string{row.name}, false
		for _, run := range r.Runs {
			cell := row.value(run)
			cells, said = append(cells, cell), said || cell != ""
		}
		if said {
			lines = append(lines, cells)
		}
	}
	return lines
}

// Table writes the figures for people.
func (r Report) Table(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s\n\n", r.Trace, strings.Join(r.played(), "\n"))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cells := range r.table() {
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if r.Sweep != nil {
		fmt.Fprintf(table, "\n* %s\n", unbeaten)
	}
	return table.Flush()
}
