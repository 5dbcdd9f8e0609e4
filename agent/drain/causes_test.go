package drain_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
)

// answers are what people can say about a cause; "" is nothing. Some causes take
// no lead, which the table shows by a dash.
var answers = []string{"", "ignore", "cordon", "drain", "drain@1h"}

// tableOfCauses prints, for every cause of the metadata and every answer to it, what
// becomes of a node with an ordinary pod and one that forbids its eviction: at
// once, and after ten minutes. After the notice has ended the node must be what it
// was.
func tableOfCauses(t *testing.T, deadline time.Duration) []string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "cause\t"+strings.Join(append([]string{"default"}, answers[1:]...), "\t"))
	for _, cause := range notice.Causes() {
		if _, ok := notice.OfMetadata(string(cause) + ":"); !ok {
			continue // a request: it is answered by itself
		}
		row := string(cause)
		for _, answer := range answers {
			row += "\t" + outcome(t, cause, answer, deadline)
		}
		fmt.Fprintln(table, row)
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

func outcome(t *testing.T, cause notice.Cause, answer string, deadline time.Duration) string {
	w := newWorld()
	tell := func(line string) {
		if err := w.change(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if answer != "" {
		policy := fmt.Sprintf("policy %s=%s", cause, answer)
		if strings.Contains(answer, "@") && w.change(policy) != nil {
			return "-"
		}
		tell(policy)
	}
	tell("pod shop/web-1 grace=1")
	tell("pod shop/never-1 grace=1 safe=false")
	tell(strings.TrimSuffix(fmt.Sprintf("notice %s in %s", cause, deadline), " in 0s"))
	w.run(t, 10*time.Second)
	first := w.summary()
	w.run(t, 10*time.Minute)
	if then := w.summary(); then != first {
		first += ", " + then
	}
	tell("no-notice")
	w.run(t, 15*time.Minute) // a spot interruption is over some minutes after its time
	delete(w.node.Annotations, contract.AnnotationServed)
	if left := describeNode(w.node); !slices.Equal(left, []string{"bare"}) {
		t.Errorf("%s, %s: left on the node: %q", cause, answer, left)
	}
	return first
}

// summary says in a word what was done to the node.
func (w *world) summary() string {
	if report, err := contract.ParseReport(w.node.Annotations[contract.AnnotationDrainReport]); err == nil {
		return strings.ToLower(string(report.Phase))
	}
	list, _ := contract.ParseNoticed(w.node.Annotations[contract.AnnotationNotices])
	switch {
	case w.node.Unschedulable:
		return "cordoned"
	case len(list) == 1 && !list[0].Due.IsZero():
		return "from " + clock(list[0].Due.Time)
	case len(list) == 1:
		return "shown"
	}
	return "nothing: " + strings.Join(slices.Sorted(maps.Keys(w.node.Annotations)), " ")
}
