package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestTurns holds law 17 over some hours: nodes get notices that have time, scalers die and
// others follow whose clocks differ, drains take their time or stand still. While a scaler
// has lived for as long as agents wait, no drain begins without a permit before its deadline
// is near; and of those that were permitted no more move at once than may.
func TestTurns(t *testing.T) {
	const wait, step = 5 * time.Minute, 30 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		x := newTurns(t, wait)
		died, skew := time.Time{}, time.Duration(0)
		lived := x.Now // since when a scaler lives without a break
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			switch {
			case died.IsZero() && rapid.IntRange(0, 39).Draw(t, "dies") == 0:
				died = x.Now.Add(time.Duration(rapid.IntRange(1, 600).Draw(t, "for")) * time.Second)
				skew = time.Duration(rapid.IntRange(-90, 90).Draw(t, "skew")) * time.Second
			case !died.IsZero() && !died.After(x.Now):
				died, lived = time.Time{}, x.Now
			}
			if died.IsZero() {
				x.decide(t, skew)
			}
			alone := x.agents(t)
			if died.IsZero() && x.Now.Sub(lived) > wait && len(alone) > 0 {
				t.Fatalf("law 17: %v begin by themselves at %s, and a scaler lives since %s\n%s", alone, x.Now.Format(time.TimeOnly), lived.Format(time.TimeOnly), scenario.Format(x.Snapshot))
			}
			x.Advance(step)
		}
	})
}

// turns is a world of nodes whose agents wait for permits.
type turns struct {
	*scenario.World
	policy  policy.Policy
	waiting map[string]*waitingAgent
}

// waitingAgent is what the agent of a node does while its drain waits, and then.
type waitingAgent struct {
	report contract.Report
	from   time.Time
	// heard is when the last word came, and word what it was.
	heard time.Time
	word  string
	// ends is when the drain is done, zero before it begins.
	ends  time.Time
	stuck bool
}

func newTurns(t *rapid.T, wait time.Duration) *turns {
	x := &text{T: t}
	n := x.number("nodes", 4, 12)
	x.line("group", "web", fmt.Sprintf("desired=%d max=40", n+4))
	x.line("node", fmt.Sprintf("web-1..%d", n+4), "group=web")
	w := &turns{World: scenario.NewWorld(), policy: policy.DefaultPolicy(), waiting: map[string]*waitingAgent{}}
	w.policy.TerminationHooks = nil
	w.policy.MaxDrainParallelism = x.number("parallel", 0, 3)
	for i := range n {
		x.line("pod", fmt.Sprintf("app-%d", i+1), fmt.Sprintf("on=web-%d cpu=700m", i+1))
	}
	if err := w.Apply(strings.Join(x.lines, "\n")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("web-%d", i+1)
		a := &waitingAgent{from: w.Now.Add(time.Duration(x.number("from", 0, 900)) * time.Second)}
		a.report = contract.Report{
			Answers: []string{"system-reboot:" + name}, Wants: "system-reboot:" + name, Kind: contract.KindMaintenance, Phase: contract.PhaseWaiting,
			Left: 1, PermitWait: int(wait / time.Second), Since: contract.At(a.from),
		}
		if in := x.number("deadline in minutes", 0, 120); in > 30 {
			a.report.Deadline = contract.At(a.from.Add(time.Duration(in) * time.Minute))
		}
		w.waiting[name] = a
	}
	return w
}

// decide is an evaluation by a scaler whose clock differs.
func (x *turns) decide(t *rapid.T, skew time.Duration) {
	x.Now = x.Now.Add(skew)
	defer func() { x.Now = x.Now.Add(-skew) }()
	got := plan.Decide(x.Snapshot, x.policy)
	for _, broken := range lawPermits(x.Snapshot, x.policy, got) {
		t.Errorf("%s\n%s\n%s", broken, render(got, nil), scenario.Format(x.Snapshot))
	}
	if err := carryOut(x.World, got); err != nil {
		t.Fatalf("%v\n%s", err, scenario.Format(x.Snapshot))
	}
	x.Launch()
	x.Join()
}

// agents lets each do what it does now, and names those that begin though nothing has permitted it
// and no deadline is near.
func (x *turns) agents(t *rapid.T) (alone []string) {
	for i := range x.Nodes {
		n := &x.Nodes[i]
		a := x.waiting[n.Name]
		if a == nil || x.Now.Before(a.from) {
			continue
		}
		switch {
		case a.report.Phase == contract.PhaseDrained:
			continue
		case a.ends.IsZero():
			if word := n.Annotations[contract.AnnotationDrainNotYet]; word != a.word {
				a.word, a.heard = word, x.Now
			}
			silent := x.Now.Sub(a.report.Since.Time) >= 5*time.Minute && (a.word == "" || x.Now.Sub(a.heard) >= 5*time.Minute)
			late := !a.report.Deadline.IsZero() && a.report.Deadline.Sub(x.Now) <= 4*time.Minute
			permitted := n.Annotations[contract.AnnotationDrainPermit] == a.report.Wants
			if permitted || silent || late {
				x.begin(t, n.Name, a)
			}
			if silent && !permitted && !late {
				alone = append(alone, n.Name)
			}
		case a.stuck && x.Now.Before(a.ends):
			a.report.Phase = contract.PhaseBlocked
		case !x.Now.Before(a.ends):
			x.empty(n.Name)
			a.report.Phase, a.report.Left = contract.PhaseDrained, 0
		}
		a.report.Renewed = contract.At(x.Now)
		x.Report(n.Name, a.report)
	}
	return alone
}

func (x *turns) begin(t *rapid.T, node string, a *waitingAgent) {
	a.ends = x.Now.Add(time.Duration(rapid.IntRange(15, 900).Draw(t, "takes")) * time.Second)
	a.stuck = rapid.IntRange(0, 4).Draw(t, "stuck") == 0
	a.report.Phase, a.report.Wants, a.report.PermitWait, a.report.Excluded = contract.PhaseDraining, "", 0, contract.At(x.Now)
	for i := range x.Nodes {
		if n := &x.Nodes[i]; n.Name == node {
			n.Unschedulable = true
		}
	}
}

// empty moves the pods of a node to where the scheduler likes.
func (x *turns) empty(node string) {
	for _, p := range x.Pods {
		if p.Node == node {
			p.Node, p.Phase, p.Ready = "", fleet.PodPending, false
		}
	}
	schedule(x.World)
}
