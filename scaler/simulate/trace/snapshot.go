package trace

import (
	"fmt"
	"math"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/simulate/dice"
)

// jobLasts is how long pods of Jobs run on average where nothing states it.
const jobLasts = 900.0

// FromSnapshot has the pods of a cluster go on: replicas follow the hours of the day, between
// a share less and a share more than there are; Jobs run for a quarter of an hour on average
// and come as often as they must for there to be as many as now; all others stay. Static pods
// and those of DaemonSets belong to their nodes, and are none of the trace's.
func FromSnapshot(s fleet.Snapshot, seed uint64, days, swing float64) (Trace, error) {
	if !(days > 0 && days <= 366) || !(swing >= 0 && swing <= 1) {
		return Trace{}, fmt.Errorf("a time of %v days with replicas that differ by %v: want up to 366 days, and a share of 0 to 1", days, swing)
	}
	t := Trace{Name: fmt.Sprintf("a snapshot of %s that goes on, %g days, seed %d", s.Now.UTC().Format("2006-01-02 15:04"), days, seed), Start: s.Now, Seconds: int64(days * day), Snapshot: &s}
	workloads := book{trace: &t}
	given := map[int][]*fleet.Pod{}
	for _, p := range s.Pods {
		if drainable.BelongsToNode(p) || p.Ended() || !p.Deleted.IsZero() {
			continue
		}
		n := workloads.workload(fmt.Sprintf("%s/%p", ownerKey(p), p.Spec), func() Workload { return workloadOf(p) })
		given[n] = append(given[n], p)
	}
	for n := range t.Workloads {
		d := dice.New(seed, t.Workloads[n].Key())
		switch kind := t.Workloads[n].Kind; {
		case kind == "Job":
			t.goOnAsJobs(d, n, given[n])
		case kind == "ReplicaSet" && len(given[n]) > 1:
			t.goOnAsReplicas(d, n, given[n], swing)
		default:
			for _, p := range given[n] {
				t.Pods = append(t.Pods, Pod{Workload: n, Ends: Never, Given: p})
			}
		}
	}
	t.order()
	return t, nil
}

func ownerKey(p *fleet.Pod) string {
	if p.Owner == nil {
		return p.Key()
	}
	return p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name
}

// workloadOf is what makes pods like this one.
func workloadOf(p *fleet.Pod) Workload {
	w := Workload{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, Spec: p.Spec}
	if p.Owner != nil {
		w.Kind, w.Name, w.Controller = p.Owner.Kind, p.Owner.Name, p.Owner
	}
	return w
}

func (t *Trace) goOnAsJobs(d *dice.Dice, workload int, given []*fleet.Pod) {
	for _, p := range given {
		t.Pods = append(t.Pods, Pod{Workload: workload, Ends: 1 + int64(d.Exp(jobLasts)), Given: p})
	}
	between := jobLasts / float64(len(given))
	for at := d.Exp(between); int64(at) < t.Seconds; at += d.Exp(between) {
		t.Pods = append(t.Pods, Pod{Workload: workload, Arrive: int64(at), Ends: int64(at) + 1 + int64(d.Exp(jobLasts))})
	}
}

// goOnAsReplicas begins with those that there are.
func (t *Trace) goOnAsReplicas(d *dice.Dice, workload int, given []*fleet.Pod, swing float64) {
	first := len(t.Pods)
	shift := int64(d.N(4 * 3600))
	offset := int64(t.Start.Hour()*3600 + (int(t.Start.Weekday()+6)%7)*day)
	now := working(offset + shift)
	t.follow(workload, func(at int64) int {
		return max(1, int(math.Round(float64(len(given))*(1+2*swing*(working(at+offset+shift)-now)))))
	})
	for i, p := range given { // at the moment 0 there are as many as now
		t.Pods[first+i].Given = p
	}
}
