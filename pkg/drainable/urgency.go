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

// UrgencyOf a drain of that kind; deadline is zero where there is none.
func UrgencyOf(kind contract.Kind, deadline time.Time) Urgency {
	if kind == contract.KindSpot {
		return Pressing
	}
	if kind == contract.KindASG || !deadline.IsZero() {
		return Hurried
	}
	return Patient
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
