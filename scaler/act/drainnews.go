package act

import (
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
)

// drainNews is what people have to be told of nodes that the scaler drains in place of
// their agents: each phase once, as an agent would.
type drainNews struct {
	waiting []newsOfDrain
	told    map[phaseOfDrain]bool
}

// phaseOfDrain is a phase that one drain of one node has come to.
type phaseOfDrain struct {
	node  plan.NodeRef
	id    string
	phase contract.Phase
}

type newsOfDrain struct {
	phaseOfDrain
	word
}

var eventOfPhase = map[contract.Phase]string{
	contract.PhaseDraining: contract.EventDrainStarted,
	contract.PhaseWaiting:  contract.EventDrainStarted,
	contract.PhaseBlocked:  contract.EventDrainBlocked,
	contract.PhaseDrained:  contract.EventDrained,
}

// look takes in which drains go on. Of the others nothing is remembered.
func (n *drainNews) look(p plan.Plan) {
	told, news := map[phaseOfDrain]bool{}, []newsOfDrain(nil)
	for _, d := range p.Drains {
		for phase := range eventOfPhase {
			if at := (phaseOfDrain{d.Node, d.ID, phase}); n.told[at] {
				told[at] = true
			}
		}
		at := phaseOfDrain{d.Node, d.ID, d.Phase}
		if !told[at] {
			news = append(news, newsOfDrain{at, word{reason: eventOfPhase[d.Phase], message: d.Message, warning: d.Phase == contract.PhaseBlocked}})
		}
	}
	n.told, n.waiting = told, news
}

// next is what to tell next; hear says that it was told.
func (n *drainNews) next() (kube.Event, bool) {
	if len(n.waiting) == 0 {
		return kube.Event{}, false
	}
	w := n.waiting[0]
	return kube.Event{Object: kube.NodeReference(w.node.Name), Reason: w.reason, Message: w.message, Warning: w.warning}, true
}

func (n *drainNews) hear() {
	n.told[n.waiting[0].phaseOfDrain] = true
	n.waiting = n.waiting[1:]
}
