package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/scaler/fit"
)

// beginRetirements finds the nodes that nobody needs: all of them together
// could go at once, for the pods of every one have a place on nodes that stay.
// Each keeps on itself since when that is so, and is retired when it has been
// so for long enough. Those that are unneeded the longest are asked first, so
// that one look does not undo what the last one found.
func (d *decision) beginRetirements() {
	r := d.newRetirement()
	for _, n := range r.candidates() {
		if reason, why := r.mayGo(n); reason != "" {
			n.say(reason, why)
			continue
		}
		r.unneeded(n)
	}
	for _, n := range d.nodes {
		d.unmark(n)
		d.sayStage(n)
	}
}

// retirement is one search for nodes that nobody needs.
type retirement struct {
	*decision
	// stay are the nodes that pods could be moved to, the fullest first.
	stay []*node
	// leaving counts for each group the nodes on their way out that still count
	// as desired.
	leaving map[*group]int
	// draining counts the nodes with pods on them that are being drained without
	// hurry, and those whose turn it is, of at most allowed.
	draining, allowed int
	remains           remains
	// unsettled says that pods are given seats on nodes that are not open yet, or not
	// there.
	unsettled bool
}

func (d *decision) newRetirement() *retirement {
	r := &retirement{decision: d, leaving: map[*group]int{}, allowed: d.drainLimit(), unsettled: d.unsettled()}
	for _, n := range d.in(retiring, terminating) {
		if n.kept || n.instance == nil || !n.instance.Live() {
			continue
		}
		r.leaving[n.group]++
	}
	r.draining = d.underWay() + d.turns
	for _, n := range d.in(serving, cordoned, returning, unready) {
		r.remains.add(n)
	}
	d.standInBoth()
	r.stay = d.in(serving)
	used := map[*node]float64{}
	for _, n := range r.stay {
		used[n] = d.utilization(n)
	}
	slices.SortStableFunc(r.stay, func(a, b *node) int { return cmp.Compare(used[b], used[a]) })
	return r
}

func (d *decision) unsettled() bool { return len(d.unsettledPlaces()) > 0 }

// unsettledPlaces are the places where nothing serves yet.
func (d *decision) unsettledPlaces() []*fit.Place {
	list := slices.Concat(d.coming, d.staying())
	for _, g := range d.groups {
		list = append(list, g.fresh...)
	}
	return list
}

// standInBoth seats the pods that leave a node for one that does not serve yet at both:
// until that comes they run where they are, and keep away from there whom they keep
// away.
func (d *decision) standInBoth() {
	for _, p := range d.unsettledPlaces() {
		for _, t := range p.Tenants() {
			if from := d.node(t.Pod.Node); from != nil && from.place != p {
				d.fit.Put(t, from.place)
			}
		}
	}
}

func (d *decision) drainLimit() int {
	if d.policy.MaxDrainParallelism > 0 {
		return d.policy.MaxDrainParallelism
	}
	return max(2, len(d.nodes)/10)
}

// candidates are the Ready nodes of our groups: those marked the longest first,
// then the emptiest.
func (r *retirement) candidates() []*node {
	var list []*node
	used := map[*node]float64{}
	for _, n := range r.in(serving, cordoned) {
		if n.group == nil || !n.instance.Live() {
			continue
		}
		list = append(list, n)
		used[n] = r.utilization(n)
	}
	slices.SortStableFunc(list, func(a, b *node) int {
		sinceA, markedA := marked(a)
		sinceB, markedB := marked(b)
		if markedA != markedB {
			return map[bool]int{true: -1, false: 1}[markedA]
		}
		return cmp.Or(sinceA.Compare(sinceB), cmp.Compare(used[a], used[b]))
	})
	return list
}

// marked is since when the node is unneeded. A mark that does not parse is none.
func marked(n *node) (since time.Time, ok bool) {
	since, ok, err := contract.Unneeded(n.Taints)
	return since, ok && err == nil
}

// mayGo says why a node is needed, or by an empty reason that it is not. In the
// latter case its pods have taken their seats elsewhere.
func (r *retirement) mayGo(n *node) (Reason, string) {
	if reason, why := r.stopped(n); reason != "" {
		return reason, why
	}
	if by, held := contract.Held(n.Annotations); held {
		return NodeHeld, fmt.Sprintf("its annotation %s keeps it", by)
	}
	if n.unreadable != nil {
		return NodeHeld, fmt.Sprintf("a drain request stands on it that nobody can read: %v", n.unreadable)
	}
	if b, ok := r.state.GiveUps[n.Name]; ok && r.now.Before(b.Until) {
		r.clock.at(b.Until)
		return NodeKept, fmt.Sprintf("its last drain was given up (%s); it is left in peace until %s", b.Cause, clockTime(b.Until))
	}
	threshold := n.group.threshold(r.policy)
	if used := r.utilization(n); used > threshold {
		return NodeNeeded, fmt.Sprintf("%.0f%% of it is requested, more than %.0f%%", used*100, threshold*100)
	}
	if r.floor(n.group) {
		return NodeMinSize, fmt.Sprintf("group %s may not have fewer than %d", n.group.Name, n.group.Min)
	}
	if why := r.remains.needs(n, r.policy); why != "" {
		return NodeMinSize, why
	}
	return r.empty(n)
}

