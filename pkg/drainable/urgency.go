package drainable

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// Urgency says how much time a drain has: an instance that goes at a known
// moment takes its pods with it, so that keeping one back saves nothing. No
// urgency goes past a budget.
type Urgency int

const (
	// Patient: nothing is lost by waiting. Every rule stands.
	Patient Urgency = iota
	// Hurried: the instance goes at a known moment. Rules that block yield;
	// pods that shall end by themselves still may.
	Hurried
	// Pressing: it goes in two minutes. Nobody is waited for.
	Pressing
)

// UrgencyOf a drain of that kind when its end comes near: what becomes of the pods
// in the end. deadline is zero where there is none.
func UrgencyOf(kind contract.Kind, deadline time.Time) Urgency {
	if kind == contract.KindSpot {
		return Pressing
	}
	if kind == contract.KindASG || !deadline.IsZero() {
		return Hurried
	}
	return Patient
}

// pressing is the time before a deadline in which nobody is waited for, hurrying the
// longest one in which nobody stays by his own word.
const pressing, hurrying = 2 * time.Minute, 30 * time.Minute

// UrgencyAt is the urgency at a moment of a drain that began at since. What pods say
// of themselves is honoured where time allows, until half an hour is left, or half of
// the whole time if that is less: an event that is announced for next week is no
// reason to overrule them today. deadline is the one that somebody has named, zero
// where there is none; one that has passed may come at any moment. rises is when the
// urgency will be greater, zero for never.
func UrgencyAt(now time.Time, kind contract.Kind, since, deadline time.Time) (u Urgency, rises time.Time) {
	if kind == contract.KindSpot || !deadline.After(now) {
		return UrgencyOf(kind, deadline), time.Time{}
	}
	hurries := deadline.Add(-min(hurrying, deadline.Sub(since)/2))
	presses := deadline.Add(-pressing)
	switch {
	case !now.Before(presses):
		return Pressing, time.Time{}
	case !now.Before(hurries):
		return Hurried, presses
	case presses.Before(hurries):
		return Patient, presses
	}
	return Patient, hurries
}

func (u Urgency) overrides(o Outcome) bool {
	switch o {
	case Block:
		return u >= Hurried
	case Wait:
		return u >= Pressing
	}
	return false
}
