package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/manifests/monitoring"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
)

// TestMonitoringAsksForWhatThereIs: alerts and panels ask for metrics that are served, by
// labels that these have, and for reasons that exist. A wrong word there is no error for
// Prometheus: nothing is found, and nothing ever alerts.
func TestMonitoringAsksForWhatThereIs(t *testing.T) {
	questions, err := monitoring.Questions("../manifests/components")
	if err != nil {
		t.Fatal(err)
	}
	served, reasons := servedMetrics(t), planReasons(t)
	for _, q := range questions {
		uses, by, err := monitoring.Uses(q.Expr)
		if err != nil {
			t.Errorf("%s: %v", q.Where, err)
			continue
		}
		if slices.ContainsFunc(uses, func(use monitoring.Use) bool { return strings.HasPrefix(use.Metric, "windlass_notifier_") }) {
			continue // the notifier has a test of its own
		}
		known := []string{"instance"} // which Prometheus adds
		for _, use := range uses {
			labels, ok := served[use.Metric]
			if !ok {
				t.Errorf("%s asks for %s, which is not served", q.Where, use.Metric)
			}
			known = append(known, labels...)
			for label, value := range use.Labels {
				if !slices.Contains(labels, label) {
					t.Errorf("%s asks for the label %s of %s, which has %v", q.Where, label, use.Metric, labels)
				}
				for _, reason := range strings.Split(value, "|") {
					if label == "reason" && !slices.Contains(reasons, reason) {
						t.Errorf("%s asks for the reason %s, which is no verdict's", q.Where, reason)
					}
				}
			}
		}
		for _, label := range by {
			if !slices.Contains(known, label) {
				t.Errorf("%s goes by the label %s, which none of its metrics has", q.Where, label)
			}
		}
	}
	args, err := flagfile.Read("../manifests/flags", contract.AppScaler)
	if err != nil || !slices.Contains(args.Set, "--metrics-address="+defaultAddress) {
		t.Errorf("arguments %v, %v: metrics are to be served where the pod's port is", args.Set, err)
	}
}

// TestCountersOfAlertsBeginAtZero: of a series that begins at 1 Prometheus counts no increase, so the
// first of what an alert counts would go unseen.
func TestCountersOfAlertsBeginAtZero(t *testing.T) {
	rules, err := monitoring.Rules("../manifests/components/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]map[string]string{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			series[f.GetName()] = append(series[f.GetName()], labels)
		}
	}
	want := map[string]int{ // how many series each alert goes by
		"windlass_actions_total": len(action.Kinds()), "windlass_state_shed_entries_total": len(fleet.ShedParts()), "windlass_state_writes_total": 1,
	}
	for _, rule := range rules {
		uses, _, err := monitoring.Uses(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range uses {
			if !strings.HasSuffix(use.Metric, "_total") || strings.HasPrefix(use.Metric, "windlass_notifier_") {
				continue
			}
			n := 0
			for _, labels := range series[use.Metric] {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(use.Labels)), func(l string) bool { return labels[l] != use.Labels[l] }) {
					n++
				}
			}
			if n == 0 || n != want[use.Metric] {
				t.Errorf("alert %s: of %s %v there are %d series at the beginning, want %d", rule.Alert, use.Metric, use.Labels, n, want[use.Metric])
			}
		}
	}
}

// description is how a metric describes itself.
var description = regexp.MustCompile(`fqName: "([^"]+)", help: ("(?:[^"\\]|\\.)*"),.*variableLabels: \{([^}]*)\}`)

// described is a metric by its own words.
type described struct {
	name, help string
	labels     []string
	histogram  bool
}

// describedMetrics are all that the scaler registers.
func describedMetrics(t *testing.T) []described {
	t.Helper()
	m := newMetrics()
	m.countDropped(func() int64 { return 0 })
	histograms := histogramsOf(t, m)
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		m.registry.Describe(all)
	}()
	var metrics []described
	for desc := range all {
		found := description.FindStringSubmatch(desc.String())
		if found == nil {
			t.Fatalf("%s is not understood", desc)
		}
		help, err := strconv.Unquote(found[2])
		if err != nil {
			t.Fatalf("%s: %v", desc, err)
		}
		metrics = append(metrics, described{found[1], help, strings.Split(found[3], ","), histograms[found[1]]})
	}
	return metrics
}

// histogramsOf names them by what is served, as a description says no type.
func histogramsOf(t *testing.T, m *metrics) map[string]bool {
	t.Helper()
	m.calls.WithLabelValues("", "", "") // these are served only where there is one
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	histograms := map[string]bool{}
	for _, f := range families {
		histograms[f.GetName()] = f.GetMetric()[0].GetHistogram() != nil
	}
	return histograms
}

// servedMetrics are the metrics' labels by their names, as Prometheus stores them.
func servedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	served := map[string][]string{}
	for _, m := range describedMetrics(t) {
		if !m.histogram {
			served[m.name] = m.labels
			continue
		}
		served[m.name+"_count"], served[m.name+"_sum"], served[m.name+"_bucket"] = m.labels, m.labels, append(m.labels, "le")
	}
	return served
}

// planReasons are the words of all verdicts.
func planReasons(t *testing.T) []string {
	t.Helper()
	return slices.Concat(slices.Collect(maps.Values(planReasonsBySubject(t)))...)
}

// planReasonsBySubject has them by what they are of, which their constants begin with. They
// are a type of their own and not a list, so their source is read.
func planReasonsBySubject(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "plan/verdict/reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string][]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			reason, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			of := slices.IndexFunc(subjects, func(s string) bool { return strings.HasPrefix(spec.Names[i].Name, s) })
			if of < 0 {
				t.Fatalf("%s begins with none of %v", spec.Names[i].Name, subjects)
			}
			reasons[subjects[of]] = append(reasons[subjects[of]], reason)
		}
		return false
	})
	return reasons
}

var subjects = []string{"Pod", "Node", "Group"}
