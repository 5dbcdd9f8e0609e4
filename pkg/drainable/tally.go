package drainable

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Drain is what the drain of one node goes by at one moment, whoever carries it out: the
// agent, or the scaler in its place.
type Drain struct {
	Manner
	Now     time.Time
	Urgency Urgency
	// Chosen means that the node was chosen for scale-down, or is past the point of no return;
	// Late that the drain's deadline has passed.
	Chosen, Late bool
	// Deadline is the next that is to come; zero where none is.
	Deadline time.Time
	// Budgets are those of the cluster, nil where the eviction API alone says what they allow.
	Budgets *Budgets
	// Back is when the API server came back after it was away; zero if it never was.
	Back time.Time
	// FirstBack is when it first did after a pod was asked to leave; zero where that is not known, and nil
	// where it never is.
	FirstBack func(*fleet.Pod) time.Time
	// HeardLate says how much later than the API server wrote it down we heard that a pod is being
	// deleted; nil where that is not known.
	HeardLate func(*fleet.Pod) time.Duration
	// Returns is what has come back to the node.
	Returns Returns
	// Asked says what came of asking for a pod's eviction; nil where it is never known.
	Asked func(*fleet.Pod) Asked
	// Again is told of moments to come at which the answers may change.
	Again func(time.Time)
}

// Asked is what came of asking for a pod's eviction.
type Asked int

const (
	// NotRefused: it was not asked for, or not refused in a way that lasts.
	NotRefused Asked = iota
	// Granted: it was accepted, though the pod may not show it yet.
	Granted
	// Stuck: it was refused, and time alone may not mend that.
	Stuck
)

// Candidate is a pod that hinders the drain.
type Candidate struct {
	Pod     *fleet.Pod
	Turn    Turn
	Verdict Verdict
	Asked   Asked
}

// Tally is how the pods of a node stand.
type Tally struct {
	// Left counts the pods that must still go, Last is the greatest step of one.
	Left, Last int
	// Leaving counts those of them that are being deleted, Moving those whose turn it is and
	// that are not stuck, Waiting those that shall end by themselves.
	Leaving, Moving, Waiting int
	// Due are those whose turn it is, stuck ones too. Blocked are those that a rule keeps, and
	// Returned those that are left alone because their like came back.
	Due, Blocked []Candidate
	Returned     []*fleet.Pod
	// Overdue are those that are not waited for any more: their time to end is over, and they
	// are there.
	Overdue []*fleet.Pod
}

// Tally judges every pod, in the order given.
func (d Drain) Tally(pods []*fleet.Pod) Tally {
	var (
		t    Tally
		held = sets.Set[Turn]{} // those that cannot leave hold up no others
		all  = make([]Candidate, 0, len(pods))
	)
	for _, p := range pods {
		c := d.Judge(p)
		if c.Verdict.Rule == RuleLongTerminating {
			t.Overdue = append(t.Overdue, p)
		}
		if c.Verdict.Outcome == Skip {
			continue
		}
		t.Left++
		t.Last = max(t.Last, c.Turn.Step())
		switch {
		case c.Verdict.Outcome == Block:
			t.Blocked = append(t.Blocked, c)
			continue
		case !p.Deleted.IsZero():
			t.Leaving++
			d.due(p.Deleted.Time().Add(d.outage(p) + Overtime))
		case c.Asked == Granted:
			t.Leaving++
		case c.Verdict.Outcome == Wait:
			t.Waiting++
		case d.leftAlone(p):
			t.Returned = append(t.Returned, p)
			continue
		default:
			all = append(all, c)
			if c.Asked == Stuck {
				continue
			}
		}
		held.Insert(c.Turn)
	}
	t.Due = make([]Candidate, 0, len(all))
	for _, c := range all {
		if c.Turn.Waits(held) && !d.near(d.Steps.Reserve(c.Turn.Step())) {
			continue
		}
		t.Due = append(t.Due, c)
		if c.Asked != Stuck {
			t.Moving++
		}
	}
	return t
}

// Judge a pod. Those of DaemonSets count until the deadline. One that its DaemonSet, or what stands for one, has
// made since the node was closed, past kube-scheduler or while the Node cannot be closed, is not evicted:
// there would be no end.
func (d Drain) Judge(p *fleet.Pod) Candidate {
	c := Candidate{Pod: p, Turn: d.Steps.TurnOf(p), Verdict: Judge(Question{
		Pod: p, Now: d.Now.Add(-d.outage(p)), Budgets: d.Budgets, Policy: d.Rules(p, d.Chosen, d.Late), Urgency: d.Urgency,
	})}
	if c.Verdict.Outcome == Leave && IsDaemonSet(p) && d.Returns.madeSince(p) {
		c.Verdict = Verdict{Outcome: Skip, Rule: RuleDaemonSet, Reason: "it belongs to a DaemonSet, which has made it since the node was closed"}
	}
	if d.Asked != nil {
		c.Asked = d.Asked(p)
	}
	return c
}

