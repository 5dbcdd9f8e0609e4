package drain

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// refusing are the namespaces of budgets that have refused, sorted.
func (d *decision) refusing() []string {
	var out []string
	for key := range d.Tries.Budgets {
		namespace, _, _ := strings.Cut(key, "/")
		out = append(out, namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	// hastyPause is the longest pause between questions to a budget when the
	// deadline is near, or when a watch shows that it has room: every pod behind
	// the budget waits it out once, so with many of them it is what their drain
	// takes.
	hastyPause = time.Second
	// blindWait is the shortest pause between questions to a budget that a watch
	// shows to have no room, and longestPause the longest one.
	blindWait, longestPause = 10 * time.Second, 30 * time.Second
)

// roomAt is when a budget that has refused is asked again.
func (d *decision) roomAt(budget string, c candidate) time.Time {
	limit := d.Tries.Budgets[budget]
	if limit.Room {
		return d.Now
	}
	return limit.At.Add(spread(c.Pod.UID, d.pauseOf(limit, c)))
}

// pauseOf a budget after its last refusal. What a watch shows of it decides, if
// there is one; otherwise it is longer each time, but short when time is, or
// when something has moved in the namespace.
func (d *decision) pauseOf(limit Limit, c candidate) time.Duration {
	hasty := d.near(pressing)
	switch live := d.Live[c.Pod.Namespace]; {
	case live && !d.Budgets.Refuses(c.Pod):
		return hastyPause
	case live && hasty:
		return blindWait
	case live:
		return min(blindWait*time.Duration(max(1, limit.Rounds)), longestPause)
	case hasty, d.Stirred[c.Pod.Namespace].After(limit.At):
		return min(backOff(limit.Rounds), hastyPause)
	}
	return backOff(limit.Rounds)
}

// probe chooses, among pods that one budget has refused, the one that asks
// next: one that a watched budget lets go now, and of those the one that has not
// asked for longest. Were all of them to ask, each refusal would be paid for by
// each pod.
func (d *decision) probe(refused []candidate) candidate {
	return slices.MinFunc(refused, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(d.shownRoom(b), d.shownRoom(a)),
			a.try.At.Compare(b.try.At),
			cmp.Compare(a.Pod.Key(), b.Pod.Key()),
			cmp.Compare(a.Pod.UID, b.Pod.UID),
		)
	})
}

// shownRoom is 1 for a pod that a watched budget lets go, and 0 for any other.
func (d *decision) shownRoom(c candidate) int {
	if d.Live[c.Pod.Namespace] && !d.Budgets.Refuses(c.Pod) {
		return 1
	}
	return 0
}
