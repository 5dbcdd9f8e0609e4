package act

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// nodeHolds is how long a reason must have stood to be announced: pods come and go, and
	// for moments a node is needed, or is not.
	nodeHolds = time.Minute
	// nodeAgain is the least time between two reasons of one node.
	nodeAgain = 5 * time.Minute
	// nodesPerSecond and nodesAtOnce bound the Events of all nodes: one cause may change the
	// reason of each of thousands.
	nodesPerSecond = 2
	nodesAtOnce    = 20
)

// nodeNews is the Events due about nodes: the reason why one stays, or when it is scaled
// down, where that has changed for good. The same reason in other words is no news.
type nodeNews struct {
	// before are the reasons by name that were known before the first evaluation; that one
	// announces no others.
	before map[string]verdict.Reason
	begun  bool
	nodes  map[string]*nodeStory // by UID
	// turn counts the evaluations.
	turn int
	// changed have another reason than the one that is known.
	changed []*nodeStory
	// at is where the one stands in there that next gave.
	at      int
	limiter *rate.Limiter
}

// nodeStory is the news of a node.
type nodeStory struct {
	name string
	// known is the reason that people know of; empty where none is.
	known, reason verdict.Reason
	details       verdict.Details
	since, told   time.Time
	// turn is the latest evaluation that has named it.
	turn int
}

// toldOtherwise are reasons without an Event from here: what the scaler or an agent does to a
// node has Events of its own, and the others pass.
var toldOtherwise = []verdict.Reason{
	verdict.NodeScalingDown, verdict.NodeScaleDownCancelled, verdict.NodeCordonReleased, verdict.NodeTerminating, verdict.NodeDraining, verdict.NodeUpcoming, verdict.NodeInWarmPool, verdict.NodeNotEvaluated,
}

// warnings are the reasons that ask for people.
var warnings = []verdict.Reason{verdict.NodeNeverReady, verdict.NodeRetained}

// takeOver begins anew, with what those before us left.
func (n *nodeNews) takeOver(before map[string]verdict.Reason) { *n = nodeNews{before: before} }

// follow takes in what an evaluation has found. Nodes that are no more are forgotten.
func (n *nodeNews) follow(s fleet.Snapshot, p plan.Plan) {
	if n.nodes == nil {
		n.nodes = map[string]*nodeStory{}
	}
	n.turn++
	n.changed = n.changed[:0]
	for _, v := range p.Verdicts {
		if v.Of != verdict.OfNode {
			continue
		}
		story := n.nodes[v.UID]
		if story == nil {
			story = &nodeStory{name: v.Name, known: n.knownBefore(v)}
			n.nodes[v.UID] = story
		}
		story.hear(v, s.Now)
		story.turn = n.turn
		if story.news() {
			n.changed = append(n.changed, story)
		}
	}
	maps.DeleteFunc(n.nodes, func(_ string, s *nodeStory) bool { return s.turn != n.turn })
	n.begun, n.before = true, nil
}

// knownBefore is what people know of a node that is seen for the first time.
func (n *nodeNews) knownBefore(v *verdict.Verdict) verdict.Reason {
	if n.begun {
		return ""
	}
	return cmp.Or(n.before[v.Name], v.Reason)
}

func (s *nodeStory) hear(v *verdict.Verdict, now time.Time) {
	if s.reason != v.Reason {
		s.reason, s.since = v.Reason, now
	}
	s.details = v.Details
	if s.reason == verdict.NodeNeeded && ordinary(s.known) {
		s.known = s.reason
	}
}

// ordinary reports whether a needed node is no surprise after such a reason.
func ordinary(before verdict.Reason) bool {
	switch before {
	case "", verdict.NodeUpcoming, verdict.NodeInWarmPool, verdict.NodeNotEvaluated:
		return true
	}
	return false
}

func (s *nodeStory) news() bool {
	return s.reason != s.known && !slices.Contains(toldOtherwise, s.reason)
}

// due reports whether the reason has held for long enough to be announced.
func (s *nodeStory) due(now time.Time) bool {
	return !now.Before(s.since.Add(nodeHolds)) && (s.told.IsZero() || !now.Before(s.told.Add(nodeAgain)))
}

// compare orders stories as they are recorded: whose reason is older comes first.
func (s *nodeStory) compare(other *nodeStory) int {
	return cmp.Or(s.since.Compare(other.since), cmp.Compare(s.name, other.name))
}

// next is what to record next; hear marks it as recorded. Thousands may wait and few are recorded, so
// that they are not sorted.
func (n *nodeNews) next(now time.Time) (kube.Event, bool) {
	n.at = -1
	for i, s := range n.changed {
		if s.due(now) && (n.at < 0 || s.compare(n.changed[n.at]) < 0) {
			n.at = i
		}
	}
	if n.at < 0 {
		return kube.Event{}, false
	}
	if n.limiter == nil {
		n.limiter = rate.NewLimiter(nodesPerSecond, nodesAtOnce)
	}
	if !n.limiter.Allow() {
		return kube.Event{}, false
	}
	s := n.changed[n.at]
	return kube.Event{Object: kube.NodeReference(s.name), Reason: string(s.reason), Message: s.details.String(), Warning: slices.Contains(warnings, s.reason)}, true
}

func (n *nodeNews) hear(now time.Time) {
	s := n.changed[n.at]
	s.known, s.told = s.reason, now
	n.changed = slices.Delete(n.changed, n.at, n.at+1)
}
