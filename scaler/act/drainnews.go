package act

import (
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
)

// drainNews is the Events due about nodes that the scaler drains in place of their agents:
// each event once, as an agent would.
type drainNews struct {
	waiting []newsOfDrain
	told    map[eventOfDrain]bool
}

// eventOfDrain is the reason of an Event about one drain of one node.
type eventOfDrain struct {
	node       action.NodeRef
	id, reason string
}

type newsOfDrain struct {
	eventOfDrain
	word
}

var eventOfPhase = map[contract.Phase]string{
	contract.PhaseDraining: contract.EventDrainStarted,
	contract.PhaseWaiting:  contract.EventDrainStarted,
	contract.PhaseBlocked:  contract.EventDrainBlocked,
	contract.PhaseDrained:  contract.EventDrained,
}

// eventOf is the Event that reports how a drain stands.
func eventOf(d action.Drain) string {
	if d.Pauses {
		return contract.EventDrainWaiting
	}
	return eventOfPhase[d.Phase]
}

// follow takes in which drains go on. It keeps nothing of the others.
func (n *drainNews) follow(p plan.Plan) {
	told, news := map[eventOfDrain]bool{}, []newsOfDrain(nil)
	for _, d := range p.Drains {
		for e := range n.told {
			if e.node == d.Node && e.id == d.ID {
				told[e] = true
			}
		}
		e := eventOfDrain{d.Node, d.ID, eventOf(d)}
		if !told[e] {
			news = append(news, newsOfDrain{e, word{reason: e.reason, message: d.Message, warning: d.Phase == contract.PhaseBlocked}})
		}
	}
	n.told, n.waiting = told, news
}

// next is what to record next; hear marks it as recorded.
func (n *drainNews) next() (kube.Event, bool) {
	if len(n.waiting) == 0 {
		return kube.Event{}, false
	}
	w := n.waiting[0]
	return kube.Event{Object: kube.NodeReference(w.node.Name), Reason: w.word.reason, Message: w.message, Warning: w.warning}, true
}

func (n *drainNews) hear() {
	n.told[n.waiting[0].eventOfDrain] = true
	n.waiting = n.waiting[1:]
}
