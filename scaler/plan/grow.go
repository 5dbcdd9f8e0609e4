package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/scaler/fit"
)

// Processes of Auto Scaling that decisions ask for by name.
const (
	processLaunch    = "Launch"
	processTerminate = "Terminate"
)

// grow makes groups larger for the pods that are left, and settles their verdicts.
func (d *decision) grow() {
	d.refuse(d.growFor(d.left))
	for _, g := range d.gangs {
		d.growForGang(g)
	}
	d.fillToMinimum()
	putBack := d.growForBuffers()
	d.growForHeadRoom()
	putBack()
	d.tellBeside()
	for _, g := range d.groups {
		d.growBy(g)
	}
}

// growFor plans new nodes for pods in order, and returns those that none would help. Classes
// for which some group is not grown come last, one by one.
func (d *decision) growFor(pods []fit.Tenant) (refused []fit.Tenant) {
	all, some := d.believing(pods)
	refused = d.growEvenly(all)
	for len(some) > 0 {
		var alike []fit.Tenant
		class := some[0].Class
		alike, some = split(some, func(c *fit.Class) bool { return c == class })
		reopen := d.closeFor(alike[0].Class)
		refused = append(refused, d.growEvenly(alike)...)
		reopen()
	}
	return refused
}

// growEvenly plans new nodes for pods, and returns those that none would help. Pods that
// spread go by the zones that could get nodes, see expect. Where that leaves some
// without a place, as no node comes to a zone after all, they go by the zones that
// there are, as kube-scheduler does.
func (d *decision) growEvenly(pods []fit.Tenant) (refused []fit.Tenant) {
	if !slices.ContainsFunc(pods, spreads) {
		return d.growInTurn(pods)
	}
	d.foresees = true
	refused = d.growInTurn(pods)
	d.foresees = false
	if !slices.ContainsFunc(refused, spreads) {
		return refused
	}
	return d.growInTurn(d.inOrder(d.seatBeside(refused, d.there(refused))))
}

// growInTurn plans new nodes for pods in order, and returns those that none would help. The
// largest pod chooses first, because the fewest groups can take it; what room its
// new nodes have goes to the others, the largest first.
func (d *decision) growInTurn(pods []fit.Tenant) (refused []fit.Tenant) {
	left, planned, there := pods, 0, d.there(pods)
	for len(left) > 0 {
		var none []fit.Tenant
		if none, left = d.unaffordable(left); len(none) > 0 {
			refused = append(refused, none...)
		} else if none, left = d.helpless(left); len(none) > 0 {
			refused = append(refused, none...)
		} else if rest, ok := d.draw(left, there); ok {
			left = d.inOrder(d.seatBeside(rest, there))
			planned++
		} else if !d.ration.Spent(left[0].Pod.Namespace) {
			class := left[0].Class
			none, left = split(left, func(c *fit.Class) bool { return c == class })
			refused = append(refused, none...)
		}
		if len(left) == 0 && planned > 0 && slices.ContainsFunc(refused, followsOthers) {
			// What was refused may have wanted company that has a node only now.
			left, refused, planned = d.inOrder(d.seatBeside(refused, there)), nil, 0
		}
	}
	return refused
}

// helpless separates the pods in front of which no group's new node would take any, up to
// the first that one would take, and their like from the others.
func (d *decision) helpless(pods []fit.Tenant) (none, others []fit.Tenant) {
	var classes map[*fit.Class]bool
	for _, t := range pods {
		if classes[t.Class] {
			continue
		}
		if !d.ration.Ask(t.Pod.Namespace) || len(d.able(t.Class)) > 0 {
			break
		}
		if classes == nil {
			classes = map[*fit.Class]bool{}
		}
		classes[t.Class] = true
	}
	if classes == nil {
		return nil, pods
	}
	return split(pods, func(c *fit.Class) bool { return classes[c] })
}

// unaffordable separates the pods about which no more may be asked in this evaluation.
func (d *decision) unaffordable(pods []fit.Tenant) (none, others []fit.Tenant) {
	if !d.ration.Tight() {
		return nil, pods
	}
	for _, t := range pods {
		if d.ration.Spent(t.Pod.Namespace) {
			none = append(none, t)
			d.unasked[asking{class: t.Class, namespace: t.Pod.Namespace}] = true
		} else {
			others = append(others, t)
		}
	}
	return none, others
}

// split separates the pods of some classes from the others.
func split(pods []fit.Tenant, of func(*fit.Class) bool) (these, others []fit.Tenant) {
	for _, t := range pods {
		if of(t.Class) {
			these = append(these, t)
		} else {
			others = append(others, t)
		}
	}
	return these, others
}

