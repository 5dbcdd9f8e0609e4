package drain

import (
	"maps"
	"slices"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// steps are the evictions that are due, one at a time for the pods that one
// budget guards. Evictions of one budget that arrive together are in each
// other's way: the API server writes the budget's status for each, tries again
// after half a second where that conflicts, and where it is cut off in between
// it counts the pod as disrupted for two minutes. Unguarded pods are asked for
// together: the server answers each after a consistent read of the budgets, and
// those that are sent together share the tenth of a second that it takes. The pods
// that were not asked for longest come first: the loop may send but a few at a time,
// and those that fail again and again shall not starve the others.
func (d *decision) steps(t tally) []Evict {
	var (
		steps   []Evict
		kept    []candidate
		refused = map[string][]candidate{}
		asking  = d.lanesAsking()
		last    = d.lastChance()
	)
	ask := func(c candidate) {
		lane, maker := d.laneOf(c.Pod), d.returns.Alone(c.Pod)
		if asking[lane] || asking[maker] || d.going.AwaitsSuccessor(c.Pod) {
			return
		}
		asking[lane], asking[maker] = true, maker != ""
		steps = append(steps, d.evict(c, t))
	}
	for _, c := range leastRecent(t.candidates) {
		switch at, ok := c.try.again(c.Pod.UID, d.Written); {
		case last && c.try.deletable():
			kept = append(kept, c)
		case c.try.Outcome == Refused && c.try.Budget != "":
			refused[c.try.Budget] = append(refused[c.try.Budget], c)
		case ok && d.due(at):
			ask(c)
		}
	}
	for _, budget := range slices.Sorted(maps.Keys(refused)) {
		pods := refused[budget]
		if slices.ContainsFunc(pods, func(c candidate) bool { return c.try.Sent }) {
			continue
		}
		if c := d.probe(pods); d.due(d.roomAt(budget, c)) {
			ask(c)
		}
	}
	return append(steps, d.deletions(kept, t)...)
}

// leastRecent sorts candidates by when they were last asked for, those that never
// were first.
func leastRecent(candidates []candidate) []candidate {
	sorted := slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return a.try.At.Compare(b.try.At) })
	return sorted
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

// lanesAsking are the lanes of which a pod is being asked for. A deletion blocks none.
func (d *decision) lanesAsking() map[string]bool {
	asking := map[string]bool{}
	for i := range d.Pods {
		pod := &d.Pods[i]
		if try := d.Tries.Pods[pod.UID]; try.Sent && !try.Deleted {
			asking[d.laneOf(pod)] = true
			if maker := d.returns.Alone(pod); maker != "" {
				asking[maker] = true
			}
		}
	}
	return asking
}

func (d *decision) evict(c candidate, t tally) Evict {
	return Evict{
		Namespace: c.Pod.Namespace,
		Name:      c.Pod.Name,
		UID:       c.Pod.UID,
		Maker:     drainable.MakerOf(c.Pod),
		Grace:     d.going.Grace(c.Pod, t.Last),
		Overrides: c.Verdict.Overrides,
		Why:       d.winner().Reason,
	}
}
