package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestLearnedTemplatesRefuseNothing: whatever single nodes of a group are like, a pod that its
// definition takes and that one of its youngest nodes would take, were it empty, gets a node
// there. The judge asks the definition and each node; it knows nothing of what is learned.
func TestLearnedTemplatesRefuseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		x.line("group web max=20 template=lt-1:7 type=g4dn.xlarge", x.one("tags", "", "labels=tier=hot", "labels=tier=hot,disk=ssd"), x.rarely("taints=dedicated=x:NoSchedule"), x.rarely("mixed"))
		nodes := x.number("nodes", 1, 3)
		for n := range nodes {
			x.line(fmt.Sprintf("node n%d group=web", n), x.one("age", "age=30s", "age=10m", "age=1h"), x.rarely("cpu=500m"), x.rarely("cpu=8"), x.rarely("mem=3Gi"), x.rarely("mem=60Gi"),
				x.rarely("gpu=0"), x.rarely("unlabel=tier"), x.one("label", "", "", "labels=tier=cold", "labels=disk=ssd", "labels=disk=hdd"), x.one("taint", "", "", "taints=dedicated=x:NoSchedule", "taints=maintenance=y:NoSchedule"))
			x.line(fmt.Sprintf("pod full-%d on=n%d cpu=%s", n, n, "8")) // nothing more fits
		}
		x.line("pod app waiting", x.one("cpu", "cpu=200m", "cpu=1800m", "cpu=3800m"), x.one("mem", "", "mem=2Gi", "mem=12Gi"), x.rarely("gpu=1"),
			x.one("selector", "", "selector=tier=hot", "selector=disk=ssd"), x.one("tolerates", "", "tolerates=dedicated", "tolerates=*"))
		w := parsed(t, strings.Join(x.lines, "\n"))

		cluster := clusterOf(w.Snapshot)
		pod := w.Pods[len(w.Pods)-1]
		class := cluster.Tenant(pod).Class
		if !cluster.Takes(class, []*fit.NodeTemplate{cluster.TemplateOf(&w.Groups[0].NodeTemplates[0])}) {
			return
		}
		taken := ""
		for i := range w.Nodes {
			if cluster.Takes(class, []*fit.NodeTemplate{cluster.TemplateFrom(&w.Nodes[i], nothing)}) {
				taken = w.Nodes[i].Name
			}
		}
		if taken == "" {
			return
		}
		got := plan.Decide(w.Snapshot, policy.DefaultPolicy())
		for _, v := range got.Verdicts {
			if v.UID == string(pod.UID) && v.Reason == verdict.PodNoGroupFits {
				t.Fatalf("the definition and %s would take it: %s\n%s", taken, v.Message(), scenario.Format(w.Snapshot))
			}
		}
	})
}
