package scaleup

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Grow makes groups larger for the pods that are left, and settles their verdicts.
func (d *ScaleUp) Grow() {
	d.refuse(d.growFor(d.left))
	for _, g := range d.gangs {
		d.growForGang(g)
	}
	d.fillToMinimum()
	d.growForHeadroom()
	d.tellBeside()
	for _, g := range d.Groups {
		d.GrowBy(g)
	}
}

// growFor plans new nodes for pods in order, and returns those that none would help. Classes
// for which some group is not grown come last, one by one.
func (d *ScaleUp) growFor(pods []fit.Tenant) (refused []fit.Tenant) {
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

// growEvenly plans new nodes for pods, and returns those that none would help. Pods that spread go
// by the zones that could get nodes, see seats.Seats.Expect. Where that leaves some without a
// place, as no node is launched in a zone after all, they go by the zones that there are, as
// kube-scheduler does.
func (d *ScaleUp) growEvenly(pods []fit.Tenant) (refused []fit.Tenant) {
	if !slices.ContainsFunc(pods, seats.Spreads) {
		return d.growInTurn(pods)
	}
	d.Foresees = true
	refused = d.growInTurn(pods)
	d.Foresees = false
	if !slices.ContainsFunc(refused, seats.Spreads) {
		return refused
	}
	return d.growInTurn(d.InOrder(d.seatBeside(refused, d.there(refused))))
}

// growInTurn plans new nodes for pods in order, and returns those that none would help. The
// largest pod chooses first, because the fewest groups can take it; what room its
// new nodes have goes to the others, the largest first.
func (d *ScaleUp) growInTurn(pods []fit.Tenant) (refused []fit.Tenant) {
	left, planned, there := pods, 0, d.there(pods)
	for len(left) > 0 {
		var none []fit.Tenant
		if none, left = d.unaffordable(left); len(none) > 0 {
			refused = append(refused, none...)
		} else if none, left = d.helpless(left); len(none) > 0 {
			refused = append(refused, none...)
		} else if rest, ok := d.draw(left, there); ok {
			left = d.InOrder(d.seatBeside(rest, there))
			planned++
		} else if !d.Ration.Spent(left[0].Pod.Namespace) {
			class := left[0].Class
			none, left = split(left, func(c *fit.Class) bool { return c == class })
			refused = append(refused, none...)
		}
		if len(left) == 0 && planned > 0 && slices.ContainsFunc(refused, followsOthers) {
			// What was refused may have wanted company that has a node only now.
			left, refused, planned = d.InOrder(d.seatBeside(refused, there)), nil, 0
		}
	}
	return refused
}

// helpless separates the pods in front of which no group's new node would take any, up to
// the first that one would take, and their like from the others.
func (d *ScaleUp) helpless(pods []fit.Tenant) (none, others []fit.Tenant) {
	var classes map[*fit.Class]bool
	for _, t := range pods {
		if classes[t.Class] {
			continue
		}
		if !d.Ration.Ask(t.Pod.Namespace) || len(d.able(t.Class)) > 0 {
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
func (d *ScaleUp) unaffordable(pods []fit.Tenant) (none, others []fit.Tenant) {
	if !d.Ration.Tight() {
		return nil, pods
	}
	for _, t := range pods {
		if d.Ration.Spent(t.Pod.Namespace) {
			none = append(none, t)
			d.Unasked[seats.Asking{Class: t.Class, Namespace: t.Pod.Namespace}] = true
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

// there are the nodes that are there, and the upcoming ones, where one of these pods may find a
// place once others have theirs.
func (d *ScaleUp) there(pods []fit.Tenant) []*fit.Place {
	if !slices.ContainsFunc(pods, followsOthers) {
		return nil
	}
	return slices.Concat(d.PlacesIn(cluster.Serving, cluster.Cordoned, cluster.Draining), d.Staying(), d.Upcoming)
}

// seatBeside seats pods at nodes that are there and at the new ones that are planned
// already, and returns the others. Only one that goes where others are, or spreads evenly
// with them, may find a seat there that it did not find before.
func (d *ScaleUp) seatBeside(pods []fit.Tenant, there []*fit.Place) (left []fit.Tenant) {
	if !slices.ContainsFunc(pods, followsOthers) {
		return pods
	}
	grow := slices.DeleteFunc(slices.Clone(d.Groups), func(g *cluster.Group) bool { return len(g.Fresh) == 0 })
	defer d.Expect(grow...)()
	old, fresh := d.Fit.NewRow(there), d.Fit.NewRow(d.AllFresh())
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
func (d *ScaleUp) seatedAt(t fit.Tenant, at *fit.Place) bool {
	if at == nil {
		return false
	}
	d.beside = append(d.beside, fit.Seat{Tenant: t, At: at})
	return true
}

// tellBeside settles the verdicts of pods that new nodes help without being theirs.
func (d *ScaleUp) tellBeside() {
	for _, s := range d.beside {
		where := verdict.Say("{place}", verdict.Place(s.At.Name))
		if d.Node(s.At.Name) != nil {
			where = verdict.Say("node {node}", verdict.Node(s.At.Name))
		}
		d.SayPod(s.Tenant, verdict.PodFitsUpcoming, "", where.And(" has room for it once the nodes that are launched now have joined"))
	}
}

// followsOthers reports whether where other pods are may open a place to this one.
func followsOthers(t fit.Tenant) bool { return t.Class.Follows() }

// options are the groups that could take the first of these pods, the others going
// along where they fit.
func (d *ScaleUp) options(able, unweighed []*cluster.Group, left []fit.Tenant, there []*fit.Place) []option {
	var options []option
	for _, g := range able {
		over, start := d.Expect(g), d.Fit.Fork()
		supply := d.supply(g, left[0].Class, unweighed)
		packing := d.Fit.Pack(left, there, supply.Limit, supply)
		if len(packing.Places) > 0 {
			options = append(options, d.newOption(g, packing))
		}
		d.Fit.Revert(start)
		over()
	}
	return options
}

// able are the groups that have room and whose nodes would take the class.
func (d *ScaleUp) able(class *fit.Class) []*cluster.Group {
	var groups []*cluster.Group
	for _, g := range d.Groups {
		if room, _ := seats.Room(g); room > 0 && d.fitsNew(class, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// unweighed are the other groups that have room.
func (d *ScaleUp) unweighed(able []*cluster.Group) []*cluster.Group {
	return slices.DeleteFunc(slices.Clone(d.Groups), func(g *cluster.Group) bool {
		room, _ := seats.Room(g)
		return room <= 0 || slices.Contains(able, g)
	})
}

// supply is where the new nodes of a group come from that the first class needs. Others go along, but
// for those that a better group may take that was not weighed for the first: a pod that needs a dear
// group must not take those along that do not.
func (d *ScaleUp) supply(g *cluster.Group, first *fit.Class, unweighed []*cluster.Group) fit.Supply {
	room, _ := seats.Room(g)
	s := seats.Supply(g, room)
	var better []*fit.NodeTemplate
	for _, other := range unweighed {
		if d.better(other, g) {
			looks, _ := launch.Open(other)
			better = append(better, looks...)
		}
	}
	if len(better) == 0 {
		return s
	}
	known := map[*fit.Class]bool{first: true}
	s.Opens = func(c *fit.Class) bool {
		goes, asked := known[c]
		if !asked {
			goes = !d.Fit.MayTake(c, better)
			known[c] = goes
		}
		return goes
	}
	return s
}

func (d *ScaleUp) fitsNew(c *fit.Class, g *cluster.Group) bool {
	if c.Spreads() {
		defer d.Expect(g)()
	}
	looks, _ := launch.Open(g)
	return d.Fit.Takes(c, looks)
}

// draw plans new nodes of the best group for the first of these pods and those that go along, and
// returns the pods that are left; ok says that there is such a group. Similar groups help it out:
// only together may they have the zones over which pods have to spread. What would leave the last
// node half empty goes to a group that suits it better, if there is one.
func (d *ScaleUp) draw(pods []fit.Tenant, there []*fit.Place) (left []fit.Tenant, ok bool) {
	var options []option
	able := d.able(pods[0].Class)
	unweighed := d.unweighed(able)
	if len(able) == 1 {
		options = []option{{group: able[0], pods: 1, nodes: 1, work: 1, hourly: able[0].Price()}} // no need to weigh it
	} else {
		options = d.options(able, unweighed, pods, there)
	}
	if len(options) == 0 {
		return pods, false
	}
	groups := d.likeTheBest(options)
	supplies := d.supplies(groups, pods[0].Class, unweighed)
	most, _ := d.Totals.Room(groups[0])
	defer d.Expect(groups...)()
	start := d.Fit.Fork()
	packing := d.Fit.Pack(pods, there, most, supplies...)
	if last, of := tail(packing); last != nil {
		full := supplies[of].Limit
		d.Fit.Revert(start)
		supplies[of].Limit = count(packing.From, of) - 1
		packing = d.Fit.Pack(pods, there, most, supplies...)
		if !d.betterOff(last, there, groups[of]) {
			d.Fit.Revert(start)
			supplies[of].Limit = full
			packing = d.Fit.Pack(pods, there, most, supplies...)
		}
	}
	for i, p := range packing.Places {
		d.Open(groups[packing.From[i]], p)
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

// betterOff reports whether for these pods alone a group would be chosen that is not like
// that one.
func (d *ScaleUp) betterOff(pods []fit.Tenant, there []*fit.Place, than *cluster.Group) bool {
	pods = d.InOrder(pods)
	able := d.able(pods[0].Class)
	options := d.options(able, d.unweighed(able), pods, there)
	if len(options) == 0 {
		return false
	}
	best := d.best(options)
	return best.group != than && best.left == 0 && !slices.Contains(d.SimilarTo(than), best.group)
}

// likeTheBest is the best group and those that are similar to it: first those that could take the
// first pod too, in the order in which they would be chosen, then the others by name.
func (d *ScaleUp) likeTheBest(options []option) []*cluster.Group {
	best := d.best(options).group
	groups := []*cluster.Group{best}
	rest := slices.Clone(options)
	for len(rest) > 0 {
		next := d.best(rest).group
		rest = slices.DeleteFunc(rest, func(o option) bool { return o.group == next })
		if next != best && slices.Contains(d.SimilarTo(best), next) {
			groups = append(groups, next)
		}
	}
	for _, g := range d.SimilarTo(best) {
		if room, _ := seats.Room(g); room > 0 && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// supplies are where the new nodes of groups come from. Pods that the best takes go along with the first
// class, or decide for themselves. From similar groups that are worse come nodes alone for pods that
// spread or follow others, and perhaps need them: what the best cannot launch is decided anew, and the
// best's pods would fill what others need them for.
func (d *ScaleUp) supplies(groups []*cluster.Group, first *fit.Class, unweighed []*cluster.Group) []fit.Supply {
	best := d.supply(groups[0], first, unweighed)
	supplies := []fit.Supply{best}
	for i, g := range groups[1:] {
		s := d.supply(g, first, unweighed)
		if !d.Policy.BalanceSimilar {
			s.Rank = i + 1
		}
		goes, worse := s.Opens, s.Rank > 0 && d.better(groups[0], g)
		s.Opens = func(c *fit.Class) bool {
			if goes != nil && !goes(c) || worse && !c.Follows() {
				return false
			}
			return best.Opens == nil || best.Opens(c) || !d.Fit.MayTake(c, best.Template)
		}
		supplies = append(supplies, s)
	}
	return supplies
}

// refuse settles the verdicts of pods that no new node would help. Those that are
// only foreseen to wait stay where they are.
func (d *ScaleUp) refuse(pods []fit.Tenant) {
	type answer struct {
		reason  verdict.Reason
		details verdict.Details
	}
	verdicts, explained := map[*fit.Class]answer{}, map[string]int{}
	for _, t := range d.releaseFor(pods) {
		v, known := verdicts[t.Class]
		space := t.Pod.Namespace
		switch {
		case d.Unasked[seats.Asking{Class: t.Class, Namespace: space}]:
			v = answer{verdict.PodBudgetSpent, d.BudgetSpent(space)}
		case known:
		case explained[space] >= d.Policy.Bounds.Explained:
			v.reason, v.details = d.whyNotBriefly(t, "too many kinds of pods of namespace {namespace} fit no node")
		case !d.Ration.Ask(space):
			v.reason, v.details = d.whyNotBriefly(t, "the pending pods of namespace {namespace} have used up its share of the evaluation")
		default:
			explained[space]++
			v.reason, v.details = d.whyNot(t.Class)
			verdicts[t.Class] = v
			d.Unschedulable = append(d.Unschedulable, t)
		}
		d.SayPod(t, v.reason, "", v.details)
		d.SettleBack(t)
	}
}

// oldestLeft is the UID of the pod that was created first of those for which groups
// grow.
func (d *ScaleUp) oldestLeft() string {
	if d.oldest != "" {
		return d.oldest
	}
	pods := slices.Clip(d.left)
	for _, g := range d.gangs {
		pods = append(pods, g.pods...)
	}
	if len(pods) > 0 {
		d.oldest = string(slices.MinFunc(pods, func(a, b fit.Tenant) int {
			return cmp.Or(cmp.Compare(a.Pod.Created, b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
		}).Pod.UID)
	}
	return d.oldest
}

// urgent is how long pods wait, from when kube-scheduler found no place for them, so
// that nothing else is asked in an evaluation in which groups grow for them.
const urgent = 10 * time.Second

// Growing reports whether a group grows in this evaluation for pods that have not waited for long.
// If it is for others, what has been tried before has not helped, and need not hold up
// all else.
func (d *ScaleUp) Growing() bool {
	return slices.ContainsFunc(d.Groups, func(g *cluster.Group) bool {
		return g.Grows && slices.ContainsFunc(g.Fresh, func(p *fit.Place) bool {
			return slices.ContainsFunc(p.Seated(), d.isUrgent)
		})
	})
}

func (d *ScaleUp) isUrgent(t fit.Tenant) bool {
	since := max(t.Pod.Created, t.Pod.Judged)
	return d.Now.Sub(since.Time()) < urgent
}

// evaluateAgain is when nodes that may be unneeded are evaluated, after an evaluation in which
// groups grew.
const evaluateAgain = time.Second

// DeferNodes gives every node a verdict. Whether it could be removed is not asked while pods are
// pending and groups grow for them: that takes most of the time of an evaluation, and the pods
// shall not wait for it. Marks stay as they are.
func (d *ScaleUp) DeferNodes() {
	for _, n := range d.Nodes {
		d.SayStage(n)
		if n.Reason == "" {
			n.Say(verdict.NodeNotEvaluated, groupsGrow)
		}
		if n.Reason == verdict.NodeNotEvaluated || n.Stage == cluster.Unready { // of which more is to be said, too
			d.Clock.At(d.Now.Add(evaluateAgain))
		}
	}
}

var groupsGrow = verdict.Say("groups grow now").Then(verdict.Say("it is evaluated after that"))

// GrowBy turns the new nodes of a group into actions, and settles the verdicts of the pods.
func (d *ScaleUp) GrowBy(g *cluster.Group) {
	if len(g.Fresh) == 0 {
		return
	}
	by := []verdict.Param{verdict.Group(g.Name), verdict.From(g.Desired), verdict.To(g.Base() + len(g.Fresh))}
	grows := Delay(g, verdict.Say("group {group} grows {from}→{to} for it", by...))
	if d.OtherAutoscalerActs() {
		d.sayGrowth(g, verdict.PodRivalled, verdict.Say("group {group} would grow {from}→{to} for it", by...).Then(d.Stopped))
		return
	}
	if pace := d.PaceOf(g.Name); d.Now.Before(pace) {
		d.Clock.At(pace)
		d.sayGrowth(g, verdict.PodFitsUpcoming, grows)
		return
	}
	if shown := d.ShownBy(g); d.Now.Before(shown) {
		d.Clock.At(shown)
		d.sayGrowth(g, verdict.PodFitsUpcoming, grows.And(", unless its provider shows by {until} that the leader before asked for it", verdict.Until(shown)))
		return
	}
	if g.Unanswered { // what is under way is counted already; the answer triggers the next evaluation, see plan.Plan.AwaitsAnswer
		d.sayGrowth(g, verdict.PodFitsUpcoming, grows)
		return
	}
	d.sayGrowth(g, verdict.PodTriggersScaleUp, grows)
	asks := g.Base() + len(g.Fresh) - g.Desired
	d.AskFor(g, asks)
	for _, x := range d.grows(g) {
		x.Why, x.Asks = g.GrowsFor, asks
		asks = 0
		d.Do(x)
	}
	g.Grows = true
	d.promise(g)
	count, _ := d.Burst(g.Name)
	d.State.GrownAt[g.Name], d.State.Bursts[g.Name] = d.Now, count+1
}

// sayGrowth says so to all pods for which a group grows, or would.
func (d *ScaleUp) sayGrowth(g *cluster.Group, reason verdict.Reason, details verdict.Details) {
	for _, p := range g.Fresh {
		for _, t := range p.Seated() {
			d.SayPod(t, reason, g.Name, details)
		}
	}
}

// Delay says what the group's growth waits for, where it does not begin now.
func Delay(g *cluster.Group, growth verdict.Details) verdict.Details {
	if g.Unanswered {
		return growth.And(", when AWS has answered the launch before")
	}
	return growth
}
