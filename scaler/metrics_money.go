package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/scaler/plan/verdict"
	"windlass.dev/windlass/scaler/status"
)

// moneyMetrics are figures of what nodes cost and how full they are, by the prices that
// `kubectl windlass cost` shows.
type moneyMetrics struct {
	bill func() status.Bill

	nodes, groups, reasons, requested *gauges
	unpriced                          prometheus.Gauge
	seconds                           *prometheus.CounterVec

	// there counts the nodes of the last evaluation, for which time was counted until counted;
	// ever are those that the counter has.
	there   map[bought]int
	counted time.Time
	ever    map[bought]bool
	// asks is what pods request, by their specs, which are never changed; added is when that was
	// added up, and addUp does so for an evaluation of which it has not been done.
	asks  map[*corev1.PodSpec]room
	added time.Time
	addUp func()
	// byName is empty between evaluations, and kept for its size.
	byName map[string]*fleet.Node
}

// bought is how nodes of a group were bought. Group is empty for nodes in none.
type bought struct {
	group    string
	capacity statuspage.CapacityType
}

// room is cpu in cores and memory in bytes.
type room struct{ cpu, memory float64 }

// longestStep is the most that is counted as node time at once. Turns of the loop are a minute
// apart at the most, and one that is silent for longer than this is restarted. More than this is
// a clock that was set, or a machine that stood still.
const longestStep = loopSilence

// addUpEvery is how often requests are added up at the most, since evaluations may follow each
// other within a second, and a large cluster has 150,000 pods. Prometheus comes every 30 s.
const addUpEvery = 15 * time.Second

func newMoneyMetrics() *moneyMetrics {
	return &moneyMetrics{
		nodes:     newGauges("nodes", "Nodes, by the reason of their verdict and by capacity type: spot, on-demand, or unknown where neither its group nor a label of it tells.", "reason", "capacity_type"),
		groups:    newGauges("group_dollars_per_hour", "What the nodes of a group cost by list prices, by capacity type; group is empty for nodes in none.", "group", "capacity_type"),
		reasons:   newGauges("dollars_per_hour", "What the nodes cost by list prices, by the reason of their verdict: why they stay.", "reason"),
		requested: newGauges("requested_ratio", "Share of what the nodes of all groups have for pods that pods request, by resource: cpu or memory.", "resource"),
		unpriced:  prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "windlass", Name: "unpriced_nodes", Help: "Nodes whose price is not known: dollars per hour lack them."}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "windlass", Name: "node_seconds_total",
			Help: "Time that nodes were there while this replica led, by group and capacity type; group is empty for nodes in none."}, []string{"group", "capacity_type"}),
		bill: func() status.Bill { return status.Bill{} },
		ever: map[bought]bool{}, byName: map[string]*fleet.Node{},
	}
}

// record shows what the nodes of an evaluation cost.
func (m *moneyMetrics) record(s fleet.Snapshot, verdicts []*verdict.Verdict) {
	groups := make(map[string]*fleet.Group, len(s.Groups))
	for i := range s.Groups {
		groups[s.Groups[i].Name] = &s.Groups[i]
	}
	defer clear(m.byName) // not to hold the cluster of then
	for i := range s.Nodes {
		m.byName[s.Nodes[i].Name] = &s.Nodes[i]
	}
	there, cost := map[bought]int{}, map[bought]float64{}
	counts, reasons, unpriced := map[[2]string]int{}, map[string]float64{}, 0
	managed, bill := map[string]room{}, m.bill()
	for _, v := range verdicts {
		n := m.byName[v.Name]
		if v.Of != verdict.OfNode || n == nil {
			continue
		}
		line := bill.Of(n, groups[v.Group])
		key := bought{v.Group, line.Capacity()}
		there[key]++
		cost[key] += line.PricePerHour
		counts[[2]string{string(v.Reason), string(key.capacity)}]++
		reasons[string(v.Reason)] += line.PricePerHour
		if line.PricePerHour == 0 {
			unpriced++
		}
		if v.Group != "" {
			managed[n.Name] = roomOf(n.Allocatable)
		}
	}
	var samples []sample
	for key, dollars := range cost {
		samples = append(samples, sample{[]string{key.group, string(key.capacity)}, dollars})
	}
	m.groups.show(samples)
	samples = nil
	for labels, n := range counts {
		samples = append(samples, sample{labels[:], float64(n)})
	}
	m.nodes.show(samples)
	samples = nil
	for reason, dollars := range reasons {
		samples = append(samples, sample{[]string{reason}, dollars})
	}
	m.reasons.show(samples)
	m.unpriced.Set(float64(unpriced))
	m.addUp = func() { m.showRequested(s.Pods, managed) }
	m.pass(s.Now)
	m.stands(there, groups)
}

