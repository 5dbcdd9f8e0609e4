package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
)

// Summary tells how it was, at the end.
func Summary(s story.Summary) []Line {
	lines := []Line{
		nil,
		text(Title, fmt.Sprintf("The day took %s.", s.Elapsed.Round(time.Second))),
		item("pods, first seen to Running", s.PodWaits.String()),
		item("Unschedulable to the AWS call", s.CallWaits.String()),
		item("instances", fmt.Sprintf("%d launched, %d ended", s.Launched, s.Ended)),
		item("evictions", evictions(s)),
	}
	for _, f := range s.Floors {
		lines = append(lines, item("", fmt.Sprintf("%s: %s, at the closest %d served where its budget wants %d", f.Workload, count(f.Evictions, "eviction"), f.Serving, f.Allowed)))
	}
	lines = append(lines, item("AWS calls", calls(s)))
	if len(s.Faults) == 0 {
		return append(lines,
			Line{{label("pods dropped"), Faint}, {fmt.Sprintf("0 of %d", s.Pods), Good}},
			item("", fmt.Sprintf("%d left, each evicted or deleted by its owner, with its whole grace period;", s.Left)),
			item("", "what was evicted has been replaced, and no budget was violated"))
	}
	for _, fault := range s.Faults {
		lines = append(lines, Line{{label("broken"), Faint}, {fault, Bad}})
	}
	return lines
}

func item(name, value string) Line { return Line{{label(name), Faint}, {value, Plain}} }

func label(name string) string { return "  " + pad(name, 31) }

func evictions(s story.Summary) string {
	if len(s.Floors) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, each through the eviction API", s.Evictions())
}

// calls lists those that change something first.
func calls(s story.Summary) string {
	var changing, reading []string
	total := 0
	for _, op := range slices.Sorted(maps.Keys(s.Calls)) {
		total += s.Calls[op]
		part := fmt.Sprintf("%s %d", op, s.Calls[op])
		if (story.Call{Operation: op}).Reads() {
			reading = append(reading, part)
			continue
		}
		changing = append(changing, part)
	}
	out := fmt.Sprintf("%d", total)
	if s.Refused > 0 {
		out += fmt.Sprintf(" (%d refused)", s.Refused)
	}
	if total == 0 {
		return out
	}
	return out + ": " + strings.Join(append(changing, reading...), ", ")
}
