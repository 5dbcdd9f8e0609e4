package uninstall

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/docs/section"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// contractKeys are the keys that the contract's source spells with its prefix.
func contractKeys(t *testing.T) (keys []string) {
	files, err := filepath.Glob("../../pkg/contract/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sum, is := n.(*ast.BinaryExpr)
			if !is || sum.Op != token.ADD {
				return true
			}
			prefix, named := sum.X.(*ast.Ident)
			text, literal := sum.Y.(*ast.BasicLit)
			if named && literal && prefix.Name == "Prefix" {
				keys = append(keys, contract.Prefix+constant.StringVal(constant.MakeFromLiteral(text.Value, text.Kind, 0)))
			}
			return true
		})
	}
	return keys
}

// No key of the contract stays on a Node, whatever it is there, but people's hold. Those of others
// stay, but for what bears Windlass's mark.
func TestNoKeyIsForgotten(t *testing.T) {
	keys := contractKeys(t)
	if len(keys) < 25 {
		t.Fatalf("only %d keys of the contract were found: %q", len(keys), keys)
	}
	n := fleet.Node{
		Name: "n", Unschedulable: true,
		Labels:      map[string]string{"role": "web", contract.LabelExcludeFromLoadBalancers: "true"},
		Annotations: map[string]string{"theirs": "1", contract.AnnotationScaleDownDisabled: "true"},
		Taints: []corev1.Taint{
			{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}, contract.KubeProxyTaint(), contract.OutOfServiceTaint(),
			{Key: contract.TaintDeletionCandidate, Effect: corev1.TaintEffectPreferNoSchedule},
		},
	}
	for _, key := range keys {
		n.Annotations[key], n.Labels[key] = "x", "x"
		n.Taints = append(n.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	got, what := Cleaned(n)
	want := fleet.Node{
		Name: "n", Labels: map[string]string{"role": "web", contract.AnnotationHold: "x"},
		Annotations: map[string]string{"theirs": "1", contract.AnnotationScaleDownDisabled: "true", contract.AnnotationHold: "x"},
		Taints: []corev1.Taint{
			{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}, {Key: contract.TaintDeletionCandidate, Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: contract.AnnotationHold, Effect: corev1.TaintEffectNoSchedule},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(what, " "), "cordon") {
		t.Errorf("taken off: %s", what)
	}
	if _, what := Cleaned(got); len(what) > 0 {
		t.Errorf("cleaned again: %s", what)
	}
}

// What bears no mark of Windlass is somebody's.
func TestSomebodysStays(t *testing.T) {
	n := fleet.Node{
		Name: "n", Unschedulable: true, Labels: map[string]string{contract.LabelExcludeFromLoadBalancers: "true"},
		Taints: []corev1.Taint{contract.OutOfServiceTaint(), {Key: contract.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule}},
	}
	if got, what := Cleaned(n); len(what) > 0 || !got.Unschedulable || len(got.Taints) != 2 {
		t.Errorf("taken off: %s", what)
	}
}

// world has each thing once.
func world() World {
	node := func(name string, change func(*fleet.Node)) fleet.Node {
		n := fleet.Node{Name: name, ProviderID: "aws:///eu-west-1a/i-" + name, Annotations: map[string]string{}, Labels: map[string]string{}}
		change(&n)
		return n
	}
	report := func(n *fleet.Node, kind contract.Kind, phase contract.Phase, message string) {
		n.Annotations[contract.AnnotationDrainReport] = contract.Report{Kind: kind, Phase: phase, Message: message}.String()
		n.Taints = append(n.Taints, contract.DrainingTaint(kind))
	}
	in := func(name, state string) fleet.Instance { return fleet.Instance{ID: "i-" + name, State: state} }
	hook := fleet.Hook{Name: "windlass", Transition: fleet.OnTerminate}
	return World{
		Now: now, Namespace: "windlass-system", Cluster: "ours",
		Programs: []Program{
			{App: contract.AppScaler, Kind: kindDeployment, Name: "windlass-scaler", Wanted: 2, Pods: 2},
			{App: contract.AppAgent, Kind: kindDaemonSet, Name: "windlass-agent", Wanted: 1, Pods: 5},
		},
		Leader: "windlass-scaler-1",
		Agents: map[string]bool{"asked": true, "spot": true, "held": true, "drained": true, "idle": true, "permit": true},
		Nodes: []fleet.Node{
			node("idle", func(n *fleet.Node) { n.Taints = []corev1.Taint{contract.UnneededTaint(now)} }),
			node("asked", func(n *fleet.Node) {
				n.Annotations[contract.AnnotationDrainRequest] = `{"id":"r","by":"ann","reason":"upgrade"}`
				report(n, contract.KindRequest, contract.PhaseBlocked, "")
			}),
			node("silent", func(n *fleet.Node) { // no agent
				n.Annotations[contract.AnnotationDrainRequest] = "upgrade"
			}),
			node("spot", func(n *fleet.Node) { report(n, contract.KindSpot, contract.PhaseDraining, "2 pods are left") }),
			node("permit", func(n *fleet.Node) {
				n.Annotations[contract.AnnotationDrainReport] = contract.Report{Kind: contract.KindRebalance, Phase: contract.PhaseWaiting, Wants: "x"}.String()
			}),
			node("held", func(n *fleet.Node) { report(n, contract.KindASG, contract.PhaseDraining, "1 pod is left") }),
			node("drained", func(n *fleet.Node) { report(n, contract.KindASG, contract.PhaseDrained, "") }),
			node("marked", func(n *fleet.Node) { n.Annotations[contract.AnnotationTerminating] = "scale-down:i-marked:1" }),
			node("back", func(n *fleet.Node) { n.Annotations[contract.AnnotationTerminating] = "scale-down:i-back:1" }),
			node("people", func(n *fleet.Node) { n.Unschedulable = true; n.Annotations[contract.AnnotationHold] = "true" }),
		},
		Groups: []fleet.Group{
			{Name: "web", Owner: "ours", Suspended: []string{rebalance}, Hooks: []fleet.Hook{hook}, Instances: []fleet.Instance{
				in("idle", fleet.InService), in("asked", fleet.InService), in("held", fleet.TerminatingWait), in("drained", fleet.TerminatingWait), in("gone", fleet.TerminatingWait), in("back", fleet.InService),
			}},
			{Name: "batch", Suspended: []string{rebalance}},
			{Name: "theirs", Owner: "another", Suspended: []string{rebalance}, Hooks: []fleet.Hook{hook}, Instances: []fleet.Instance{in("x", fleet.TerminatingWait)}},
		},
		Suspending: map[string]time.Time{"web": {}, "theirs": {}},
		Objects:    []Object{{Kind: kindConfigMap, Name: contract.ConfigMapState}, {Kind: kindLease, Name: contract.LeaseScaler}, {Kind: kindConfigMap, Name: contract.ConfigMapStatus}},
	}
}

func TestSteps(t *testing.T) {
	o := Options{Hooks: true, TerminationHooks: []string{"windlass"}}
	var got, commands []string
	for _, s := range Steps(world(), o) {
		got, commands = append(got, s.String()), append(commands, s.Command())
	}
	for _, c := range commands {
		if !regexp.MustCompile(`^(kubectl|aws|find) \S`).MatchString(c) {
			t.Errorf("no command: %s", c)
		}
	}
	o.Hooks = false
	var stays []string
	for _, l := range Stays(world(), o) {
		stays = append(stays, l.What+": "+l.Command)
	}
	section.HoldFile(t, "testdata/steps.txt", strings.Join(got, "\n")+"\n\nstays:\n"+strings.Join(stays, "\n")+"\n")
}

// Of a launch hook, an instance goes on into service before the hook is deleted, which would
// abandon it.
func TestLaunchHook(t *testing.T) {
	w := World{Now: now, Groups: []fleet.Group{{Name: "web", Hooks: []fleet.Hook{{Name: "boot", Transition: fleet.OnLaunch}, {Name: "other", Transition: fleet.OnLaunch}}, Instances: []fleet.Instance{{ID: "i-1", State: fleet.PendingWait}}}}}
	var got []string
	for _, s := range Steps(w, Options{Hooks: true, LaunchHooks: []string{"boot"}}) {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{"complete hook boot of group web for i-1", "delete hook boot of group web"}, got); diff != "" {
		t.Error(diff)
	}
}

// A group that was not read, as where the flags name fewer, is not forgotten: the state that names it
// stays.
func TestGroupsThatWereNotRead(t *testing.T) {
	w := World{
		Now: now, Namespace: "ns", Cluster: "ours",
		Groups:     []fleet.Group{{Name: "theirs", Owner: "another"}, {Name: "web"}},
		Suspending: map[string]time.Time{"batch": {}, "theirs": {}, "web": {}},
		Objects:    []Object{{Kind: kindConfigMap, Name: contract.ConfigMapState}, {Kind: kindConfigMap, Name: contract.ConfigMapStatus}},
	}
	var got []string
	for _, s := range Steps(w, Options{}) {
		got = append(got, s.String())
	}
	for _, l := range Stays(w, Options{}) {
		got = append(got, l.What)
	}
	if diff := cmp.Diff([]string{"delete ConfigMap windlass-status", "AZRebalance of group batch, which was not read, is suspended by Windlass, and ConfigMap windlass-state says so"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCleanCommand(t *testing.T) {
	s := Step{Do: Clean, Kind: kindNode, Name: "n", Keys: []string{"cordon", "taint t", "label l", "annotation a", "annotation b"}}
	want := "kubectl taint node n t- && kubectl label node n l- && kubectl annotate node n a- b- && kubectl uncordon n"
	if got := s.Command(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
