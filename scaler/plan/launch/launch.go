package launch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/outcome"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/recognition"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Launches are what groups were asked for and what came of it.
type Launches struct {
	*cluster.Cluster
	*outcome.Outcome
	*recognition.Recognition
}

// New has done nothing yet.
func New(c *cluster.Cluster, out *outcome.Outcome, r *recognition.Recognition) *Launches {
	return &Launches{Cluster: c, Outcome: out, Recognition: r}
}

// A group grows in one of two ways. SetDesiredCapacity sets how many instances there shall be, and
// Auto Scaling chooses their zones; asked twice it does nothing more. By LaunchInstances it
// launches some more in one zone, and answers with what came; asked twice it would launch twice.
// There the client token is the guard. It is persisted before the call, and as long as no answer
// was seen every evaluation repeats the very same call, even after a restart; but for no longer
// than a node may take to come.
//
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html

const (
	// MostAtOnce is how many instances one call launches at the most.
	MostAtOnce = 100
	// tokenLife is how long AWS knows a token, from the first call. Within tokenDoubt of its end,
	// either way, it is not known whether it still does.
	tokenLife, tokenDoubt = 8 * time.Hour, 10 * time.Minute
	// ShownAfter is how long a launch that was answered may be missing from what
	// we read of its group.
	ShownAfter = time.Minute
	// unsteeredFor is how long a group for which LaunchInstances does not work
	// grows by SetDesiredCapacity before it is tried again.
	unsteeredFor = time.Hour
)

// RecallLaunches repeats the launches whose answer was not seen, counts on what was launched and
// does not show yet, and finds out which groups are steered.
func (d *Launches) RecallLaunches() {
	sums, awaited := map[brought]int{}, map[brought]bool{}
	for _, key := range slices.Sorted(maps.Keys(d.State.Launches)) {
		l := d.State.Launches[key]
		name, zone, part := fleet.ParseLaunchKey(key)
		g := d.GroupOf(name)
		if g == nil || !d.Now.Before(forgotten(l)) {
			delete(d.State.Launches, key)
			continue
		}
		switch {
		case !l.Answered && !d.Now.Before(l.At.Add(g.ProvisionTime(d.Policy))):
			d.giveUpLaunch(key, g, l)
			continue
		case !l.Answered:
			g.Unanswered = true
			d.Do(again(l, name, zone, part))
			d.Clock.At(l.At.Add(g.ProvisionTime(d.Policy)))
			if d.silent(g, l) {
				continue
			}
		case !d.Now.Before(l.At.Add(ShownAfter)):
			continue
		}
		l.Shown = d.countOn(g, zone, l, sums, awaited)
		d.State.Launches[key] = l
	}
	d.forgetUnsteered()
	for _, g := range d.Groups {
		g.Unsteered = d.whyUnsteered(g)
	}
}

// silent reports whether a launch has had no answer for so long that what it may have launched
// would show by now. Pods do not wait for it any more, and its group does not grow in another way
// while the same call is repeated.
func (d *Launches) silent(g *cluster.Group, l fleet.Launch) bool {
	if d.Now.Before(l.At.Add(ShownAfter)) {
		return false
	}
	if g.SilentSince.IsZero() || l.At.Before(g.SilentSince) {
		g.SilentSince = l.At
	}
	return true
}

// giveUpLaunch ends the repetition of a launch without an answer: its group grows by
// SetDesiredCapacity for a while.
func (d *Launches) giveUpLaunch(key string, g *cluster.Group, l fleet.Launch) {
	l.Answered = true
	d.State.Launches[key] = l
	d.State.Unsteered[g.Name] = cluster.BackOff(l.At.Add(g.ProvisionTime(d.Policy)+unsteeredFor), 1, "LaunchInstances has not answered since "+verdict.ClockTime(l.At))
}

