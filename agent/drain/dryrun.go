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
// the drain would stand is remembered there, too, and goes on from that. Pods stay, so it
// never gets further than to ask them.
func rehearse(v View, p Policy) Next {
	p.DryRun = false
	actual, written := v.Node, v.Written
	said := actual.Annotations[contract.AnnotationDryRun]
	v.Node, v.rehearsed = thoughtOf(*actual, said), true
	v.Written, v.Unwritable, v.Unwritten, v.Tries = time.Time{}, time.Time{}, nil, Tries{}
	next := Decide(v, p)

	var dry contract.DryRun
	if next.Node != nil {
		dry.Would = slices.DeleteFunc(Changes(*v.Node, *next.Node), func(change string) bool { return strings.Contains(change, "annotation ") })
		v.Node = next.Node
	}
	if next.Report != nil {
		dry.Report = look(v, p).old
		dry.Would = append(dry.Would, rehearsePods(look(v, p), *next.Report)...)
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

// thoughtOf is the node as it is, but with the report that a dry run has said.
func thoughtOf(n fleet.Node, said string) *fleet.Node {
	n = cloneNode(n)
	delete(n.Annotations, contract.AnnotationDryRun)
	if dry, err := contract.ParseDryRun(said); err == nil && dry.Report != nil {
		n.Annotations[contract.AnnotationDrainReport] = dry.Report.String()
	}
	return &n
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
	var names []string
	for _, pod := range d.sortedPods() {
		if d.PodsKnown && pod.Deleted.IsZero() && d.judge(pod).verdict.Outcome == drainable.Leave {
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
