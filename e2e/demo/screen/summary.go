package screen

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/demo/story"
)

// Summary tells how it was, at the end.
func Summary(s story.Summary) []Line {
	lines := []Line{
		nil,
		text(Title, fmt.Sprintf("The day took %s.", s.Elapsed.Round(time.Second))),
		item("pods, first seen to Running", s.PodWaits.String()),
		item("pods, first seen to AWS call", s.CallWaits.String()),
		item("instances", fmt.Sprintf("%d launched, %d ended", s.Launched, s.Ended)),
		item("evictions", evictions(s)),
	}
	for _, f := range s.Floors {
		lines = append(lines, item("", fmt.Sprintf("%s %d: at the closest %d served, want %d", f.Workload, f.Evictions, f.Serving, f.Allowed)))
	}
	lines = append(lines, calls(s)...)
	if len(s.Faults) == 0 {
		return append(lines,
			Line{{label("pods dropped"), Faint}, {fmt.Sprintf("0 of %d", s.Pods), Good}},
			item("", fmt.Sprintf("%d left, evicted or deleted by their owner,", s.Left)),
			item("", "each with its whole grace period; those"),
			item("", "evicted were replaced, no budget violated"))
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

// calls lists those that changed something, then those that only looked.
func calls(s story.Summary) []Line {
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
	lines := []Line{item("AWS calls", fmt.Sprintf("%d, of which %d refused", total, s.Refused))}
	for _, part := range slices.Concat(changing, reading) {
		lines = append(lines, item("", part))
	}
	return lines
}
