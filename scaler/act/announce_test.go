package act

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// at10 is ten o'clock.
var at10 = time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)

// verdict is one of a pod whose name is its UID.
func verdictOn(uid string, reason verdict.Reason, message string) *verdict.Verdict {
	return &verdict.Verdict{Of: verdict.OfPod, Name: "default/" + uid, UID: uid, Reason: reason, Details: verdict.Quote(message)}
}

func verdicts(list ...*verdict.Verdict) plan.Plan { return plan.Plan{Verdicts: list} }

// growFor grows the group web by one node for each pod.
func growFor(uids ...string) action.Grow {
	x := action.Grow{Group: "web", From: 1, To: 1 + len(uids)}
	for _, uid := range uids {
		x.For = append(x.For, action.PodRef{Namespace: "default", Name: uid, UID: types.UID(uid)})
	}
	return x
}

func page() (corev1.ObjectReference, bool) {
	return kube.ConfigMapReference("windlass-system", "windlass-status", "u"), true
}

// A pod gets an Event with why it is pending when that is decided and when it changes, the
// oldest first; what finds no room is recorded later.
func TestAnnounceWaiting(t *testing.T) {
	s := fleet.Snapshot{Pods: []*fleet.Pod{{UID: "young", Created: fleet.SecondOf(at10)}, {UID: "old", Created: fleet.SecondOf(at10.Add(-time.Hour))}}}
	first := verdicts(verdictOn("young", verdict.PodNoGroupFits, "too big"), verdictOn("old", verdict.PodGroupsUnavailable, "at max"), verdictOn("third", verdict.PodFitsNode, "there is room"))
	second := verdicts(verdictOn("young", verdict.PodNoGroupFits, "still too big"), verdictOn("old", verdict.PodGroupsUnavailable, "at max"))
	e := &events{}
	n := &Announcer{Events: e}
	n.Announce(s, first, nil)
	n.Announce(s, first, nil)
	n.Announce(s, second, nil)
	e.room = 4
	third := verdicts(verdictOn("young", verdict.PodNoGroupFits, "a"), verdictOn("old", verdict.PodNoGroupFits, "b"))
	n.Announce(s, third, nil)
	e.room = 0
	n.Announce(s, third, nil)
	want := []string{
		"NotTriggerScaleUp old: at max", "NotTriggerScaleUp young: too big", "NotTriggerScaleUp young: still too big",
		"NotTriggerScaleUp old: b", "NotTriggerScaleUp young: a",
	}
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Error(diff)
	}
}

// A pod gets an Event for the nodes that are launched for it, or for what went wrong: the
// same failure once.
func TestAnnounceGrowth(t *testing.T) {
	gets := verdicts(verdictOn("a", verdict.PodTriggersScaleUp, "web grows"), verdictOn("b", verdict.PodTriggersScaleUp, "web grows"))
	comes := verdicts(verdictOn("a", verdict.PodFitsUpcoming, "it comes"), verdictOn("b", verdict.PodFitsUpcoming, "it comes"))
	failed := []Result{{Action: growFor("a", "b"), Outcome: Failed, Err: errors.New("no right")}}
	done := []Result{{Action: growFor("a", "b"), Outcome: Done}}
	paused := []Result{{Action: growFor("a", "b"), Outcome: Paused}}
	e := &events{}
	n := &Announcer{Events: e}
	for _, results := range [][]Result{failed, paused, failed, done} {
		n.Announce(fleet.Snapshot{}, gets, results)
	}
	n.Announce(fleet.Snapshot{}, comes, nil)
	want := []string{
		"ActionFailed a: grow web 1→3 for default/a, default/b: no right", "ActionFailed b: grow web 1→3 for default/a, default/b: no right",
		"TriggeredScaleUp a: group web grows 1→3", "TriggeredScaleUp b: group web grows 1→3",
	}
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Error(diff)
	}
}

// What found no room is recorded as long as it holds: of the two pods whose Events came too
// late, only the one that still waits for its node gets one.
func TestAnnounceOnlyWhatHolds(t *testing.T) {
	e := &events{room: 1}
	n := &Announcer{Events: e}
	gets := verdicts(verdictOn("a", verdict.PodTriggersScaleUp, ""), verdictOn("b", verdict.PodTriggersScaleUp, ""), verdictOn("c", verdict.PodTriggersScaleUp, ""))
	n.Announce(fleet.Snapshot{}, gets, []Result{{Action: growFor("a", "b", "c"), Outcome: Done}})
	e.room = 0
	n.Announce(fleet.Snapshot{}, verdicts(verdictOn("c", verdict.PodFitsUpcoming, "it comes")), nil)
	if diff := cmp.Diff([]string{"TriggeredScaleUp a: group web grows 1→4", "TriggeredScaleUp c: group web grows 1→4"}, e.list); diff != "" {
		t.Error(diff)
	}
}

