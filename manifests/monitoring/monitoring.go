// Package monitoring reads what manifests/components ask of Prometheus, for the tests
// that hold it against the metrics there are.
package monitoring

import (
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Rule is an alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         metav1.Duration   `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// PrometheusRule is what we use of the object of that name.
// https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PrometheusRule
type PrometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// PodMonitor is what we use of the object of that name.
// https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PodMonitor
type PodMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string          `json:"port"`
			Interval metav1.Duration `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// Rules are the alerts of the file at path.
func Rules(path string) ([]Rule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var object PrometheusRule
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rules []Rule
	for _, group := range object.Spec.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}

// Question is an expression, and who asks it.
type Question struct{ Where, Expr string }

// Questions are the expressions of the alerts and of the dashboard below a folder, which
// is manifests/components.
func Questions(components string) ([]Question, error) {
	rules, err := Rules(components + "/prometheus/rules.yaml")
	if err != nil {
		return nil, err
	}
	var all []Question
	for _, rule := range rules {
		all = append(all, Question{"alert " + rule.Alert, rule.Expr})
	}
	panels, err := Panels(components + "/grafana/windlass.json")
	return append(all, panels...), err
}

// Use is one metric that an expression asks for.
type Use struct {
	// Metric is its name.
	Metric string
	// Labels are those whose values it asks for, and the regular expression or the value
	// of each.
	Labels map[string]string
}

// Uses are the metrics that an expression asks for, and the labels by which it parts or
// joins any of them.
func Uses(expr string) (uses []Use, by []string, err error) {
	tree, err := parser.ParseExpr(expr)
	if err != nil {
		return nil, nil, err
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			use := Use{Metric: n.Name, Labels: map[string]string{}}
			for _, m := range n.LabelMatchers {
				if m.Name != "__name__" {
					use.Labels[m.Name] = m.Value
				}
			}
			uses = append(uses, use)
		case *parser.AggregateExpr:
			by = append(by, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				by = append(by, n.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	return uses, by, nil
}
