package main

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
	"windlass.dev/windlass/scaler/status"
)

// metrics is what Prometheus reads. All names begin with windlass_. Labels have
// few values: groups, their zones, our reasons, and codes of AWS.
type metrics struct {
	registry *prometheus.Registry

	leader       prometheus.Gauge
	pods         *gauges
	groups       *gauges
	groupNodes   *gauges
	groupFaults  *gauges
	retained     *gauges
	backOffs     *gauges
	unrecognised *gauges
	brake        prometheus.Gauge
	faults       prometheus.Gauge
	stateBytes   prometheus.Gauge
	stateWrites  *prometheus.CounterVec
	stateShed    *prometheus.CounterVec
	evaluations  prometheus.Histogram
	steps        prometheus.Gauge
	keptDiffers  prometheus.Counter
	actions      *prometheus.CounterVec
	launches     *prometheus.CounterVec
	lifecycle    *prometheus.CounterVec
	calls        *prometheus.HistogramVec
	seenToLaunch prometheus.Histogram
	toldToLaunch prometheus.Histogram
	toldToReady  prometheus.Histogram
	drained      prometheus.Histogram
	drains       *drainMetrics
	money        *moneyMetrics

	// waiting is since when each pod is pending, unready since when each was that is not Ready
	// yet, emptied when each draining node was first seen drained.
	waiting map[types.UID]wait
	unready map[types.UID]time.Time
	emptied map[string]time.Time // by instance
	// ready are the instances of Ready nodes, as of the last evaluation: each fills it anew.
	ready map[string]bool
}

// wait is when kube-scheduler reported that a pod is unschedulable, to the second, and
// when we first saw it. The one is zero while kube-scheduler has not judged it.
type wait struct{ told, seen time.Time }

