package monitoring

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// wellCluster is what two replicas serve where nothing is wrong. Samples are a minute
// apart; a+bxn are n more after a, with b added each time.
const wellCluster = `
windlass_leader{instance="a"} 1x40
windlass_leader{instance="b"} 0x40
windlass_cluster_faults{instance="a"} 0x40
windlass_group_faults{instance="a",group="web"} 0x40
windlass_group_retained_instances{instance="a",group="web"} 0x40
windlass_pending_pods{instance="a",reason="TriggersScaleUp"} 3x40
windlass_nodes{instance="a",reason="Needed"} 8x40
windlass_groups{instance="a",reason="Steady"} 2x40
windlass_actions_total{instance="a",kind="grow",result="done"} 0+1x40
windlass_actions_total{instance="a",kind="grow",result="failed"} 7x40
windlass_aws_call_seconds_count{instance="a",service="Auto Scaling",operation="DescribeAutoScalingGroups",code="ok"} 0+4x40
windlass_aws_call_seconds_count{instance="a",service="Auto Scaling",operation="DescribeAutoScalingGroups",code="Throttling"} 0+1x40
`

// TestAlerts asks Prometheus's own engine what each trouble sets off, after half an hour
// of it.
func TestAlerts(t *testing.T) {
	rules, err := Rules("../components/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, tc := range []struct {
		name string
		more string // in place of series of the same labels
		want []string
	}{
		{"all is well", "", nil},
		{"one that led before shows what it saw last", `
windlass_cluster_faults{instance="b"} 1x40
windlass_group_faults{instance="b",group="web"} 1x40
windlass_group_backoff_failures{instance="b",group="web",zone="",cause="Quota"} 9x40
windlass_group_retained_instances{instance="b",group="web"} 1x40
windlass_pending_pods{instance="b",reason="NoNodeGroupFits"} 1x40
windlass_nodes{instance="b",reason="Unready"} 1x40
windlass_groups{instance="b",reason="Unhealthy"} 1x40`, nil},
		{"the leader is gone", `windlass_leader{instance="a"} 0x40`, []string{"WindlassNobodyLeads"}},
		{"both are gone", "windlass_leader{instance=\"a\"} _x40\nwindlass_leader{instance=\"b\"} _x40", []string{"WindlassNobodyLeads"}},
		{"both lead", `windlass_leader{instance="b"} 1x40`, []string{"WindlassTwoLead"}},
		{"the state cannot be written", `windlass_state_writes_total{instance="a",result="failed"} 0+60x40`, []string{"WindlassStateNotWritten"}},
		{"the state was too large", `windlass_state_shed_entries_total{instance="a",part="giveUps"} 0+9x40`, []string{"WindlassStateShed"}},
		{"a right is missing", `windlass_cluster_faults{instance="a"} 2x40`, []string{"WindlassCannotRead"}},
		{"a group is defined wrong", `windlass_group_faults{instance="a",group="web"} 1x40`, []string{"WindlassGroupFaulty"}},
		{"instances are not recognised", `windlass_unrecognised_brake{instance="a"} 1x40`, []string{"WindlassInstancesNotRecognised"}},
		{"a group is another cluster's", `windlass_groups{instance="a",reason="ForeignGroup"} 1x40`, []string{"WindlassInstancesNotRecognised"}},
		{"a group has no hook", `windlass_groups{instance="a",reason="HookMissing"} 1x40`, []string{"WindlassGroupUnhealthy"}},
		{"two launches failed", `windlass_group_backoff_failures{instance="a",group="web",zone="z",cause="Capacity"} 2x40`, nil},
		{"three did", `windlass_group_backoff_failures{instance="a",group="web",zone="z",cause="Capacity"} 3x40`, []string{"WindlassLaunchesFail"}},
		{"a pod fits nowhere", `windlass_pending_pods{instance="a",reason="NoNodeGroupFits"} 1x40`, []string{"WindlassPodsWait"}},
		{"a node is not Ready", `windlass_nodes{instance="a",reason="Unready"} 1x40`, []string{"WindlassNodesNotReady"}},
		{"a zone may be partitioned", `windlass_nodes{instance="a",reason="ZoneUnready"} 4x40`, []string{"WindlassNodesNotReady"}},
		{"an instance is retained", `windlass_group_retained_instances{instance="a",group="web"} 1x40`, []string{"WindlassInstancesRetained"}},
		{"launches fail again and again", `windlass_actions_total{instance="a",kind="grow",result="failed"} 0+1x40`, []string{"WindlassActionsFail"}},
		{"AWS denies", `windlass_aws_call_seconds_count{instance="a",service="Auto Scaling",operation="SetDesiredCapacity",code="AccessDenied"} 0+1x40`, []string{"WindlassAWSFails"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := firing(t, rules, series(t, wellCluster+tc.more))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("alerts (-want +got):\n%s", diff)
			}
			for _, alert := range got {
				seen[alert] = true
			}
		})
	}
	for _, rule := range rules {
		if !seen[rule.Alert] {
			t.Errorf("alert %s: no trouble here sets it off", rule.Alert)
		}
	}
}

