package shadow_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/shadow"
	"windlass.dev/windlass/scaler/shadow/record"
)

// rig is a shadow beside a world.
type rig struct {
	*scenario.World
	policy  policy.Policy
	planner *plan.Planner
	shadow  *shadow.Shadow
	state   fleet.State
	shown   fleet.Snapshot
}

func newRig(observedOnly bool) *rig {
	p := policy.DefaultPolicy()
	p.Shadow, p.TerminationHooks, p.Consolidate = true, nil, policy.ConsolidateUnneeded
	return &rig{World: scenario.NewWorld(), policy: p, planner: plan.NewPlanner(), shadow: shadow.New(shadow.Memory{}, observedOnly)}
}

// turn is one evaluation; it returns the actions.
func (r *rig) turn() []action.Action {
	world := r.World.Snapshot
	world.State = r.state
	r.shown = r.shadow.See(world)
	p := r.planner.Decide(r.shown, r.policy)
	var results []plan.Result
	for _, a := range p.Actions {
		results = append(results, r.shadow.Assume(a))
	}
	r.state = plan.Settle(r.shown, r.policy, p.State, results)
	return p.Actions
}

// restart is another process that goes on.
func (r *rig) restart(observedOnly bool) error {
	text, err := r.shadow.Memory().Encode()
	if err != nil {
		return err
	}
	m, err := shadow.Decode(text)
	if err != nil {
		return err
	}
	r.shadow, r.planner = shadow.New(m, observedOnly), plan.NewPlanner()
	return nil
}

// TestScenarios plays the files of testdata; -rewrite writes down what comes out. Their commands:
//
//	world [observed] [unneeded=1m]
//	                  a world, in the lines of e2e/scenario; with observed a scaler acts on the
//	                  groups that are not; how long a node has to be unneeded
//	change            further lines
//	advance 5m        lets time pass
//	turn              evaluates until nothing more is decided, and prints the records that are no
//	                  samples, and the figures of both sides
//	assumed           prints what is kept of groups, nodes and pods
//	restart [observed]
//	                  has another process go on
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		r, observedOnly := newRig(false), false
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world":
				observedOnly = d.HasArg("observed")
				r = newRig(observedOnly)
				if d.HasArg("unneeded") {
					var text string
					d.ScanArgs(t, "unneeded", &text)
					r.policy.UnneededTime = duration(t, d, text)
				}
				fallthrough
			case "change":
				if err := r.Apply(d.Input); err != nil {
					d.Fatalf(t, "%v", err)
				}
			case "advance":
				r.Advance(duration(t, d, d.CmdArgs[0].Key))
			case "restart":
				observedOnly = observedOnly || d.HasArg("observed")
				if err := r.restart(observedOnly); err != nil {
					d.Fatalf(t, "%v", err)
				}
			case "assumed":
				return r.assumed()
			case "turn":
				for n := 0; len(r.turn()) > 0 && n < 5; n++ {
				}
				return r.tell()
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	t.Helper()
	is, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return is
}

