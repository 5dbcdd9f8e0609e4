package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// A group grows in one of two ways. By SetDesiredCapacity Auto Scaling is told how
// many instances there shall be, and chooses their zones; asked twice it does
// nothing more. By LaunchInstances it launches some more in one zone, and answers
// with what came; asked twice it would launch twice. There the client token is the
// guard. It stands in the memory before the call, and as long as no answer was
// seen every look repeats the very same call, whoever died in between; but for no
// longer than a node may take to come.
//
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launching-instances-synchronous-provisioning.html

const (
	// mostAtOnce is how many instances one call launches at the most.
	mostAtOnce = 100
	// tokenLife is how long AWS knows a token, from the first call. Within
	// tokenDoubt of its end, either way, nobody knows whether it still does.
	tokenLife, tokenDoubt = 8 * time.Hour, 10 * time.Minute
	// shownAfter is how long a launch that was answered may be missing from what
	// we read of its group.
	shownAfter = time.Minute
	// unsteeredFor is how long a group for which LaunchInstances does not work
	// grows by SetDesiredCapacity before it is tried again.
	unsteeredFor = time.Hour
)

// recallLaunches repeats the launches whose answer nobody has seen, counts on what
// was launched and does not show yet, and finds out which groups are steered.
func (d *decision) recallLaunches() {
	sums, awaited := map[brought]int{}, map[brought]bool{}
	for _, key := range slices.Sorted(maps.Keys(d.state.Launches)) {
		l := d.state.Launches[key]
		name, zone, part := fleet.ParseLaunchKey(key)
		g := d.groupOf(name)
		if g == nil || !d.now.Before(forgotten(l)) {
			delete(d.state.Launches, key)
			continue
		}
		switch {
		case !l.Answered && !d.now.Before(l.At.Add(d.policy.MaxNodeProvisionTime)):
			d.giveUpLaunch(key, g, l)
			continue
		case !l.Answered:
			g.unanswered = true
			d.do(again(l, name, zone, part))
			d.clock.at(l.At.Add(d.policy.MaxNodeProvisionTime))
			if d.silent(g, l) {
				continue
			}
		case !d.now.Before(l.At.Add(shownAfter)):
			continue
		}
		l.Shown = d.countOn(g, zone, l, sums, awaited)
		d.state.Launches[key] = l
	}
	d.forgetUnsteered()
	for _, g := range d.groups {
		g.unsteered = d.whyUnsteered(g)
	}
}

// silent says that a launch has had no answer for so long that what it may have
// brought would show by now. Pods do not wait for it any more, and its group does not
// grow in another way while the same call is repeated.
func (d *decision) silent(g *group, l fleet.Launch) bool {
	if d.now.Before(l.At.Add(shownAfter)) {
		return false
	}
	if g.silentSince.IsZero() || l.At.Before(g.silentSince) {
		g.silentSince = l.At
	}
	return true
}

// giveUpLaunch ends the repetition of a launch without an answer: its group grows by
// SetDesiredCapacity for a while.
func (d *decision) giveUpLaunch(key string, g *group, l fleet.Launch) {
	l.Answered = true
	d.state.Launches[key] = l
	d.state.Unsteered[g.Name] = backOff(l.At.Add(d.policy.MaxNodeProvisionTime+unsteeredFor), 1, "LaunchInstances has not answered since "+clockTime(l.At))
}

// countOn counts on what a launch brings until its group was read with it once, and
// says whether it was: from then on the readings alone say what is there, and nobody
// waits for what is gone again.
func (d *decision) countOn(g *group, zone string, l fleet.Launch, sums map[brought]int, awaited map[brought]bool) (shown bool) {
	whole, there := brought{g, "", l.At}, brought{g, zone, l.At}
	n, before := l.Came, l.Had+sums[there]
	if !l.Answered {
		n = l.Count
	}
	shown = l.Shown || l.Answered && g.liveIn(zone) >= before+n
	if shown {
		n = min(n, max(0, g.liveIn(zone)-before)) // those that are still there
	}
	sums[whole], sums[there] = sums[whole]+n, sums[there]+n
	if awaited[whole] = awaited[whole] || !shown; awaited[whole] {
		g.Desired = max(g.Desired, l.Desired+sums[whole]) // with all of that look: an older reading may show some
	}
	if shown {
		return true
	}
	g.expect(zone, before+n)
	d.clock.at(l.At.Add(shownAfter))
	return false
}