// seconds are buckets from a hundredth of a second to ten minutes.
var seconds = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "windlass", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "windlass", Name: name, Help: help})
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "windlass", Name: name, Help: help, Buckets: seconds})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		keptDiffers: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "windlass", Name: "kept_evaluation_differs_total",
			Help: "Times that an evaluation differed by what is kept from evaluation to evaluation, as is looked for once an hour: a bug, after which all that was kept is forgotten. The log has the first difference."}),
		leader:       gauge("leader", "1 while this replica leads."),
		pods:         newGauges("pending_pods", "Pods without a node, by the reason of their verdict.", "reason"),
		groups:       newGauges("groups", "Groups, by the reason of their verdict.", "reason"),
		groupNodes:   newGauges("group_nodes", "Nodes of a group: desired, ready, min, max.", "group", "count"),
		groupFaults:  newGauges("group_faults", "Faults of a group; its verdict and the log name them.", "group"),
		retained:     newGauges("group_retained_instances", "Instances that a group keeps after a lifecycle hook was abandoned: they are paid for, and are not in the group's count.", "group"),
		backOffs:     newGauges("group_backoff_failures", "Failures in a row of a group that is in back-off, by zone (empty for all of its zones) and cause.", "group", "zone", "cause"),
		unrecognised: newGauges("unrecognised_instances", "Instances of a group that have not become Nodes of this cluster in time, and that Windlass did not launch.", "group"),
		brake:        gauge("unrecognised_brake", "1 while so many instances are not recognised, with those that came beside them and may still join, that none is terminated; the verdicts of their groups say why."),
		faults:       gauge("cluster_faults", "Faults of the cluster: what the scaler cannot read, and a persisted state that it cannot write; the ConfigMap windlass-status names them."),
		stateBytes:   gauge("state_bytes", "Size of the persisted state (ConfigMap windlass-state) at the last attempt to write it."),
		stateWrites:  counter("state_writes_total", "Writes of the persisted state, by result: done, and failed, after which no group grows until one is done.", "result"),
		stateShed:    counter("state_shed_entries_total", "Entries dropped from the persisted state because it was too large, by part of the state.", "part"),
		evaluations:  histogram("evaluation_seconds", "Duration of an evaluation: to observe and decide."),
		steps:        gauge("evaluation_steps", "Steps of the last evaluation; a step checks about one pod against one node. Scale-up and scale-down may take 20 million each."),
		actions:      counter("actions_total", "Actions, by kind and result.", "kind", "result"),
		launches: counter("launches_total", "Calls to grow a group, by call and by result: done, partial (fewer instances than asked for), none (no instance), "+
			"begun (AWS has not answered yet), stopped (the group had changed) and failed.", "call", "result"),
		lifecycle: counter("lifecycle_actions_total", "Calls about the lifecycle hooks that the scaler completes, by call (complete, heartbeat) and by result: done, already (it had been done before), "+
			"early (the instance did not wait yet), busy (AWS was busy), stopped (the instance or its group had changed) and failed.", "call", "result"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "windlass", Name: "aws_call_seconds",
			Help: "Calls to AWS, by operation and by code (ok, AWS's error code, or unreachable).", Buckets: seconds}, []string{"service", "operation", "code"}),
		seenToLaunch: histogram("pod_to_launch_seconds", "Time from the evaluation that first saw a pod pending to the accepted call that launches its node."),
		toldToLaunch: histogram("pod_unschedulable_to_launch_seconds", "Time from a pod's Unschedulable condition, which is in whole seconds, to the call that launches its node; 0 where that comes first."),
		toldToReady:  histogram("pod_unschedulable_to_ready_seconds", "Time from a pod's Unschedulable condition, which is in whole seconds, to the evaluation that first saw it Ready."),
		drained:      histogram("drained_to_completed_seconds", "Time from the evaluation that first saw a node drained, whose instance Auto Scaling terminates, to the accepted call that completes its hook."),
		drains:       newDrainMetrics(),
		money:        newMoneyMetrics(),
		waiting:      map[types.UID]wait{},
		emptied:      map[string]time.Time{},
		ready:        map[string]bool{},
	}
	// From 0 on, as those of drains are: alerts ask how much they have grown.
	for _, kind := range action.Kinds() {
		for _, outcome := range act.Outcomes {
			m.actions.WithLabelValues(kind, string(outcome))
		}
	}
	for _, part := range fleet.ShedParts() {
		m.stateShed.WithLabelValues(part)
	}
	for _, result := range []string{"done", "failed"} {
		m.stateWrites.WithLabelValues(result)
	}
	m.registry.MustRegister(m.leader, m.pods, m.groups, m.groupNodes, m.groupFaults, m.retained, m.backOffs, m.unrecognised, m.brake, m.faults, m.stateBytes, m.stateWrites, m.stateShed, m.evaluations, m.keptDiffers, m.steps, m.actions, m.launches, m.lifecycle,
		m.calls, m.seenToLaunch, m.toldToLaunch, m.toldToReady, m.drained, m.drains.nodes, m.drains.left, m.drains.deadline, m.drains.failures, m.drains.interruptions, m.drains.took,
		m.money.nodes, m.money.groups, m.money.reasons, m.money.requested, m.money.unpriced, m.money.seconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// countDropped shows how many Events were lost.
func (m *metrics) countDropped(dropped func() int64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: "windlass", Name: "events_dropped_total", Help: "Events that were not written: the queue was full, or the API server refused them.",
	}, func() float64 { return float64(dropped()) }))
}

// call counts a call to AWS; it may be called from everywhere.
func (m *metrics) call(c asg.Call) {
	m.calls.WithLabelValues(c.Service, c.Operation, c.Code).Observe(c.Took.Seconds())
}

// remembered records what became of a state.
func (m *metrics) remembered(r status.Remembered, err error) {
	if r.Bytes == 0 {
		return // there was nothing to write
	}
	m.stateBytes.Set(float64(r.Bytes))
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.stateWrites.WithLabelValues(result).Inc()
	for part, n := range r.Shed {
		m.stateShed.WithLabelValues(part).Add(float64(n))
	}
}

// begin forgets what was so when this replica led before: since then time has passed that nothing
// is known of.
func (m *metrics) begin() { m.unready, m.money.there, m.drains.seen = nil, nil, nil }