// countOn counts on what a launch adds while the reading of its group may be older, and says whether
// as many were read once: from then on the readings alone say what is there, and what is terminated
// again is not waited for. Where an instance is known by name, that is asked of each reading, which may
// be older than the one before it, or have as many only because it has some that are gone.
func (d *Launches) countOn(g *cluster.Group, zone string, l fleet.Launch, sums map[brought]int, awaited map[brought]bool) (shown bool) {
	whole, there := brought{g, "", l.At}, brought{g, zone, l.At}
	n, before := l.Came, l.Had+sums[there]
	if !l.Answered {
		n = l.Count
	}
	shown = l.Named == "" && (l.Shown || l.Answered && g.LiveIn(zone) >= before+n)
	read := shown || l.Named != "" && slices.ContainsFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == l.Named })
	if read {
		n = min(n, max(0, g.LiveIn(zone)-before)) // those that are still there
	}
	sums[whole], sums[there] = sums[whole]+n, sums[there]+n
	if awaited[whole] = awaited[whole] || !read; awaited[whole] {
		g.Desired = max(g.Desired, l.Desired+sums[whole]) // with all of that evaluation: an older reading may show some
	}
	if read {
		return shown
	}
	if l.Named != "" {
		before = Had(g, zone) // none of those is one of its
	}
	expect(g, zone, before+n)
	d.Clock.At(l.At.Add(ShownAfter))
	return false
}

// brought is what the launches of one evaluation add to a group, in a zone or, where that is empty,
// in all. It comes on top of what was there and was promised then.
type brought struct {
	group *cluster.Group
	zone  string
	at    time.Time
}

// expect counts on nodes that do not show yet, so that there are n in the zone.
func expect(g *cluster.Group, zone string, n int) {
	for range n - Had(g, zone) {
		g.LaunchedIn = append(g.LaunchedIn, zone)
	}
}

// Had is how many live instances the group has in a zone, or was promised.
func Had(g *cluster.Group, zone string) int {
	n := g.LiveIn(zone)
	for _, z := range g.LaunchedIn {
		if z == zone {
			n++
		}
	}
	return n
}

// forgotten is from when on a launch is not spoken of any more. An unanswered one
// is not repeated when AWS might take the token for a new one, and what became of
// it shows by then. An answered one keeps its number until no token of it is left.
func forgotten(l fleet.Launch) time.Time {
	if l.Answered {
		return l.At.Add(tokenLife + tokenDoubt)
	}
	return l.At.Add(tokenLife - tokenDoubt)
}

func again(l fleet.Launch, group, zone string, part int) action.Grow {
	return action.Grow{
		Group: group, Zone: zone, From: l.Desired, To: l.Desired + l.Count,
		Token: l.Token, Count: l.Count, Attempt: l.Attempt, Part: part, Again: true,
	}
}

// forgetUnsteered forgets groups that were deleted and back-offs that are over.
func (d *Launches) forgetUnsteered() {
	maps.DeleteFunc(d.State.Unsteered, func(name string, b fleet.BackOff) bool {
		return d.GroupOf(name) == nil || !d.Now.Before(b.Until)
	})
	for _, b := range d.State.Unsteered {
		d.Clock.At(b.Until)
	}
}

// whyUnsteered says why the zones of a group's new nodes are not ours to choose;
// nil if they are.
func (d *Launches) whyUnsteered(g *cluster.Group) verdict.Details {
	if b, paused := d.State.Unsteered[g.Name]; paused {
		return verdict.Quote(b.Cause).Then(verdict.Say("tried again at {until}", verdict.Until(b.Until)))
	}
	switch {
	case !g.Synchronous:
		return verdict.Say("LaunchInstances wants a launch template, and instances that are all on demand or all spot")
	case g.WarmPool != nil:
		return verdict.Say("LaunchInstances is not for groups with a warm pool")
	case len(g.Live) > g.Desired:
		// It adds to what is desired. Auto Scaling would end as many as there are
		// too many of, and not necessarily those.
		return verdict.Say("it has {count} instances and wants {desired}", verdict.Count(len(g.Live)), verdict.Desired(g.Desired))
	}
	return nil
}

