package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// What becomes of a pod is what agents make of it, and a preview begins with what people have to
// act on.
func TestPreview(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", Controller: new(true)}}}}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		change(p)
		return p
	}
	j := NewJudge(noon, []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}}}})
	var pods []PreviewPod
	for _, p := range []*corev1.Pod{
		pod("plain", func(*corev1.Pod) {}),
		pod("daemon", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }),
		pod("budget", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "api"} }),
		pod("slow", func(p *corev1.Pod) {
			p.Annotations = map[string]string{contract.AnnotationSafeToEvict: string(contract.SafeOnCompletion)}
		}),
		pod("kept", func(p *corev1.Pod) {
			p.Annotations = map[string]string{contract.AnnotationSafeToEvict: string(contract.SafeNo)}
		}),
	} {
		pods = append(pods, j.Of(p))
	}
	var got []string
	for _, p := range NewPreview("n", pods).Pods {
		got = append(got, strings.TrimSpace(fmt.Sprintln(p.Pod, p.Outcome, p.Rule, p.Budget)))
	}
	want := []string{"shop/budget Block NotEnoughPdb shop/api", "shop/kept Block NotSafeToEvictAnnotation", "shop/slow Wait OnCompletion", "shop/plain Leave Ordinary"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A drain is waited for by the report that answers its own request.
func TestProgress(t *testing.T) {
	request := contract.Request{ID: "request:up", Kind: contract.KindRequest}.String()
	node := func(request string, r *contract.Report) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}}}
		if request != "" {
			n.Annotations[contract.AnnotationDrainRequest] = request
		}
		if r != nil {
			n.Annotations[contract.AnnotationDrainReport] = r.String()
		}
		return n
	}
	ours, others := []string{"request:up"}, []string{"asg-terminate:i-1"}
	for _, c := range []struct {
		what   string
		node   *corev1.Node
		phase  contract.Phase
		ended  bool
		failed string

		uncounted bool
	}{
		{"no answer yet", node(request, nil), Unanswered, false, "", true},
		{"an answer to something else", node(request, &contract.Report{Answers: others, Phase: contract.PhaseDrained}), Unanswered, false, "", true},
		{"blocked", node(request, &contract.Report{Answers: ours, Phase: contract.PhaseBlocked, Left: 2, BlockedBy: []string{"shop/api"}}), contract.PhaseBlocked, false, "", false},
		{"begun, and the pods are not counted", node(request, &contract.Report{Answers: ours, Phase: contract.PhaseDraining}), contract.PhaseDraining, false, "", true},
		{"emptied, and its volumes are waited for", node(request, &contract.Report{Answers: ours, Phase: contract.PhaseDraining, Emptied: contract.At(noon)}), contract.PhaseDraining, false, "", false},
		{"drained", node(request, &contract.Report{Answers: ours, Phase: contract.PhaseDrained}), contract.PhaseDrained, true, "", false},
		{"failed", node(request, &contract.Report{Answers: ours, Phase: contract.PhaseFailed, Message: "why"}), contract.PhaseFailed, true, "why", false},
		{"taken off", node("", nil), Unanswered, true, "the request was removed", true},
		{"another request", node(contract.Request{ID: "request:else"}.String(), nil), Unanswered, true, "the request was removed", true},
		{"gone", nil, Gone, true, "", true},
	} {
		p := ProgressOf("a", "request:up", c.node)
		if p.Phase != c.phase || p.Ended != c.ended || p.Failed != c.failed || p.Uncounted != c.uncounted || p.Node != "a" {
			t.Errorf("%s: %+v", c.what, p)
		}
	}
}

// The parts of the cost add up to it, whatever the nodes are, and no view of any world panics.
func TestViewsOfRandomWorlds(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "b", "web", "shop/api", "\x1b[2J\n"})
	reason := rapid.Custom(func(t *rapid.T) statuspage.Verdict {
		v := statuspage.Verdict{Reason: statuspage.Reason(rapid.SampledFrom([]string{"Needed", "BlockedByPod", "NeededAsHeadroom", "Newer"}).Draw(t, "reason"))}
		for range rapid.IntRange(0, 2).Draw(t, "details") {
			v.Details = append(v.Details, statuspage.Detail{Text: text.Draw(t, "text"), Params: map[string]any{"group": text.Draw(t, "group"), "budgets": []any{text.Draw(t, "budget"), 1}, "until": 7, "pod": nil}})
		}
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		w := World{Now: noon}
		for range rapid.IntRange(0, 6).Draw(t, "nodes") {
			name := text.Draw(t, "name")
			w.Verdicts.Nodes = append(w.Verdicts.Nodes, statuspage.Node{Name: name, Group: text.Draw(t, "group"), PricePerHour: rapid.Float64Range(0, 5).Draw(t, "price"), OnDemandPerHour: rapid.Float64Range(0, 5).Draw(t, "on demand"), SpotReported: rapid.Bool().Draw(t, "reported"), Spot: rapid.Bool().Draw(t, "spot"), Both: rapid.Bool().Draw(t, "both"), Verdict: reason.Draw(t, "verdict")})
			w.Nodes = append(w.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{contract.AnnotationDrainRequest: text.Draw(t, "request"), contract.AnnotationDrainReport: text.Draw(t, "report"), contract.AnnotationNotices: text.Draw(t, "notices")}}})
			w.Verdicts.Groups = append(w.Verdicts.Groups, statuspage.Group{Name: text.Draw(t, "group"), Verdict: reason.Draw(t, "verdict")})
			w.Verdicts.Pods = append(w.Verdicts.Pods, statuspage.Pods{Count: 1, Names: []string{text.Draw(t, "pod")}[:rapid.IntRange(0, 1).Draw(t, "names")], Verdict: reason.Draw(t, "verdict")})
			w.Pods = append(w.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: text.Draw(t, "pod")}, Spec: corev1.PodSpec{NodeName: text.Draw(t, "on")}})
			w.Events = append(w.Events, corev1.Event{Reason: text.Draw(t, "event"), ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{contract.AnnotationEventFacts: rapid.SampledFrom([]string{"", "{}", `{"pods":5}`, "["}).Draw(t, "facts")}}})
		}
		w.Verdicts.Prices.SpotFactor = rapid.SampledFrom([]float64{0, 0.4}).Draw(t, "factor")
		NewStatus(w)
		NewStory(w, time.Time{}, true)
		for _, name := range []string{"a", "web", "d/a", "shop/api", "group/web", "node/b"} {
			candidates, err := Parse(name, "d")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range candidates {
				if w.Exists(s) {
					NewWhy(w, s)
				}
			}
		}
		c := NewCost(w, Rates{})
		for what, parts := range map[string][]CostOf{"groups": c.Groups, "capacity types": c.Capacity, "reasons": c.Reasons} {
			sum, nodes := 0.0, 0
			for _, p := range parts {
				sum, nodes = sum+p.DollarsPerHour, nodes+p.Nodes
			}
			if d := sum - c.DollarsPerHour; d > 1e-4 || d < -1e-4 || nodes != c.Nodes {
				t.Fatalf("%s: %v $/h of %d nodes, in all %v of %d", what, sum, nodes, c.DollarsPerHour, c.Nodes)
			}
		}
	})
}
