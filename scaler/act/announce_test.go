package act

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
)

// heard keeps what was said, and when.
type heard struct {
	pods []string
	at   []time.Time
}

func (h *heard) Write(e kube.Event) bool {
	h.pods, h.at = append(h.pods, string(e.Object.UID)), append(h.at, time.Now())
	return true
}

// Five thousand pods hear why they wait after a single look: each once, the oldest
// first, and no more than twenty in a second but for the first one.
func TestAnnounceManyPods(t *testing.T) {
	const pods = 5000
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		n := &Announcer{Events: h}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { n.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()

		var s fleet.Snapshot
		var verdicts []plan.Verdict
		for i := range pods {
			uid := fmt.Sprintf("%04d", pods-1-i) // the last of them is the oldest
			s.Pods = append(s.Pods, &fleet.Pod{UID: types.UID(uid), Created: time.Unix(int64(pods-i), 0)})
			verdicts = append(verdicts, plan.Verdict{Of: plan.OfPod, UID: uid, Name: "default/p" + uid, Reason: plan.PodFitsNothing, Message: "too big"})
		}
		n.Announce(s, verdicts)
		time.Sleep(pods/announcedPerSecond*time.Second + time.Second)
		synctest.Wait()

		if len(h.pods) != pods {
			t.Fatalf("%d pods were told", len(h.pods))
		}
		for i, uid := range h.pods {
			if want := fmt.Sprintf("%04d", i); uid != want {
				t.Fatalf("pod %s was told in the place of %s", uid, want)
			}
			if i >= 2*announcedPerSecond && h.at[i].Sub(h.at[i-2*announcedPerSecond]) < time.Second {
				t.Fatalf("more than %d Events in a second at %s", 2*announcedPerSecond, h.at[i])
			}
		}
	})
}

// What does not hold any more when there is room is not told.
func TestAnnounceOnlyWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		n := &Announcer{Events: h}
		var verdicts []plan.Verdict
		for i := range 2 * announcedPerSecond {
			verdicts = append(verdicts, plan.Verdict{Of: plan.OfPod, UID: fmt.Sprint(i), Name: "default/p", Reason: plan.PodGroupsFull, Message: "at max"})
		}
		n.Announce(fleet.Snapshot{}, verdicts)
		n.Announce(fleet.Snapshot{}, verdicts[:announcedPerSecond]) // the others have got a node
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n.Run(ctx)
		if len(h.pods) != announcedPerSecond {
			t.Errorf("%d pods were told", len(h.pods))
		}
	})
}
