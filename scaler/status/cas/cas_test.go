package cas_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
	"windlass.dev/windlass/scaler/status/cas"
)

// TestStatuses plays the files of testdata; -rewrite writes down what comes out. Their
// commands:
//
//	world        a world, in the lines of pkg/scenario
//	change       further lines
//	advance 5m   lets time pass
//	status       decides, and prints the status
//	brief        decides, and prints the same in a line for the cluster and each group
func TestStatuses(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w, last := scenario.NewWorld(), cas.Status{}
		policy := policy.DefaultPolicy()
		policy.TerminationHooks = nil
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world", "change":
				if err := w.Apply(d.Input); err != nil {
					d.Fatalf(t, "%v", err)
				}
			case "advance":
				step, err := time.ParseDuration(d.CmdArgs[0].Key)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				w.Advance(step)
			case "status", "brief":
				p := plan.Decide(w.Snapshot, policy)
				w.State, last = p.State, cas.Of(w.Snapshot, p, policy, last)
				if d.Cmd == "brief" {
					return brief(last)
				}
				text, err := last.Encode()
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return text
			default:
				d.Fatalf(t, "unknown command")
			}
			return ""
		})
	})
}

// brief is a status in few lines, with since when each condition is so.
func brief(s cas.Status) string {
	var b strings.Builder
	since := func(c cas.Condition) string {
		return c.Status + " since " + c.LastTransitionTime.UTC().Format(time.TimeOnly)
	}
	w := s.ClusterWide
	fmt.Fprintf(&b, "cluster: %s; %s; %s, candidates %d\n", since(w.Health.Condition), since(w.ScaleUp), since(w.ScaleDown.Condition), w.ScaleDown.Candidates)
	fmt.Fprintf(&b, "  %s\n", counted(w.Health.NodeCounts))
	for _, g := range s.NodeGroups {
		fmt.Fprintf(&b, "%s: %s; %s; %s, candidates %d\n", g.Name, since(g.Health.Condition), since(g.ScaleUp.Condition), since(g.ScaleDown.Condition), g.ScaleDown.Candidates)
		fmt.Fprintf(&b, "  %s; %d of %d to %d\n", counted(g.Health.NodeCounts), g.Health.CloudProviderTarget, g.Health.MinSize, g.Health.MaxSize)
		if info := g.ScaleUp.BackoffInfo; info.ErrorCode != "" {
			fmt.Fprintf(&b, "  %s: %s\n", info.ErrorCode, info.ErrorMessage)
		}
	}
	return b.String()
}

func counted(n cas.NodeCounts) string {
	r := n.Registered
	return fmt.Sprintf("%d nodes: ready %d, not started %d, suspended %d, unready %d, being deleted %d; unregistered %d, for long %d",
		r.Total, r.Ready, r.NotStarted, r.Suspended, r.Unready.Total, r.BeingDeleted, n.Unregistered, n.LongUnregistered)
}

// fields are what Cluster Autoscaler calls the fields of its status, as of 1.36. Programs
// that read it know them by these names.
// https://github.com/kubernetes-sigs/cluster-autoscaler/blob/main/pkg/clusterstate/api/types.go
func fields() []string {
	counts := []string{
		"registered.total", "registered.ready", "registered.notStarted", "registered.suspended", "registered.beingDeleted",
		"registered.unready.total", "registered.unready.resourceUnready", "longUnregistered", "unregistered",
	}
	list := []string{"time", "autoscalerStatus", "message"}
	for _, whole := range []string{"clusterWide", "nodeGroups"} {
		for _, part := range []string{"health", "scaleUp", "scaleDown"} {
			for _, field := range []string{"status", "lastProbeTime", "lastTransitionTime"} {
				list = append(list, whole+"."+part+"."+field)
			}
		}
		for _, field := range counts {
			list = append(list, whole+".health.nodeCounts."+field)
		}
		list = append(list, whole+".scaleDown.candidates")
	}
	for _, field := range []string{"name", "health.cloudProviderTarget", "health.minSize", "health.maxSize", "scaleUp.backoffInfo.errorCode", "scaleUp.backoffInfo.errorMessage"} {
		list = append(list, "nodeGroups."+field)
	}
	slices.Sort(list)
	return list
}

