package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
)

// A drain without hurry, for a rebalance recommendation or maintenance, does not
// begin by itself: its agent cordons the node, reports that it waits, and names the
// id for which it wants a permit. It gets it when fewer drains than
// --max-drain-parallelism are under way, and when every pod that leaves has a place
// on a node that serves: those that have none count as waiting and bring nodes
// first. Nobody waits for what cannot come.
//
// An agent waits for a bounded time only, since the scaler last told it that it is not its
// turn (contract.NotYet): so a scaler that is dead holds up nobody, and one that lives is
// waited for. What an agent begins by itself counts as under way like any other.

// noPermitWithin is how long before its deadline a drain is not permitted any more:
// its agent has begun, or begins in this moment.
const noPermitWithin = 2 * time.Minute

// asksPermit says that the node's drain waits for a permit that does not stand on it.
func (n *node) asksPermit() bool {
	return n.waitsForPermit() && n.Annotations[contract.AnnotationDrainPermit] != n.report.Wants
}

// waitsForPermit says that the node's agent has not begun its drain, as far as it has
// told.
func (n *node) waitsForPermit() bool {
	return n.reported && n.report.Phase == contract.PhaseWaiting && n.report.Wants != ""
}

// unhurried says that the node is drained for something that has time, and that
// nobody but us replaces it.
func (n *node) unhurried() bool {
	if n.stage != leaving || n.instance != nil && n.instance.Leaving() {
		return false
	}
	kind := n.draining()
	return kind == contract.KindRebalance || kind == contract.KindMaintenance
}

// takeTurns finds out which of the drains that wait may be next, so that nodes are
// brought for their pods and not for those of all others at once: as many as there is
// room for beside the drains under way, the earliest deadline first, then those that
// wait the longest.
func (d *decision) takeTurns() {
	var asking []*node
	for _, n := range d.in(leaving) {
		if n.asksPermit() && n.unhurried() && !d.tooLate(n) {
			asking = append(asking, n)
		}
	}
	slices.SortStableFunc(asking, func(a, b *node) int {
		return cmp.Or(latestLast(a.report.Deadline.Time, b.report.Deadline.Time), a.report.Since.Compare(b.report.Since.Time), cmp.Compare(a.Name, b.Name))
	})
	d.turns = min(len(asking), max(0, d.drainLimit()-d.underWay()))
	for _, n := range asking[d.turns:] {
		n.held = true
		n.open = n.Ready && n.takesPods() // nobody is moved there, but who waits may go there
	}
}

// takesPods says that the agent has left the node open while its drain waits.
func (n *node) takesPods() bool {
	_, tainted := contract.Draining(n.Taints)
	return !tainted && !n.Unschedulable
}

// latestLast orders deadlines; none is the latest.
func latestLast(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return map[bool]int{true: 1, false: -1}[a.IsZero()]
	}
	return a.Compare(b)
}

// tooLate says that the deadline of a drain is so near that it has begun without a
// permit.
func (d *decision) tooLate(n *node) bool {
	if n.report.Deadline.IsZero() {
		return false
	}
	from := n.report.Deadline.Add(-noPermitWithin)
	d.clock.at(from)
	return !d.now.Before(from)
}

// stuckAfter is how long after its beginning a drain may stand still before another one
// may begin in its place.
const stuckAfter = time.Minute

// underWay counts the nodes with pods on them that are being drained though there is
// no hurry: retirements, and what was permitted or has begun by itself. Those that stand
// still hold no other one back. But of our own, of which each closes a node that serves,
// no more stand still than may be under way: the others count until they are given up.
func (d *decision) underWay() int {
	moving, stuck := 0, 0
	for _, n := range d.in(retiring, leaving, terminating) {
		_, occupied := n.occupied(d.now)
		switch {
		case !occupied || !d.drainsAtLeisure(n) || d.unproven(n):
		case d.stuck(n):
			if n.stage == retiring {
				stuck++
			}
		default:
			moving++
		}
	}
	return moving + max(0, stuck-d.drainLimit())
}

