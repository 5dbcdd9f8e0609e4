package main

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/docs/section"
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

// TestMetricsPage: docs/reference/metrics.md has all metrics of the notifier.
func TestMetricsPage(t *testing.T) {
	m := newMetrics()
	m.sent("ops", "sent")
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
