package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// ClockTime prints a moment in verdicts.
func ClockTime(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

const (
	// mostNames is how many of a kind a sentence names.
	mostNames = 3
)

// Placed reports whether a label is about where a node is or on what hardware, which few pods
// choose by.
func Placed(key string) bool {
	switch key {
	case corev1.LabelHostname, corev1.LabelInstanceTypeStable:
		return true
	}
	return strings.HasPrefix(key, "topology.") || strings.HasPrefix(key, "karpenter.")
}

// SomeOf names the first of some.
func SomeOf(names []string) string {
	if n := len(names) - mostNames; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), n)
	}
	return strings.Join(names, ", ")
}

// Counted is a number of things, in words.
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// WhileFewer says what a drain waits for where so many may be under way.
func WhileFewer(than int) Details {
	if than == 1 {
		return Say("no other drain is under way")
	}
	return Say("fewer than {max} drains are under way", Max(than))
}

// Listed joins words as people do.
func Listed(words []string) string { return joined(words, " and ") }

func joined(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}

// Progress is how far a drain is by its agent's report, if that has answered.
func Progress(report contract.Report, answered bool) Details {
	switch {
	case !answered:
		return Say("its agent has not answered yet")
	case report.Phase == contract.PhaseDrained:
		return Say("it is drained")
	case report.Phase == contract.PhaseFailed:
		return Say("its drain failed: {cause}", Cause(report.Message))
	}
	return Standing(Say("it is being drained"), report)
}

// Standing adds since when a drain goes on, and what is left of it.
func Standing(drain Details, report contract.Report) Details {
	if !report.Since.IsZero() {
		drain = drain.And(" since {since}", Since(report.Since.Time))
	}
	if report.Left > 0 {
		drain = drain.And(", {left} {left:pod|pods} left", Left(report.Left))
	}
	if len(report.BlockedBy) > 0 {
		drain = drain.And(", blocked by {blockers}", Blockers(bounded(slices.Sorted(slices.Values(report.BlockedBy)))))
	}
	return drain
}

// bounded are names that an agent has written.
func bounded(names []string) []string {
	if text := Listed(names); len(text) > contract.MostText {
		return []string{contract.Shorten(text, contract.MostText)}
	}
	return names
}

// BackOff says that a group is backed off.
func BackOff(until time.Time, cause string) Details {
	return Say("in back-off until {until} after {cause}", Until(until), Cause(cause))
}

// NotIn says what zones lack.
func NotIn(cause string, zones []string, until time.Time) Details {
	switch cause {
	case "InsufficientInstanceCapacity", "UnfulfillableCapacity":
		return Say("no capacity in {zones:,} until {until}", Zones(zones), Until(until))
	case "InsufficientFreeAddressesInSubnet":
		return Say("no free addresses in {zones:,} until {until}", Zones(zones), Until(until))
	}
	return Say("back-off after {cause} in {zones:,} until {until}", Cause(cause), Zones(zones), Until(until))
}
