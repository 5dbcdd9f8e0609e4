package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	// left counts the pods that must still go.
	left int
	// leaving counts those of them that are being deleted, moving those that are
	// being asked for with some hope, waiting those that shall end by themselves.
	leaving, moving, waiting int
	// candidates are those that may be asked for now, by namespace and name.
	candidates []candidate
	// blockedBy names what keeps the others, with the reasons in words.
	blockedBy, reasons []string
}

// look judges every pod.
func (d *decision) look(deadline time.Time) tally {
	if !d.PodsKnown {
		return tally{}
	}
	var (
		t       tally
		urgency = d.urgency(deadline)
		held    = map[drainable.Turn]bool{}
		all     []candidate
	)
	for _, pod := range d.sortedPods() {
		c := candidate{pod: pod, turn: d.policy.Steps.TurnOf(pod), try: d.Tries.Pods[pod.UID]}
		outage := d.outage(pod)
		c.verdict = drainable.Judge(drainable.Question{Pod: pod, Now: d.Now.Add(-outage), Policy: d.policy.Pods, Urgency: urgency})
		if c.verdict.Outcome == drainable.Skip {
			continue
		}
		t.left++
		switch {
		case c.verdict.Outcome == drainable.Block:
			t.block("pod "+pod.Key(), c.verdict.Reason)
		case !pod.Deleted.IsZero():
			t.leaving++
			held[c.turn] = true
			d.wakeAt(pod.Deleted.Add(outage + drainable.Overtime))
		case c.try.Outcome == Accepted:
			t.leaving++
			held[c.turn] = true
		case c.verdict.Outcome == drainable.Wait:
			t.waiting++
			held[c.turn] = true
		default:
			held[c.turn] = held[c.turn] || !c.try.stuck()
			all = append(all, c)
		}
	}
	everybody := d.near(deadline, d.policy.Steps.Reserve(1))
	for _, c := range all {
		if everybody || !holdsBefore(held, c.turn) {
			t.admit(c)
		}
	}
	d.name(&t)
	return t
}

// outage is how much later the kubelet of a pod may have heard that it is being
// deleted than the API server wrote down. Both speak over the API server: if we
// lost it in between, so may have the kubelet, and the pod's time to end begins
// only when it is back.
func (d *decision) outage(pod *fleet.Pod) time.Duration {
	if pod.Deleted.IsZero() {
		return 0
	}
	asked := pod.Deleted.Add(-ownGrace(pod))
	return max(0, d.Back.Sub(asked))
}

