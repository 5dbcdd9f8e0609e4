package migrate

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTableIsWhole: every flag of either program has a row, once; testdata/names.txt has their names.
func TestTableIsWhole(t *testing.T) {
	names, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(names)) {
		of, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		lines++
		if _, ok := Lookup(Program(of), name); !ok {
			t.Errorf("--%s of %s has no row", name, of)
		}
	}
	if lines < 200 {
		t.Errorf("only %d names were read", lines)
	}
	if len(byName) != len(table) {
		t.Errorf("%d rows for %d flags", len(table), len(byName))
	}
}

// TestRowsAreSound: what a row names is there.
func TestRowsAreSound(t *testing.T) {
	page, err := os.ReadFile("../../" + Differences)
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{boolean, list, integer, float, duration, "value"}
	for _, r := range table {
		if r.Of != Autoscaler && r.Of != Handler || !slices.Contains(kinds, r.Kind) || r.Why == "" {
			t.Errorf("--%s: of %q, kind %q, why %q", r.Flag, r.Of, r.Kind, r.Why)
		}
		if rules[r.Rule] == nil {
			t.Errorf("--%s: there is no rule %q", r.Flag, r.Rule)
		}
		if r.Differs != "" && !strings.Contains(string(page), "\n| "+r.Differs+" |") {
			t.Errorf("--%s: %s has no row %q", r.Flag, Differences, r.Differs)
		}
		target, _, _ := r.target()
		if _, err := os.Stat("../../manifests/components/" + r.component()); err != nil {
			t.Errorf("--%s: %v", r.Flag, err)
		}
		others := []string{nothing, toDecide, provider, config, region, port}
		if target == "" && r.component() == "" && !slices.Contains(others, r.Becomes) {
			t.Errorf("--%s becomes %q, which means nothing", r.Flag, r.Becomes)
		}
		if _, err := sound(r.Kind, r.Default); r.Default != "" && err != nil {
			t.Errorf("--%s=%s, its default: %v", r.Flag, r.Default, err)
		}
		if strings.HasSuffix(r.Why, ".") || strings.Contains(r.words(), "%!") || r.words() == "" {
			t.Errorf("--%s: %q becomes %q", r.Flag, r.Why, r.words())
		}
	}
	for _, f := range fates {
		if !slices.Contains([]string{carried, own, nothing, toDecide}, f.becomes) || f.why == "" {
			t.Errorf("%s of %s becomes %q because %q", f.key, f.of, f.becomes, f.why)
		}
	}
}