// record records one turn of the loop. Only the loop calls it.
func (m *metrics) record(l evaluation) {
	m.evaluations.Observe(l.took.Seconds())
	m.fleet(l.snapshot)
	m.verdicts(l.plan.Verdicts)
	m.pauses(l.snapshot.Now, l.plan.State.BackOffs)
	m.strangers(l.plan)
	m.steps.Set(float64(l.plan.Steps))
	m.seeWaiting(l.snapshot)
	m.seeReady(l.snapshot)
	m.seeDrained(l.snapshot, l.plan.Drains)
	m.drains.record(l.snapshot, l.plan.Drains)
	m.money.record(l.snapshot, l.plan.Verdicts)
	for _, r := range l.results {
		m.actions.WithLabelValues(action.TraitsOf(r.Action).Kind, string(r.Outcome)).Inc()
		m.result(r)
	}
}

func (m *metrics) fleet(s fleet.Snapshot) {
	m.faults.Set(float64(len(s.Faults)))
	clear(m.ready)
	for i := range s.Nodes {
		if s.Nodes[i].Ready {
			m.ready[s.Nodes[i].InstanceID()] = true
		}
	}
	var nodes, faults, retained []sample
	for _, g := range s.Groups {
		n, kept := 0, 0
		for _, i := range g.Instances {
			if i.Live() && m.ready[i.ID] {
				n++
			}
			if i.Retained() {
				kept++
			}
		}
		retained = append(retained, sample{[]string{g.Name}, float64(kept)})
		faults = append(faults, sample{[]string{g.Name}, float64(len(g.Faults))})
		for count, value := range map[string]int{"desired": g.Desired, "ready": n, "min": g.Min, "max": g.Max} {
			nodes = append(nodes, sample{[]string{g.Name, count}, float64(value)})
		}
	}
	m.groupNodes.show(nodes)
	m.groupFaults.show(faults)
	m.retained.show(retained)
}

func (m *metrics) verdicts(verdicts []*verdict.Verdict) {
	counts := map[verdict.SubjectKind]map[string]int{verdict.OfPod: {}, verdict.OfGroup: {}}
	for _, v := range verdicts {
		if v.Of != verdict.OfNode { // which have prices, too
			counts[v.Of][string(v.Reason)]++
		}
	}
	m.pods.showCounts(counts[verdict.OfPod])
	m.groups.showCounts(counts[verdict.OfGroup])
}

// pauses shows the back-offs that run.
func (m *metrics) pauses(now time.Time, backOffs map[string]fleet.BackOff) {
	var running []sample
	for key, b := range backOffs {
		if now.Before(b.Until) {
			group, zone, cause := fleet.ParseBackOffKey(key) // a word, where b.Cause may be a sentence
			running = append(running, sample{[]string{group, zone, cmp.Or(cause, b.Cause)}, float64(b.Count)})
		}
	}
	m.backOffs.show(running)
}

// strangers shows the instances that are not recognised, and whether they are left alone.
func (m *metrics) strangers(p plan.Plan) {
	var counts []sample
	for group, n := range p.Unrecognised {
		counts = append(counts, sample{[]string{group}, float64(n)})
	}
	m.unrecognised.show(counts)
	m.brake.Set(0)
	if p.Braked {
		m.brake.Set(1)
	}
}

func (m *metrics) seeWaiting(s fleet.Snapshot) {
	seen := make(map[types.UID]wait, len(m.waiting))
	for _, p := range s.Pods {
		if p.Node != "" || p.Scheduling == fleet.Gated || p.Ended() || !p.Deleted.IsZero() {
			continue
		}
		w, known := m.waiting[p.UID]
		if !known {
			w.seen = s.Now
		}
		if w.told.IsZero() && p.Scheduling == fleet.Unschedulable {
			w.told = p.Judged.Time()
		}
		seen[p.UID] = w
	}
	m.waiting = seen
}