// assumed is the memory for people.
func (r *rig) assumed() string {
	var lines []string
	m := r.shadow.Memory()
	for name, g := range m.Groups {
		lines = append(lines, fmt.Sprintf("group %s: %d launched", name, len(g.Assumed)))
	}
	for name := range m.Nodes {
		lines = append(lines, "mark on "+name)
	}
	for _, g := range m.Gone {
		lines = append(lines, "removed "+g.Node)
	}
	for uid, node := range m.Placed {
		lines = append(lines, fmt.Sprintf("pod %s on %s", uid, node))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (r *rig) tell() string {
	var b strings.Builder
	var sample *record.Sample
	for _, x := range r.shadow.Records() {
		switch {
		case x.Sample != nil:
			sample = x.Sample
			continue
		case x.Pods != nil || x.Groups != nil: // TestPlayed of package shadowlog
			continue
		case x.Decided != nil:
			fmt.Fprintf(&b, "would %s", x.Decided)
		case x.Diverged != nil:
			fmt.Fprintf(&b, "diverged %s %s: assumed %s, is %s", x.Diverged.Group, x.Diverged.Node, x.Diverged.Assumed, x.Diverged.Is)
			if x.Diverged.Why != "" {
				fmt.Fprintf(&b, ": %s", x.Diverged.Why)
			}
		case x.Bound != nil:
			fmt.Fprintf(&b, "bound %s on side %s to %s after %s", x.Bound.Pod, x.Bound.Side, x.Bound.Node, x.Pending())
		case x.Seen != nil:
			fmt.Fprintf(&b, "seen %s of %s: %s %s", x.Seen.Kind, x.Seen.By, x.Seen.Group, x.Seen.Node)
			if x.Seen.To != x.Seen.From {
				fmt.Fprintf(&b, " %d→%d", x.Seen.From, x.Seen.To)
			}
		}
		b.WriteString("\n")
	}
	if sample != nil {
		for _, g := range sample.Groups {
			fmt.Fprintf(&b, "%s: world %d desired, %d nodes; windlass %d, %d\n", g.Group, g.World.Desired, g.World.Nodes, g.Windlass.Desired, g.Windlass.Nodes)
		}
	}
	return b.String()
}

// TestShadow holds laws in random worlds whose autoscaler does what it likes: nothing that was seen is
// written to; what is assumed keeps within the groups' bounds; a decision that was assumed done is not
// decided again; a node that is in use again is not removed again and again; a process that goes on sees
// the same; and what is assumed ends with the world.
func TestShadow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(false)
		if err := r.Apply(randomWorld(t)); err != nil {
			t.Fatal(err)
		}
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		returned := map[string]time.Time{}
		for range steps {
			before := scenario.Format(r.World.Snapshot)
			for n := 0; ; n++ {
				again := r.turn()
				if len(again) == 0 {
					break
				}
				if n > 6 {
					t.Fatalf("what was assumed done is decided again and again: %v\n%s", again, before)
				}
			}
			if after := scenario.Format(r.World.Snapshot); after != before {
				t.Fatalf("the world was written to:\n%s", cmp.Diff(before, after))
			}
			r.holdBounds(t)
			for _, x := range r.shadow.Records() {
				if !x.Valid() {
					t.Fatalf("invalid record %+v", x)
				}
				if d := x.Diverged; d != nil && d.Is == record.InUse {
					if since := x.At.Sub(returned[d.Node]); since >= 0 && since < 10*time.Minute {
						t.Fatalf("%s was in use %s before, and was taken for removed all the same", d.Node, since)
					}
					returned[d.Node] = x.At
				}
			}
			if rapid.Bool().Draw(t, "restart") {
				was := r.shadow.See(r.World.Snapshot)
				if err := r.restart(false); err != nil {
					t.Fatal(err)
				}
				if is := r.shadow.See(r.World.Snapshot); !reflect.DeepEqual(is.Groups, was.Groups) || !reflect.DeepEqual(is.Nodes, was.Nodes) {
					t.Fatalf("another process sees something else")
				}
			}
			r.random(t)
		}
		// The world ends: so does all that is assumed.
		r.World.Snapshot.Groups, r.World.Snapshot.Nodes, r.World.Snapshot.Pods = nil, nil, nil
		r.turn()
		if m := r.shadow.Memory(); len(m.Groups)+len(m.Gone)+len(m.Nodes)+len(m.Placed) > 0 {
			t.Fatalf("of nothing this is assumed: %+v", m)
		}
	})
}

func (r *rig) holdBounds(t *rapid.T) {
	world := map[string]fleet.Group{}
	for _, g := range r.World.Groups {
		world[g.Name] = g
	}
	shown := r.shadow.See(r.World.Snapshot)
	for _, g := range shown.Groups {
		if is := world[g.Name]; g.Desired > max(g.Max, is.Desired) || g.Desired < min(g.Min, is.Desired) {
			t.Fatalf("group %s would want %d of %d to %d; the world's wants %d", g.Name, g.Desired, g.Min, g.Max, is.Desired)
		}
	}
	nodes, on := map[string]bool{}, map[string]int{}
	for _, n := range shown.Nodes {
		if nodes[n.Name] {
			t.Fatalf("two nodes %s", n.Name)
		}
		nodes[n.Name] = true
	}
	for _, p := range shown.Pods {
		if on[string(p.UID)]++; p.Node != "" && !nodes[p.Node] || on[string(p.UID)] > 1 {
			t.Fatalf("pod %s is on %q, %d times", p.Key(), p.Node, on[string(p.UID)])
		}
	}
}