// there are the nodes that are there, and those that come, where one of these pods may
// find a place once others have theirs.
func (d *decision) there(pods []fit.Tenant) []*fit.Place {
	if !slices.ContainsFunc(pods, followsOthers) {
		return nil
	}
	return slices.Concat(places(d.in(serving, cordoned, leaving)), d.staying(), d.coming)
}

// seatBeside seats pods at nodes that are there and at the new ones that are planned
// already, and returns the others. Only one that goes where others are, or spreads evenly
// with them, may find a seat there that it did not find before.
func (d *decision) seatBeside(pods []fit.Tenant, there []*fit.Place) (left []fit.Tenant) {
	if !slices.ContainsFunc(pods, followsOthers) {
		return pods
	}
	grow := slices.DeleteFunc(slices.Clone(d.groups), func(g *group) bool { return len(g.fresh) == 0 })
	defer d.expect(grow...)()
	old, fresh := d.fit.NewRow(there), d.fit.NewRow(d.allFresh())
	for _, t := range pods {
		switch {
		case !followsOthers(t):
			left = append(left, t)
		case d.seatedAt(t, old.Seat(t)), fresh.Seat(t) != nil:
		default:
			left = append(left, t)
		}
	}
	return left
}

// seatedAt notes that a pod has a place that is there already, once the new nodes that are
// planned are there too; it says whether there is such a place.
func (d *decision) seatedAt(t fit.Tenant, at *fit.Place) bool {
	if at == nil {
		return false
	}
	d.beside = append(d.beside, fit.Seat{Tenant: t, At: at})
	return true
}

// tellBeside settles the verdicts of pods that new nodes help without being theirs.
func (d *decision) tellBeside() {
	for _, s := range d.beside {
		where := s.At.Name
		if d.node(where) != nil {
			where = "node " + where
		}
		d.sayPod(s.Tenant, PodFitsComing, "", fmt.Sprintf("%s has room for it as soon as the new nodes are there that are asked for now", where))
	}
}

// followsOthers says that where other pods are may open a place to this one.
func followsOthers(t fit.Tenant) bool { return t.Class.Follows() }

// options are the groups that could take the first of these pods, the others going
// along where they fit.
func (d *decision) options(left []fit.Tenant, there []*fit.Place) []option {
	var options []option
	for _, g := range d.able(left[0].Class) {
		room, _ := g.room()
		over, start := d.expect(g), d.fit.Fork()
		packing := d.fit.Pack(left, there, g.supply(room))
		if len(packing.Places) > 0 {
			options = append(options, d.newOption(g, packing))
		}
		d.fit.Revert(start)
		over()
	}
	return options
}

