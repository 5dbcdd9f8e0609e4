package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/verdict"
)

func TestMetrics(t *testing.T) {
	m := newMetrics()
	start := time.Now().Truncate(time.Second) // as pods are dated
	drained := contract.Report{Phase: contract.PhaseDrained}.String()
	snapshot := fleet.Snapshot{
		Now:    start,
		Faults: []string{"no right to list nodes"},
		Groups: []fleet.Group{{Name: "web", Max: 5, Desired: 2, Faults: []string{"tag x is left out"}, Instances: []fleet.Instance{{ID: "i-1", State: fleet.InService}, {ID: "i-2", State: fleet.Pending}, {ID: "i-4", State: "Terminating:Retained"}}}},
		Nodes: []fleet.Node{{Name: "n1", ProviderID: "aws:///a/i-1", Ready: true},
			{Name: "n3", ProviderID: "aws:///a/i-3", Annotations: map[string]string{contract.AnnotationDrainReport: drained}},
			{Name: "n4", ProviderID: "aws:///a/i-5", Labels: map[string]string{contract.LabelCapacityType: contract.CapacitySpot}}},
		Pods: []*fleet.Pod{{UID: "p", Scheduling: fleet.Unschedulable, Judged: fleet.SecondOf(start.Add(-time.Second))}},
	}
	grow := action.Grow{Group: "web", From: 2, To: 3, For: []action.PodRef{{Name: "p", UID: "p"}}}
	backOffs := map[string]fleet.BackOff{
		fleet.BackOffKey("web", "a", "InsufficientInstanceCapacity"): {Until: start.Add(time.Minute), Count: 2, Cause: "InsufficientInstanceCapacity"},
		fleet.BackOffKey("web", "b", "InsufficientInstanceCapacity"): {Until: start, Count: 1, Cause: "InsufficientInstanceCapacity"}, // over
		fleet.BackOffKey("api", "", "NoRight"):                       {Until: start.Add(time.Minute), Count: 1, Cause: "no right to call autoscaling:SetDesiredCapacity on arn:aws:x"},
	}
	m.record(evaluation{snapshot: snapshot, plan: plan.Plan{State: fleet.State{BackOffs: backOffs}, Verdicts: []*verdict.Verdict{
		{Of: verdict.OfPod, Reason: verdict.PodTriggersScaleUp}, {Of: verdict.OfNode, Name: "n1", Reason: verdict.NodeNeeded}, {Of: verdict.OfGroup, Reason: verdict.GroupScalingUp}}}})
	short := action.Grow{Group: "web", Zone: "a", Token: "t", Count: 2, From: 2, To: 4}
	missing := []fleet.Failure{{Cause: "InsufficientInstanceCapacity"}}
	ended := start.Add(2 * time.Second)
	m.record(evaluation{snapshot: snapshot, plan: plan.Plan{State: fleet.State{BackOffs: backOffs}, Verdicts: []*verdict.Verdict{{Of: verdict.OfGroup, Reason: verdict.GroupSteady},
		{Of: verdict.OfNode, Name: "n1", Reason: verdict.NodeNoPlace}, {Of: verdict.OfNode, Name: "n3", Reason: verdict.NodeUnneeded}, {Of: verdict.OfNode, Name: "n4", Reason: verdict.NodeNoPlace}}}, results: []act.Result{
		{Action: grow, Outcome: act.Done, Ended: ended, Took: time.Second},
		{Action: grow, Outcome: act.Failed, Ended: ended}, {Action: grow, Outcome: act.Paused},
		{Action: short, Outcome: act.Done, Answer: &launch.Answer{Seen: true, Came: 1, Failures: missing}},
		{Action: short, Outcome: act.Failed, Answer: &launch.Answer{Seen: true, Failures: missing}},
		{Action: short, Outcome: act.Begun, Answer: &launch.Answer{}},
		{Action: action.Complete{Instance: "i-3", Since: start.Add(-time.Minute)}, Outcome: act.Done, Ended: ended},
		{Action: action.Complete{Instance: "i-3"}, Outcome: act.Done, Before: true, Ended: ended.Add(time.Hour)},
		{Action: action.Complete{Instance: "i-3"}, Outcome: act.Stopped, Err: asg.ErrTooEarly},
		{Action: action.Heartbeat{Instance: "i-3"}, Outcome: act.Stopped, Err: asg.ErrBusy},
		{Action: action.Heartbeat{Instance: "i-3"}, Outcome: act.Paused, Err: asg.ErrBusy},
		{Action: action.Heartbeat{Instance: "i-3"}, Outcome: act.Done, Ended: ended}}})
	m.call(asg.Call{Service: "Auto Scaling", Operation: "SetDesiredCapacity", Code: "ok"})
	want := `
# HELP windlass_cluster_faults Faults of the cluster: what the scaler cannot read, and a persisted state that it cannot write; the ConfigMap windlass-status names them.
# TYPE windlass_cluster_faults gauge
windlass_cluster_faults 1
# HELP windlass_group_backoff_failures Failures in a row of a group that is in back-off, by zone (empty for all of its zones) and cause.
# TYPE windlass_group_backoff_failures gauge
windlass_group_backoff_failures{cause="NoRight",group="api",zone=""} 1
windlass_group_backoff_failures{cause="InsufficientInstanceCapacity",group="web",zone="a"} 2
# HELP windlass_group_faults Faults of a group; its verdict and the log name them.
# TYPE windlass_group_faults gauge
windlass_group_faults{group="web"} 1
# HELP windlass_group_nodes Nodes of a group: desired, ready, min, max.
# TYPE windlass_group_nodes gauge
windlass_group_nodes{count="desired",group="web"} 2
windlass_group_nodes{count="max",group="web"} 5
windlass_group_nodes{count="min",group="web"} 0
windlass_group_nodes{count="ready",group="web"} 1
# HELP windlass_group_retained_instances Instances that a group keeps after a lifecycle hook was abandoned: they are paid for, and are not in the group's count.
# TYPE windlass_group_retained_instances gauge
windlass_group_retained_instances{group="web"} 1
# HELP windlass_groups Groups, by the reason of their verdict.
# TYPE windlass_groups gauge
windlass_groups{reason="Steady"} 1
# HELP windlass_launches_total Calls to grow a group, by call and by result: done, partial (fewer instances than asked for), none (no instance), begun (AWS has not answered yet), stopped (the group had changed) and failed.
# TYPE windlass_launches_total counter
windlass_launches_total{call="LaunchInstances",result="begun"} 1
windlass_launches_total{call="LaunchInstances",result="none"} 1
windlass_launches_total{call="LaunchInstances",result="partial"} 1
windlass_launches_total{call="SetDesiredCapacity",result="done"} 1
windlass_launches_total{call="SetDesiredCapacity",result="failed"} 1
# HELP windlass_lifecycle_actions_total Calls about the lifecycle hooks that the scaler completes, by call (complete, heartbeat) and by result: done, already (it had been done before), early (the instance did not wait yet), busy (AWS was busy), stopped (the instance or its group had changed) and failed.
# TYPE windlass_lifecycle_actions_total counter
windlass_lifecycle_actions_total{call="complete",result="already"} 1
windlass_lifecycle_actions_total{call="complete",result="done"} 1
windlass_lifecycle_actions_total{call="complete",result="early"} 1
windlass_lifecycle_actions_total{call="heartbeat",result="busy"} 1
windlass_lifecycle_actions_total{call="heartbeat",result="done"} 1
# HELP windlass_nodes Nodes, by the reason of their verdict and by capacity type: spot, on-demand, or unknown where neither its group nor a label of it tells.
# TYPE windlass_nodes gauge
windlass_nodes{capacity_type="spot",reason="NoPlaceForPods"} 1
windlass_nodes{capacity_type="unknown",reason="NoPlaceForPods"} 1
windlass_nodes{capacity_type="unknown",reason="Unneeded"} 1
`
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), "windlass_cluster_faults", "windlass_group_backoff_failures",
		"windlass_group_faults", "windlass_group_nodes", "windlass_group_retained_instances", "windlass_groups", "windlass_launches_total", "windlass_lifecycle_actions_total", "windlass_nodes"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(m.registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, actions := map[string]float64{}, map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if n := metric.GetCounter().GetValue(); f.GetName() == "windlass_actions_total" && n > 0 {
				actions[metric.GetLabel()[0].GetValue()+" "+metric.GetLabel()[1].GetValue()] = n
			}
		}
		if h := f.GetMetric()[0].GetHistogram(); h != nil {
			counts[f.GetName()] = h.GetSampleSum()
		}
	}
	if diff := cmp.Diff(map[string]float64{
		"complete done": 2, "complete stopped": 1, "grow begun": 1, "grow done": 2, "grow failed": 2, "grow paused": 1,
		"heartbeat done": 1, "heartbeat paused": 1, "heartbeat stopped": 1,
	}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	for _, name := range []string{"windlass_pod_to_launch_seconds", "windlass_pod_unschedulable_to_launch_seconds", "windlass_drained_to_completed_seconds"} {
		if counts[name] < 1.9 || counts[name] > 2.1 {
			t.Errorf("%s: %v, want 2", name, counts[name])
		}
	}
}