func randomWorld(t *rapid.T) string {
	var b strings.Builder
	for g := range rapid.IntRange(1, 3).Draw(t, "groups") {
		n := rapid.IntRange(0, 4).Draw(t, "nodes")
		fmt.Fprintf(&b, "group g%d max=%d desired=%d cpu=%d zones=a,b price=0.1\n", g, n+rapid.IntRange(0, 3).Draw(t, "room"), n, rapid.IntRange(1, 4).Draw(t, "cpu"))
		for i := range n {
			fmt.Fprintf(&b, "node g%d-%d group=g%d zone=%s\n", g, i, g, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))
			for p := range rapid.IntRange(0, 2).Draw(t, "pods") {
				fmt.Fprintf(&b, "pod p-%d-%d-%d on=g%d-%d cpu=%dm\n", g, i, p, g, i, rapid.IntRange(1, 9).Draw(t, "milli")*100)
			}
		}
	}
	for p := range rapid.IntRange(0, 4).Draw(t, "waiting") {
		fmt.Fprintf(&b, "pod w-%d waiting cpu=%dm\n", p, rapid.IntRange(1, 30).Draw(t, "milli")*100)
	}
	return b.String()
}

// random has the world go on, whatever the shadow thinks.
func (r *rig) random(t *rapid.T) {
	s := &r.World.Snapshot
	switch rapid.SampledFrom([]string{"time", "long", "grow", "shrink", "remove", "pod", "ends", "back"}).Draw(t, "happens") {
	case "time":
		r.Advance(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	case "long":
		r.Advance(time.Duration(rapid.IntRange(5, 60).Draw(t, "minutes")) * time.Minute)
	case "back":
		s.Now = s.Now.Add(-time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
	case "grow":
		g := &s.Groups[rapid.IntRange(0, len(s.Groups)-1).Draw(t, "group")]
		if g.Desired < g.Max {
			if err := r.SetDesired(g.Name, g.Desired, g.Desired+1); err != nil {
				t.Fatal(err)
			}
			r.Launch()
			r.Join()
		}
	case "shrink":
		g := &s.Groups[rapid.IntRange(0, len(s.Groups)-1).Draw(t, "group")]
		g.Desired = max(g.Min, g.Desired-1)
	case "remove":
		if len(s.Nodes) == 0 {
			return
		}
		n := s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")]
		r.TakeAway(n.InstanceID())
		s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(o fleet.Node) bool { return o.Name == n.Name })
		s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p *fleet.Pod) bool { return p.Node == n.Name })
	case "pod":
		name := fmt.Sprintf("x-%d", rapid.IntRange(0, 1<<20).Draw(t, "name"))
		line := "pod " + name + " waiting cpu=500m"
		if len(s.Nodes) > 0 && rapid.Bool().Draw(t, "bound") {
			line = fmt.Sprintf("pod %s on=%s cpu=300m", name, s.Nodes[rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "on")].Name)
		}
		if err := r.Apply(line); err != nil {
			t.Fatal(err)
		}
	case "ends":
		if len(s.Pods) > 0 {
			i := rapid.IntRange(0, len(s.Pods)-1).Draw(t, "pod")
			s.Pods = slices.Delete(slices.Clone(s.Pods), i, i+1)
		}
	}
}

// TestMemoryOfOthers: what no shadow has written is an error, and what is too large finds room.
func TestMemoryOfOthers(t *testing.T) {
	for _, text := range [][]byte{nil, []byte("{}"), {0x1f, 0x8b}} {
		if _, err := shadow.Decode(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if m, err := shadow.Decode(rapid.SliceOf(rapid.Byte()).Draw(t, "text")); err == nil {
			t.Fatalf("noise was read: %+v", m)
		}
	})
	m := shadow.Memory{Gone: map[string]shadow.Gone{}, Decided: map[string]time.Time{}}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 40_000 { // names that do not compress
		name := fmt.Sprintf("%x-%x", i*2654435761, i*40503*i)
		m.Decided[name] = noon.Add(time.Duration(i) * time.Second)
	}
	text, err := m.Encode()
	if err != nil || len(text) > shadow.MaxBytes {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
}