// able are the groups that have room and whose nodes would take the class.
func (d *decision) able(class *fit.Class) []*group {
	var groups []*group
	for _, g := range d.groups {
		if room, _ := g.room(); room > 0 && d.fitsNew(class, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

func (d *decision) fitsNew(c *fit.Class, g *group) bool {
	if c.Spreads() {
		defer d.expect(g)()
	}
	looks, _ := g.open()
	return d.fit.Takes(c, looks)
}

// draw plans new nodes of the best group for the first of these pods and those that
// go along, and returns the pods that are left; ok says that there is such a group.
// Groups that are alike help it out: only together may they have the zones over
// which pods have to spread. What would leave the last node half empty goes to a
// group that suits it better, if there is one.
func (d *decision) draw(pods []fit.Tenant, there []*fit.Place) (left []fit.Tenant, ok bool) {
	var options []option
	if able := d.able(pods[0].Class); len(able) == 1 {
		options = []option{{group: able[0], pods: 1, nodes: 1, work: 1, hourly: able[0].price()}} // no need to weigh it
	} else {
		options = d.options(pods, there)
	}
	if len(options) == 0 {
		return pods, false
	}
	groups := d.likeTheBest(options)
	supplies := d.supplies(groups)
	defer d.expect(groups...)()
	start := d.fit.Fork()
	packing := d.fit.Pack(pods, there, supplies...)
	if last, of := tail(packing); last != nil {
		full := supplies[of].Limit
		d.fit.Revert(start)
		supplies[of].Limit = count(packing.From, of) - 1
		packing = d.fit.Pack(pods, there, supplies...)
		if !d.betterOff(last, there, groups[of]) {
			d.fit.Revert(start)
			supplies[of].Limit = full
			packing = d.fit.Pack(pods, there, supplies...)
		}
	}
	for i, p := range packing.Places {
		d.open(groups[packing.From[i]], p)
	}
	d.beside = append(d.beside, packing.Seats...)
	return packing.Left, len(packing.Places) > 0
}

// tail is the pods on the last new node, if that is not the only one and more than
// half of it stays free, and of which supply it is.
func tail(p fit.Packing) (pods []fit.Tenant, of int) {
	n := len(p.Places)
	if n < 2 || fit.Waste(p.Places[n-1:]) <= 0.5 {
		return nil, 0
	}
	return p.Places[n-1].Tenants(), p.From[n-1]
}

func count(list []int, n int) int {
	sum := 0
	for _, x := range list {
		if x == n {
			sum++
		}
	}
	return sum
}

// betterOff says that for these pods alone a group would be chosen that is not like
// that one.
func (d *decision) betterOff(pods []fit.Tenant, there []*fit.Place, than *group) bool {
	options := d.options(d.inOrder(pods), there)
	if len(options) == 0 {
		return false
	}
	best := d.best(options)
	return best.group != than && best.left == 0 && !slices.Contains(d.kinOf(than), best.group)
}

// likeTheBest is the best group and those that are like it: first those that could
// take the first pod too, in the order in which they would be chosen, then the
// others by name.
func (d *decision) likeTheBest(options []option) []*group {
	best := d.best(options).group
	groups := []*group{best}
	rest := slices.Clone(options)
	for len(rest) > 0 {
		next := d.best(rest).group
		rest = slices.DeleteFunc(rest, func(o option) bool { return o.group == next })
		if next != best && slices.Contains(d.kinOf(best), next) {
			groups = append(groups, next)
		}
	}
	for _, g := range d.kinOf(best) {
		if room, _ := g.room(); room > 0 && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// supplies are where the new nodes of groups come from. If the cluster has not room
// for all that they could be, the first is asked alone.
func (d *decision) supplies(groups []*group) []fit.Supply {
	var supplies []fit.Supply
	total := 0
	for i, g := range groups {
		room, _ := g.room()
		s := g.supply(room)
		if !d.policy.BalanceSimilar {
			s.Rank = i
		}
		supplies = append(supplies, s)
		total += room
	}
	if most, _ := d.cluster.room(groups[0]); total > most {
		return supplies[:1]
	}
	return supplies
}

// supply is where up to limit new nodes of the group come from: zones in which no
// pause runs. Where the zone is not ours to choose and a pod needs one that is not
// next, Auto Scaling has to be asked for those before it too.
func (g *group) supply(limit int) fit.Supply {
	looks, have := g.open()
	return fit.Supply{
		Name: "group " + g.Name, Looks: looks, Have: have, Limit: limit,
		Steered: g.unsteered == "", Detour: max(0, len(looks)-1-g.detours()),
	}
}

// detours counts new nodes that are planned only to reach the zone of another.
func (g *group) detours() int {
	n := 0
	for _, p := range g.fresh {
		if len(p.Seated()) == 0 {
			n++
		}
	}
	return n
}

// base is what the group grows from. Auto Scaling may have more instances than
// desired for a while; asking for fewer than there are would end some of them.
func (g *group) base() int { return max(g.Desired, len(g.live)) }

// room is how many nodes the group may still grow by; if none, why.
func (g *group) room() (n int, whyNot string) {
	switch {
	case g.aside:
		return 0, "it is not asked"
	case len(g.looks) == 0 && len(g.Faults) > 0:
		return 0, strings.Join(g.Faults, "; ")
	case len(g.looks) == 0:
		return 0, "nothing is known of what its nodes look like"
	case g.foreign():
		return 0, "its instances are no Nodes of this cluster, and a new one would most likely be none either"
	case g.suspended(processLaunch):
		return 0, "its Launch process is suspended"
	case g.paused() != nil:
		return 0, g.resting()
	case g.ill != "":
		return 0, g.ill
	case g.closed != "":
		return 0, g.closed
	case !g.silentSince.IsZero():
		return 0, "LaunchInstances has not answered since " + clockTime(g.silentSince)
	}
	n = g.Max - g.base() - len(g.fresh)
	if n <= 0 {
		return 0, fmt.Sprintf("at its maximum of %d", g.Max)
	}
	most, whyNot := g.cluster.room(g)
	return min(n, most), whyNot
}

func (g *group) suspended(process string) bool { return slices.Contains(g.Suspended, process) }

// refuse settles the verdicts of pods that no new node would help. Those that are
// only foreseen to wait stay where they are.
func (d *decision) refuse(pods []fit.Tenant) {
	type verdict struct {
		reason  Reason
		message string
	}
	verdicts, explained := map[*fit.Class]verdict{}, map[string]int{}
	for _, t := range d.releaseFor(pods) {
		v, known := verdicts[t.Class]
		space := t.Pod.Namespace
		switch {
		case d.unasked[asking{class: t.Class, namespace: space}]:
			v = verdict{PodBudgetSpent, d.budgetSpent(space)}
		case known:
		case explained[space] >= d.policy.Bounds.Explained:
			v.reason, v.message = d.whyNotBriefly(t, fmt.Sprintf("so many kinds of pods of namespace %s find no node", space))
		case !d.ration.Ask(space):
			v.reason, v.message = d.whyNotBriefly(t, fmt.Sprintf("an evaluation bears so much work, and the pods of namespace %s that wait have used up its share", space))
		default:
			explained[space]++
			v.reason, v.message = d.whyNot(t.Class)
			verdicts[t.Class] = v
			d.homeless = append(d.homeless, t)
		}
		d.sayPod(t, v.reason, "", v.message)
		d.settleBack(t)
	}
}

// oldestLeft is the UID of the pod that was created first of those for which groups
// grow.
func (d *decision) oldestLeft() string {
	if d.oldest != "" {
		return d.oldest
	}
	pods := slices.Clip(d.left)
	for _, g := range d.gangs {
		pods = append(pods, g.pods...)
	}
	if len(pods) > 0 {
		d.oldest = string(slices.MinFunc(pods, func(a, b fit.Tenant) int {
			return cmp.Or(a.Pod.Created.Compare(b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
		}).Pod.UID)
	}
	return d.oldest
}

// urgent is how long pods wait, from when kube-scheduler found no place for them, so
// that nothing else is asked in a look in which groups grow for them.
const urgent = 10 * time.Second

// growing says that a group grows in this look for pods that have not waited for long.
// If it is for others, what has been tried before has not helped, and need not hold up
// all else.
func (d *decision) growing() bool {
	return slices.ContainsFunc(d.groups, func(g *group) bool {
		return g.grows && slices.ContainsFunc(g.fresh, func(p *fit.Place) bool {
			return slices.ContainsFunc(p.Seated(), d.isUrgent)
		})
	})
}

func (d *decision) isUrgent(t fit.Tenant) bool {
	since := t.Pod.Created
	if t.Pod.Judged.After(since) {
		since = t.Pod.Judged
	}
	return d.now.Sub(since) < urgent
}

// lookAgain is when nodes that nobody may need are looked at, after a look in which
// groups grew.
const lookAgain = time.Second

// leaveNodes says of every node where it stands. Whether it could go is not asked
// while pods wait and groups grow for them: that takes most of the time of a look,
// and the pods shall not wait for it. Marks stay as they are.
func (d *decision) leaveNodes() {
	for _, n := range d.nodes {
		d.sayStage(n)
		if n.reason == "" {
			n.say(NodeNotAsked, "groups grow; whether it is needed is asked after that")
		}
		if n.reason == NodeNotAsked || n.stage == unready { // of which more is to be said, too
			d.clock.at(d.now.Add(lookAgain))
		}
	}
}

// growBy turns the new nodes of a group into actions, and tells the pods.
func (d *decision) growBy(g *group) {
	if len(g.fresh) == 0 {
		return
	}
	message := fmt.Sprintf("group %s grows %d→%d for it%s", g.Name, g.Desired, g.base()+len(g.fresh), g.delay())
	for _, p := range g.fresh {
		for _, t := range p.Seated() {
			d.sayPod(t, PodGetsNode, g.Name, message)
		}
	}
	if pace := d.paceOf(g.Name); d.now.Before(pace) {
		d.clock.at(pace)
		return
	}
	if g.unanswered {
		return // what is under way is counted already; the answer brings the next look
	}
	asks := g.base() + len(g.fresh) - g.Desired
	d.askFor(g, asks)
	for _, x := range d.grows(g) {
		x.Why, x.Asks = g.stead, asks
		asks = 0
		d.do(x)
	}
	g.grows = true
	d.promise(g)
	count, _ := d.burst(g.Name)
	d.state.GrownAt[g.Name], d.state.Bursts[g.Name] = d.now, count+1
}

// delay says what the group's growth waits for; empty where it begins now.
func (g *group) delay() string {
	if g.unanswered {
		return ", when AWS has answered the launch before"
	}
	return ""
}

const (
	// The pods of a burst are created and judged one after the other. The first
	// brings nodes at once; for those after it a group grows again at intervals
	// that begin at burstPace and double, so that a thousand pods are a handful
	// of calls.
	burstPace, burstPaceMost = 100 * time.Millisecond, time.Second
	// burstOver is how long after it last grew a group's next growth is the
	// first of another burst.
	burstOver = 10 * time.Second
)

// burst is how often the group was grown in the burst that goes on.
func (d *decision) burst(group string) (count int, goesOn bool) {
	at, grew := d.state.GrownAt[group]
	if !grew || d.now.Sub(at) >= burstOver {
		return 0, false
	}
	return d.state.Bursts[group], true
}

// paceOf is the earliest moment at which the group grows again.
func (d *decision) paceOf(group string) time.Time {
	count, goesOn := d.burst(group)
	if !goesOn || count == 0 {
		return d.now
	}
	return d.state.GrownAt[group].Add(doubled(burstPace, count, burstPaceMost))
}