// From drained to completed counts from when the node was drained and its instance was in the
// lifecycle transition, and not where it comes into service; a drain without an agent counts
// too.
func TestDrainedToCompleted(t *testing.T) {
	start := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	drained := map[string]string{contract.AnnotationDrainReport: contract.Report{Phase: contract.PhaseDrained}.String()}
	node := func(name string, annotations map[string]string) fleet.Node {
		return fleet.Node{Name: name, ProviderID: "aws:///a/i-" + name, Annotations: annotations}
	}
	for _, tc := range []struct {
		name  string
		node  fleet.Node
		alone []action.Drain
		since time.Time // of the way, at which it was completed two hours after the start
		want  time.Duration
	}{
		{"by its agent", node("n", drained), nil, start.Add(-time.Hour), 2 * time.Hour},
		{"long before, for the warm pool", node("n", drained), nil, start.Add(2*time.Hour - time.Second), time.Second},
		{"into service", node("n", drained), nil, time.Time{}, 0},
		{"by the scaler alone", node("n", nil), []action.Drain{{Node: action.NodeRef{Name: "n"}, Phase: contract.PhaseDrained}}, start.Add(-time.Hour), 2 * time.Hour},
		{"not at all", node("n", nil), []action.Drain{{Node: action.NodeRef{Name: "n"}, Phase: contract.PhaseBlocked}}, start.Add(-time.Hour), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMetrics()
			done := act.Result{Action: action.Complete{Instance: "i-n", Since: tc.since}, Outcome: act.Done, Ended: start.Add(2 * time.Hour)}
			m.record(evaluation{snapshot: fleet.Snapshot{Now: start, Nodes: []fleet.Node{tc.node}}, plan: plan.Plan{Drains: tc.alone}, results: []act.Result{done}})
			families, err := m.registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if h := f.GetMetric()[0].GetHistogram(); f.GetName() == "windlass_drained_to_completed_seconds" && h.GetSampleSum() != tc.want.Seconds() {
					t.Errorf("%v s, want %s", h.GetSampleSum(), tc.want)
				}
			}
		})
	}
}

