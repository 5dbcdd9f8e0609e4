package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// candidate is a pod that may be evicted.
type candidate struct {
	pod     *fleet.Pod
	turn    drainable.Turn
	verdict drainable.Verdict
	try     Try
}

// tally is how the pods of the node stand.
type tally struct {
	// left counts the pods that must still go, last is the greatest step of one.
	left, last int
	// leaving counts those of them that are being deleted, moving those that are
	// being asked for with some hope, waiting those that shall end by themselves.
	leaving, moving, waiting int
	// candidates are those that may be asked for now, by namespace and name.
	candidates []candidate
	// returned are those that are left alone, as they or their like came back.
	returned []*fleet.Pod
	// overdue are those, by namespace and name, that nobody waits for any more: their
	// time to end is over, and they are there.
	overdue []string
	// blockedBy names what keeps the others, with the reasons in words; the last makers of
	// them are owners whose pods came back.
	blockedBy, reasons []string
	makers             int
}

// tally judges every pod.
func (d *decision) tally() tally {
	if !d.PodsKnown {
		return tally{}
	}
	var (
		t    tally
		held = sets.Set[drainable.Turn]{} // those that cannot leave hold up nobody
		all  []candidate
	)
	for _, pod := range d.sortedPods() {
		c := d.judge(pod)
		if c.verdict.Rule == drainable.RuleLongTerminating {
			t.overdue = append(t.overdue, pod.Key())
		}
		if c.verdict.Outcome == drainable.Skip {
			continue
		}
		t.left++
		t.last = max(t.last, c.turn.Step())
		switch {
		case c.verdict.Outcome == drainable.Block:
			t.block("pod "+pod.Key(), c.verdict.Reason)
		case !pod.Deleted.IsZero():
			t.leaving++
			held.Insert(c.turn)
			d.due(pod.Deleted.Add(d.outage(pod) + drainable.Overtime))
		case c.try.Outcome == Accepted:
			t.leaving++
			held.Insert(c.turn)
		case c.verdict.Outcome == drainable.Wait:
			t.waiting++
			held.Insert(c.turn)
		case d.leftAlone(pod):
			t.returned = append(t.returned, pod)
		default:
			if !c.try.stuck() {
				held.Insert(c.turn)
			}
			all = append(all, c)
		}
	}
	for _, c := range all {
		if !c.turn.Waits(held) || d.near(d.policy.Steps.Reserve(c.turn.Step())) {
			t.admit(c)
		}
	}
	d.name(&t)
	return t
}

// judge a pod. Those of DaemonSets count until the deadline; whether the drain has
// failed does not hang on them.
func (d *decision) judge(pod *fleet.Pod) candidate {
	rules := d.policy.Rules(pod, d.isChosen(), drainable.IsDaemonSet(pod) && d.isLate())
	return candidate{
		pod: pod, turn: d.policy.Steps.TurnOf(pod), try: d.Tries.Pods[pod.UID],
		verdict: drainable.Judge(drainable.Question{
			Pod: pod, Now: d.Now.Add(-d.outage(pod)), Policy: rules, Urgency: d.urgency(),
		}),
	}
}

// isChosen says that the node was chosen for scale-down, or is past the point of no return.
func (d *decision) isChosen() bool {
	return slices.ContainsFunc(d.drains, func(n notice.Notice) bool { return n.Cause == notice.ScaleDown || d.isMarked(n.ID) })
}

// outage is how much later the kubelet of a pod may have heard that it is being
// deleted than the API server wrote down. Both speak over the API server: if we
// lost it in between, so may have the kubelet, and the pod's time to end begins
// only when it is back.
func (d *decision) outage(pod *fleet.Pod) time.Duration {
	if pod.Deleted.IsZero() {
		return 0
	}
	asked := pod.Deleted.Add(-drainable.GraceOf(pod))
	return max(0, d.Back.Sub(asked))
}

func (t *tally) admit(c candidate) {
	t.candidates = append(t.candidates, c)
	if !c.try.stuck() {
		t.moving++
	}
}

func (t *tally) block(by, reason string) {
	t.blockedBy = append(t.blockedBy, by)
	t.reasons = append(t.reasons, by+": "+reason)
}

// name adds what keeps the stuck candidates: each budget once, and after them other pods by
// name, of which there may be more than a report names.
func (d *decision) name(t *tally) {
	budgets, pods := map[string]string{}, tally{}
	for _, c := range t.candidates {
		if !c.try.stuck() {
			continue
		}
		if c.try.Undeletable {
			pods.block("pod "+c.pod.Key(), c.try.keeper()+"; the agent may not delete it")
			continue
		}
		if c.try.Budget != "" {
			budgets[c.try.Budget] = cmp.Or(d.Tries.Budgets[c.try.Budget].Message, c.try.Message)
			continue
		}
		pods.block("pod "+c.pod.Key(), c.try.String())
	}
	for _, budget := range slices.Sorted(maps.Keys(budgets)) {
		t.block(budget, budgets[budget])
	}
	t.blockedBy, t.reasons = append(t.blockedBy, pods.blockedBy...), append(t.reasons, pods.reasons...)
	for _, pod := range t.returned {
		if by := drainable.MakerOf(pod); !slices.Contains(t.blockedBy, by) {
			t.block(by, d.returns.Why(pod))
			t.makers++
		}
	}
}

func (d *decision) sortedPods() []*fleet.Pod {
	out := make([]*fleet.Pod, 0, len(d.Pods))
	for i := range d.Pods {
		out = append(out, &d.Pods[i])
	}
	slices.SortFunc(out, func(a, b *fleet.Pod) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
	})
	return out
}
