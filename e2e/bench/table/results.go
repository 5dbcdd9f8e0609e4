package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// result is what one benchmark found, over all its runs.
type result struct {
	name    string
	figures map[string][]float64 // by unit
	failed  bool
}

var (
	// processors is the suffix that package testing gives a name.
	processors = regexp.MustCompile(`-\d+$`)
	failure    = regexp.MustCompile(`^\s*--- FAIL: (Benchmark\S*)`)
)

// parse reads what go test prints about benchmarks, in the order in which they
// ran. Their own log lines may stand between a name and its figures.
func parse(in io.Reader) ([]*result, error) {
	var results []*result
	of := func(name string) *result {
		name = strings.TrimPrefix(processors.ReplaceAllString(name, ""), "Benchmark")
		for _, r := range results {
			if r.name == name {
				return r
			}
		}
		r := &result{name: name, figures: map[string][]float64{}}
		results = append(results, r)
		return r
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	running := ""
	for lines.Scan() {
		if m := failure.FindStringSubmatch(lines.Text()); m != nil {
			of(m[1]).failed = true
			continue
		}
		words := strings.Fields(lines.Text())
		if len(words) > 0 && strings.HasPrefix(words[0], "Benchmark") {
			running, words = words[0], words[1:]
		}
		if figures, ok := figuresOf(words); ok && running != "" {
			for unit, figure := range figures {
				r := of(running)
				r.figures[unit] = append(r.figures[unit], figure)
			}
			running = ""
		}
	}
	return results, lines.Err()
}

// figuresOf reads the rest of a result line: a count and pairs of figure and
// unit.
func figuresOf(words []string) (map[string]float64, bool) {
	if len(words) < 3 || len(words)%2 == 0 {
		return nil, false
	}
	if _, err := strconv.Atoi(words[0]); err != nil {
		return nil, false
	}
	figures := map[string]float64{}
	for i := 1; i < len(words); i += 2 {
		figure, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return nil, false
		}
		figures[words[i+1]] = figure
	}
	return figures, true
}

const target = "target-"

// show prints the table: those figures that have a target, and after them the
// benchmarks that have none.
func show(out io.Writer, results []*result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nbenchmark\tfigure\ttarget\tok?")
	for _, r := range results {
		for _, unit := range r.units() {
			bound, has := r.figures[target+unit]
			if !has {
				continue
			}
			figure, most := middle(r.figures[unit]), middle(bound)
			verdict := "yes"
			if figure > most {
				verdict = "missed"
			}
			if r.failed {
				verdict = "FAILED"
			}
			fmt.Fprintf(w, "%s\t%s %s\t≤ %s\t%s\n", r.name, short(figure), unit, short(most), verdict)
		}
	}
	for _, r := range results {
		if line, ok := r.untargeted(); ok {
			fmt.Fprintf(w, "%s\t%s\t\t%s\n", r.name, line, map[bool]string{true: "FAILED"}[r.failed])
		}
	}
	return w.Flush()
}

// untargeted are the figures of a benchmark without targets, unless it is only
// the parent of others.
func (r *result) untargeted() (string, bool) {
	var figures []string
	for _, unit := range r.units() {
		if _, has := r.figures[target+unit]; has {
			return "", false
		}
		figures = append(figures, short(middle(r.figures[unit]))+" "+unit)
	}
	return strings.Join(figures, ", "), len(figures) > 0 || r.failed
}

// units lists what the benchmark has measured, targets not among them.
func (r *result) units() []string {
	var units []string
	for unit := range r.figures {
		if !strings.HasPrefix(unit, target) {
			units = append(units, unit)
		}
	}
	slices.Sort(units)
	return units
}

// middle is the median, of two the greater.
func middle(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}

// short has three digits that count, or all before the point.
func short(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}