// stuck says that a drain began a while ago and stands still now: what is left on its
// node is kept there by budgets or people, or ends when it likes.
func (d *decision) stuck(n *node) bool {
	phase, since := n.report.Phase, n.beganToLeave()
	if id, why, is := d.forsaken(n); is {
		phase = d.loneDrain(n, id, why).look(d.unspent()).phase()
	}
	if since.IsZero() {
		since = n.request.At.Time
	}
	if phase != contract.PhaseBlocked && phase != contract.PhaseWaiting || n.waitsForPermit() {
		return false
	}
	due := since.Add(stuckAfter)
	d.clock.at(due)
	return !d.now.Before(due)
}

func (d *decision) drainsAtLeisure(n *node) bool {
	if n.stage == leaving {
		return n.unhurried() && n.reported && n.report.Phase.Open() && (!n.asksPermit() || d.tooLate(n))
	}
	return !n.kept && n.instance != nil && n.instance.Live()
}

// permit lets the drains begin whose turn it is and whose pods have other places. A
// permit stands for good: it is given once, and what a node waits for is told in its
// verdict.
func (d *decision) permit() {
	for _, n := range d.in(leaving, retiring) {
		switch {
		case n.kept || !n.waitsForPermit():
		case !n.asksPermit():
			n.say(NodeLeaving, n.whyLeaving()+cmp.Or(d.carriedOn(n), "; its drain is permitted"))
		case !n.unhurried():
			d.allow(n) // its time is counted already, or Auto Scaling replaces it
		case d.tooLate(n):
			n.say(NodeLeaving, n.whyLeaving()+cmp.Or(d.carriedOn(n), "; its deadline is near, and it drains without a permit"))
		case n.held:
			d.putOff(n, "its drain waits until "+whileFewer(d.drainLimit()))
		default:
			d.allowReplaced(n)
		}
	}
}

// allowReplaced permits a drain unless one of the node's pods has its place on a node
// that is yet to come.
func (d *decision) allowReplaced(n *node) {
	if pod, place := d.awaitsPlace(n); pod != "" {
		d.putOff(n, fmt.Sprintf("its drain waits for a replacement: pod %s goes to %s, which is coming", pod, place))
		return
	}
	d.allow(n)
	n.say(NodeLeaving, n.whyLeaving()+"; its drain is permitted")
}

// putOff tells a drain to wait on. It says so again after a quarter to half of the time
// for which the agent waits then, each node at its own moment, to the next twentieth of
// that time: of a thousand nodes that wait with the default of 5 min nine are written a
// second on average, all in an evaluation every 15 s. An agent that does not say for how
// long it waits is of an older version, and does not listen.
func (d *decision) putOff(n *node, why string) {
	n.say(NodeLeaving, n.whyLeaving()+"; "+why)
	wait := min(time.Duration(n.report.PermitWait)*time.Second, longestPermitWait)
	if wait <= 0 {
		return
	}
	every := wait/4 + time.Duration(shareOf(n.Name)*float64(wait/4))
	due := n.notYet.At.Add(max(every, notYetEvery)).Truncate(wait / 20)
	known := n.notYet.ID == n.report.Wants && n.notYet.At.Before(d.now.Add(wait/4)) // not by a clock that was far ahead
	if known && d.now.Before(due) {
		d.clock.at(due)
		return
	}
	d.clock.at(d.now.Add(max(every, notYetEvery)))
	d.do(NotYet{Group: n.groupName(), Node: n.ref(), ID: n.report.Wants, Why: why})
}

// longestPermitWait is the most that is believed of a report.
const longestPermitWait = time.Hour

// notYetEvery is how often at most a drain is told to wait on. Agents that wait for less than
// twice that begin by themselves.
const notYetEvery = 5 * time.Second

// shareOf is a figure from 0 to less than 1 that a name always has.
func shareOf(name string) float64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return float64(h.Sum32()) / (1 << 32)
}

func (d *decision) allow(n *node) {
	d.do(Permit{Group: n.groupName(), Node: n.ref(), ID: n.report.Wants})
}

// awaitsPlace names a pod of the node that has its seat where nothing serves yet;
// empty without one. A pod without any seat waits for nobody: no node comes for it.
func (d *decision) awaitsPlace(n *node) (pod, place string) {
	seatedAt := func(p *fit.Place) int {
		return slices.IndexFunc(p.Seated(), func(t fit.Tenant) bool { return t.Pod.Node == n.Name })
	}
	for _, p := range d.unsettledPlaces() {
		if i := seatedAt(p); i >= 0 && p != n.place {
			return p.Seated()[i].Pod.Key(), p.Name
		}
	}
	return "", ""
}
