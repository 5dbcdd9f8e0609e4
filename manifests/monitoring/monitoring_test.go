package monitoring

import (
	"os"
	"regexp"
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
windlass_notifier_leader{instance="n"} 1x40
windlass_notifier_leader{instance="m"} 0x40
windlass_notifier_messages_total{instance="n",service="slack",outcome="sent"} 0+4x40
windlass_notifier_messages_total{instance="n",service="slack",outcome="failed"} 0+1x40
windlass_notifier_messages_total{instance="n",service="slack",outcome="given up"} 2x40
windlass_notifier_failing_since_timestamp_seconds{instance="n",service="slack"} 0x40
windlass_state_shed_entries_total{instance="a",part="giveUps"} 0x40
windlass_nodes{instance="a",reason="Needed",capacity_type="spot"} 8x40
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
		{"messages are refused", `windlass_notifier_messages_total{instance="n",service="slack",outcome="given up"} 0+1x40`, []string{"WindlassMessagesGivenUp"}},
		{"one message was refused for good", `windlass_notifier_messages_total{instance="n",service="slack",outcome="given up"} 0x20 1x20`, []string{"WindlassMessagesGivenUp"}},
		{"one try failed five minutes ago, and nothing was to be sent before", "windlass_notifier_messages_total{instance=\"n\",service=\"slack\",outcome=\"sent\"} 9x40\nwindlass_notifier_messages_total{instance=\"n\",service=\"slack\",outcome=\"failed\"} 0x25 1x15\nwindlass_notifier_failing_since_timestamp_seconds{instance=\"n\",service=\"slack\"} 0x25 1560x15", nil},
		{"a service does not answer for 20 minutes", "windlass_notifier_messages_total{instance=\"n\",service=\"slack\",outcome=\"sent\"} 0+1x10 10x30\nwindlass_notifier_failing_since_timestamp_seconds{instance=\"n\",service=\"slack\"} 0x10 600x30", []string{"WindlassMessagesNotSent"}},
		{"no notifier sends", "windlass_notifier_leader{instance=\"n\"} 0x40\nwindlass_notifier_leader{instance=\"m\"} 0x40", []string{"WindlassNotifierNoLeader"}},
		{"the leader is gone", `windlass_leader{instance="a"} 0x40`, []string{"WindlassNoLeader"}},
		{"both are gone", "windlass_leader{instance=\"a\"} _x40\nwindlass_leader{instance=\"b\"} _x40", []string{"WindlassNoLeader"}},
		{"both lead", `windlass_leader{instance="b"} 1x40`, []string{"WindlassTwoLead"}},
		{"the state cannot be written", `windlass_state_writes_total{instance="a",result="failed"} 0+60x40`, []string{"WindlassStateNotWritten"}},
		{"the state was too large", `windlass_state_shed_entries_total{instance="a",part="giveUps"} 0+9x40`, []string{"WindlassStateShed"}},
		{"one entry was dropped", `windlass_state_shed_entries_total{instance="a",part="giveUps"} 0x20 1x20`, []string{"WindlassStateShed"}},
		{"a right is missing", `windlass_cluster_faults{instance="a"} 2x40`, []string{"WindlassCannotRead"}},
		{"a group is defined wrong", `windlass_group_faults{instance="a",group="web"} 1x40`, []string{"WindlassGroupFaulty"}},
		{"instances are not recognised", `windlass_unrecognised_brake{instance="a"} 1x40`, []string{"WindlassInstancesNotRecognised"}},
		{"a group is another cluster's", `windlass_groups{instance="a",reason="ForeignGroup"} 1x40`, []string{"WindlassInstancesNotRecognised"}},
		{"a group has no hook", `windlass_groups{instance="a",reason="HookMissing"} 1x40`, []string{"WindlassGroupUnhealthy"}},
		{"two launches failed", `windlass_group_backoff_failures{instance="a",group="web",zone="z",cause="Capacity"} 2x40`, nil},
		{"three did", `windlass_group_backoff_failures{instance="a",group="web",zone="z",cause="Capacity"} 3x40`, []string{"WindlassLaunchesFail"}},
		{"a pod fits nowhere", `windlass_pending_pods{instance="a",reason="NoNodeGroupFits"} 1x40`, []string{"WindlassPodsWait"}},
		{"a node is not Ready", `windlass_nodes{instance="a",reason="Unready",capacity_type="spot"} 1x40`, []string{"WindlassNodesNotReady"}},
		{"a zone may be partitioned", `windlass_nodes{instance="a",reason="ZoneUnready"} 4x40`, []string{"WindlassNodesNotReady"}},
		{"an instance is retained", `windlass_group_retained_instances{instance="a",group="web"} 1x40`, []string{"WindlassInstancesRetained"}},
		{"launches fail again and again", `windlass_actions_total{instance="a",kind="grow",result="failed"} 0+1x40`, []string{"WindlassActionsFail"}},
		{"three actions failed", `windlass_actions_total{instance="a",kind="mark",result="failed"} 0x10 3x30`, []string{"WindlassActionsFail"}},
		{"completions are early", `windlass_aws_call_seconds_count{instance="a",service="Auto Scaling",operation="CompleteLifecycleAction",code="ok"} 0+1x40
windlass_aws_call_seconds_count{instance="a",service="Auto Scaling",operation="CompleteLifecycleAction",code="ValidationError"} 0+3x40`, nil},
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

// runbook are the headings of one, in this order.
var runbook = []string{"Means", "Meanwhile", "Find the cause", "Do", "Ignore it"}

// TestRunbooks: each alert names a page of its own, which says what it means, what Windlass does
// meanwhile, how to find the cause, what to do and when to do nothing; the index has each page,
// and there is no page without an alert.
func TestRunbooks(t *testing.T) {
	const folder, index = "docs/runbooks", "docs/operate/alerts.md"
	rules, err := Rules("../components/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	listed, err := os.ReadFile("../../" + index)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| \[(\w+)\]\(\.\./runbooks/(\w+)\.md\) \| (\w+) \|`).FindAllStringSubmatch(string(listed), -1)
	var inIndex []string
	for _, row := range rows {
		if row[1] != row[2] {
			t.Errorf("%s: %s leads to the page of %s", index, row[1], row[2])
		}
		inIndex = append(inIndex, row[1]+" "+row[3])
	}
	var alerts, names []string
	for _, rule := range rules {
		alerts = append(alerts, rule.Alert+" "+rule.Labels["severity"])
		names = append(names, rule.Alert+".md")
		page := folder + "/" + rule.Alert + ".md"
		if got := rule.Annotations["runbook_url"]; got != page {
			t.Errorf("alert %s has the runbook %q, want %q", rule.Alert, got, page)
		}
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Error(err)
			continue
		}
		parts := strings.Split(string(text), "\n## ")
		var headings []string
		for _, part := range parts[1:] {
			heading, body, _ := strings.Cut(part, "\n")
			headings = append(headings, heading)
			if len(strings.TrimSpace(body)) < 20 {
				t.Errorf("%s says nothing under %s", page, heading)
			}
		}
		if parts[0] != "# "+rule.Alert+"\n" || !slices.Equal(headings, runbook) {
			t.Errorf("%s begins with %q and has the headings %q, want %q", page, parts[0], headings, runbook)
		}
	}
	if diff := cmp.Diff(alerts, inIndex); diff != "" {
		t.Errorf("%s has not the alerts and severities of the rules, in their order (-rules +index):\n%s", index, diff)
	}
	files, err := os.ReadDir("../../" + folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(names, file.Name()) {
			t.Errorf("%s/%s is of no alert", folder, file.Name())
		}
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
	result, err := Ask(t.Context(), q, data, time.Unix(0, 0).Add(half))
	if err != nil {
		t.Fatal(err)
	}
	return result
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
