package drain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"windlass.dev/windlass/pkg/contract"
)

// announce records what is new about the drain since the report on the Node: one Event of each
// kind for each interruption, which the report lists.
func (d *decision) announce(r *contract.Report, t tally) {
	if d.bad != nil && (d.old == nil || !strings.Contains(d.old.Message, d.bad.Error())) {
		d.complain()
	}
	r.Told = d.told(*r)
	once := func(warning bool, reason, message string) {
		if !slices.Contains(r.Told, reason) {
			r.Told = append(r.Told, reason)
			d.tell(warning, reason, message)
		}
	}
	switch {
	case r.Phase == contract.PhaseWaiting && !d.pause.none():
		once(false, contract.EventDrainWaiting, fmt.Sprintf("%s (%s): %s", r.Message, r.Kind, r.Reason))
	case d.continues() && d.old.Kind != r.Kind:
		once(false, contract.EventDrainStarted, fmt.Sprintf("the drain continues (%s, was %s): %s", r.Kind, d.old.Kind, r.Reason))
	default:
		once(false, contract.EventDrainStarted, fmt.Sprintf("draining (%s): %s", r.Kind, r.Reason))
	}
	d.tellBlocked(r, t)
	d.tellOverdue(r)
	switch r.Phase {
	case contract.PhaseFailed:
		once(true, contract.EventDrainFailed, r.Message)
	case contract.PhaseDrained:
		once(false, contract.EventDrained, fmt.Sprintf("drained in %s (%s)", r.Renewed.Sub(r.Since.Time), r.Kind))
	}
}

// mostTold is how many recorded Events the report lists. Twice as many as it names keepers, so
// that a keeper that is absent for a moment gets no second Event.
const mostTold = 2 * mostNamed

// returned is the word for pods of that many owners that came back.
const returned = contract.EventDrainBlocked + " returns "

// tellBlocked records what keeps pods: each keeper that the report names once, which the report
// lists; of owners whose pods came back when there are any, and again when they have become
// twice as many. Where there are too many, those are forgotten that keep nothing any more.
func (d *decision) tellBlocked(r *contract.Report, t tally) {
	var fresh, words []string
	others, makers := len(t.reasons)-t.makers, t.makers
	if len(r.BlockedBy) == 0 || !d.isClosed() && d.Unwritable.IsZero() {
		makers = 0 // the drain waits, or has yet to close the node: what is there did not come back
	}
	for i, keeper := range r.BlockedBy {
		word := contract.EventDrainBlocked + " " + keeper
		words = append(words, word)
		if i < others && !slices.Contains(r.Told, word) { // not where the pods are not seen
			r.Told, fresh = append(r.Told, word), append(fresh, t.reasons[i])
		}
	}
	more := false
	for n := 1; n <= makers; n *= 2 {
		if word := returned + strconv.Itoa(n); !slices.Contains(r.Told, word) {
			r.Told, more = append(r.Told, word), true
		}
	}
	all := len(fresh) == min(others, len(r.BlockedBy)) && more == (makers > 0)
	if more {
		fresh = append(fresh, t.reasons[others:]...)
	}
	over := len(r.Told) - mostTold
	r.Told = slices.DeleteFunc(r.Told, func(told string) bool {
		keeper := strings.HasPrefix(told, contract.EventDrainBlocked+" ") && !strings.HasPrefix(told, returned)
		gone := over > 0 && keeper && !slices.Contains(words, told)
		if gone {
			over--
		}
		return gone
	})
	switch {
	case len(fresh) == 0:
	case all:
		d.tell(true, contract.EventDrainBlocked, r.Message)
	default:
		d.tell(true, contract.EventDrainBlocked, fmt.Sprintf("%s left, some blocked by %s", count(r.Left, "pod"), why(fresh)))
	}
}

// tellOverdue records pods that do not end: each once, and no more than a report names.
func (d *decision) tellOverdue(r *contract.Report) {
	var fresh []string
	for _, pod := range r.Overdue {
		word := contract.EventPodOverdue + " " + pod
		if !slices.Contains(r.Told, word) && len(r.Told) < 3*mostNamed {
			r.Told, fresh = append(r.Told, word), append(fresh, pod)
		}
	}
	if len(fresh) > 0 {
		d.tell(true, contract.EventPodOverdue, overstay(fresh)+"; the drain does not wait for them: check their finalizers and the kubelet")
	}
}

// told is what was recorded of this interruption before. Another kind is another one, as long
// as there is something left to do for it. An older agent recorded the start of a drain that
// has begun, and did not list it.
func (d *decision) told(r contract.Report) []string {
	if !d.continues() || d.old.Kind != r.Kind && r.Left > 0 {
		return nil
	}
	told := slices.Clone(d.old.Told)
	if d.begun() && !d.toldOf(contract.EventDrainStarted) {
		told = append(told, contract.EventDrainStarted)
	}
	return told
}

// refuseRequest reports a request that cannot be read.
func (d *decision) refuseRequest() *contract.Report {
	report := contract.Report{
		Answers: []string{},
		Phase:   contract.PhaseFailed,
		Since:   contract.At(d.Now),
		Version: d.policy.Version,
		Message: d.bad.Error(),
	}
	if d.old != nil && d.old.Phase == report.Phase && d.old.Message == report.Message {
		report.Since = d.old.Since
		return &report
	}
	d.complain()
	return &report
}

func (d *decision) complain() {
	d.tell(true, contract.EventBadRequest, d.bad.Error())
}

func (d *decision) tell(warning bool, reason, message string) {
	e := Event{Warning: warning, Reason: reason, Message: message}
	if reason == contract.EventDrainWaiting || reason == contract.EventDrainStarted {
		e.Notice = d.fields(d.winner())
	}
	d.events = append(d.events, e)
}
