package act

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// mostGroupNews is how much news of groups waits at the most; of more the oldest
// goes. Only without a page to write it on does so much come together.
const mostGroupNews = 500

// groupNews is the Events due about groups: that one grows, that it does not, that it backs
// off, that an instance was ended which never became a node.
type groupNews struct {
	waiting []word
	// rests are the back-offs that were announced.
	rests map[string]fleet.BackOff
	// failed is how the last growth of a group failed, or the last suspension or claim by
	// its key, until one works; nil before the first evaluation.
	failed map[string]string
	// disowned are the groups of which people know that another cluster owns them.
	disowned map[string]verdict.Details
}

// follow takes in what an evaluation has found and done.
func (n *groupNews) follow(s fleet.Snapshot, p plan.Plan, results []Result) {
	if n.failed == nil {
		n.rests, n.failed = s.State.BackOffs, map[string]string{} // those before us have reported them
	}
	for _, r := range results {
		if w, ok := n.wordOf(r); ok {
			n.waiting = append(n.waiting, w)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.State.BackOffs)) {
		b := p.State.BackOffs[key]
		if was, known := n.rests[key]; !known || was.Count != b.Count {
			n.waiting = append(n.waiting, backOffWord(key, b))
		}
	}
	n.rests = p.State.BackOffs
	n.disown(p)
	if more := len(n.waiting) - mostGroupNews; more > 0 {
		n.waiting = slices.Clone(n.waiting[more:])
	}
}

func (n *groupNews) wordOf(r Result) (word, bool) {
	if x, grows := r.Action.(action.Grow); grows {
		return n.growth(x, r)
	}
	t := action.TraitsOf(r.Action)
	switch {
	case t.Event == "":
		return word{}, false
	case t.Sizes:
		return word{reason: t.Event, message: r.Action.String(), warning: t.Event == contract.EventDeleteUnregistered, facts: factsOf(r.Action)}, r.Outcome == Done
	}
	return n.once(t, r)
}

// growth reports a launch when it is done, and when it fails in another way than before.
func (n *groupNews) growth(x action.Grow, r Result) (word, bool) {
	w, ok := growth(x, r)
	switch {
	case !ok:
		return word{}, false
	case r.Outcome == Failed:
		was := n.failed[x.Group]
		n.failed[x.Group] = w.message
		facts := contract.Facts{Group: x.Group, Zone: x.Zone, From: x.From, To: x.To, Cause: r.Err.Error()}
		return word{reason: contract.EventFailedToScaleUpGroup, message: w.message, warning: true, facts: facts}, was != w.message
	}
	delete(n.failed, x.Group)
	facts := contract.Facts{Group: x.Group, Zone: x.Zone, From: x.From, To: x.From + launched(x, r)}
	for _, p := range x.For {
		facts = facts.Waiting(p.Namespace, p.Name)
	}
	return word{reason: contract.EventScaledUpGroup, message: w.message, facts: facts}, !x.Again
}

// factsOf an action that changes a group's size and is no growth.
func factsOf(a action.Action) contract.Facts {
	switch x := a.(type) {
	case action.Terminate:
		return contract.Facts{Group: x.Group, ID: x.ID, Instance: x.Instance}
	case action.Lower:
		return contract.Facts{Group: x.Group, From: x.From, To: x.To}
	}
	return contract.Facts{}
}

// once reports what changes a group when it is done, and when it fails in another way than
// before.
func (n *groupNews) once(t action.Traits, r Result) (word, bool) {
	switch r.Outcome {
	case Done:
		delete(n.failed, t.Key)
		return word{reason: t.Event, message: r.Action.String()}, !r.Before
	case Failed:
		w := word{reason: contract.EventActionFailed, message: fmt.Sprintf("%s: %v", r.Action, r.Err), warning: true}
		was := n.failed[t.Key]
		n.failed[t.Key] = w.message
		return w, was != w.message
	}
	return word{}, false
}

// disown reports groups that another cluster owns, once for each owner.
func (n *groupNews) disown(p plan.Plan) {
	now := map[string]verdict.Details{}
	for _, v := range p.Verdicts {
		if v.Of != verdict.OfGroup || v.Reason != verdict.GroupOwnedByAnother {
			continue
		}
		now[v.Name] = v.Details
		if !v.Details.Equal(n.disowned[v.Name]) {
			n.waiting = append(n.waiting, word{reason: string(v.Reason), message: fmt.Sprintf("group %s: %s", v.Name, v.Details), warning: true})
		}
	}
	n.disowned = now
}

// backOffWord reports that a group backs off, with Cluster Autoscaler's word for the cause.
func backOffWord(key string, b fleet.BackOff) word {
	group, zone, cause := fleet.ParseBackOffKey(key)
	reason := contract.EventScaleUpFailed
	if cause == cluster.NeverJoined {
		reason = contract.EventScaleUpTimedOut
	}
	facts := contract.Facts{Group: group, Zone: zone, Cause: b.Cause, Failures: b.Count, Until: contract.At(b.Until)}
	return word{reason: reason, message: fmt.Sprintf("group %s", launch.BackOff(key, b)), warning: true, facts: facts}
}

// next is what to record next, on that object; told marks it as recorded.
func (n *groupNews) next(page corev1.ObjectReference) (kube.Event, bool) {
	if len(n.waiting) == 0 {
		return kube.Event{}, false
	}
	w := n.waiting[0]
	return kube.Event{Object: page, Reason: w.reason, Message: w.message, Warning: w.warning, Annotations: annotated(w.facts)}, true
}

// annotated is the annotation with some facts; none without a group.
func annotated(facts contract.Facts) map[string]string {
	if facts.Group == "" {
		return nil
	}
	return map[string]string{contract.AnnotationEventFacts: facts.String()}
}

func (n *groupNews) told() { n.waiting = n.waiting[1:] }
