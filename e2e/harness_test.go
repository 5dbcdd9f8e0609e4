package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/e2e/fakeaws"
)

func TestCallQuery(t *testing.T) {
	log := []fakeaws.Call{
		{Operation: "DescribeAutoScalingGroups"},
		{Operation: "SetDesiredCapacity", Params: map[string]string{"AutoScalingGroupName": "web", "DesiredCapacity": "3"}},
		{Operation: "SetDesiredCapacity", Params: map[string]string{"AutoScalingGroupName": "web", "DesiredCapacity": "12"}, Error: "ValidationError"},
	}
	for query, want := range map[string]int{
		"SetDesiredCapacity":                              2,
		"Set":                                             0,
		"SetDesiredCapacity|Describe.*":                   3,
		"SetDesiredCapacity DesiredCapacity>=4":           1,
		"SetDesiredCapacity error==":                      1,
		"SetDesiredCapacity error==ValidationError":       1,
		"SetDesiredCapacity AutoScalingGroupName!=web":    0,
		"SetDesiredCapacity DesiredCapacity==3 count==99": 1,
	} {
		q, err := parseCalls(strings.Fields(query))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(q.find(log)); got != want {
			t.Errorf("%s: got %d calls, want %d", query, got, want)
		}
	}
}

func TestCallSpan(t *testing.T) {
	at := func(ms int) fakeaws.Call {
		return fakeaws.Call{Operation: "LaunchInstances", Time: time.UnixMilli(int64(ms))}
	}
	q, err := parseCalls(strings.Fields("LaunchInstances span<=1000"))
	if err != nil {
		t.Fatal(err)
	}
	// The log is in the order of the answers.
	if close := []fakeaws.Call{at(1500), at(600), at(1600)}; !q.holds(close) {
		t.Error("calls within a second were not found to be")
	}
	if far := []fakeaws.Call{at(600), at(1601)}; q.holds(far) {
		t.Error("calls more than a second apart were found to be within one")
	}
	if q.holds(nil) {
		t.Error("no calls at all were found to be within a second")
	}
}

func TestParseMetric(t *testing.T) {
	got, err := parseMetric(`windlass_actions_total{group="web",kind="grow"}>=1`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"windlass_actions_total", `group="web"`, `kind="grow"`, ">=", "1"}, append(append([]string{got.name}, got.labels...), got.Op, got.Value)); diff != "" {
		t.Error(diff)
	}
	if _, err := parseMetric("up"); err == nil {
		t.Error("a metric without a comparison was no error")
	}
}
