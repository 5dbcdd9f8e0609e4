package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// held is an instance that terminates, as AWS has it.
type held struct {
	began, beat time.Time // since when its hook holds it, and when the hook's time began anew
	cut         bool      // something else let it go
	cutAt       time.Time
	state       string
	// known is what Windlass has read of it: readings may be old.
	known string
	// unanswered: the answer to a completion of ours was lost.
	unanswered bool
}

// cutIns is a life of a group whose hook Windlass and something else complete, with leaders that
// change and die, calls whose answers are lost, and times in which nothing is read.
type cutIns struct {
	now     time.Time
	hook    fleet.Hook
	all     map[string]*held
	leads   time.Time
	written fleet.State // in the cluster
	memory  fleet.State // of the leader
	told    []fleet.CutIn
	seen    map[string]time.Time // when an evaluation of this leader saw it held first
}

func (c *cutIns) snapshot() fleet.Snapshot {
	g := fleet.Group{Name: "web", Max: 10, Desired: 0, Hooks: []fleet.Hook{c.hook}}
	s := fleet.Snapshot{Now: c.now, Leads: c.leads, State: c.memory}
	for id, h := range c.all {
		i := fleet.Instance{ID: id, State: h.known, Zone: "a", TerminatingSince: h.began, TerminatingExact: true}
		if h.known == "" {
			continue
		}
		g.Instances = append(g.Instances, i)
		n := fleet.Node{Name: id, ProviderID: "aws:///a/" + id, Ready: true, Annotations: map[string]string{}}
		if c.now.Sub(h.began) > 2*time.Minute {
			n.Annotations[contract.AnnotationDrainReport] = fmt.Sprintf(`{"phase":"Drained","kind":"asg","answers":[%q]}`, contract.TerminateID(id))
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.Groups = []fleet.Group{g}
	return s
}

// evaluate decides and acts. fate says what becomes of the calls and of the leader.
func (c *cutIns) evaluate(t *rapid.T) {
	s := c.snapshot()
	for id, h := range c.all {
		if _, was := c.seen[id]; !was && (h.known == fleet.Terminating || h.known == fleet.TerminatingWait) {
			c.seen[id] = c.now
		}
	}
	p := policy.DefaultPolicy()
	got := plan.Decide(s, p)
	before := s.State.CutIn["web"]
	if cut, is := got.State.CutIn["web"]; is && cut != before {
		c.told = append(c.told, cut)
	}
	var results []plan.Result
	for _, a := range got.Actions {
		r := plan.Result{Action: a, Done: true, Ended: c.now}
		switch fate := rapid.IntRange(0, 9).Draw(t, "fate"); {
		case fate == 0: // not sent
			r.Done = false
		case fate == 1: // the answer is lost
			r.Done, r.Unheard = false, true
			if x, completes := a.(action.Complete); completes {
				c.all[x.Instance].unanswered = true
			}
			c.carryOut(a)
		default:
			r.Done = c.carryOut(a)
		}
		results = append(results, r)
	}
	c.memory = plan.Settle(s, p, got.State, results)
	if rapid.IntRange(0, 3).Draw(t, "written") > 0 {
		c.written = c.memory
	}
}

// carryOut reports whether it is known to be done. What is past its hook was completed, by whomever, but
// where no reading has shown it to wait that is not asked.
func (c *cutIns) carryOut(a action.Action) (done bool) {
	switch x := a.(type) {
	case action.Complete:
		h := c.all[x.Instance]
		if h.state != fleet.TerminatingWait {
			return h.state == fleet.TerminatingProceed && (!x.Early || h.unanswered)
		}
		h.state = fleet.TerminatingProceed
	case action.Heartbeat:
		if h := c.all[x.Instance]; h.state == fleet.TerminatingWait {
			h.beat = c.now
		}
	}
	return true
}

// live lets AWS do what is due.
func (c *cutIns) live(d time.Duration) {
	c.now = c.now.Add(d)
	for _, h := range c.all {
		if h.state == fleet.Terminating {
			h.state = fleet.TerminatingWait
		}
		if h.state == fleet.TerminatingWait && c.now.Sub(h.beat) >= c.hook.Heartbeat.Duration {
			h.state = fleet.TerminatingProceed
		}
	}
}

// TestLawCutIn: a completion is told only if something else made it, in at most one report an hour; and
// it is told where this leader has led for long, has seen the instance held and now sees it go on, early
// in the hook's time, with nothing told of the hour.
func TestLawCutIn(t *testing.T) {
	toldOnce := false
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		c := &cutIns{now: start, leads: start.Add(-time.Hour), all: map[string]*held{}, seen: map[string]time.Time{}}
		seconds := rapid.SampledFrom([]int{30, 120, 300, 900, 3600}).Draw(t, "heartbeat")
		c.hook = fleet.Hook{Name: "windlass", Transition: fleet.OnTerminate, Default: "CONTINUE", Heartbeat: metav1.Duration{Duration: time.Duration(seconds) * time.Second}, Global: metav1.Duration{Duration: 48 * time.Hour}}
		var first []string
		if rapid.Bool().Draw(t, "cut in at once") {
			first = []string{"terminate", "read", "evaluate", "cut in", "read", "evaluate"}
		}
		for n := range rapid.IntRange(len(first)+1, 60).Draw(t, "steps") {
			ids := make([]string, 0, len(c.all))
			for id := range c.all {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			steps := []string{"terminate", "cut in", "evaluate", "evaluate", "evaluate", "read", "read", "time", "time", "another leads", "gone"}
			if n < len(first) {
				steps = first[n : n+1]
			}
			switch rapid.SampledFrom(steps).Draw(t, "step") {
			case "terminate":
				id := fmt.Sprintf("i-%02d", n)
				c.all[id] = &held{began: c.now, beat: c.now, state: rapid.SampledFrom([]string{fleet.Terminating, fleet.TerminatingWait}).Draw(t, "state")}
			case "cut in":
				if len(ids) > 0 {
					h := c.all[rapid.SampledFrom(ids).Draw(t, "which")]
					if h.state == fleet.TerminatingWait {
						h.state, h.cut, h.cutAt = fleet.TerminatingProceed, true, c.now
					}
				}
			case "read":
				for _, h := range c.all {
					h.known = h.state
				}
			case "evaluate":
				due := c.due()
				c.evaluate(t)
				if due != "" && len(c.told) == 0 {
					t.Fatalf("%s was completed by something else at %s, and is not told at %s", due, c.all[due].cutAt, c.now)
				}
			case "time":
				c.live(time.Duration(rapid.IntRange(1, 240).Draw(t, "seconds")) * time.Second)
			case "another leads":
				c.leads, c.memory, c.seen = c.now, c.written, map[string]time.Time{}
			case "gone":
				for _, id := range ids {
					if c.all[id].state == fleet.TerminatingProceed && rapid.Bool().Draw(t, "gone") {
						delete(c.all, id)
					}
				}
			}
			for i, cut := range c.told {
				h := c.all[cut.Instance]
				if h != nil && !h.cut {
					t.Fatalf("the completion of %s is told, and nothing else made it", cut.Instance)
				}
				if i > 0 && cut.At.Sub(c.told[i-1].At) < time.Hour {
					t.Fatalf("told twice within an hour: %+v", c.told)
				}
			}
			toldOnce = toldOnce || len(c.told) > 0
		}
	})
	if !toldOnce {
		t.Error("no completion was ever told")
	}
}

// due names an instance whose completion by something else must be told by the next evaluation.
func (c *cutIns) due() string {
	const settled = 2 * time.Minute
	for id, h := range c.all {
		seen, was := c.seen[id]
		margin := max(30*time.Second, c.hook.Heartbeat.Duration/3)
		_, ours := c.memory.Completed[fleet.HeartbeatKey(id, c.hook.Name)]
		sure := h.cut && h.known == fleet.TerminatingProceed && was && !seen.Before(c.leads.Add(settled)) && seen.Sub(h.began) <= time.Minute &&
			c.now.Before(h.began.Add(c.hook.Heartbeat.Duration-margin)) && !ours
		if at, known := c.memory.Held[fleet.HeartbeatKey(id, c.hook.Name)]; sure && known && !at.IsZero() {
			return id
		}
	}
	return ""
}