// A pod that waited for a node counts when it is first seen Ready, once, by what kube-scheduler
// said of it; one that is deleted before, or that became Ready while another replica led, does not.
func TestUnschedulableToReady(t *testing.T) {
	start := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	pending := func(uid types.UID) *fleet.Pod {
		return &fleet.Pod{UID: uid, Scheduling: fleet.Unschedulable, Judged: fleet.SecondOf(start)}
	}
	m := newMetrics()
	see := func(after time.Duration, pods ...*fleet.Pod) {
		m.record(evaluation{snapshot: fleet.Snapshot{Now: start.Add(after), Pods: pods}})
	}
	see(time.Second, pending("a"), pending("b"), pending("c"), &fleet.Pod{UID: "d", Node: "n", Ready: true})
	see(40*time.Second, &fleet.Pod{UID: "a", Node: "n"}, &fleet.Pod{UID: "b", Node: "n", Deleted: fleet.SecondOf(start)}, pending("c"))
	for range 2 {
		see(60*time.Second, &fleet.Pod{UID: "a", Node: "n", Ready: true}, &fleet.Pod{UID: "b", Node: "n", Ready: true}, pending("c"))
	}
	m.begin()
	see(time.Hour, &fleet.Pod{UID: "c", Node: "n", Ready: true})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); f.GetName() == "windlass_pod_unschedulable_to_ready_seconds" && (h.GetSampleCount() != 1 || h.GetSampleSum() != 60) {
			t.Errorf("%d pods took %v s, want 1 that took 60", h.GetSampleCount(), h.GetSampleSum())
		}
	}
	if len(m.unready) > 0 {
		t.Errorf("%d pods are remembered", len(m.unready))
	}
}