// stands has the time of these nodes counted from now on. Groups that are gone lose their series.
func (m *moneyMetrics) stands(there map[bought]int, groups map[string]*fleet.Group) {
	m.there = there
	for key := range there {
		m.ever[key] = true
		m.seconds.WithLabelValues(key.group, string(key.capacity)) // from 0, so that Prometheus sees it grow
	}
	for key := range m.ever {
		if there[key] == 0 && key.group != "" && groups[key.group] == nil {
			m.seconds.DeleteLabelValues(key.group, string(key.capacity))
			delete(m.ever, key)
		}
	}
}

// pass counts the time that has passed since it was counted last, and adds requests up that have
// not been. Each turn of the loop calls it: evaluations may be ten minutes apart.
func (m *moneyMetrics) pass(now time.Time) {
	if !m.counted.IsZero() {
		passed := min(max(0, now.Sub(m.counted)), longestStep).Seconds()
		for key, n := range m.there {
			m.seconds.WithLabelValues(key.group, string(key.capacity)).Add(passed * float64(n))
		}
	}
	m.counted = now
	if m.addUp != nil && now.Sub(m.added).Abs() >= addUpEvery {
		m.addUp()
		m.addUp, m.added = nil, now
	}
}

// showRequested shows how full those nodes are. What is requested beyond what a node has does not
// fill another.
func (m *moneyMetrics) showRequested(pods []*fleet.Pod, nodes map[string]room) {
	asks, used := make(map[*corev1.PodSpec]room, len(m.asks)), make(map[string]room, len(nodes))
	for _, p := range pods {
		if _, managed := nodes[p.Node]; !managed || p.Ended() || p.Spec == nil {
			continue
		}
		ask, known := asks[p.Spec]
		if !known {
			if ask, known = m.asks[p.Spec]; !known {
				ask = roomOf(resource.PodRequests(&corev1.Pod{Spec: *p.Spec}, resource.PodResourcesOptions{}))
			}
			asks[p.Spec] = ask
		}
		if resized := p.Allocated(); resized != nil {
			ask = roomOf(resized)
		}
		sum := used[p.Node]
		used[p.Node] = room{sum.cpu + ask.cpu, sum.memory + ask.memory}
	}
	m.asks = asks
	var full, all room
	for name, has := range nodes {
		all = room{all.cpu + has.cpu, all.memory + has.memory}
		full = room{full.cpu + min(used[name].cpu, has.cpu), full.memory + min(used[name].memory, has.memory)}
	}
	var samples []sample
	for name, of := range map[string][2]float64{"cpu": {full.cpu, all.cpu}, "memory": {full.memory, all.memory}} {
		if of[1] > 0 {
			samples = append(samples, sample{[]string{name}, min(1, max(0, of[0]/of[1]))})
		}
	}
	m.requested.show(samples)
}

func roomOf(list corev1.ResourceList) room {
	return room{list.Cpu().AsApproximateFloat64(), list.Memory().AsApproximateFloat64()}
}
