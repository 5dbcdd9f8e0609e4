package act

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// newsroom is an announcer at work, in virtual time.
type newsroom struct {
	*Announcer
	events *events
}

// why is what an evaluation finds of nodes: "web-1 Needed", with more words as the message.
func (r newsroom) why(lines ...string) {
	var list []*verdict.Verdict
	for _, line := range lines {
		v, words := &verdict.Verdict{Of: verdict.OfNode}, ""
		_, _ = fmt.Sscan(line, &v.Name, &v.Reason, &words) // which may be missing
		v.Details = verdict.Quote(words)
		v.UID = "uid-" + v.Name
		list = append(list, v)
	}
	r.Announce(fleet.Snapshot{Now: time.Now()}, verdicts(list...), nil)
}

// told is what was recorded since it was asked last.
func (r newsroom) told() []string {
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	list := r.events.list
	r.events.list = nil
	return list
}

func (r newsroom) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, r.told()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func inNewsroom(t *testing.T, test func(t *testing.T, r newsroom)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &events{}
		r := newsroom{&Announcer{Events: e}, e}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		test(t, r)
	})
}

func (r newsroom) later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A node's new reason is recorded when it has held for a minute, once, in its latest words.
func TestAnnounceNodes(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		r.why("a Needed", "b Waiting since-9")
		r.later(10 * time.Minute)
		r.expect(t, "the first look")
		r.why("a NoPlaceForPods db", "b Waiting since-10")
		r.later(30 * time.Second)
		r.why("a NoPlaceForPods web", "b Waiting since-11")
		r.later(29 * time.Second)
		r.expect(t, "before the minute is over")
		r.later(time.Second)
		r.expect(t, "after it", "NoPlaceForPods a: web")
		r.why("a NoPlaceForPods other", "b Waiting since-12")
		r.later(10 * time.Minute)
		r.expect(t, "other words")
	})
}

// What passes is no news, nor is what has Events of its own: a node that comes up and is
// needed, one that has no verdict for a moment, one that is scaled down.
func TestAnnounceNodesThatPass(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		r.why("a Needed")
		for _, reason := range []string{"Unneeded", "Needed", "Unneeded", "NotEvaluated", "Unneeded", "Needed"} {
			r.why("a " + reason)
			r.later(59 * time.Second)
		}
		r.expect(t, "flapping")
		for _, reason := range []string{"NotEvaluated", "Upcoming", "Needed"} {
			r.why("a Needed", "new "+reason)
			r.later(10 * time.Minute)
		}
		r.expect(t, "coming up")
		for _, reason := range []string{"ScalingDown", "ScaleDownCancelled", "Draining", "Terminating"} {
			r.why("a Needed", "new "+reason)
			r.later(10 * time.Minute)
		}
		r.expect(t, "a retirement")
		r.why("a Needed", "new NeverReady broken")
		r.later(time.Minute)
		r.expect(t, "trouble", "NeverReady new: broken")
	})
}

// A node that is no more is forgotten.
func TestAnnounceNodesThatGo(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		r.why("a Needed", "b Needed")
		r.why("a Unneeded")
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.nodes.nodes); n != 1 {
			t.Errorf("%d nodes are kept of one", n)
		}
	})
}

// A node whose reason changes to and fro more slowly gets one Event in five minutes.
func TestAnnounceNodesAtTheirPace(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		r.why("a Needed")
		n := 0
		for i := range 30 {
			r.why("a " + []string{"Unneeded", "Needed"}[i%2])
			r.later(2 * time.Minute)
			n += len(r.told())
		}
		if n < 5 || n > 12 {
			t.Errorf("%d Events in an hour", n)
		}
	})
}

// One cause for thousands of nodes is recorded bit by bit, after the news that pods wait for,
// and only as long as it holds.
func TestAnnounceNodesWithinBounds(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		needed, stopped := make([]string, 1000), make([]string, 1000)
		for i := range needed {
			needed[i], stopped[i] = fmt.Sprintf("n%04d Needed", i), fmt.Sprintf("n%04d ScaleDownStopped", i)
		}
		r.why(needed...)
		r.why(stopped...)
		r.later(time.Minute)
		if n := len(r.told()); n < 1 || n > nodesAtOnce {
			t.Errorf("%d at once", n)
		}
		r.later(time.Minute)
		if n := len(r.told()); n < 100 || n > 60*nodesPerSecond+nodesAtOnce {
			t.Errorf("%d in a minute", n)
		}
		r.why(needed...)
		r.later(time.Minute)
		r.expect(t, "those that have not heard of it, and need not any more")
	})
}

// The next leader announces what has changed since, and nothing twice. Of a node that was not
// named, what the first evaluation finds is old news.
func TestAnnounceNodesAfterARestart(t *testing.T) {
	inNewsroom(t, func(t *testing.T, r newsroom) {
		r.TakeOver(map[string]verdict.Reason{"same": verdict.NodeBlocked, "other": verdict.NodeBlocked, "up": verdict.NodeUpcoming, "gone": verdict.NodeHeld})
		r.why("same BlockedByPod db", "other Held", "up Needed", "unnamed NoPlaceForPods")
		r.later(10 * time.Minute)
		r.expect(t, "after a restart", "Held other: ")
		r.why("same BlockedByPod db", "other Held", "up Needed", "unnamed Needed", "late Waiting since-9")
		r.later(time.Minute)
		r.expect(t, "from then on", "Waiting late: since-9", "Needed unnamed: ")
	})
}
