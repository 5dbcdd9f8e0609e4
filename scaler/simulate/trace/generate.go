package trace

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/scaler/simulate/dice"
)

// Mix is what kind of a time is generated. The zero Mix of a size has all kinds.
type Mix struct {
	Seed uint64
	Days float64
	// Pods is about how many there are at a usual moment of the day.
	Pods int
}

// size is what a pod asks for, and how often that is so.
type size struct {
	milliCPU, mebi int64
	weight         float64
}

// sizes are those that clusters of services are full of.
var sizes = []size{{100, 256, 20}, {250, 512, 25}, {500, 1024, 20}, {500, 4096, 8}, {1000, 2048, 12}, {1000, 8192, 5}, {2000, 4096, 6}, {4000, 8192, 2}}

// Shares of the usual number of pods.
const (
	shareServices = 0.65
	shareBatch    = 0.15
	shareSingles  = 0.08
	shareCI       = 0.12
)

// tick is how often replicas follow their curve, as autoscalers of pods do.
const tick = 300

// Generate makes services whose replicas follow the hours of the day and the days of the week,
// bursts of batch pods, single pods that stay for long, and jobs of a CI in working hours.
func Generate(m Mix) (Trace, error) {
	if !(m.Days > 0 && m.Days <= 366) || m.Pods < 1 || m.Pods > 1_000_000 {
		return Trace{}, fmt.Errorf("a time of %v days with %d pods: want up to 366 days and 1 to 1,000,000 pods", m.Days, m.Pods)
	}
	t := Trace{Name: fmt.Sprintf("generated, %g days, %d pods, seed %d", m.Days, m.Pods, m.Seed), Start: epoch, Seconds: int64(m.Days * day)}
	t.services(dice.New(m.Seed, "services"), shareServices*float64(m.Pods))
	t.bursts(dice.New(m.Seed, "batch"), shareBatch*float64(m.Pods))
	t.singles(dice.New(m.Seed, "singles"), shareSingles*float64(m.Pods))
	t.ci(dice.New(m.Seed, "ci"), shareCI*float64(m.Pods))
	t.order()
	return t, nil
}

func draw(d *dice.Dice) size {
	weights := make([]float64, len(sizes))
	for i, s := range sizes {
		weights[i] = s.weight
	}
	return sizes[d.Index(weights)]
}

// add makes a workload of a size.
func (t *Trace) add(name, kind string, s size, budget *int) int {
	w := Workload{Namespace: "default", Name: name, Kind: kind, Labels: map[string]string{"app": name}, Spec: spec(s.milliCPU, s.mebi<<20), MaxUnavailable: budget}
	t.Workloads = append(t.Workloads, w)
	return len(t.Workloads) - 1
}

// working is how busy people are at a moment, from 0 at night to 1, and less at weekends.
func working(at int64) float64 {
	hour := float64(at%day) / 3600
	busy := max(0, math.Sin((hour-6)/14*math.Pi)) // from 6 to 20 o'clock
	if at/day%7 >= 5 {
		busy *= 0.35
	}
	return busy
}

// services have a number of replicas that follows the day; some have a budget.
func (t *Trace) services(d *dice.Dice, pods float64) {
	const mean = 10.0
	count := max(1, int(pods/mean))
	for i := range count {
		base := math.Max(1, math.Round(d.Exp(mean)))
		swing, shift := 0.9*d.Float(), int64(d.N(4*3600))
		var budget *int
		if base >= 3 && d.Below(0.5) {
			one := max(1, int(base/5))
			budget = &one
		}
		n := t.add(fmt.Sprintf("service-%d", i), "ReplicaSet", draw(d), budget)
		t.follow(n, func(at int64) int {
			return max(1, int(math.Round(base*(1-swing/2+swing*working(at+shift)))))
		})
	}
}

// follow makes replicas come and end so that there are as many as wanted; the youngest ends.
func (t *Trace) follow(workload int, wanted func(int64) int) {
	var alive []int
	for at := int64(0); at < t.Seconds; at += tick {
		want := wanted(at)
		for len(alive) > want {
			last := len(alive) - 1
			t.Pods[alive[last]].Ends = at
			alive = alive[:last]
		}
		for len(alive) < want {
			alive = append(alive, len(t.Pods))
			t.Pods = append(t.Pods, Pod{Workload: workload, Arrive: at, Ends: Never})
		}
	}
}

// bursts come some times a day, many equal pods at once.
func (t *Trace) bursts(d *dice.Dice, pods float64) {
	const each, lasts = 0.6, 2700.0 // the share of all that one burst has, and its mean length
	between := each * lasts
	for at, n := d.Exp(between), 0; int64(at) < t.Seconds; at, n = at+d.Exp(between), n+1 {
		count := 1 + int(d.Exp(pods*each))
		workload := t.add(fmt.Sprintf("batch-%d", n), "Job", draw(d), nil)
		length := 300 + d.Exp(lasts-300)
		for range count {
			t.Pods = append(t.Pods, Pod{Workload: workload, Arrive: int64(at), Ends: int64(at + length*(0.8+0.4*d.Float()))})
		}
	}
}

// singles are pods without replicas: they stay for a day or so, and their controller makes
// them again elsewhere if they are evicted.
func (t *Trace) singles(d *dice.Dice, pods float64) {
	const mean = 1.2 * day
	n := 0
	add := func(at float64) {
		workload := t.add(fmt.Sprintf("single-%d", n), "StatefulSet", draw(d), nil)
		t.Pods = append(t.Pods, Pod{Workload: workload, Arrive: int64(at), Ends: int64(at + 60 + d.Exp(mean))})
		n++
	}
	for range int(pods) {
		add(0)
	}
	for at := d.Exp(mean / pods); int64(at) < t.Seconds; at += d.Exp(mean / pods) {
		add(at)
	}
}

// ci has jobs of some minutes, in working hours.
func (t *Trace) ci(d *dice.Dice, pods float64) {
	const mean = 480.0
	sizes := []size{{1000, 2048, 3}, {2000, 4096, 2}, {4000, 8192, 1}}
	var runners []int
	for i, s := range sizes {
		runners = append(runners, t.add(fmt.Sprintf("ci-%d", i), "Job", s, nil))
	}
	for at := 0.0; ; {
		at += d.Exp(mean / pods)
		if int64(at) >= t.Seconds {
			return
		}
		if !d.Below(0.05 + 0.95*working(int64(at))) {
			continue
		}
		workload := runners[d.Index([]float64{3, 2, 1})]
		t.Pods = append(t.Pods, Pod{Workload: workload, Arrive: int64(at), Ends: int64(at + 60 + d.Exp(mean-60))})
	}
}

func fleetUID(kind, key string) types.UID { return types.UID(kind + "/" + key) }