// A node that is launched before kube-scheduler has judged its pod counts, too: nothing was waited
// for. So does the time from then on that it was seen.
func TestLaunchBeforeUnschedulable(t *testing.T) {
	start := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	m := newMetrics()
	grow := action.Grow{Group: "web", From: 0, To: 1, For: []action.PodRef{{UID: "p"}}}
	done := act.Result{Action: grow, Outcome: act.Done, Ended: start.Add(2 * time.Second), Took: time.Second}
	m.record(evaluation{snapshot: fleet.Snapshot{Now: start, Pods: []*fleet.Pod{{UID: "p"}, {UID: "gated", Scheduling: fleet.Gated}}}, results: []act.Result{done}})
	if len(m.waiting) != 1 {
		t.Errorf("%d pods are pending, want 1", len(m.waiting))
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		want, is := map[string]float64{"windlass_pod_to_launch_seconds": 2, "windlass_pod_unschedulable_to_launch_seconds": 0}[f.GetName()]
		if h := f.GetMetric()[0].GetHistogram(); is && (h.GetSampleCount() != 1 || h.GetSampleSum() != want) {
			t.Errorf("%s: %d of %v s, want 1 of %v", f.GetName(), h.GetSampleCount(), h.GetSampleSum(), want)
		}
	}
}

// What the judge of the kept evaluation finds is counted and logged; where it finds nothing, neither.
func TestJudgeIsHeard(t *testing.T) {
	var log bytes.Buffer
	sc := newScaler(settings{}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		found string
		times float64
		said  int
	}{{"", 0, 0}, {"node n-1 otherwise", 1, 1}, {"", 1, 1}} {
		sc.judge(c.found)
		count := series(t, sc.metrics, "windlass_kept_evaluation_differs_total")[""]
		if said := strings.Count(log.String(), "node n-1 otherwise"); count != c.times || said != c.said {
			t.Errorf("after %q: counted %v times and said %d times, want %v and %d", c.found, count, said, c.times, c.said)
		}
	}
}

// A node that is no more counts no more, also where a verdict still names it.
func TestMetricsOfANodeThatWent(t *testing.T) {
	m := newMetrics()
	snapshot := fleet.Snapshot{
		Groups: []fleet.Group{{Name: "web", Max: 5, Desired: 1, Instances: []fleet.Instance{{ID: "i-1", State: fleet.InService}}}},
		Nodes:  []fleet.Node{{Name: "n1", ProviderID: "aws:///a/i-1", Ready: true}},
	}
	p := plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfNode, Name: "n1", Reason: verdict.NodeNeeded}}}
	for want := 1; want >= 0; want-- {
		m.record(evaluation{snapshot: snapshot, plan: p})
		ready, nodes := series(t, m, "windlass_group_nodes")["/ready/web"], total(series(t, m, "windlass_nodes"))
		if int(ready) != want || int(nodes) != want {
			t.Errorf("%v instances are Ready, %v nodes are there, want %d", ready, nodes, want)
		}
		snapshot.Nodes = nil
	}
}
