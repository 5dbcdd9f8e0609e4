package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Preview is what a drain of a node would do.
type Preview struct {
	Node string `json:"node"`
	// Pods are those that leave, are waited for or block; others hinder no drain.
	Pods []PreviewPod `json:"pods"`
}

// PreviewPod is what becomes of a pod.
type PreviewPod struct {
	Pod     string            `json:"pod"`
	Outcome drainable.Outcome `json:"outcome"`
	Rule    drainable.Rule    `json:"rule"`
	Why     string            `json:"why,omitempty"`
	Budget  string            `json:"budget,omitempty"`
}

// Judge says what a drain that was asked for does with pods, by the rules that agents act by.
type Judge struct{ question drainable.Question }

// NewJudge knows the budgets of the cluster. The flags of agents, of which one lets them evict pods of all
// DaemonSets, are not known here.
func NewJudge(now time.Time, budgets []policyv1.PodDisruptionBudget) Judge {
	list := make([]fleet.Budget, 0, len(budgets))
	for i := range budgets {
		list = append(list, fleet.BudgetFrom(&budgets[i]))
	}
	return Judge{drainable.Question{Now: now, Budgets: drainable.NewBudgets(list)}}
}

// Of is what becomes of one pod.
func (j Judge) Of(pod *corev1.Pod) PreviewPod {
	p := fleet.PodFrom(pod)
	j.question.Pod, j.question.Policy = &p, drainable.DefaultManner().Rules(&p, false, false)
	v := j.question.Judge()
	return PreviewPod{Pod: p.Key(), Outcome: v.Outcome, Rule: v.Rule, Why: v.Reason, Budget: v.Budget}
}

// order is how pods of a preview are listed: what people have to act on comes first.
var order = []drainable.Outcome{drainable.Block, drainable.Wait, drainable.Leave}

// NewPreview leaves out what hinders no drain.
func NewPreview(node string, pods []PreviewPod) Preview {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p PreviewPod) bool { return p.Outcome == drainable.Skip })
	slices.SortFunc(pods, func(a, b PreviewPod) int {
		return cmp.Or(slices.Index(order, a.Outcome)-slices.Index(order, b.Outcome), cmp.Compare(a.Pod, b.Pod))
	})
	return Preview{node, pods}
}

// Previews are those of several nodes.
type Previews struct {
	Nodes []Preview `json:"nodes"`
}

// Names are the nodes.
func (p Previews) Names() []string {
	var names []string
	for _, n := range p.Nodes {
		names = append(names, ref(KindNode, n.Node))
	}
	return names
}
