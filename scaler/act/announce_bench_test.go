package act

import (
	"fmt"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// BenchmarkAnnounce takes in what an evaluation has found of 5,000 nodes, whose reasons have all changed and
// wait for their turn: the loop does that before it evaluates again.
func BenchmarkAnnounce(b *testing.B) {
	found := func(reason verdict.Reason) plan.Plan {
		var p plan.Plan
		for i := range 5_000 {
			name := fmt.Sprintf("node-%04d", i)
			p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfNode, Name: name, UID: "uid-of-" + name, Reason: reason})
		}
		return p
	}
	now := time.Now()
	n := &Announcer{Events: full{}, Now: func() time.Time { return now }}
	n.Announce(fleet.Snapshot{Now: now}, found(verdict.NodeNeeded), nil)
	changed := found(verdict.NodeBlocked)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		n.Announce(fleet.Snapshot{Now: now}, changed, nil)
	}
}

// full has no room for an Event.
type full struct{}

func (full) Write(kube.Event) bool { return false }
