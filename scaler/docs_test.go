package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestFlagsPage: docs/reference/flags.md has all flags of both commands as they are.
func TestFlagsPage(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "$POD_NAME") // or this host's name would be the default
	const page = "../docs/reference/flags.md"
	run := runCommand(io.Discard).Flags()
	section.Hold(t, page, contract.AppScaler+" run", section.Flags(run, func(*pflag.Flag) bool { return true }))
	for command, flags := range map[string]*pflag.FlagSet{
		"plan":      planCommand(io.Discard, io.Discard).Flags(),
		"simulate":  simulateCommand(io.Discard).Flags(),
		"uninstall": uninstallCommand(io.Discard, io.Discard).Flags(),
	} {
		var without []string
		run.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && flags.Lookup(f.Name) == nil {
				without = append(without, "`--"+f.Name+"`")
			}
		})
		section.Hold(t, page, contract.AppScaler+" "+command,
			"It has the flags of `run` but "+strings.Join(without, ", ")+", and of its own:\n\n"+
				section.Flags(flags, func(f *pflag.Flag) bool { return run.Lookup(f.Name) == nil }))
	}
	section.Hold(t, page, contract.AppScaler+" migrate", section.Flags(migrateCommand(nil, nil).Flags(), func(*pflag.Flag) bool { return true }))
}

// TestCompareFlagsPage: that page has the flags of compare, which has none of the others'.
func TestCompareFlagsPage(t *testing.T) {
	section.Hold(t, "../docs/reference/flags.md", contract.AppScaler+" compare", section.Flags(compareCommand(io.Discard).Flags(), func(*pflag.Flag) bool { return true }))
}

// TestMetricsPage: docs/reference/metrics.md has all metrics of ours as they describe
// themselves.
func TestMetricsPage(t *testing.T) {
	var rows [][]string
	for _, m := range describedMetrics(t) {
		if !strings.HasPrefix(m.name, "windlass_") {
			continue // of Go's own collectors
		}
		kind := "gauge"
		switch {
		case strings.HasSuffix(m.name, "_total"):
			kind = "counter"
		case m.histogram:
			kind = "histogram"
		}
		rows = append(rows, []string{"`" + m.name + "`", kind, strings.Join(m.labels, ", "), m.help})
	}
	slices.SortFunc(rows, slices.Compare)
	section.Hold(t, "../docs/reference/metrics.md", contract.AppScaler, section.Table([]string{"metric", "type", "labels", ""}, rows))
}

// TestVerdictDetailsPage: docs/reference/verdict-details.md has each name that a parameter of
// a verdict may have.
func TestVerdictDetailsPage(t *testing.T) {
	var rows [][]string
	for _, w := range verdict.Vocabulary() {
		rows = append(rows, []string{"`" + w.Name + "`", string(w.Kind), w.Meaning})
	}
	section.Hold(t, "../docs/reference/verdict-details.md", "parameters", section.Table([]string{"parameter", "kind", ""}, rows))
}

// reasonRow is a reason's line on the page of verdict reasons, with what it means and what
// people do.
var reasonRow = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| [^|]*[^| ] \\| [^|]*[^| ] \\|$")

// TestVerdictReasonsPage: docs/reference/verdict-reasons.md has each reason of plan, under
// what it is of, and no other.
func TestVerdictReasonsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/verdict-reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, want := range planReasonsBySubject(t) {
		_, part, _ := strings.Cut(string(text), "\n## "+heading+"s\n")
		part, _, _ = strings.Cut(part, "\n## ")
		var got []string
		for _, row := range reasonRow.FindAllStringSubmatch(part, -1) {
			got = append(got, row[1])
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%ss: reasons (-plan +page):\n%s", heading, diff)
		}
	}
}
