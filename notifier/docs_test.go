package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spf13/pflag"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/manifests/monitoring"
	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/pkg/contract"
)

// TestFlagsPage: docs/reference/flags.md has all flags of the notifier as they are.
func TestFlagsPage(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("CLUSTER_NAME", "")
	t.Setenv("POD_NAME", "$POD_NAME") // or this host's name would be the default
	section.Hold(t, "../docs/reference/flags.md", contract.AppNotifier, section.Flags(command().Flags(), func(*pflag.Flag) bool { return true }))
}

// TestMonitoringAsksForWhatThereIs: alerts about the notifier ask for metrics that it serves, by
// labels that these have.
func TestMonitoringAsksForWhatThereIs(t *testing.T) {
	m := newMetrics([]config.Service{{Name: "ops"}})
	m.happenings(happening.State{})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string][]string{}
	for _, f := range families {
		served[f.GetName()] = []string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			served[f.GetName()] = append(served[f.GetName()], l.GetName())
		}
	}
	questions, err := monitoring.Questions("../manifests/components")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, q := range questions {
		uses, by, err := monitoring.Uses(q.Expr)
		if err != nil {
			t.Fatalf("%s: %v", q.Where, err)
		}
		for _, use := range uses {
			if !strings.HasPrefix(use.Metric, "windlass_notifier_") {
				continue
			}
			asked++
			labels, ok := served[use.Metric]
			if !ok {
				t.Errorf("%s asks for %s, which is not served", q.Where, use.Metric)
			}
			for _, label := range append(slices.Collect(maps.Keys(use.Labels)), by...) {
				if !slices.Contains(labels, label) {
					t.Errorf("%s asks for the label %s of %s, which has %v", q.Where, label, use.Metric, labels)
				}
			}
		}
	}
	if asked < 3 {
		t.Errorf("%d questions are about the notifier", asked)
	}
}

// TestCountersOfAlertsBeginAtZero: of a series that begins at 1 Prometheus counts no increase, so the
// first message that is given up would go unseen.
func TestCountersOfAlertsBeginAtZero(t *testing.T) {
	m := newMetrics([]config.Service{{Name: "ops"}, {Name: "mail"}})
	if n := testutil.CollectAndCount(m.messages); n != 2*3 {
		t.Errorf("%d series at the beginning, want one for each service and outcome", n)
	}
}

// TestMetricsPage: docs/reference/metrics.md has all metrics of the notifier.
func TestMetricsPage(t *testing.T) {
	m := newMetrics([]config.Service{{Name: "ops"}})
	m.happenings(happening.State{})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, f := range families {
		labels := ""
		for i, l := range f.GetMetric()[0].GetLabel() {
			if i > 0 {
				labels += ", "
			}
			labels += l.GetName()
		}
		kind := map[bool]string{true: "counter", false: "gauge"}[f.GetMetric()[0].GetCounter() != nil]
		rows = append(rows, []string{"`" + f.GetName() + "`", kind, labels, f.GetHelp()})
	}
	slices.SortFunc(rows, slices.Compare)
	section.Hold(t, "../docs/reference/metrics.md", contract.AppNotifier, section.Table([]string{"metric", "type", "labels", ""}, rows))
}