// stopped says that nothing of this group is retired now.
func (r *retirement) stopped(n *node) (Reason, string) {
	if !r.policy.ScaleDown {
		return NodeStays, "scale-down is switched off"
	}
	if unready := len(r.in(unready)); unready > r.policy.MaxUnready && float64(unready)*100 > r.policy.MaxUnreadyPercent*float64(len(r.nodes)) {
		return NodeStays, fmt.Sprintf("nothing is retired while %d of %d nodes are unready", unready, len(r.nodes))
	}
	if len(n.group.live) > n.group.read {
		return NodeStays, fmt.Sprintf("Auto Scaling itself is about to make group %s smaller", n.group.Name)
	}
	return "", ""
}

// floor says that with what is on its way out the group is at its minimum.
func (r *retirement) floor(g *group) bool { return g.read-r.leaving[g] <= g.Min }

// threshold is the utilization up to which a node of the group may go.
func (g *group) threshold(p Policy) float64 {
	if g.ScaleDown.UtilizationThreshold != nil {
		return *g.ScaleDown.UtilizationThreshold
	}
	return p.UtilizationThreshold
}

func (g *group) unneededTime(p Policy) time.Duration {
	if g.ScaleDown.UnneededTime != nil {
		return g.ScaleDown.UnneededTime.Duration
	}
	return p.UnneededTime
}

// empty moves, in thought, every pod of the node elsewhere. If one cannot go,
// all is as before.
func (r *retirement) empty(n *node) (Reason, string) {
	var undo []func()
	start := r.fit.Fork()
	reason, why := r.evictAll(n, &undo)
	if reason == "" {
		reason, why = r.moveAll(n)
	}
	if reason == "" {
		n.gone = true
		return "", ""
	}
	r.fit.Revert(start)
	for _, back := range slices.Backward(undo) {
		back()
	}
	return reason, why
}

// evictAll asks for each pod whether it may leave, counting what the budgets
// allow for all nodes together.
func (r *retirement) evictAll(n *node, undo *[]func()) (Reason, string) {
	for _, p := range n.pods {
		v := drainable.Judge(drainable.Question{Pod: p, Now: r.now, Budgets: r.budgets, Policy: r.policy.Drainable})
		if v.Outcome == drainable.Block {
			return NodeBlocked, fmt.Sprintf("pod %s may not leave: %s", p.Key(), v.Reason)
		}
		if v.Outcome == drainable.Leave {
			*undo = append(*undo, r.budgets.Take(p))
		}
	}
	return "", ""
}

// moveAll seats all that has a seat on the node on nodes that stay: its own
// pods, and those that were promised one there.
func (r *retirement) moveAll(n *node) (Reason, string) {
	movers := r.moving(n)
	for _, t := range n.place.Tenants() {
		if t.Pod.Node != n.Name {
			movers = append(movers, t)
		}
	}
	for _, t := range movers {
		r.fit.Lift(t, n.place)
	}
	for _, t := range r.fit.Sorted(movers, []*fit.Looks{n.place.Looks()}) {
		if t.Class.Tolerates(closed...) {
			return NodeBlocked, fmt.Sprintf("pod %s tolerates a node that is being drained, and would come back", t.Pod.Key())
		}
		if r.unsettled && followsOthers(t) {
			return NodeNoPlace, fmt.Sprintf("pod %s goes by where other pods are, and some wait for nodes that are coming", t.Pod.Key())
		}
		if !r.move(t, n) {
			return NodeNoPlace, fmt.Sprintf("pod %s has no other place%s", t.Pod.Key(), r.nearest(t, n))
		}
	}
	return "", ""
}