// seeReady records how long pods that waited for a node took until they were Ready.
func (m *metrics) seeReady(s fleet.Snapshot) {
	unready := make(map[types.UID]time.Time, len(m.unready))
	for _, p := range s.Pods {
		since, known := m.unready[p.UID]
		if !known {
			since, known = p.Judged.Time(), p.Node == "" && p.Scheduling == fleet.Unschedulable && !p.Judged.IsZero()
		}
		switch {
		case !known || p.Ended() || !p.Deleted.IsZero():
		case p.Ready:
			m.toldToReady.Observe(max(0, s.Now.Sub(since).Seconds()))
		default:
			unready[p.UID] = since
		}
	}
	m.unready = unready
}

// seeDrained notes since when nodes are drained, by the word of their agents or of the
// plan, which drains in their place.
func (m *metrics) seeDrained(s fleet.Snapshot, alone []action.Drain) {
	seen := make(map[string]time.Time, len(m.emptied))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		text := n.Annotations[contract.AnnotationDrainReport]
		if text == "" && len(alone) == 0 {
			continue
		}
		report, err := contract.ParseReport(text)
		byPlan := slices.ContainsFunc(alone, func(d action.Drain) bool { return d.Node.Name == n.Name && d.Phase == contract.PhaseDrained })
		if !byPlan && (err != nil || report.Phase != contract.PhaseDrained) {
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

func (m *metrics) result(r act.Result) {
	if t := action.TraitsOf(r.Action); t.Hook {
		m.lifecycleAction(t.Kind, r)
	}
	if x, grows := r.Action.(action.Grow); grows {
		m.launch(x, r)
	}
	if x, completes := r.Action.(action.Complete); completes {
		m.completed(x, r)
	}
}

// completed records how long an instance was held though its node was drained. One that comes
// into service has not waited for that. One that was drained before its lifecycle transition
// began, as in a warm pool, waited from the transition on.
func (m *metrics) completed(x action.Complete, r act.Result) {
	since, drained := m.emptied[x.Instance]
	if !drained || x.Since.IsZero() || r.Outcome != act.Done || r.Before {
		return
	}
	if since.Before(x.Since) {
		since = x.Since
	}
	m.drained.Observe(r.Ended.Sub(since).Seconds())
}

func (m *metrics) lifecycleAction(call string, r act.Result) {
	result := string(r.Outcome)
	switch {
	case r.Outcome == act.Paused:
		return // no call was made
	case r.Before:
		result = "already"
	case errors.Is(r.Err, asg.ErrTooEarly):
		result = "early"
	case errors.Is(r.Err, asg.ErrBusy):
		result = "busy"
	}
	m.lifecycle.WithLabelValues(call, result).Inc()
}

func (m *metrics) launch(x action.Grow, r act.Result) {
	if r.Outcome == act.Paused {
		return // no call was made
	}
	m.launches.WithLabelValues(callOf(x), launchResult(x, r)).Inc()
	if r.Outcome != act.Done && r.Outcome != act.Begun {
		return
	}
	for _, p := range x.For {
		w, ok := m.waiting[p.UID]
		if !ok {
			continue
		}
		m.seenToLaunch.Observe(r.Ended.Sub(w.seen).Seconds())
		waited := 0.0 // where kube-scheduler has not judged the pod yet
		if !w.told.IsZero() {
			waited = max(0, r.Ended.Add(-r.Took).Sub(w.told).Seconds())
		}
		m.toldToLaunch.Observe(waited)
	}
}

// callOf is the call to AWS that grows a group.
func callOf(x action.Grow) string {
	if x.Token == "" {
		return "SetDesiredCapacity"
	}
	return "LaunchInstances"
}

// launchResult is the outcome of a launch, by what has come.
func launchResult(x action.Grow, r act.Result) string {
	switch a := r.Answer; {
	case a == nil || !a.Seen || len(a.Failures) == 0:
		return string(r.Outcome)
	case a.Came == 0:
		return "none"
	case a.Came < x.Count:
		return "partial"
	}
	return string(r.Outcome)
}
