package main

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
)

// drainMetrics are figures of drains, read off the Nodes: agents open no port.
type drainMetrics struct {
	nodes, left, deadline *gauges
	failures              *prometheus.CounterVec
	interruptions         *prometheus.CounterVec
	took                  *prometheus.HistogramVec

	// seen is what drains had come to at the last evaluation; nil before the first, which does
	// not know when they did.
	seen map[drainStep]bool
}

// drainStep is that a drain has become one of a kind, or has ended in a phase.
type drainStep struct {
	node  string
	since time.Time
	kind  string
	phase contract.Phase
}

func newDrainMetrics() *drainMetrics {
	m := &drainMetrics{
		nodes:    newGauges("draining_nodes", "Nodes with a drain, by kind and phase: Waiting, Draining, Blocked, Drained or Failed.", "kind", "phase"),
		left:     newGauges("drain_pods_left", "Pods that have still to leave nodes that drain, by kind.", "kind"),
		deadline: newGauges("drain_deadline_seconds", "Time to the earliest deadline of a drain that has not ended, by kind; below 0 once it has passed.", "kind"),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "windlass", Name: "drains_failed_total",
			Help: "Drains that were seen to fail: their deadline passed with pods left, by kind."}, []string{"kind"}),
		interruptions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "windlass", Name: "interruptions_total",
			Help: "Nodes that EC2 or Auto Scaling were seen to take away, or to say that they may, by kind: spot, asg, maintenance or rebalance."}, []string{"kind"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "windlass", Name: "drain_seconds",
			Help: "Time from the beginning of a drain until no pod was left that needs another place, by kind.", Buckets: seconds}, []string{"kind"}),
	}
	// From 0 on: of a series that begins at 1, Prometheus counts no increase.
	for _, kind := range contract.Kinds {
		m.failures.WithLabelValues(string(kind))
		m.took.WithLabelValues(string(kind))
		if isInterruption(&fleet.Node{}, string(kind)) {
			m.interruptions.WithLabelValues(string(kind))
		}
	}
	return m
}

// record shows what agents report of their drains, and what the plan has of those that the
// scaler carries on.
func (m *drainMetrics) record(s fleet.Snapshot, alone []action.Drain) {
	lone := map[string]action.Drain{}
	for _, d := range alone {
		lone[d.Node.Name] = d
	}
	pods := podsOn(s, lone)
	nodes, left, deadline := map[[2]string]int{}, map[string]int{}, map[string]time.Duration{}
	seen := map[drainStep]bool{}
	// comes reports whether a drain has come so far since the last evaluation.
	comes := func(s drainStep) bool {
		seen[s] = true
		return m.seen != nil && !m.seen[s]
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		text := n.Annotations[contract.AnnotationDrainReport]
		d, is := lone[n.Name]
		if text == "" && !is {
			continue
		}
		r, err := contract.ParseReport(text)
		if is {
			r.Phase, r.Left, err = d.Phase, pods[n.Name], nil
		}
		if err != nil {
			continue
		}
		kind := kindOf(n, r)
		nodes[[2]string{kind, string(r.Phase)}]++
		left[kind] += min(max(0, r.Left), mostLeft)
		if !r.Deadline.IsZero() && r.Phase != contract.PhaseDrained {
			until := r.Deadline.Sub(s.Now)
			if before, known := deadline[kind]; !known || until < before {
				deadline[kind] = until
			}
		}
		if comes(drainStep{node: n.Name, since: r.Since.Time, kind: kind}) && isInterruption(n, kind) {
			m.interruptions.WithLabelValues(kind).Inc()
		}
		end := drainStep{node: n.Name, since: r.Since.Time, phase: r.Phase}
		switch {
		case r.Phase == contract.PhaseFailed && comes(end):
			m.failures.WithLabelValues(kind).Inc()
		case r.Phase == contract.PhaseDrained && comes(end) && !r.Since.IsZero() && !r.Emptied.IsZero():
			m.took.WithLabelValues(kind).Observe(max(0, r.Emptied.Sub(r.Since.Time).Seconds()))
		}
	}
	m.seen = seen
	var samples []sample
	for labels, n := range nodes {
		samples = append(samples, sample{labels[:], float64(n)})
	}
	m.nodes.show(samples)
	m.left.showCounts(left)
	samples = nil
	for kind, until := range deadline {
		samples = append(samples, sample{[]string{kind}, until.Seconds()})
	}
	m.deadline.show(samples)
}

// isInterruption reports whether nobody in the cluster wanted the drain. Auto Scaling also takes
// what a drain was asked for before; where it does so by itself the scaler asks for the drain, too,
// if the agent has not begun.
func isInterruption(n *fleet.Node, kind string) bool {
	switch contract.Kind(kind) {
	case contract.KindSpot, contract.KindMaintenance, contract.KindRebalance:
		return true
	case contract.KindASG:
		asked, is := n.Annotations[contract.AnnotationDrainRequest]
		request, err := contract.ParseRequest(asked)
		return !is || asked == "" || err == nil && request.Kind == contract.KindASG
	}
	return false
}

// mostLeft is more pods than a node has, whatever stands on it.
const mostLeft = 10_000

// kindOf a drain: by its report, or by the node's taint. Whoever may write a Node may write
// any word there.
func kindOf(n *fleet.Node, r contract.Report) string {
	tainted, _ := contract.Draining(n.Taints)
	kind, err := contract.ParseKind(string(cmp.Or(r.Kind, tainted)))
	if err != nil {
		return "unknown"
	}
	return string(kind)
}

// podsOn counts the pods that keep those nodes from being empty.
func podsOn(s fleet.Snapshot, nodes map[string]action.Drain) map[string]int {
	counts := map[string]int{}
	if len(nodes) == 0 {
		return counts
	}
	for _, p := range s.Pods {
		if _, is := nodes[p.Node]; is && drainable.Occupies(p, s.Now) {
			counts[p.Node]++
		}
	}
	return counts
}