// Every field has Cluster Autoscaler's name, and none is missing.
func TestFields(t *testing.T) {
	counts := cas.NodeCounts{Registered: cas.Registered{BeingDeleted: 1}}
	full := cas.Status{Time: "t", AutoscalerStatus: cas.Running, Message: "m"}
	full.ClusterWide = cas.ClusterWide{
		Health:  cas.ClusterHealth{Condition: cas.Condition{Status: "s"}, NodeCounts: counts},
		ScaleUp: cas.Condition{Status: "s"}, ScaleDown: cas.ScaleDown{Condition: cas.Condition{Status: "s"}, Candidates: 1},
	}
	full.NodeGroups = []cas.NodeGroup{{
		Name:    "n",
		Health:  cas.GroupHealth{Condition: cas.Condition{Status: "s"}, NodeCounts: counts},
		ScaleUp: cas.ScaleUp{Condition: cas.Condition{Status: "s"}, BackoffInfo: cas.BackoffInfo{ErrorCode: "c", ErrorMessage: "m"}}, ScaleDown: cas.ScaleDown{Condition: cas.Condition{Status: "s"}, Candidates: 1},
	}}
	text, err := full.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	paths(read, "", got)
	if diff := cmp.Diff(fields(), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// paths are those of all leaves below.
func paths(value any, path string, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			paths(below, strings.TrimPrefix(path+"."+key, "."), into)
		}
	case []any:
		for _, below := range v {
			paths(below, path, into)
		}
	default:
		into[path] = true
	}
}

// What was written can be read, by us and with what a later version may add.
func TestParse(t *testing.T) {
	at := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	want := cas.Status{AutoscalerStatus: cas.Running, NodeGroups: []cas.NodeGroup{{Name: "web"}}}.Probed(at)
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := cas.Parse(text + "future: {thing: 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := got.Encode(); again != text {
		t.Errorf("(-want +got):\n%s", cmp.Diff(text, again))
	}
	if _, err := cas.Parse("{"); err == nil {
		t.Error("half a line was read")
	}
}

// Recording that something is still so changes no other copy's time.
func TestProbedIsACopy(t *testing.T) {
	one := cas.Status{NodeGroups: []cas.NodeGroup{{Name: "web"}}}
	_ = one.Probed(time.Unix(1, 0))
	if !one.NodeGroups[0].Health.LastProbeTime.IsZero() {
		t.Error("the status itself was changed")
	}
}

// However many groups there are, and whatever AWS answers, the status has room in its
// ConfigMap, which holds 1 MiB.
func TestStatusHasBounds(t *testing.T) {
	now := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	s := fleet.Snapshot{Now: now}
	p := plan.Plan{State: fleet.State{BackOffs: map[string]fleet.BackOff{}}}
	for i := range 3000 {
		name := fmt.Sprintf("%04d-%s", i, strings.Repeat("n", 250))
		s.Groups = append(s.Groups, fleet.Group{Name: name, Failures: []fleet.Failure{{Cause: "X", Text: strings.Repeat("ä", 2000)}}})
		p.State.BackOffs[fleet.BackOffKey(name, "", "X")] = fleet.BackOff{Until: now.Add(time.Hour), Cause: "X"}
		p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfGroup, Name: name, Reason: verdict.GroupBackOff})
	}
	text, err := cas.Of(s, p, policy.DefaultPolicy(), cas.Status{}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1<<20 || !strings.Contains(text, "0000-nnn") || !strings.Contains(text, "message: 2500 more groups") {
		t.Errorf("%d bytes:\n%.300s", len(text), text)
	}
}
