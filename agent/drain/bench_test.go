package drain_test

import (
	"fmt"
	"testing"
	"time"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// BenchmarkDecide: one decision of a drain of a spot instance's pods, of which none, or ten of
// eleven, belong to ReplicaSets. A third are leaving, a third are being asked to, and a third are
// to be asked now.
func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct{ pods, owners int }{{20, 0}, {110, 10}} {
		b.Run(fmt.Sprint(c.pods), func(b *testing.B) {
			view, policy := midDrain(b, c.pods, c.owners)
			b.ReportAllocs()
			for b.Loop() {
				if next := drain.Decide(view, policy); next.Report.Left != c.pods {
					b.Fatalf("%d pods are left, want %d", next.Report.Left, c.pods)
				}
			}
		})
	}
}

func midDrain(b *testing.B, pods, owners int) (drain.View, drain.Policy) {
	w := newWorld()
	for i := range pods {
		p := newPod(fmt.Sprintf("shop/web%d-%d", i%(owners+1), i))
		if i%(owners+1) == 0 {
			p.Owner = nil
		}
		w.addPod(p)
	}
	w.notices = []notice.Notice{{
		ID: "spot-terminate:" + instance, Cause: notice.SpotTerminate, Kind: contract.KindSpot, Source: notice.FromInstanceAction,
		Reason: "spot interruption", Deadline: w.now.Add(2 * time.Minute),
	}}
	w.write(drain.Decide(w.view(), w.policy))
	steps := drain.Decide(w.view(), w.policy).Steps
	if len(steps) != pods {
		b.Fatalf("%d pods are asked to leave, want %d", len(steps), pods)
	}
	w.send(steps[:2*pods/3])
	for _, s := range steps[:pods/3] {
		w.tries = w.tries.Learn(s.UID, w.now, drain.Answer{Outcome: drain.Accepted})
		p := w.pods[s.UID]
		p.Deleted = fleet.SecondOf(w.now.Add(30 * time.Second))
		w.pods[s.UID] = p
	}
	return w.view(), w.policy
}