// Answer is what became of a Grow with a token.
type Answer struct {
	// Unsent: nothing was asked of AWS, or the request did not reach it.
	Unsent bool
	// Seen: AWS has answered, and how many instances Came. With neither, the outcome is unknown,
	// and the call is repeated.
	Seen bool
	Came int
	// Named is the id of one of them, where it is known.
	Named string
	// Failures say why others did not come.
	Failures []fleet.Failure
	// Unsteered says why LaunchInstances does not work for the group, empty if it
	// does.
	Unsteered string
}

// FallsShort reports whether the next evaluation has to find another way.
func (a Answer) FallsShort() bool { return a.Seen && (len(a.Failures) > 0 || a.Unsteered != "") }

// deniedFor is how long a group is passed over that we have no right to grow. Somebody
// may give it at any moment.
const deniedFor = 30 * time.Second

// Denied is the state after a group could not be grown for want of a right, with the words
// for that: pods go to another one for a while.
func Denied(state fleet.State, group, lack string, at time.Time) fleet.State {
	b := cluster.BackOff(at.Add(deniedFor), 1, lack)
	state.BackOffs = added(state.BackOffs, fleet.BackOffKey(group, "", "NoRight"), b)
	return state
}

// Hear is the state after the answer to a Grow with a token, which came at some
// moment: the next launch there is another one, and what failed is backed off. groups
// are those of the snapshot that was decided on.
func Hear(p policy.Policy, state fleet.State, groups []fleet.Group, x action.Grow, a Answer, at time.Time) fleet.State {
	key := fleet.LaunchKey(x.Group, x.Zone, x.Part)
	l, known := state.Launches[key]
	if !a.Seen || !known || l.Token != x.Token {
		return state
	}
	l.Answered, l.Came, l.Named = true, a.Came, a.Named
	state.Launches = added(state.Launches, key, l)
	if a.Unsteered != "" {
		b := cluster.BackOff(at.Add(unsteeredFor), 1, a.Unsteered)
		state.Unsteered = added(state.Unsteered, x.Group, b)
	}
	for _, f := range a.Failures {
		f.At = at // whoever made the call may have another clock
		state.BackOffs = Blame(p, state.BackOffs, groups, x.Group, f)
	}
	return state
}

func added[V any](m map[string]V, key string, v V) map[string]V {
	m = outcome.Copied(m)
	m[key] = v
	return m
}

// LowerUnfulfilled lowers the desired capacity of groups by what they do not get, so that this is
// not launched when it is not needed any more. Auto Scaling chooses which it ends where a group has
// more than it wants, and an instance may come between our reading and the call. So this is done
// only where none that is there can be chosen, and where nothing has come, and nothing can, for as
// long as a node may take to. It stays as it is where instances are being terminated: whoever takes
// them wants them replaced. What this plan ends afterwards goes by what is left.
func (d *Launches) LowerUnfulfilled() {
	for _, g := range d.Groups {
		to := max(g.Min, len(g.Live))
		rest := g.BackOff()
		if g.Desired <= to || rest == nil || g.Unanswered || len(g.LaunchedIn) > 0 || len(g.Fresh) > 0 || g.Ended > 0 || g.Refresh != nil || g.Held != "" {
			continue
		}
		if slices.ContainsFunc(g.Instances, fleet.Instance.Terminating) || !Protected(g) {
			continue
		}
		// Without a persisted growth it was not us who asked for them.
		grown, known := d.State.GrownAt[g.Name]
		if due := d.After(grown, g.ProvisionTime(d.Policy)); !known || d.Now.Before(due) {
			d.Clock.At(due)
			continue
		}
		asked := d.State.Recognition.Asked[g.Name].Count
		delete(d.State.Recognition.Asked, g.Name) // who comes now was not asked for
		g.Lowered += max(0, g.Read-to)
		d.Do(action.Lower{Group: g.Name, From: g.Desired, To: to, Drops: asked, Why: fmt.Sprintf("%d were not launched within %s, after %s", g.Desired-to, g.ProvisionTime(d.Policy), rest.Cause)})
	}
}

// Protected reports whether Auto Scaling may not choose any live instance to end.
func Protected(g *cluster.Group) bool {
	return !slices.ContainsFunc(g.Live, func(i *fleet.Instance) bool { return !i.Protected })
}
