package drain_test

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// storm counts the evictions of one drain.
type storm struct {
	since contract.Time
	now   time.Time
	// again counts by owner the evictions of pods that came to the node in place of evicted
	// ones, most how many pods it had here at once.
	again, most map[string]int
	// dated are the notices for which a deadline was announced meanwhile.
	dated    map[string]bool
	restarts int
	// reopened is how often people have uncordoned the node, and open means that pods left
	// though the node could not be closed.
	open     bool
	reopened int
}

// mostReturns is how often a drain evicts pods that an owner creates in place of evicted ones,
// but for one more each time that the drain has gone on for twice as long.
const mostReturns = 4

// after begins anew with each drain.
func (s storm) after(w *world, next drain.Next) storm {
	if next.Report == nil || s.again == nil || !s.since.Equal(next.Report.Since) {
		s = storm{again: map[string]int{}, most: map[string]int{}, dated: map[string]bool{}}
	}
	if next.Report == nil {
		return s
	}
	s.since, s.now = next.Report.Since, w.now
	s.open = s.open || len(next.Steps) > 0 && w.closed.IsZero()
	named := slices.Clone(w.notices)
	if request, err := notice.ParseRequest(w.node.Annotations[contract.AnnotationDrainRequest]); err == nil {
		named = append(named, request)
	}
	for _, n := range named {
		id := n.ID
		if n.Kind == contract.KindSpot { // the metadata may give it another time each time
			id = string(n.Cause)
		}
		if !n.Deadline.IsZero() {
			s.dated[id] = true
		}
	}
	here := map[string]int{}
	for _, p := range w.pods {
		here[ownerOf(p)]++
		s.most[ownerOf(p)] = max(s.most[ownerOf(p)], here[ownerOf(p)])
	}
	return s
}

func (s storm) evict(w *world, p fleet.Pod) {
	if w.returned[p.UID] {
		s.again[ownerOf(p)]++
	}
}

// broken is law 19: a drain evicts the pods that it found, and of their replacements a few of
// each owner, one more each time that it has gone on for twice as long, or for a day. All that are there have
// one last call for each notice that has a deadline, however often that is put off, and from a node that cannot be closed they leave
// together; an agent that starts anew may ask one pod too many.
func (s storm) broken() (out []string) {
	const day = 24 * time.Hour
	lasts := s.now.Sub(s.since.Time)
	retries := bits.Len(uint(min(lasts, day)/time.Minute)) + int(lasts/day)
	for owner, n := range s.again {
		calls := len(s.dated) + s.reopened
		if s.open {
			calls++
		}
		most := mostReturns + retries + s.restarts + calls*s.most[owner]
		if n > most {
			out = append(out, fmt.Sprintf("law 19: %d pods of %s were evicted that came in the stead of others, %d are enough", n, owner, most))
		}
	}
	return out
}

// TestRandomReturns has drains last for up to four days, while what they evict comes back after
// up to two minutes.
func TestRandomReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		change := func(format string, args ...any) {
			line := fmt.Sprintf(format, args...)
			t.Logf("%s %s", w.now.Format(time.TimeOnly), line)
			if err := w.change(line); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		seconds := func(what string, least, most int) int { // as likely a short time as a long one
			of := rapid.Float64Range(math.Log(float64(least)), math.Log(float64(most))).Draw(t, what)
			return int(math.Round(math.Exp(of)))
		}
		for _, app := range apps {
			for i := range rapid.IntRange(0, 12).Draw(t, "pods of "+app) {
				change("pod shop/%s-%d grace=%d tolerates", app, i, seconds("grace", 1, 300))
			}
		}
		change("returns %ds %s", rapid.IntRange(1, 120).Draw(t, "returns"), rapid.SampledFrom([]string{"", "pending", "after-end"}).Draw(t, "how"))
		request := func() {
			change(`request {"id":"r","deadline":%q}`, w.now.Add(time.Duration(seconds("deadline in", 60, 86400))*time.Second).Format(time.RFC3339))
		}
		change(`request {"id":"r"}`)
		for end := w.now.Add(time.Duration(seconds("life", 600, 4*86400)) * time.Second); w.now.Before(end); {
			switch rapid.IntRange(0, 5).Draw(t, "turn") {
			case 0:
				change("restart")
				change("hears")
			case 1:
				for range rapid.IntRange(1, 20).Draw(t, "times") { // it is put off shortly before it comes
					request()
					w.elapse(t, time.Duration(seconds("until it is put off", 30, 1200))*time.Second, end)
				}
			}
			w.elapse(t, time.Duration(seconds("until the next turn", 60, 86400))*time.Second, end)
		}
	})
}

