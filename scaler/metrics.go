package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
)

// metrics is what Prometheus is told. All names begin with windlass_.
type metrics struct {
	registry *prometheus.Registry

	leader  prometheus.Gauge
	pods    *prometheus.GaugeVec
	groups  *prometheus.GaugeVec
	faults  *prometheus.GaugeVec
	nodes   *prometheus.GaugeVec
	looks   prometheus.Histogram
	actions *prometheus.CounterVec
	calls   *prometheus.HistogramVec
	launch  prometheus.Histogram
	drained prometheus.Histogram

	// waiting is when each waiting pod was first seen, emptied when each
	// leaving node was first seen drained.
	waiting map[types.UID]time.Time
	emptied map[string]time.Time // by instance
}

// seconds are buckets from a hundredth of a second to ten minutes.
var seconds = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

func newMetrics() *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "windlass", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "windlass", Name: name, Help: help, Buckets: seconds})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		leader:   prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "windlass", Name: "leader", Help: "1 while this replica leads."}),
		pods:     gauge("pending_pods", "Pods without a node, by what happens to them.", "reason"),
		groups:   gauge("group_nodes", "Nodes of a group: desired, ready, min, max.", "group", "count"),
		faults:   gauge("group_faults", "What is wrong with a group; its verdict and the log have the words.", "group"),
		nodes:    gauge("nodes", "Nodes, by what happens to them.", "reason"),
		looks:    histogram("look_seconds", "How long it took to observe and decide."),
		actions: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "windlass", Name: "actions_total",
			Help: "Actions, by kind and by what became of them."}, []string{"kind", "result"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "windlass", Name: "aws_call_seconds",
			Help: "Calls to AWS, by operation and by code (ok, AWS's error code, or unreachable).", Buckets: seconds}, []string{"service", "operation", "code"}),
		launch:  histogram("pod_to_launch_seconds", "From the look that first saw a pod wait to the accepted call that launches its node."),
		drained: histogram("drained_to_completed_seconds", "From the look that first saw a leaving node drained to the accepted call that lets its instance go."),
		waiting: map[types.UID]time.Time{},
		emptied: map[string]time.Time{},
	}
	m.registry.MustRegister(m.leader, m.pods, m.groups, m.faults, m.nodes, m.looks, m.actions, m.calls, m.launch, m.drained,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// call counts a call to AWS; it may be called from everywhere.
func (m *metrics) call(c asg.Call) {
	m.calls.WithLabelValues(c.Service, c.Operation, c.Code).Observe(c.Took.Seconds())
}

// look tells of one turn of the loop. Only the loop calls it.
func (m *metrics) look(l look) {
	m.looks.Observe(l.took.Seconds())
	m.fleet(l.snapshot)
	m.verdicts(l.plan.Verdicts)
	m.seeWaiting(l.snapshot)
	m.seeDrained(l.snapshot)
	for _, r := range l.results {
		m.actions.WithLabelValues(act.KindOf(r.Action), string(r.Outcome)).Inc()
		if r.Outcome == act.Done {
			m.done(r)
		}
	}
}

func (m *metrics) fleet(s fleet.Snapshot) {
	ready := map[string]bool{}
	for i := range s.Nodes {
		if s.Nodes[i].Ready {
			ready[s.Nodes[i].InstanceID()] = true
		}
	}
	m.groups.Reset()
	m.faults.Reset()
	for _, g := range s.Groups {
		n := 0
		for _, i := range g.Instances {
			if i.Live() && ready[i.ID] {
				n++
			}
		}
		m.faults.WithLabelValues(g.Name).Set(float64(len(g.Faults)))
		for count, value := range map[string]int{"desired": g.Desired, "ready": n, "min": g.Min, "max": g.Max} {
			m.groups.WithLabelValues(g.Name, count).Set(float64(value))
		}
	}
}

func (m *metrics) verdicts(verdicts []plan.Verdict) {
	m.pods.Reset()
	m.nodes.Reset()
	for _, v := range verdicts {
		switch v.Of {
		case plan.OfPod:
			m.pods.WithLabelValues(string(v.Reason)).Inc()
		case plan.OfNode:
			m.nodes.WithLabelValues(string(v.Reason)).Inc()
		}
	}
}

func (m *metrics) seeWaiting(s fleet.Snapshot) {
	seen := make(map[types.UID]time.Time, len(m.waiting))
	for _, p := range s.Pods {
		if p.Node != "" || p.Scheduling != fleet.Unschedulable {
			continue
		}
		since, known := m.waiting[p.UID]
		if !known {
			since = s.Now
		}
		seen[p.UID] = since
	}
	m.waiting = seen
}

func (m *metrics) seeDrained(s fleet.Snapshot) {
	seen := make(map[string]time.Time, len(m.emptied))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		value, ok := n.Annotations[contract.AnnotationDrainReport]
		if !ok {
			continue
		}
		report, err := contract.ParseReport(value)
		if err != nil || report.Phase != contract.PhaseDrained {
			continue
		}
		since, known := m.emptied[n.InstanceID()]
		if !known {
			since = s.Now
		}
		seen[n.InstanceID()] = since
	}
	m.emptied = seen
}

func (m *metrics) done(r act.Result) {
	switch x := r.Action.(type) {
	case plan.Grow:
		for _, p := range x.For {
			if since, ok := m.waiting[p.UID]; ok {
				m.launch.Observe(r.Ended.Sub(since).Seconds())
			}
		}
	case plan.Complete:
		if since, ok := m.emptied[x.Instance]; ok {
			m.drained.Observe(r.Ended.Sub(since).Seconds())
		}
	}
}
