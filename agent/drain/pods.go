package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// candidate is a pod that may be evicted.
type candidate struct {
	drainable.Candidate
	try Try
}

// tally is how the pods of the node stand.
type tally struct {
	drainable.Tally
	// candidates are those that may be asked for now, by namespace and name.
	candidates []candidate
	// overdue are those that are not waited for any more, by namespace and name.
	overdue []string
	// blockedBy names what keeps the others, with the reasons in words; the last makers of
	// them are owners whose pods came back.
	blockedBy, reasons []string
	makers             int
	// owners make the pods that are kept, each once.
	owners []string
}

// tally judges every pod.
func (d *decision) tally() (t tally) {
	if !d.PodsKnown {
		return tally{}
	}
	t.Tally = d.going.Tally(d.sortedPods())
	for _, pod := range t.Overdue {
		t.overdue = append(t.overdue, pod.Key())
	}
	t.candidates = make([]candidate, 0, len(t.Due))
	for _, c := range t.Due {
		t.candidates = append(t.candidates, candidate{c, d.Tries.Pods[c.Pod.UID]})
	}
	d.name(&t)
	return t
}

// findGoing finds what the drain goes by as far as its pods go. Whether it has failed does not
// hang on those of DaemonSets.
func (d *decision) findGoing() {
	d.going = drainable.Drain{
		Manner: d.policy.Manner, Now: d.Now, Chosen: d.isChosen(), Deadline: d.toCome, Back: d.Back, Returns: d.returns,
		Again:     func(at time.Time) { d.due(at) },
		Asked:     func(p *fleet.Pod) drainable.Asked { return d.Tries.Pods[p.UID].asked() },
		HeardLate: func(p *fleet.Pod) time.Duration { return d.Ending[p.UID].late() },
		FirstBack: func(p *fleet.Pod) time.Time { return d.Ending[p.UID].Back },
	}
	if len(d.Pods) > 0 || d.policy.LoadBalancerWait > 0 {
		d.going.Urgency = d.urgency()
	}
	isDaemon := func(p fleet.Pod) bool { return drainable.IsDaemonSet(&p) }
	d.going.Late = slices.ContainsFunc(d.Pods, isDaemon) && d.isLate()
}

// isChosen reports whether the node was chosen for scale-down, or is past the point of no return.
func (d *decision) isChosen() bool {
	return slices.ContainsFunc(d.drains, func(n notice.Notice) bool { return n.Cause == notice.ScaleDown || d.isMarked(n.ID) })
}

// own notes who makes a pod that is kept.
func (t *tally) own(p *fleet.Pod) {
	if p.Owner == nil {
		return
	}
	if owner := contract.ShortID(fmt.Sprintf("%s %s/%s", p.Owner.Kind, p.Namespace, p.Owner.Name)); !slices.Contains(t.owners, owner) {
		t.owners = append(t.owners, owner)
	}
}

func (t *tally) block(by, reason string) {
	t.blockedBy = append(t.blockedBy, by)
	t.reasons = append(t.reasons, by+": "+reason)
}

// name names what keeps pods: rules, and what keeps the stuck candidates, each budget once, and after them other pods by
// name, of which there may be more than a report names.
func (d *decision) name(t *tally) {
	for _, c := range t.Blocked {
		t.own(c.Pod)
		t.block("pod "+c.Pod.Key(), c.Verdict.Reason)
	}
	budgets, pods := map[string]string{}, tally{}
	for _, c := range t.candidates {
		if !c.try.stuck() {
			continue
		}
		t.own(c.Pod)
		if c.try.Undeletable {
			pods.block("pod "+c.Pod.Key(), c.try.keeper()+"; the agent has no right to delete it")
			continue
		}
		if c.try.Budget != "" {
			budgets[c.try.Budget] = cmp.Or(d.Tries.Budgets[c.try.Budget].Message, c.try.Message)
			continue
		}
		pods.block("pod "+c.Pod.Key(), c.try.String())
	}
	for _, budget := range slices.Sorted(maps.Keys(budgets)) {
		t.block(budget, budgets[budget])
	}
	t.blockedBy, t.reasons = append(t.blockedBy, pods.blockedBy...), append(t.reasons, pods.reasons...)
	for _, pod := range t.Returned {
		if by := drainable.MakerOf(pod); !slices.Contains(t.blockedBy, by) {
			t.block(by, d.returns.Why(pod))
			t.makers++
		}
	}
}

// sortedPods are the pods by namespace and name.
func (d *decision) sortedPods() []*fleet.Pod {
	if d.sorted != nil {
		return d.sorted
	}
	d.sorted = make([]*fleet.Pod, 0, len(d.Pods))
	for i := range d.Pods {
		d.sorted = append(d.sorted, &d.Pods[i])
	}
	slices.SortFunc(d.sorted, func(a, b *fleet.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return d.sorted
}