// Groups get Events of their growth, of failures once, of back-offs as each begins, and of
// instances that were ended without a node. Back-offs of before are old news.
func TestAnnounceGroups(t *testing.T) {
	rest := func(count int, until time.Time) fleet.BackOff {
		return fleet.BackOff{Until: until, Count: count, Cause: "InsufficientInstanceCapacity"}
	}
	old, zone, lost := fleet.BackOffKey("old", "", "X"), fleet.BackOffKey("web", "a", "InsufficientInstanceCapacity"), fleet.BackOffKey("web", "", cluster.NeverJoined)
	pauses := func(b fleet.BackOff) map[string]fleet.BackOff {
		return map[string]fleet.BackOff{old: {Count: 1}, zone: b}
	}
	twice := pauses(rest(2, at10.Add(10*time.Minute)))
	twice[lost] = fleet.BackOff{Until: at10.Add(5 * time.Minute), Count: 1, Cause: cluster.NeverJoined}
	failure := Result{Action: growFor("a"), Outcome: Failed, Err: errors.New("no right")}
	claim := action.Claim{Group: "web", Owner: "blue"}
	suspension := action.Suspend{Group: "web", Process: "AZRebalance", Why: "uneven"}

	e := &events{}
	n := &Announcer{Events: e, Page: page}
	for _, look := range []struct {
		backOffs map[string]fleet.BackOff
		results  []Result
	}{
		{map[string]fleet.BackOff{old: {Count: 1}}, []Result{{Action: growFor("a"), Outcome: Done}}},
		{pauses(rest(1, at10.Add(5*time.Minute))), []Result{failure}},
		{pauses(rest(1, at10.Add(6*time.Minute))), []Result{failure}},
		{twice, []Result{{Action: action.Terminate{Group: "web", Instance: "i-1", Why: "no node of it"}, Outcome: Done}}},
		{nil, []Result{{Action: action.Terminate{Group: "web", Instance: "i-2", Node: action.NodeRef{Name: "n"}}, Outcome: Done}}},
		{nil, []Result{{Action: action.Lower{Group: "web", From: 3, To: 1, Why: "nothing came"}, Outcome: Done}}},
		{nil, []Result{{Action: suspension, Outcome: Failed, Err: errors.New("no right")}}},
		{nil, []Result{{Action: suspension, Outcome: Failed, Err: errors.New("no right")}}},
		{nil, []Result{{Action: suspension, Outcome: Done}}},
		{nil, []Result{{Action: claim, Outcome: Done}}},
		{nil, []Result{{Action: claim, Outcome: Done, Before: true}}},
	} {
		n.Announce(fleet.Snapshot{State: fleet.State{BackOffs: map[string]fleet.BackOff{old: {Count: 1}}}}, plan.Plan{State: fleet.State{BackOffs: look.backOffs}}, look.results)
	}
	want := []string{
		"ScaledUpGroup windlass-status: group web grows 1→2",
		"FailedToScaleUpGroup windlass-status: grow web 1→2 for default/a: no right",
		"ScaleUpFailed windlass-status: group web: no capacity in a until 10:05:00",
		"DeleteUnregistered windlass-status: " + action.Terminate{Group: "web", Instance: "i-1", Why: "no node of it"}.String(),
		"ScaleUpTimedOut windlass-status: group web: in back-off until 10:05:00 after NeverJoined",
		"ScaleUpFailed windlass-status: group web: no capacity in a until 10:10:00",
		"LoweredGroup windlass-status: lower web 3→1: nothing came",
		"ActionFailed windlass-status: suspend AZRebalance of web: uneven: no right",
		"SuspendedProcess windlass-status: suspend AZRebalance of web: uneven",
		"ClaimedGroup windlass-status: claim web for cluster blue",
	}
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Error(diff)
	}
	facts := map[string]string{
		"ScaledUpGroup":        `{"group":"web","from":1,"to":2,"pods":1,"for":["default/a"],"namespaces":["default"]}`,
		"FailedToScaleUpGroup": `{"group":"web","from":1,"to":2,"cause":"no right"}`,
		"ScaleUpFailed":        `{"group":"web","zone":"a","cause":"InsufficientInstanceCapacity","failures":2,"until":"2026-08-01T10:10:00Z"}`,
		"DeleteUnregistered":   `{"group":"web","instance":"i-1"}`,
		"ScaleUpTimedOut":      `{"group":"web","cause":"NeverJoined","failures":1,"until":"2026-08-01T10:05:00Z"}`,
		"LoweredGroup":         `{"group":"web","from":3,"to":1}`,
	}
	if diff := cmp.Diff(facts, e.facts); diff != "" {
		t.Error(diff)
	}
}

