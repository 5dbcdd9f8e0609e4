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
	answers map[*Host]answer
	// patience is what one search may take.
	patience int
}

// answer is what plugins have against a pod on a node, and what it cost to search there for devices,
// in steps of package fit beyond those of a usual search.
type answer struct {
	refusals []Refusal
	steps    int64
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

// answer is what all plugins have against a node.
func (q *question) answer(node fwk.NodeInfo) answer {
	var a answer
	for _, f := range q.filters {
		refusal, steps := f.ask(q, node)
		if refusal != nil {
			a.refusals = append(a.refusals, *refusal)
		}
		a.steps += steps
	}
	return a
}

func (f filter) ask(q *question, node fwk.NodeInfo) (refusal *Refusal, steps int64) {
	if f.refusal != nil {
		return f.refusal, 0
	}
	if f.only != nil && !f.only.Has(node.Node().Name) {
		return &Refusal{Plugin: f.Name(), Reasons: []string{"the pod asks for other nodes by name"}, Unresolvable: true}, 0
	}
	search := &limited{left: q.patience}
	if status := f.Filter(search, q.state, q.pod, node); !status.IsSuccess() {
		refused := refusalOf(f.Name(), status)
		refusal = &refused
	}
	return refusal, int64(max(0, q.patience-max(0, search.left)-usualSearch)) * stepsOfSearch
}

// on is the answer for a host, asked once.
func (q *question) on(h *Host) answer {
	if known, ok := q.answers[h]; ok {
		return known
	}
	a := q.answer(h.nodeInfo())
	if q.answers == nil {
		q.answers = map[*Host]answer{}
	}
	q.answers[h] = a
	return a
}
