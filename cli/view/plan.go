package view

import (
	"cmp"
	"slices"
	"time"

	"windlass.dev/windlass/pkg/statuspage"
)

// Plan is what the leader answers, as windlass-scaler plan -o json prints it.
type Plan struct {
	At     time.Time `json:"at"`
	Faults []string  `json:"faults,omitempty"`
	Others []string  `json:"otherPrograms,omitempty"`
	// Actions have a text for people, and their fields.
	Actions  []PlanAction  `json:"actions"`
	Verdicts []PlanVerdict `json:"verdicts"`
	Wake     time.Time     `json:"wake,omitzero"`
}

// PlanAction is something to do.
type PlanAction struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Do   any    `json:"do,omitempty"`
}

// PlanVerdict is one of a pending pod, a node or a group.
type PlanVerdict struct {
	Kind    string            `json:"kind"`
	Name    string            `json:"name"`
	UID     string            `json:"uid,omitempty"`
	Group   string            `json:"group,omitempty"`
	Reason  statuspage.Reason `json:"reason"`
	Message string            `json:"message"`
	Details any               `json:"details,omitempty"`
}

// Planned is what the leader would do now, and what differs from its last evaluation.
type Planned struct {
	// Set are the flags that were asked about.
	Set []string `json:"set,omitempty"`
	// Last is when the last evaluation was.
	Last time.Time `json:"last"`
	// New are actions that it did not have, and Gone those that are not asked for any more, done
	// or not wanted now.
	New     []string  `json:"newActions"`
	Gone    []string  `json:"goneActions"`
	Changed []Changed `json:"changed"`
	Plan    Plan      `json:"plan"`
}

// Changed is a verdict with another reason than before.
type Changed struct {
	Of string `json:"of"`
	// Was and Is are empty where there was or is none.
	Was     statuspage.Reason `json:"was,omitempty"`
	Is      statuspage.Reason `json:"is,omitempty"`
	Message string            `json:"message,omitempty"`
	Do      string            `json:"do,omitempty"`
}

// NewPlanned compares two plans. A verdict whose sentence alone differs has not changed: moments
// and figures in it do all the time.
func NewPlanned(last, now Plan, set []string) Planned {
	p := Planned{Set: set, Last: last.At, New: []string{}, Gone: []string{}, Changed: []Changed{}, Plan: now}
	p.New, p.Gone = append(p.New, beyond(now.Actions, last.Actions)...), append(p.Gone, beyond(last.Actions, now.Actions)...)
	was := map[[3]string]PlanVerdict{}
	for _, v := range last.Verdicts {
		was[v.key()] = v
	}
	for _, v := range now.Verdicts {
		before, had := was[v.key()]
		delete(was, v.key())
		if !had || before.Reason != v.Reason {
			p.Changed = append(p.Changed, Changed{ref(v.Kind, v.Name), before.Reason, v.Reason, v.Message, AdviceOn(v.Kind, v.Reason).Do})
		}
	}
	for _, v := range was {
		p.Changed = append(p.Changed, Changed{Of: ref(v.Kind, v.Name), Was: v.Reason})
	}
	slices.SortFunc(p.Changed, func(a, b Changed) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Was, b.Was), cmp.Compare(a.Is, b.Is))
	})
	return p
}

func (v PlanVerdict) key() [3]string { return [3]string{v.Kind, v.Name, v.UID} }

// beyond are the actions of a that b does not have, each as often as it is more.
func beyond(a, b []PlanAction) (more []string) {
	has := map[string]int{}
	for _, x := range b {
		has[x.Text]++
	}
	for _, x := range a {
		if has[x.Text]--; has[x.Text] < 0 {
			more = append(more, x.Text)
		}
	}
	return more
}

// Names are those whose verdict changes.
func (p Planned) Names() []string {
	var names []string
	for _, c := range p.Changed {
		names = append(names, c.Of)
	}
	return slices.Compact(names)
}