// That another cluster owns a group is reported once for each owner.
func TestAnnounceGroupsOfOthers(t *testing.T) {
	e := &events{}
	n := &Announcer{Events: e, Page: page}
	for _, owner := range []string{"green", "green", "", "red", "red"} {
		var p plan.Plan
		if owner != "" {
			p.Verdicts = []*verdict.Verdict{{Of: verdict.OfGroup, Name: "web", Reason: verdict.GroupOwnedByAnother, Details: verdict.Quote("it is of " + owner)}}
		}
		n.Announce(fleet.Snapshot{}, p, nil)
	}
	want := []string{"OwnedByAnotherCluster windlass-status: group web: it is of green", "OwnedByAnotherCluster windlass-status: group web: it is of red"}
	if diff := cmp.Diff(want, e.list); diff != "" {
		t.Error(diff)
	}
}

// News of groups waits for an object to stand on.
func TestAnnounceGroupsWaitForThePage(t *testing.T) {
	e := &events{}
	written := false
	n := &Announcer{Events: e, Page: func() (corev1.ObjectReference, bool) { ref, _ := page(); return ref, written }}
	n.Announce(fleet.Snapshot{}, plan.Plan{}, []Result{{Action: growFor("a"), Outcome: Done}})
	if len(e.list) != 0 {
		t.Fatalf("told %q without a page", e.list)
	}
	written = true
	n.Announce(fleet.Snapshot{}, plan.Plan{}, nil)
	if diff := cmp.Diff([]string{"ScaledUpGroup windlass-status: group web grows 1→2"}, e.list); diff != "" {
		t.Error(diff)
	}
}

// server takes Events, and keeps whom they are about and when they came.
type server struct {
	names []string
	at    []time.Time
}

func (s *server) CreateWithEventNamespaceWithContext(_ context.Context, event *corev1.Event) (*corev1.Event, error) {
	s.names, s.at = append(s.names, event.InvolvedObject.Name), append(s.at, time.Now())
	return event, nil
}

// Twenty thousand pods get an Event with why they are pending after a single evaluation: each
// once, the oldest first, however short the queue. No second has more than twenty Events, and
// one about a node meanwhile waits for no more than a second.
func TestAnnounceManyPods(t *testing.T) {
	const pods, perSecond = 20_000, 20
	synctest.Test(t, func(t *testing.T) {
		api := &server{}
		writer := kube.NewEventWriter(api, "windlass-scaler", "", slog.New(slog.DiscardHandler), kube.EventLimits{Queue: 2 * perSecond})
		n := &Announcer{Events: writer}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() { writer.Run(ctx); ended <- struct{}{} }()
		go func() { n.Run(ctx); ended <- struct{}{} }()

		var s fleet.Snapshot
		var p plan.Plan
		for i := range pods {
			uid := fmt.Sprintf("%05d", pods-1-i) // the last of them is the oldest
			s.Pods = append(s.Pods, &fleet.Pod{UID: types.UID(uid), Created: fleet.Second(pods - i)})
			p.Verdicts = append(p.Verdicts, verdictOn(uid, verdict.PodNoGroupFits, "too big"))
		}
		n.Announce(s, p, nil)
		time.Sleep(time.Minute)
		written := time.Now()
		writer.Write(kube.Event{Object: kube.NodeReference("node")})
		time.Sleep(pods / announcedPerSecond * time.Second)
		cancel()
		<-ended
		<-ended

		next := 0
		for i, name := range api.names {
			if i >= perSecond && api.at[i].Sub(api.at[i-perSecond]) < time.Second {
				t.Fatalf("more than %d Events in a second at %s", perSecond, api.at[i])
			}
			if name == "node" {
				if waited := api.at[i].Sub(written); waited > time.Second {
					t.Errorf("the node waited for %s", waited)
				}
				continue
			}
			if want := fmt.Sprintf("%05d", next); name != want {
				t.Fatalf("pod %s was told in the place of %s", name, want)
			}
			next++
		}
		if next != pods || len(api.names) != pods+1 || writer.Dropped() != 0 {
			t.Errorf("%d pods were told, %d Events in all, %d dropped", next, len(api.names), writer.Dropped())
		}
	})
}
