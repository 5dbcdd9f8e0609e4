package table

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"windlass.dev/windlass/cli/view"
)

// A table on a terminal is no wider than that, names stay whole, and no word of a sentence is lost
// where it is not cut.
func TestFits(t *testing.T) {
	word := rapid.StringMatching(`[a-zé→]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.Bool().Draw(t, "cut")
		columns := rapid.IntRange(62, 120).Draw(t, "columns")
		var rows [][]string
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			rows = append(rows, []string{word.Draw(t, "name"),
				strings.Join(rapid.SliceOfN(word, 1, 30).Draw(t, "sentence"), " "),
				strings.Join(rapid.SliceOfN(word, 2, 30).Draw(t, "more"), " ")})
		}
		rows[0][1] += " x" // a sentence
		want := columnsOf(rows)
		var b strings.Builder
		s := newSheet(&b, false, columns)
		s.cut = cut
		s.table("", []string{"A NAME", "WHAT", "WHY"}, rows)
		for line := range strings.Lines(b.String()) {
			if width := ansi.StringWidth(strings.TrimRight(line, "\n")); width > columns {
				t.Fatalf("%d columns on %d: %s\n%s", width, columns, line, b.String())
			}
		}
		got := columnsOf(fitted(append([][]string{{"", "", ""}}, rows...), columns, cut))
		if got[0] != want[0] || !cut && (got[1] != want[1] || got[2] != want[2]) {
			t.Fatalf("cut %v: %q became %q", cut, want, got)
		}
	})
}

func columnsOf(rows [][]string) (all [3]string) {
	for i := range all {
		var parts []string
		for _, row := range rows {
			parts = append(parts, strings.Fields(row[i])...)
		}
		all[i] = strings.Join(parts, " ")
	}
	return all
}

// On 80 columns an overview has a line for each thing, and short names of nodes; an answer goes on
// below, in its column.
func TestNarrow(t *testing.T) {
	const node = "ip-10-0-32-11.eu-west-1.compute.internal"
	for _, c := range []struct {
		answer any
		want   string
	}{
		{view.Story{Entries: []view.Entry{{Event: "DrainBlocked", Object: "node/" + node, By: "asg", Text: "3 pods left, some blocked by demo/shop: The disruption budget shop needs 11 healthy pods"}}}, `
TIME   EVENT          OF                   ASKED BY   WHAT
-      DrainBlocked   node/ip-10-0-32-11   asg        3 pods left, some blocked…
`},
		{view.Previews{Nodes: []view.Preview{{Node: node, Pods: []view.PreviewPod{{Pod: "demo/shop-8497d9cd6c-22qjt", Outcome: "Block", Why: "budget demo/shop allows no further disruption", Budget: "demo/shop"}}}}}, `
NODE            POD                          WHAT    WHY
ip-10-0-32-11   demo/shop-8497d9cd6c-22qjt   Block   PDB demo/shop: budget
                                                     demo/shop allows no further
                                                     disruption
`},
		{view.Check{Errors: 1, Findings: []view.Finding{{Severity: view.SeverityError, Area: view.AreaGroups, Of: "group/web", Text: "no hook windlass holds its terminations, so a drain has 60 s", Do: "add the hook"}}}, `
error     groups    group/web: no hook windlass holds its terminations, so a
                    drain has 60 s
                do: add the hook
`},
	} {
		var b strings.Builder
		if err := Print(&b, false, 80, c.answer); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != c.want[1:] {
			t.Errorf("got\n%swant\n%s", got, c.want[1:])
		}
	}
}