// TestAlertsSayWhatToDo: each has a severity, a line for a pager and a way on.
func TestAlertsSayWhatToDo(t *testing.T) {
	rules, err := Rules("../components/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("alert %s has the severity %q", rule.Alert, severity)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("alert %s lacks words: %v", rule.Alert, rule.Annotations)
		}
		// What the annotations name has to be left over by the expression.
		_, by, err := Uses(rule.Expr)
		if err != nil {
			t.Fatalf("alert %s: %v", rule.Alert, err)
		}
		for _, text := range rule.Annotations {
			for _, after := range strings.Split(text, "$labels.")[1:] {
				label, _, _ := strings.Cut(after, " ")
				if !slices.Contains(by, label) {
					t.Errorf("alert %s speaks of the label %s, which its expression does not keep", rule.Alert, label)
				}
			}
		}
	}
}

// TestRunbooks: each alert names its section of the page of runbooks, which says what it
// means and what to do, and the page has no other.
func TestRunbooks(t *testing.T) {
	const page = "docs/operate/alerts.md"
	rules, err := Rules("../components/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		sections[heading] = body
	}
	for _, rule := range rules {
		// The anchor of a heading of one word is that word in small letters.
		if got, want := rule.Annotations["runbook_url"], page+"#"+strings.ToLower(rule.Alert); got != want {
			t.Errorf("alert %s has the runbook %q, want %q", rule.Alert, got, want)
		}
		body, ok := sections[rule.Alert]
		if !ok || !strings.Contains(body, "**Means:**") || !strings.Contains(body, "**Do:**") {
			t.Errorf("%s: no section %s that says what it means and what to do", page, rule.Alert)
		}
		delete(sections, rule.Alert)
	}
	for heading := range sections {
		t.Errorf("%s has a section %s, and there is no such alert", page, heading)
	}
}

// busyCluster is what one replica serves besides, where there is something to show.
const busyCluster = `
windlass_group_nodes{instance="a",group="web",count="desired"} 3x40
windlass_group_backoff_failures{instance="a",group="web",zone="z",cause="Capacity"} 1x40
windlass_launches_total{instance="a",call="LaunchInstances",result="done"} 0+1x40
windlass_lifecycle_actions_total{instance="a",call="complete",result="done"} 0+1x40
windlass_pod_unschedulable_to_launch_seconds_bucket{instance="a",le="1"} 0+1x40
windlass_pod_unschedulable_to_launch_seconds_bucket{instance="a",le="+Inf"} 0+1x40
windlass_drained_to_completed_seconds_bucket{instance="a",le="1"} 0+1x40
windlass_drained_to_completed_seconds_bucket{instance="a",le="+Inf"} 0+1x40
windlass_evaluation_seconds_bucket{instance="a",le="1"} 0+1x40
windlass_evaluation_seconds_bucket{instance="a",le="+Inf"} 0+1x40
windlass_aws_call_seconds_bucket{instance="a",operation="DescribeAutoScalingGroups",le="1"} 0+1x40
windlass_aws_call_seconds_bucket{instance="a",operation="DescribeAutoScalingGroups",le="+Inf"} 0+1x40
windlass_events_dropped_total{instance="a"} 0x40
process_resident_memory_bytes{instance="a"} 9e7x40
process_cpu_seconds_total{instance="a"} 0+1x40
process_resident_memory_bytes{instance="somebody else's"} 9e9x40
`

// TestPanels: each has something to show, with numbers in it, and nothing of other programs.
func TestPanels(t *testing.T) {
	panels, err := dashboard("../components/grafana/windlass.json")
	if err != nil {
		t.Fatal(err)
	}
	data := series(t, wellCluster+busyCluster)
	for _, panel := range panels {
		shown := ask(t, panel, data)
		if len(shown) == 0 {
			t.Errorf("%s shows nothing: %s", panel.Where, panel.Expr)
		}
		for _, s := range shown {
			if instance := s.Metric.Get("instance"); math.IsNaN(s.F) || instance != "" && instance != "a" {
				t.Errorf("%s shows %v: %s", panel.Where, s, panel.Expr)
			}
		}
	}
	if len(panels) < 20 {
		t.Errorf("only %d expressions were found", len(panels))
	}
}

const half = 30 * time.Minute

// firing are the alerts whose expressions hold, in the order of the rules.
func firing(t *testing.T, rules []Rule, data storage.Queryable) []string {
	t.Helper()
	var names []string
	for _, rule := range rules {
		if len(ask(t, Question{"alert " + rule.Alert, rule.Expr}, data)) > 0 {
			names = append(names, rule.Alert)
		}
	}
	return names
}

// ask answers a question as Prometheus would after half an hour.
func ask(t *testing.T, q Question, data storage.Queryable) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	query, err := engine.NewInstantQuery(t.Context(), data, nil, q.Expr, time.Unix(0, 0).Add(half))
	if err != nil {
		t.Fatalf("%s: %v", q.Where, err)
	}
	defer query.Close()
	result, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", q.Where, err)
	}
	return slices.Clone(result) // which is the query's until it is closed
}

// series reads a line for each; one of the same labels takes the place of the one before.
func series(t *testing.T, text string) Memory {
	t.Helper()
	w := Memory{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, values, err := parser.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		served := promql.Series{Metric: name}
		for minute, v := range values {
			if !v.Omitted {
				served.Floats = append(served.Floats, promql.FPoint{T: (time.Duration(minute) * time.Minute).Milliseconds(), F: v.Value})
			}
		}
		w[name.String()] = promql.NewStorageSeries(served)
	}
	return w
}