// mostLate is how late the watch of a server is taken to be that has no time: 15 to 35 s were
// measured. What seems to be later is a clock that was set.
const mostLate = time.Minute

// outage is how much later the kubelet of a pod may have heard that it is being deleted than
// the API server wrote down. Both speak over the API server: if we lost it in between, or it
// told us late, so may have the kubelet, and the pod's time to end begins only then. It has heard
// when the server is back for the first time, and stays: that it goes and comes again later gives no more time.
func (d Drain) outage(p *fleet.Pod) time.Duration {
	if p.Deleted.IsZero() {
		return 0
	}
	back := d.Back
	if d.FirstBack != nil {
		if first := d.FirstBack(p); !first.IsZero() {
			back = first
		}
	}
	late := back.Sub(AskedAt(p))
	if d.HeardLate != nil {
		late = max(late, min(d.HeardLate(p), mostLate))
	}
	return max(0, late)
}

// leftAlone reports whether a pod is not asked to leave now, as its like came back.
func (d Drain) leftAlone(p *fleet.Pod) bool {
	until, held := d.Returns.Hold(p)
	if held {
		d.due(until)
	}
	return held || d.Returns.IsCalled(p) && !d.Returns.hasNotedCall()
}

// AwaitsSuccessor reports whether another pod of the same maker was asked a moment ago, and it is
// not known yet whether its successor comes back.
func (d Drain) AwaitsSuccessor(p *fleet.Pod) bool {
	if d.Returns.Alone(p) == "" {
		return false
	}
	at, ok := d.Returns.Next(p)
	return !ok || !d.due(at)
}

// Grace is nil where the pod's own period ends before the deadline, and where none is to come:
// a machine that is still there after its deadline gives no hint how much longer. Otherwise it
// is what is left, but for what later steps need; last is that of the tally.
func (d Drain) Grace(p *fleet.Pod, last int) *int64 {
	if d.Deadline.IsZero() {
		return nil
	}
	return d.Steps.Grace(p, last, d.Deadline.Sub(d.Now))
}

// Phase of the drain. Pauses says that it waits for something else than pods.
func (t Tally) Phase(pauses bool) contract.Phase {
	switch {
	case t.Left == 0 && pauses:
		return contract.PhaseDraining
	case t.Left == 0:
		return contract.PhaseDrained
	case pauses:
		return contract.PhaseWaiting
	case t.Leaving+t.Moving > 0:
		return contract.PhaseDraining
	case len(t.Blocked)+len(t.Returned)+len(t.Due) > 0: // what is due and does not move is stuck
		return contract.PhaseBlocked
	}
	return contract.PhaseWaiting
}

// BalancersBy is until when load balancers are given time to leave a node out that has told
// them so since that moment; zero where they are not waited for. The drain keeps what it needs
// before a deadline.
func (d Drain) BalancersBy(since, deadline time.Time, needs time.Duration) time.Time {
	if d.LoadBalancerWait == 0 || d.Urgency == Pressing {
		return time.Time{}
	}
	return earliest(since.Add(d.LoadBalancerWait), before(deadline, needs))
}

// before is so long before a deadline; zero where there is none.
func before(deadline time.Time, length time.Duration) time.Time {
	if deadline.IsZero() {
		return time.Time{}
	}
	return deadline.Add(-length)
}

// VolumesBy is until when a node that is empty since that moment waits for its volumes: one
// that is still attached when its instance goes is attached nowhere else for minutes. It is
// off the way of a spot interruption. count is how many are waited for, 0 for none.
func (d Drain) VolumesBy(kind contract.Kind, pods []*fleet.Pod, attached int, since, deadline time.Time) (until time.Time, count int) {
	count = max(0, attached-VolumesInUse(slices.Values(pods)))
	until = earliest(since.Add(d.VolumeWait), deadline)
	if count == 0 || kind == contract.KindSpot || d.due(until) {
		return time.Time{}, 0
	}
	return until, count
}

// near reports whether no more than this is left before a deadline that is to come.
func (d Drain) near(left time.Duration) bool {
	return !d.Deadline.IsZero() && d.due(d.Deadline.Add(-left))
}

// due reports whether a moment has come, and otherwise asks for a look when it has.
func (d Drain) due(at time.Time) bool {
	if !at.After(d.Now) {
		return true
	}
	if d.Again != nil {
		d.Again(at)
	}
	return false
}
