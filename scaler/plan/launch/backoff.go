package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// BackOffGroups learns from launches that failed, and from those of which no node came. Where a
// back-off runs nothing is grown, and what Auto Scaling still owes there does not count as
// upcoming.
func (d *Launches) BackOffGroups() {
	all := make([]*fleet.Group, len(d.Groups))
	for i, g := range d.Groups {
		all[i] = g.Group
	}
	for _, g := range d.Groups {
		for _, f := range failures(g) {
			for _, key := range concerned(all, g.Group, f) {
				d.learnOf(key, f)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.State.BackOffs)) {
		b := d.State.BackOffs[key]
		if d.Now.After(b.Until.Add(d.Policy.BackOffReset)) {
			delete(d.State.BackOffs, key)
			continue
		}
		name, zone, _ := fleet.ParseBackOffKey(key)
		if g := d.GroupOf(name); g != nil && d.Now.Before(b.Until) {
			backOff(g, zone, b)
			d.Clock.At(b.Until)
		}
	}
}

func (d *Launches) learnOf(key string, f fleet.Failure) {
	b := Learn(d.Policy, d.State.BackOffs[key], f)
	if d.Now.After(b.Until.Add(d.Policy.BackOffReset)) {
		return // Auto Scaling lists failures for weeks
	}
	d.State.BackOffs[key] = b
}

// backOff notes a running back-off; of several in one zone the longest counts.
func backOff(g *cluster.Group, zone string, b fleet.BackOff) {
	if longest, ok := g.BackOffs[zone]; !ok || b.Until.After(longest.Until) {
		g.BackOffs[zone] = b
	}
}

// Open is the node templates in zones where no back-off runs, and how many nodes the group has in
// each.
func Open(g *cluster.Group) (looks []*fit.NodeTemplate, have []int) {
	for i, l := range g.Templates {
		if g.BackOffIn(l.Zone) == nil {
			looks, have = append(looks, l), append(have, g.Have[i])
		}
	}
	return looks, have
}

// BackOff puts a back-off into words, by its key in fleet.State.BackOffs: whose it is,
// until when, and after what.
func BackOff(key string, b fleet.BackOff) string {
	group, zone, _ := fleet.ParseBackOffKey(key)
	pause := verdict.BackOff(b.Until, b.Cause)
	if zone != "" {
		pause = verdict.NotIn(b.Cause, []string{zone}, b.Until)
	}
	return fmt.Sprintf("%s: %s", group, cluster.Remedy(pause, &b))
}

// failures are all that went wrong with launches of the group, the oldest first.
func failures(g *cluster.Group) []fleet.Failure {
	list := slices.Clone(g.Failures)
	for _, f := range g.Lost {
		if f.Cause != "" {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b fleet.Failure) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Zone, b.Zone))
	})
	return list
}

// Learn takes one failure into account; the result belongs into
// fleet.State.BackOffs, also where Auto Scaling has refused to grow a group. A
// failure during the back-off is of the same trouble and only makes it start again;
// the next one after it doubles the back-off; after a long time without any the
// count begins anew.
func Learn(p policy.Policy, b fleet.BackOff, f fleet.Failure) fleet.BackOff {
	count := b.Count
	switch {
	case count > 0 && !f.At.After(b.Until.Add(-nextBackOff(p, count))):
		return b // seen before
	case count == 0, f.At.After(b.Until.Add(p.BackOffReset)):
		count = 1
	case !f.At.Before(b.Until):
		count++
	}
	return cluster.BackOff(f.At.Add(nextBackOff(p, count)), count, f.Cause)
}

// nextBackOff is how long the group is backed off after that many failures.
func nextBackOff(p policy.Policy, count int) time.Duration {
	return Doubled(p.BackOff, count, p.MaxBackOff)
}

// Doubled is first for a count of 1 and twice as much for each more, up to most.
func Doubled(first time.Duration, count int, most time.Duration) time.Duration {
	d := first
	for range count - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return min(d, most)
}
