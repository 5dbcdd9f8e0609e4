package upstream

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// question is a pod with what plugins prepared for it, which holds for every node
// until something changes.
type question struct {
	pod     *corev1.Pod
	state   fwk.CycleState
	filters []filter
	answers map[*Host][]Refusal
	// patience is what one search may take.
	patience int
}

// filter is a plugin that has refused the pod or wants to see each node.
type filter struct {
	fwk.FilterPlugin
	// refusal holds for every node; nil where the plugin did not refuse.
	refusal *Refusal
	// only names the nodes that come into question; nil for all.
	only sets.Set[string]
}

func newQuestion(pod *corev1.Pod, plugins []fwk.FilterPlugin, nodes ...fwk.NodeInfo) *question {
	q := &question{pod: pod, state: framework.NewCycleState(), patience: mostPatience}
	for _, plugin := range plugins {
		q.prepare(plugin, nodes)
	}
	return q
}

func (q *question) prepare(plugin fwk.FilterPlugin, nodes []fwk.NodeInfo) {
	preparing, ok := plugin.(fwk.PreFilterPlugin)
	if !ok {
		q.filters = append(q.filters, filter{FilterPlugin: plugin})
		return
	}
	result, status := preparing.PreFilter(silent, q.state, q.pod, nodes)
	switch {
	case status.IsSkip():
	case !status.IsSuccess():
		refusal := refusalOf(plugin.Name(), status)
		q.filters = append(q.filters, filter{FilterPlugin: plugin, refusal: &refusal})
	case result.AllNodes():
		q.filters = append(q.filters, filter{FilterPlugin: plugin})
	default:
		q.filters = append(q.filters, filter{FilterPlugin: plugin, only: result.NodeNames})
	}
}

// answer lists what all plugins have against a node.
func (q *question) answer(node fwk.NodeInfo) []Refusal {
	var refusals []Refusal
	for _, f := range q.filters {
		if refusal := f.ask(q, node); refusal != nil {
			refusals = append(refusals, *refusal)
		}
	}
	return refusals
}

func (f filter) ask(q *question, node fwk.NodeInfo) *Refusal {
	if f.refusal != nil {
		return f.refusal
	}
	if f.only != nil && !f.only.Has(node.Node().Name) {
		return &Refusal{Plugin: f.Name(), Reasons: []string{"the pod asks for other nodes by name"}, Unresolvable: true}
	}
	search := &limited{left: q.patience}
	status := f.Filter(search, q.state, q.pod, node)
	if status.IsSuccess() {
		return nil
	}
	refusal := refusalOf(f.Name(), status)
	if search.left < 0 {
		refusal.Steps = int64(q.patience) * stepsOfSearch
	}
	return &refusal
}

// on is the answer for a host, asked once.
func (q *question) on(h *Host) []Refusal {
	if known, ok := q.answers[h]; ok {
		return known
	}
	refusals := q.answer(h.nodeInfo())
	if q.answers == nil {
		q.answers = map[*Host][]Refusal{}
	}
	q.answers[h] = refusals
	return refusals
}
