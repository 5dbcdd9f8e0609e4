package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// rehearse decides, and says in AnnotationDryRun what it would do; it does nothing else. How
// the drain would stand, and what it would note of notices, is kept there, too, and goes
// on from that. Pods stay, so it never gets further than to ask them.
func rehearse(v View, p Policy) Next {
	p.DryRun = false
	actual, written := v.Node, v.Written
	said := actual.Annotations[contract.AnnotationDryRun]
	v.Node, v.rehearsed = thoughtOf(*actual, said), actual
	v.Written, v.Unwritable, v.Unwritten, v.Unlisted, v.Tries = time.Time{}, time.Time{}, nil, "", Tries{}
	next := Decide(v, p)

	var dry contract.DryRun
	if next.Node != nil {
		dry.Would = slices.DeleteFunc(Changes(*v.Node, *next.Node), func(change string) bool { return strings.Contains(change, "annotation ") })
		v.Node = next.Node
	}
	dry.Notices, dry.Served = memoryOf(v.Node, actual)
	if next.Report != nil {
		d := read(v, p)
		dry.Report = d.old
		dry.Would = append(dry.Would, rehearsePods(d, *next.Report)...)
	}
	out := Next{WatchPods: next.WatchPods, Wake: next.Wake}
	if dry.String() == said {
		return out
	}
	if by := written.Add(writeEvery); !written.IsZero() && v.Now.Before(by) {
		out.Wake = notice.Earliest(out.Wake, by)
		return out
	}
	node := cloneNode(*actual)
	node.Annotations[contract.AnnotationDryRun] = dry.String()
	if dry.String() == "" {
		delete(node.Annotations, contract.AnnotationDryRun)
	}
	out.Node = &node
	return out
}

// thoughtOf is the node as it is, but with the report and the notices that a dry run has
// written down.
func thoughtOf(n fleet.Node, said string) *fleet.Node {
	n = cloneNode(n)
	delete(n.Annotations, contract.AnnotationDryRun)
	dry, err := contract.ParseDryRun(said)
	if err != nil {
		return &n
	}
	if dry.Report != nil {
		n.Annotations[contract.AnnotationDrainReport] = dry.Report.String()
	}
	if len(dry.Notices) > 0 {
		n.Annotations[contract.AnnotationNotices] = dry.Notices.String()
	}
	if len(dry.Served) > 0 {
		n.Annotations[contract.AnnotationServed] = dry.Served.String()
	}
	return &n
}

// memoryOf is what the simulated node keeps of notices, where the actual one does not. What
// was withdrawn says nothing about what stands.
func memoryOf(thought, actual *fleet.Node) (notices contract.NoticedList, served contract.ServedList) {
	is := func(key string) string {
		if thought.Annotations[key] == actual.Annotations[key] {
			return ""
		}
		return thought.Annotations[key]
	}
	notices, _ = contract.ParseNoticed(is(contract.AnnotationNotices))
	served, _ = contract.ParseServed(is(contract.AnnotationServed))
	return notices, slices.DeleteFunc(served, func(s contract.Served) bool { return s.Withdrawn })
}

// rehearsePods says what the drain of that report would do beside writing the Node.
func rehearsePods(d *decision, r contract.Report) []string {
	switch r.Phase {
	case contract.PhaseWaiting:
		return nil
	case contract.PhaseDrained:
		return []string{"report Drained, by which the scaler completes the lifecycle hook"}
	}
	d.findDeadlines()
	d.findGoing()
	var names []string
	for _, pod := range d.sortedPods() {
		if d.PodsKnown && pod.Deleted.IsZero() && d.going.Judge(pod).Verdict.Outcome == drainable.Leave {
			names = append(names, pod.Key())
		}
	}
	if len(names) == 0 {
		return nil
	}
	evict := fmt.Sprintf("evict %s: %s", count(len(names), "pod"), strings.Join(names[:min(len(names), mostNamed)], ", "))
	if more := len(names) - mostNamed; more > 0 {
		evict += fmt.Sprintf(" and %d more", more)
	}
	return []string{evict}
}