// holdsBefore says that a pod of an earlier tier is still to go, and may. Those
// that cannot leave hold up nobody.
func holdsBefore(held map[drainable.Turn]bool, turn drainable.Turn) bool {
	for earlier, holds := range held {
		if holds && earlier < turn {
			return true
		}
	}
	return false
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

// name adds what keeps the stuck candidates: each budget once, other pods by
// name.
func (d *decision) name(t *tally) {
	budgets := map[string]string{}
	for _, c := range t.candidates {
		if !c.try.stuck() {
			continue
		}
		if c.try.Budget != "" {
			budgets[c.try.Budget] = cmp.Or(d.Tries.Budgets[c.try.Budget].Message, c.try.Message)
			continue
		}
		t.block("pod "+c.pod.Key(), c.try.String())
	}
	for _, budget := range slices.Sorted(maps.Keys(budgets)) {
		t.block(budget, budgets[budget])
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

// steps are the evictions that are due, one at a time for the pods that one
// budget guards. Evictions of one budget that arrive together are in each
// other's way: the API server writes the budget's status for each, tries again
// after half a second where that conflicts, and where it is cut off in between
// it counts the pod as disrupted for two minutes. Unguarded pods are asked for
// together: the server answers each after a consistent read of the budgets, and
// those that are sent together share the tenth of a second that it takes.
func (d *decision) steps(t tally, deadline time.Time) []Evict {
	var steps []Evict
	refused := map[string][]candidate{}
	asking := d.lanesAsking()
	ask := func(c candidate) {
		if lane := d.laneOf(c.pod); !asking[lane] {
			asking[lane] = true
			steps = append(steps, d.evict(c, t, deadline))
		}
	}
	for _, c := range t.candidates {
		if c.try.Outcome == Refused && c.try.Budget != "" {
			refused[c.try.Budget] = append(refused[c.try.Budget], c)
			continue
		}
		at, ok := c.try.again(c.pod.UID, d.Written)
		if ok && d.due(at) {
			ask(c)
		}
	}
	for _, budget := range slices.Sorted(maps.Keys(refused)) {
		pods := refused[budget]
		if slices.ContainsFunc(pods, func(c candidate) bool { return c.try.Sent }) {
			continue
		}
		if c := probe(pods); d.due(d.roomAt(budget, c, deadline)) {
			ask(c)
		}
	}
	return steps
}

// laneOf a pod is the budget that guards it, or the pod itself where none does.
// While the budgets are not known it is the pod's owner, whose pods one budget
// guards as a rule.
func (d *decision) laneOf(p *fleet.Pod) string {
	if d.Budgets == nil && p.Owner != nil {
		return p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name
	}
	if guards := d.Budgets.Guarding(p); len(guards) > 0 {
		return guards[0]
	}
	return string(p.UID)
}

// lanesAsking are the lanes of which a pod is being asked for.
func (d *decision) lanesAsking() map[string]bool {
	asking := map[string]bool{}
	for i := range d.Pods {
		if pod := &d.Pods[i]; d.Tries.Pods[pod.UID].Sent {
			asking[d.laneOf(pod)] = true
		}
	}
	return asking
}

// due says that a moment has come, and otherwise looks again when it has.
func (d *decision) due(at time.Time) bool {
	if at.After(d.Now) {
		d.wakeAt(at)
		return false
	}
	return true
}

// hastyPause is the longest pause between questions to a budget when the
// deadline is near: every pod behind the budget waits it out once, so with many
// of them it is what their drain takes.
const hastyPause = time.Second

// roomAt is when a budget that has refused is asked again.
func (d *decision) roomAt(budget string, c candidate, deadline time.Time) time.Time {
	limit := d.Tries.Budgets[budget]
	if limit.Room {
		return d.Now
	}
	pause := backOff(limit.Rounds)
	if d.near(deadline, pressing) {
		pause = min(pause, hastyPause)
	}
	if d.Stirred[c.pod.Namespace].After(limit.At) {
		pause = min(pause, time.Second)
	}
	return limit.At.Add(spread(c.pod.UID, pause))
}

func (d *decision) evict(c candidate, t tally, deadline time.Time) Evict {
	return Evict{
		Namespace: c.pod.Namespace,
		Name:      c.pod.Name,
		UID:       c.pod.UID,
		Grace:     d.grace(c, t, deadline),
		Overrides: c.verdict.Overrides,
		Why:       d.winner().Reason,
	}
}

// margin is what passes between the eviction and the kubelet's hearing of it.
const margin = 2 * time.Second

// grace is nil where the pod's own period ends before the deadline. Otherwise
// it is what is left, so that the pod itself hears of its end, but never
// nothing: a grace of 0 would take the pod away without a word to it. Ordinary
// pods leave a part of the time to the critical ones after them.
func (d *decision) grace(c candidate, t tally, deadline time.Time) *int64 {
	if deadline.IsZero() {
		return nil
	}
	left := deadline.Sub(d.Now)
	if c.turn.Step() < len(d.policy.Steps)-1 && d.criticalLeft() {
		left -= min(d.policy.Steps.Reserve(1), left/4)
	}
	seconds := max(1, int64((left-margin)/time.Second))
	if ownGrace(c.pod) <= time.Duration(seconds)*time.Second {
		return nil
	}
	return &seconds
}

// ownGrace is the time that a pod asks for to end.
func ownGrace(pod *fleet.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// criticalLeft says that a critical pod must leave after the ordinary ones.
func (d *decision) criticalLeft() bool {
	return slices.ContainsFunc(d.Pods, func(p fleet.Pod) bool {
		return d.policy.Steps.Of(&p) == len(d.policy.Steps)-1 && drainable.MustBePlacedAgain(&p)
	})
}
