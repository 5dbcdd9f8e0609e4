package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
)

// Some are the first five of a list, and how many more there are.
func Some(names []string) []string {
	const most = 5
	if len(names) <= most {
		return names
	}
	return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
}

func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// ClockTime prints a moment in verdicts.
func ClockTime(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

const (
	// mostNames is how many of a kind a sentence names.
	mostNames = 3
)

// Placed says of a label that it tells where a node is or on what hardware, which few pods
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
func WhileFewer(than int) string {
	if than == 1 {
		return "no other drain is under way"
	}
	return fmt.Sprintf("fewer than %d drains are under way", than)
}

// Listed joins words as people do.
func Listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

func Progress(report contract.Report, answered bool) string {
	switch {
	case !answered:
		return "; its agent has not answered yet"
	case report.Phase == contract.PhaseDrained:
		return "; it is drained"
	case report.Phase == contract.PhaseFailed:
		return "; its drain failed: " + report.Message
	}
	return "; it is being drained" + Standing(report)
}

// Standing is since when a drain goes on, and what is left of it.
func Standing(report contract.Report) string {
	text := ""
	if !report.Since.IsZero() {
		text += " since " + ClockTime(report.Since.Time)
	}
	if report.Left > 0 {
		text += fmt.Sprintf(", %d %s left", report.Left, Plural(report.Left, "pod", "pods"))
	}
	if len(report.BlockedBy) > 0 {
		text += ", blocked by " + contract.Shorten(Listed(slices.Sorted(slices.Values(report.BlockedBy))), contract.MostText)
	}
	return text
}

func ZoneName(l *fit.Looks) string { return cmp.Or(l.Zone, "its zone") }

// NotIn says what zones lack.
func NotIn(cause string, zones []string) string {
	where := strings.Join(zones, ", ")
	switch cause {
	case "InsufficientInstanceCapacity", "UnfulfillableCapacity":
		return "no capacity in " + where
	case "InsufficientFreeAddressesInSubnet":
		return "no free addresses in " + where
	}
	return fmt.Sprintf("back-off after %s in %s", cause, where)
}
