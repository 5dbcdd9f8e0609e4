package act

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// podNews is the Events due about pending pods.
type podNews struct {
	heard   map[string]word // the last Event of each pod, by its UID
	waiting []newsOfPod     // to be recorded, the oldest pod first
}

// word is the content of an Event: a message, or what a verdict does.
type word struct {
	reason, message string
	details         verdict.Details
	warning         bool
	facts           contract.Facts
}

func (w word) equal(other word) bool {
	return w.reason == other.reason && w.message == other.message && w.warning == other.warning && w.details.Equal(other.details)
}

func (w word) text() string { return cmp.Or(w.message, w.details.String()) }

type newsOfPod struct {
	uid, name string // the name as namespace/name
	created   time.Time
	word
}

// follow takes in what an evaluation has decided and done. Pods that are no longer pending
// are forgotten, with the news for them.
func (n *podNews) follow(s fleet.Snapshot, p plan.Plan, results []Result) {
	untold := make(map[string]word, len(n.waiting))
	for _, w := range n.waiting {
		untold[w.uid] = w.word
	}
	grown := growths(results)
	heard := make(map[string]word, len(n.heard))
	var news []newsOfPod
	for _, v := range p.Verdicts {
		if v.Of != verdict.OfPod {
			continue
		}
		last, known := n.heard[v.UID]
		if known {
			heard[v.UID] = last
		}
		if w, ok := wordOf(v, grown, untold); ok && !w.equal(last) {
			news = append(news, newsOfPod{uid: v.UID, name: v.Name, word: w})
		}
	}
	n.heard, n.waiting = heard, news
	n.sort(s)
}

// wordOf is the next Event of a pending pod: why it gets no node, or what has just been done
// for it, or was done before without an Event yet.
func wordOf(v *verdict.Verdict, grown, untold map[string]word) (word, bool) {
	switch v.Reason {
	case verdict.PodNoGroupFits, verdict.PodGroupsUnavailable, verdict.PodGangDoesNotFit, verdict.PodNotScheduled:
		return word{reason: contract.EventNotTriggerScaleUp, details: v.Details}, true
	case verdict.PodTriggersScaleUp, verdict.PodFitsUpcoming:
		if w, ok := grown[v.UID]; ok {
			return w, true
		}
		w, ok := untold[v.UID]
		return w, ok && w.reason != contract.EventNotTriggerScaleUp
	}
	return word{}, false
}

// growths is what became of growing groups, for each pod that it was for.
func growths(results []Result) map[string]word {
	words := map[string]word{}
	for _, r := range results {
		x, grows := r.Action.(action.Grow)
		if !grows {
			continue
		}
		w, ok := growth(x, r)
		if !ok {
			continue
		}
		for _, p := range x.For {
			words[string(p.UID)] = w
		}
	}
	return words
}

// growth is a pod's Event about its group's growth; none where nothing came of it that people
// should know.
func growth(x action.Grow, r Result) (word, bool) {
	switch r.Outcome {
	case Done, Begun:
		where := ""
		if x.Zone != "" {
			where = " in " + x.Zone
		}
		message := fmt.Sprintf("group %s grows %d→%d%s", x.Group, x.From, x.From+launched(x, r), where)
		return word{reason: contract.EventTriggeredScaleUp, message: message}, true
	case Failed:
		return word{reason: contract.EventActionFailed, message: fmt.Sprintf("%s: %v", x, r.Err), warning: true}, true
	}
	return word{}, false
}

// launched is how many nodes a growth launches: what has come, or else what was asked for.
func launched(x action.Grow, r Result) int {
	if r.Answer != nil && r.Answer.Seen {
		return r.Answer.Came
	}
	return x.To - x.From
}

// sort puts the oldest pod first.
func (n *podNews) sort(s fleet.Snapshot) {
	if len(n.waiting) < 2 {
		return
	}
	created := map[string]time.Time{}
	for _, p := range s.Pods {
		if p.Node == "" {
			created[string(p.UID)] = p.Created.Time()
		}
	}
	for i := range n.waiting {
		n.waiting[i].created = created[n.waiting[i].uid]
	}
	slices.SortStableFunc(n.waiting, func(a, b newsOfPod) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
}

// next is what to record next; told marks it as recorded.
func (n *podNews) next() (kube.Event, bool) {
	if len(n.waiting) == 0 {
		return kube.Event{}, false
	}
	w := n.waiting[0]
	namespace, name, _ := strings.Cut(w.name, "/")
	return kube.Event{Object: kube.PodReference(namespace, name, w.uid), Reason: w.reason, Message: w.text(), Warning: w.warning}, true
}

func (n *podNews) told() {
	w := n.waiting[0]
	n.heard[w.uid], n.waiting = w.word, n.waiting[1:]
}