// brought is what the launches of one look bring to a group, in a zone or, where
// that is empty, in all. It comes on top of what was there and was promised then.
type brought struct {
	group *group
	zone  string
	at    time.Time
}

// expect counts on nodes that do not show yet, so that there are n in the zone.
func (g *group) expect(zone string, n int) {
	for range n - g.had(zone) {
		g.promised = append(g.promised, zone)
	}
}

// had is how many live instances the group has in a zone, or was promised.
func (g *group) had(zone string) int {
	n := g.liveIn(zone)
	for _, z := range g.promised {
		if z == zone {
			n++
		}
	}
	return n
}

// liveIn is how many live instances the group was read with in a zone.
func (g *group) liveIn(zone string) int {
	n := 0
	for _, i := range g.live {
		if i.Zone == zone {
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

func again(l fleet.Launch, group, zone string, part int) Grow {
	return Grow{
		Group: group, Zone: zone, From: l.Desired, To: l.Desired + l.Count,
		Token: l.Token, Count: l.Count, Attempt: l.Attempt, Part: part, Again: true,
	}
}

func (d *decision) groupOf(name string) *group {
	i, ok := slices.BinarySearchFunc(d.groups, name, func(g *group, name string) int { return cmp.Compare(g.Name, name) })
	if !ok {
		return nil
	}
	return d.groups[i]
}

// forgetUnsteered forgets groups that are gone and pauses that are over.
func (d *decision) forgetUnsteered() {
	maps.DeleteFunc(d.state.Unsteered, func(name string, b fleet.BackOff) bool {
		return d.groupOf(name) == nil || !d.now.Before(b.Until)
	})
	for _, b := range d.state.Unsteered {
		d.clock.at(b.Until)
	}
}

// whyUnsteered says why the zones of a group's new nodes are not ours to choose;
// empty if they are.
func (d *decision) whyUnsteered(g *group) string {
	if b, paused := d.state.Unsteered[g.Name]; paused {
		return fmt.Sprintf("%s; tried again at %s", b.Cause, clockTime(b.Until))
	}
	switch {
	case !g.Synchronous:
		return "LaunchInstances wants a launch template, and instances that are all on demand or all spot"
	case g.WarmPool != nil:
		return "LaunchInstances is not for groups with a warm pool"
	case len(g.live) > g.Desired:
		// It adds to what is desired. Auto Scaling would end as many as there are
		// too many of, and not necessarily those.
		return fmt.Sprintf("it has %d instances and wants %d", len(g.live), g.Desired)
	}
	return ""
}

// grows are the calls by which a group gets its fresh nodes: one for all, or, where
// their zones are ours to choose, one for each zone and hundred.
func (d *decision) grows(g *group) []Grow {
	if g.unsteered != "" {
		return []Grow{{Group: g.Name, From: g.Desired, To: g.base() + len(g.fresh), For: d.podsOf(g.fresh)}}
	}
	byZone := map[string][]*fit.Place{}
	for _, p := range g.fresh {
		zone := p.Looks().Zone
		byZone[zone] = append(byZone[zone], p)
	}
	var calls []Grow
	at := g.Desired
	for _, zone := range slices.Sorted(maps.Keys(byZone)) {
		part := 0
		for places := range slices.Chunk(byZone[zone], mostAtOnce) {
			x := d.launch(g, zone, part, at, len(places))
			x.For, x.Follows = d.podsOf(places), len(calls) > 0
			calls = append(calls, x)
			at, part = x.To, part+1
		}
	}
	return calls
}

func (d *decision) podsOf(places []*fit.Place) []PodRef {
	seated := make([][]fit.Tenant, len(places))
	for i, p := range places {
		seated[i] = slices.DeleteFunc(p.Tenants(), func(t fit.Tenant) bool { return imaginary(t.Pod) })
	}
	return refs(d.inOrder(slices.Concat(seated...)))
}

// launch notes a launch of some nodes in a zone and returns the call.
func (d *decision) launch(g *group, zone string, part, from, count int) Grow {
	key := fleet.LaunchKey(g.Name, zone, part)
	l := fleet.Launch{Count: count, Desired: g.Desired, Had: g.had(zone), Attempt: d.state.Launches[key].Attempt + 1, At: d.now}
	l.Token = token(g, zone, from, count, l.Attempt)
	d.state.Launches[key] = l
	return Grow{
		Group: g.Name, Zone: zone, From: from, To: from + count,
		Token: l.Token, Count: count, Attempt: l.Attempt, Part: part,
	}
}

// token is the same for the same launch, seen from the same state of the group:
// who decides again without knowing that it was decided before repeats the call.
func token(g *group, zone string, from, count, attempt int) string {
	ids := make([]string, len(g.live))
	for i, instance := range g.live {
		ids[i] = instance.ID
	}
	slices.Sort(ids)
	text := strings.Join([]string{
		cmp.Or(g.ARN, g.Name), zone, strconv.Itoa(from), strings.Join(ids, ","), strconv.Itoa(count), strconv.Itoa(attempt),
	}, "\n")
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Answer is what became of a Grow with a token.
type Answer struct {
	// Unsent says that nothing was asked of AWS, or that it did not listen.
	Unsent bool
	// Seen says that AWS has answered, and how many instances Came. With neither,
	// nobody knows, and the call is repeated.
	Seen bool
	Came int
	// Failures say why others did not come.
	Failures []fleet.Failure
	// Unsteered says why LaunchInstances does not work for the group, empty if it
	// does.
	Unsteered string
}

// FallsShort says that the next look has to find another way.
func (a Answer) FallsShort() bool { return a.Seen && (len(a.Failures) > 0 || a.Unsteered != "") }

// deniedFor is how long a group is passed over that we have no right to grow. Somebody
// may give it at any moment.
const deniedFor = 30 * time.Second

// Denied is the state after a group could not be grown for want of a right, with the words
// for that: pods go to another one for a while.
func Denied(state fleet.State, group, lack string, at time.Time) fleet.State {
	b := backOff(at.Add(deniedFor), 1, lack)
	state.BackOffs = added(state.BackOffs, fleet.BackOffKey(group, "", "NoRight"), b)
	return state
}

// Hear is the state after the answer to a Grow with a token, which came at some
// moment: the next launch there is another one, and what failed is paused. groups
// are those of the snapshot that was decided on.
func (p Policy) Hear(state fleet.State, groups []fleet.Group, x Grow, a Answer, at time.Time) fleet.State {
	key := fleet.LaunchKey(x.Group, x.Zone, x.Part)
	l, known := state.Launches[key]
	if !a.Seen || !known || l.Token != x.Token {
		return state
	}
	l.Answered, l.Came = true, a.Came
	state.Launches = added(state.Launches, key, l)
	if a.Unsteered != "" {
		b := backOff(at.Add(unsteeredFor), 1, a.Unsteered)
		state.Unsteered = added(state.Unsteered, x.Group, b)
	}
	for _, f := range a.Failures {
		state.BackOffs = p.Blame(state.BackOffs, groups, x.Group, f)
	}
	return state
}

func added[V any](m map[string]V, key string, v V) map[string]V {
	m = copied(m)
	m[key] = v
	return m
}

// lowerUnfulfilled takes back what groups want and do not get, so that it does not
// come when nobody needs it any more. Auto Scaling chooses whom it ends where a
// group has more than it wants, and an instance may come between our look and the
// call. So this is done only where none that is there can be chosen, and where
// nothing has come, and nothing can, for as long as a node may take to. It stays
// as it is where instances are on their way out: whoever takes them wants them
// replaced.
func (d *decision) lowerUnfulfilled() {
	for _, g := range d.groups {
		to := max(g.Min, len(g.live))
		rest := g.paused()
		if g.Desired <= to || rest == nil || g.unanswered || len(g.promised) > 0 || len(g.fresh) > 0 || g.ended > 0 || g.Refresh != nil {
			continue
		}
		if slices.ContainsFunc(g.Instances, fleet.Instance.Leaving) || !g.protected() {
			continue
		}
		// Without a memory of growing it was not us who asked for them.
		grown, known := d.state.GrownAt[g.Name]
		if due := d.after(grown, d.policy.MaxNodeProvisionTime); !known || d.now.Before(due) {
			d.clock.at(due)
			continue
		}
		asked := d.state.Recognition.Asked[g.Name].Count
		delete(d.state.Recognition.Asked, g.Name) // who comes now was not asked for
		d.do(Lower{Group: g.Name, From: g.Desired, To: to, Drops: asked, Why: fmt.Sprintf("%d have not come within %s, after %s", g.Desired-to, d.policy.MaxNodeProvisionTime, rest.Cause)})
	}
}

// protected says that Auto Scaling may not choose any live instance to end.
func (g *group) protected() bool {
	return !slices.ContainsFunc(g.live, func(i *fleet.Instance) bool { return !i.Protected })
}