// However many notices name the same deadline, pods that came back are asked once more before it.
func TestLastCallOfManyNotices(t *testing.T) {
	for _, notices := range []int{1, contract.MostLastCalls, contract.MostLastCalls + 1, 3 * contract.MostLastCalls} {
		w := newWorld()
		w.returns = time.Second
		for i := range notices {
			if err := w.change(fmt.Sprintf("notice instance-stop:%d in 30m", i)); err != nil {
				t.Fatal(err)
			}
		}
		p := newPod("shop/web-1")
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		w.addPod(p)
		w.run(t, 27*time.Minute)
		before := len(w.evicted)
		w.run(t, 2*time.Minute)
		if before == 0 || len(w.evicted) == before {
			t.Errorf("%d notices: %d evictions in 27 min and %d in the next two", notices, before, len(w.evicted)-before)
		}
	}
}

// An old report of the same request stands on the Node, or one that somebody has made up: it
// dates the drain from long ago, and all pods are younger. They leave all the same: at once
// where the cordon is younger than they are, and within a day where that is not known.
func TestOldReport(t *testing.T) {
	for _, tc := range []struct {
		name     string
		cordoned func(*world)
		within   time.Duration
	}{
		{"opened and asked again", func(*world) {}, time.Minute},
		{"cordoned by people", func(w *world) { w.node.Unschedulable = true }, 26 * time.Hour},
	} {
		w := newWorld()
		w.returns, w.afterEnd = 0, false
		old := contract.At(start.AddDate(-5, 0, 0))
		w.node.Annotations[contract.AnnotationDrainRequest] = "upgrade"
		w.node.Annotations[contract.AnnotationDrainReport] = contract.Report{
			Answers: []string{"request:upgrade"}, Phase: contract.PhaseDraining, Kind: contract.KindRequest,
			Since: old, Renewed: old, Excluded: old, Told: []string{contract.EventDrainStarted},
		}.String()
		tc.cordoned(w)
		for i := range 3 {
			p := newPod(fmt.Sprintf("shop/web-%d", i))
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			w.addPod(p)
		}
		w.elapse(t, tc.within, start.Add(tc.within))
		if len(w.pods) > 0 || len(w.evicted) != 3 {
			t.Errorf("%s: %d pods are left after %s, %d evictions", tc.name, len(w.pods), tc.within, len(w.evicted))
		}
	}
}

// elapse goes on for a time, or to the end, and holds the drain to law 19 alone. The older
// it is, the more seldom the agent decides.
func (w *world) elapse(t require, length time.Duration, end time.Time) {
	end = notice.Earliest(end, w.now.Add(length))
	for !w.now.After(end) {
		next := drain.Decide(w.view(), w.policy)
		w.apply(next)
		for _, law := range w.storm.broken() {
			t.Fatalf("at %s: %s", w.now.Format(time.TimeOnly), law)
		}
		own := w.now.Add(w.now.Sub(start) / 64)
		if next.Wake.After(own) {
			own = next.Wake
		}
		to := w.soonest(own)
		if !to.After(w.now) {
			to = w.now.Add(time.Second)
		}
		w.pass(to)
	}
}

func ownerOf(p fleet.Pod) string {
	if p.Owner == nil {
		return p.Key()
	}
	return p.Namespace + "/" + p.Owner.Kind + "/" + p.Owner.Name
}
