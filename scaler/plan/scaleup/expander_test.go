package scaleup

import (
	"strings"
	"testing"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
)

func TestParsePriorities(t *testing.T) {
	tiers, err := parsePriorities("10:\n  - .*\n50:\n  - ^spot-\n  - m5\\.large\n-3: [last]\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{50, 10, -3} {
		if tiers[i].priority != want {
			t.Errorf("tier %d has priority %d, want %d", i, tiers[i].priority, want)
		}
	}
	for group, want := range map[string]bool{"spot-1": true, "web-m5.large-a": true, "web-spot-": false, "m5xlarge": false} {
		if got := tiers[0].has(group); got != want {
			t.Errorf("priority 50 is for %s: %t, want %t", group, got, want)
		}
	}
}

func TestBadPrioritiesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "it names no priority",
		"{}":                   "it names no priority",
		"just words":           "it is no list of names for each priority",
		"10: web":              "it is no list of names for each priority",
		"10: [a]\n10: [b]":     "it is no list of names for each priority",
		"1.5: [a]":             `"1.5" is no priority`,
		"10: ['(']":            "of priority 10: error parsing regexp",
		"10: [a]\n  - b: [c]]": "it is no list of names for each priority",
	} {
		if _, err := parsePriorities(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s…", text, err, want)
		}
	}
}

func TestExpandersKeepTheBest(t *testing.T) {
	named := func(name string, price float64) *cluster.Group {
		return &cluster.Group{Group: &fleet.Group{Name: name, NodeTemplates: []fleet.NodeTemplate{{PricePerHour: price}}}}
	}
	wasteful := option{group: named("wasteful", 1), pods: 10, nodes: 1, left: 0, free: 0.5, work: 10, hourly: 1}
	tight := option{group: named("tight", 1), pods: 10, nodes: 2, left: 0, free: 0.1, work: 10, hourly: 2}
	small := option{group: named("small", 0.05), pods: 1, nodes: 1, left: 9, free: 0.2, work: 1, hourly: 0.05}
	unpriced := option{group: named("unpriced", 0), pods: 10, nodes: 1, left: 0, free: 0.1, work: 10}
	all := []option{wasteful, tight, small, unpriced}
	for expander, want := range map[string]string{
		policy.LeastWaste:                           "unpriced", // with tight, on fewer nodes
		policy.LeastNodes:                           "unpriced", // with wasteful, by name
		policy.MostPods:                             "unpriced",
		policy.Price:                                "small",
		policy.LeastWaste + "," + policy.Price:      "tight",
		policy.MostPods + "," + policy.Price:        "wasteful",
		policy.Priority + "," + policy.LeastWaste:   "wasteful",
		policy.Priority:                             "wasteful",
		policy.LeastNodes + "," + policy.LeastWaste: "unpriced",
		policy.MostPods + "," + policy.LeastNodes:   "unpriced",
		policy.Price + "," + policy.Random:          "small",
		policy.LeastWaste + "," + policy.LeastNodes: "unpriced",
		policy.Priority + "," + policy.Price:        "wasteful",
		policy.MostPods + "," + policy.LeastWaste:   "unpriced",
		policy.LeastNodes + "," + policy.Price:      "wasteful",
		policy.LeastNodes + "," + policy.Priority:   "wasteful",
	} {
		tiers, err := parsePriorities("{10: [small], 50: [wasteful, other]}")
		if err != nil {
			t.Fatal(err)
		}
		d := &ScaleUp{Cluster: &cluster.Cluster{Policy: policy.Policy{Expander: expander}}, priorities: tiers}
		if got := d.best(all).group.Name; got != want {
			t.Errorf("%s chooses %s, want %s", expander, got, want)
		}
	}
}

// The lot does not go by the order of the options, and falls anew with other pods.
func TestRandomIsALot(t *testing.T) {
	var options []option
	for _, name := range []string{"a", "b", "c", "d"} {
		options = append(options, option{group: &cluster.Group{Group: &fleet.Group{Name: name}}})
	}
	chosen := map[string]int{}
	for i := range 400 {
		d := &ScaleUp{Cluster: &cluster.Cluster{Policy: policy.Policy{Expander: policy.Random}}, oldest: strings.Repeat("x", i)}
		first := d.best(options).group.Name
		options = append(options[1:], options[0])
		if again := d.best(options).group.Name; again != first {
			t.Fatalf("the order of the options decides: %s, then %s", first, again)
		}
		chosen[first]++
	}
	for name, n := range chosen {
		if n < 50 {
			t.Errorf("%s is chosen %d times of 400", name, n)
		}
	}
}
