package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/manifests/monitoring"
	"windlass.dev/windlass/pkg/contract"
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

// description is how a metric describes itself.
var description = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// servedMetrics are the metrics' labels by their names, as Prometheus stores them.
func servedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	m := newMetrics()
	m.countDropped(func() int64 { return 0 })
	all := make(chan *prometheus.Desc)
	go func() {
		defer close(all)
		m.registry.Describe(all)
	}()
	served := map[string][]string{}
	for desc := range all {
		found := description.FindStringSubmatch(desc.String())
		if found == nil {
			t.Fatalf("%s is not understood", desc)
		}
		name, labels := found[1], strings.Split(found[2], ",")
		served[name] = labels
		if strings.HasPrefix(name, "windlass_") && strings.HasSuffix(name, "_seconds") { // our histograms
			delete(served, name)
			served[name+"_count"], served[name+"_sum"], served[name+"_bucket"] = labels, labels, append(labels, "le")
		}
	}
	return served
}

// planReasons are the words of all verdicts. They are a type of their own and not a list,
// so their source is read.
func planReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "plan/reason.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			reason, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			reasons = append(reasons, reason)
		}
		return true
	})
	return reasons
}