// closed is what keeps kube-scheduler off a node that is drained.
var closed = []corev1.Taint{
	contract.DrainingTaint(contract.KindScaleDown),
	{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
}

func (r *retirement) move(t fit.Tenant, from *node) bool {
	return slices.ContainsFunc(r.stay, func(to *node) bool {
		return to != from && !to.gone && r.fit.TrySeat(t, to.place)
	})
}

// nearest says of the node that comes nearest to taking the pod what is
// missing.
func (r *retirement) nearest(t fit.Tenant, from *node) string {
	var best *node
	var why fit.Reasons
	for _, to := range r.stay {
		if to == from || to.gone {
			continue
		}
		misses := r.fit.Fits(t.Class, to.place)
		if best == nil || misses.Nearer(why) {
			best, why = to, misses
		}
	}
	if best == nil {
		return ": no other node is Ready and open to pods"
	}
	return fmt.Sprintf("; the nearest is %s: %s", best.Name, why)
}

// unneeded starts the node's clock, or retires it if that has run out.
func (r *retirement) unneeded(n *node) {
	r.leaving[n.group]++
	r.remains.take(n)
	since, ok := marked(n)
	if from := n.settled(r.policy); !ok && r.now.Before(from) {
		r.clock.at(from)
		n.say(NodeWaiting, fmt.Sprintf("it is Ready since %s; its clock starts at %s if nobody needs it then", clockTime(n.ReadySince), clockTime(from)))
		return
	}
	if !ok {
		since = r.now.Truncate(time.Second)
		r.do(Mark{Group: n.group.Name, Node: n.ref(), Since: since})
	}
	due := since.Add(n.group.unneededTime(r.policy))
	text := fmt.Sprintf("unneeded since %s", clockTime(since))
	if !ok {
		r.clock.at(due)
		n.say(NodeWaiting, fmt.Sprintf("unneeded from now on; it goes when it has been so for %s", n.group.unneededTime(r.policy)))
		return
	}
	grown, grew := r.state.GrownAt[n.group.Name]
	rested := grown.Add(r.policy.DelayAfterAdd)
	_, occupied := n.occupied(r.now)
	switch {
	case r.now.Before(due):
		r.clock.at(due)
		n.say(NodeWaiting, fmt.Sprintf("%s; it goes at %s if it still is", text, clockTime(due)))
	case grew && r.now.Before(rested):
		r.clock.at(rested)
		n.say(NodeWaiting, fmt.Sprintf("%s; group %s grew, so it goes at %s at the earliest", text, n.group.Name, clockTime(rested)))
	case occupied && r.draining >= r.allowed:
		n.say(NodeWaiting, fmt.Sprintf("%s; it waits until fewer than %d drains are under way", text, r.allowed))
	default:
		r.retire(n, since, occupied)
		n.say(NodeRetiring, text)
	}
}

// settleTime is how long a node is Ready before its clock may start: the pods
// that it came for are bound in its first seconds, and not always where this
// plan would put them. To mark it at once would be two patches for nothing.
const settleTime = 10 * time.Second

// settled is when the node's clock may start at the earliest.
func (n *node) settled(p Policy) time.Time {
	return n.ReadySince.Add(min(settleTime, n.group.unneededTime(p)))
}

func (r *retirement) retire(n *node, since time.Time, occupied bool) {
	if occupied {
		r.draining++
	}
	r.do(Retire{
		Group: n.group.Name, Node: n.ref(), ID: contract.RetireID(n.instance.ID, since), Kind: contract.KindScaleDown,
		Why: fmt.Sprintf("nobody has needed it since %s", clockTime(since)),
	})
}

// unmark takes the mark off a node that is needed again, so that its clock
// starts anew.
func (d *decision) unmark(n *node) {
	stays := n.stage == serving || n.stage == cordoned || n.stage == returning || n.kept
	if !stays || n.gone || n.group == nil {
		return
	}
	if _, ok, _ := contract.Unneeded(n.Taints); ok {
		d.do(Unmark{Group: n.group.Name, Node: n.ref(), Why: cmp.Or(n.message, "it stays")})
	}
}

// utilization is the greater of the shares of its cpu and its memory that the
// pods on a node request.
func (d *decision) utilization(n *node) float64 {
	var cpu, memory, ofCPU, ofMemory int64
	ofCPU, ofMemory = n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
	for _, p := range n.pods {
		if p.Ended() {
			continue
		}
		c, m := d.fit.Tenant(p).Class.CPUAndMemory()
		if drainable.IsDaemonSet(p) && d.policy.IgnoreDaemonSets {
			ofCPU, ofMemory = ofCPU-c, ofMemory-m
			continue
		}
		cpu, memory = cpu+c, memory+m
	}
	return max(share(cpu, ofCPU), share(memory, ofMemory))
}

// share of nothing is everything: a node that reports no room is not unneeded.
func share(used, of int64) float64 {
	if of <= 0 {
		return 1
	}
	return float64(used) / float64(of)
}

// sayStage gives a verdict to every node that no step has spoken of.
func (d *decision) sayStage(n *node) {
	switch {
	case n.group == nil:
		n.say(NodeNotOurs, "its instance is in none of our groups")
	case n.instance.Leaving():
		n.say(NodeLeaving, "Auto Scaling terminates its instance")
	case !n.instance.Live():
		n.say(NodeNotOurs, n.whyNotOurs())
	}
	switch n.stage {
	case coming:
		n.say(NodeComing, n.whyComing())
	case unready:
		n.say(NodeUnready, "it is not Ready")
	case returning:
		n.say(NodeKept, "its drain was taken back, and its agent is undoing it")
	case leaving:
		n.say(NodeLeaving, n.whyLeaving()+cmp.Or(d.carriedOn(n), n.unheard()))
	}
}

// unheard says that somebody asked for the drain, and that its agent has not answered.
func (n *node) unheard() string {
	if _, answered := n.answered(n.request.ID); !n.requested || answered {
		return ""
	}
	return "; its agent has not answered yet"
}

func (n *node) whyLeaving() string {
	switch kind := n.draining(); kind {
	case contract.KindSpot:
		return "EC2 takes its spot instance back"
	case contract.KindRequest:
		if n.request.By != "" {
			return fmt.Sprintf("%s asked for its drain", n.request.By)
		}
		return "people asked for its drain"
	default:
		return fmt.Sprintf("it is drained for %s", kind)
	}
}
