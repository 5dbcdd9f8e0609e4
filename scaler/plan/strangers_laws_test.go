package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Law 14, as far as one plan shows: of the instances that no Node names, and that we did not ask
// for, none is ended in a group that never had a Node here, none while there are too many of them,
// and of a group no more in a window than the brake allows. No hook is completed in a group that
// never had a Node here.
func lawStrangers(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	strangers, live := strangersIn(s, p)
	for _, g := range s.Groups {
		ended, replaced := endedLately(s, g.Name), 0
		for _, a := range got.Actions {
			switch x := a.(type) {
			case action.Complete:
				if _, ours := s.State.Recognition.Ended[x.Instance]; x.Group == g.Name && x.Node.Name == "" && x.State == fleet.TerminatingWait && !ours && !hadNodes(s, g) {
					broken = append(broken, fmt.Sprintf("law 14: %s, and no Node of its group ever was here", x))
				}
			case action.Terminate:
				if x.Group != g.Name || x.Node.Name != "" {
					continue
				}
				if !x.Decrement && liveOf(g) <= g.Desired {
					replaced++
				}
				if _, launched := s.State.Recognition.Launched[x.Instance]; launched {
					continue
				}
				if _, again := s.State.Recognition.Ended[x.Instance]; !again {
					ended++
				}
				switch {
				case !hadNodes(s, g):
					broken = append(broken, fmt.Sprintf("law 14: %s, and no Node of its group ever was here", x))
				case float64(strangers)*100 > p.MaxUnrecognisedPercent*float64(live):
					broken = append(broken, fmt.Sprintf("law 14: %s, and %d of %d instances are not recognised", x, strangers, live))
				case ended > max(1, liveOf(g)/10):
					broken = append(broken, fmt.Sprintf("law 14: %s, the %d. of %d in ten minutes", x, ended, liveOf(g)))
				}
			}
		}
		if replaced > 1 {
			broken = append(broken, fmt.Sprintf("law 14: %d instances of group %s are replaced at once", replaced, g.Name))
		}
	}
	return broken
}

// strangersIn counts the live instances without a Node that were not asked for, but for those that
// came when the time of the first may have been over.
func strangersIn(s fleet.Snapshot, p policy.Policy) (strangers, live int) {
	var came []time.Time
	shortest := p.MaxNodeProvisionTime
	for _, g := range s.Groups {
		shortest = min(shortest, g.ScaleDown.ProvisionTime(p.MaxNodeProvisionTime))
		for _, i := range g.Instances {
			if !i.Live() {
				continue
			}
			live++
			since, known := s.State.Unjoined[i.ID]
			_, launched := s.State.Recognition.Launched[i.ID]
			named := slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool { return n.InstanceID() == i.ID })
			if !named && known && !since.IsZero() && !launched && i.State != fleet.PendingWait {
				came = append(came, since)
			}
		}
	}
	for _, at := range came {
		if !at.After(slices.MinFunc(came, time.Time.Compare).Add(shortest)) {
			strangers++
		}
	}
	return strangers, live
}

func endedLately(s fleet.Snapshot, group string) int {
	n := 0
	for _, e := range s.State.Recognition.Ended {
		if e.Group == group && !e.Launched && s.Now.Sub(e.At) < 10*time.Minute {
			n++
		}
	}
	return n
}

func hadNodes(s fleet.Snapshot, g fleet.Group) bool {
	_, had := s.State.Recognition.Groups[g.Name]
	return had || slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool {
		return slices.ContainsFunc(g.Instances, func(i fleet.Instance) bool { return i.ID == n.InstanceID() })
	})
}

// Law 15, as far as one plan shows: no instance is ended, and none let go, that another Node may be
// than the one that the action names.
func law15Contested(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		id := ""
		switch x := a.(type) {
		case action.Terminate:
			id = x.Instance
		case action.Complete:
			if x.State == fleet.PendingWait {
				continue // that ends nothing
			}
			id = x.Instance
		default:
			continue
		}
		named := 0
		for _, n := range s.Nodes {
			if n.InstanceID() == id {
				named++
			}
		}
		if n := mayBe(s, id); n != "" || named > 1 {
			broken = append(broken, fmt.Sprintf("law 15: %s, and %d Nodes name it by providerID, another otherwise: %q", a, named, n))
		}
	}
	return broken
}

// mayBe is a Node that names the instance otherwise than by its providerID.
func mayBe(s fleet.Snapshot, id string) string {
	for _, n := range s.Nodes {
		if slices.Contains(slices.Collect(n.WeakIDs()), id) {
			return n.Name
		}
	}
	return ""
}

// TestStrangersEndSlowly is law 14 over time: whatever happens, and however often leaders
// change, no ten minutes see more ends in a group than the brake allows, and desired stays
// at the minimum or above. The judge has a diary of its own.
func TestStrangersEndSlowly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		nodes, strangers := x.number("nodes", 0, 25), x.number("strangers", 1, 8)
		low := x.number("min", 0, nodes+strangers)
		x.line("group", "web", fmt.Sprintf("min=%d max=60 desired=%d", low, nodes+strangers), x.one("hook", "", "hook=windlass"))
		x.line("group", "other", "max=60")
		for n := range nodes {
			x.line("node", fmt.Sprintf("web-%d", n), "group=web", "hold")
		}
		for i := range strangers {
			x.line("instance", fmt.Sprintf("i-stranger-%d", i), "group=web", x.one("state", "", "state=Pending"))
		}
		w := parsed(t, strings.Join(x.lines, "\n"))
		p := policy.DefaultPolicy()
		p.MaxUnrecognisedPercent = float64(x.number("share", 0, 100))
		var diary []time.Time
		for range x.number("steps", 20, 60) {
			switch x.number("event", 0, 9) {
			case 0:
				w.Leads = w.Now
			case 1:
				w.Outages = append(w.Outages, fleet.Outage{From: w.Now.Add(-time.Duration(x.number("outage", 1, 20)) * time.Minute), Until: w.Now})
			case 2:
				x.lines = nil
				x.line("instance", fmt.Sprintf("i-late-%d", len(diary)+len(w.Groups[0].Instances)), "group=web")
				w.Groups[0].Desired++
				if err := w.Apply(strings.Join(x.lines, "\n")); err != nil {
					t.Fatal(err)
				}
			case 3:
				w.Reap()
			}
			w.Advance(time.Duration(x.number("minutes", 0, 6)) * time.Minute)
			live := liveOf(w.Groups[0])
			had := hadNodes(w.Snapshot, w.Groups[0])
			launched := w.State.Recognition.Launched
			got := plan.Decide(w.Snapshot, p)
			hold(t, w, p, got)
			for _, a := range got.Actions {
				end, ends := a.(action.Terminate)
				if _, ours := launched[end.Instance]; !ends || end.Node.Name != "" || ours {
					continue
				}
				diary = append(diary, w.Now)
				lately := 0
				for _, at := range diary {
					if w.Now.Sub(at) < 10*time.Minute {
						lately++
					}
				}
				if !had || lately > max(1, live/10) {
					t.Fatalf("%s is the %d. of %d live instances in ten minutes; nodes seen: %t\n%s", end, lately, live, had, scenario.Format(w.Snapshot))
				}
			}
			if err := carryOut(w, got); err != nil {
				t.Fatalf("%v\n%s", err, scenario.Format(w.Snapshot))
			}
			if g := w.Groups[0]; g.Desired < g.Min {
				t.Fatalf("%d are desired and the minimum is %d\n%s", g.Desired, g.Min, scenario.Format(w.Snapshot))
			}
		}
	})
}
