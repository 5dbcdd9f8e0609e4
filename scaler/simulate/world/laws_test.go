package world

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// TestConservation: whatever happens, each pod of the trace is served, or known not to be.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		spec := Default()
		spec.LaunchFailures = rapid.Float64Range(0, 0.5).Draw(t, "launch failures")
		spec.Interruptions = rapid.Float64Range(0, 1).Draw(t, "interruptions")
		for i := range spec.Groups {
			spec.Groups[i].Spot = rapid.Bool().Draw(t, "spot")
			spec.Groups[i].Unsteered = rapid.Bool().Draw(t, "unsteered")
			spec.Groups[i].Max = rapid.IntRange(1, 20).Draw(t, "max")
		}
		played, err := trace.Generate(trace.Mix{Seed: seed, Days: 0.1, Pods: rapid.IntRange(1, 25).Draw(t, "pods")})
		if err != nil {
			t.Fatal(err)
		}
		p := policy.DefaultPolicy()
		p.Consolidate = rapid.SampledFrom(policy.ConsolidateModes).Draw(t, "consolidate")
		w, err := New(spec, played, p, seed)
		if err != nil {
			t.Fatal(err)
		}
		l, err := w.Run()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.checkEnd(l); err != nil {
			t.Fatal(err)
		}
	})
}

// checkEnd returns what does not add up in a world whose trace is over.
func (w *World) checkEnd(l *Ledger) error {
	if err := w.check(); err != nil {
		return err
	}
	if served := len(l.Waits) - l.Pending - l.Unserved; served+l.Unserved+l.Pending < len(w.trace.Pods) {
		return fmt.Errorf("%d served, %d ended pending and %d pending of %d pods", served, l.Unserved, l.Pending, len(w.trace.Pods))
	}
	if l.Lost > 0 {
		return fmt.Errorf("%d pods that have controllers were not made again", l.Lost)
	}
	for _, b := range l.Bills {
		if b.Seconds < 0 {
			return fmt.Errorf("the bill of %s is %d s", b.Group, b.Seconds)
		}
	}
	return nil
}

// check returns what does not add up in a world. What is kept as things happen must
// be what would be counted anew.
func (w *World) check() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	running, on, stand := 0, map[string]int{}, map[*replica]bool{}
	for i, p := range w.podAt {
		if p.index != i || w.snapshot.Pods[i] != p.seen {
			add("pod %s is not where it is thought to be", p.seen.Key())
		}
		if name := p.seen.Node; name != "" {
			on[name]++
			if w.machines[name] == nil || p.on != w.machines[name] {
				add("pod %s is on %s, which is not there", p.seen.Key(), name)
			}
		}
		if p.replica != nil && !p.replica.over {
			stand[p.replica] = true // as the pod that it is, or that leaves before the next one comes
		}
		if p.replica != nil && p.on != nil && !p.leaving {
			running++
		}
	}
	alive := 0
	for i := range w.workloads {
		alive += int(w.workloads[i].alive)
	}
	if alive != len(stand) {
		add("%d replicas are there, %d of them have a pod", alive, len(stand))
	}
	if running != w.ledger.running {
		add("%d pods run, %d were counted", running, w.ledger.running)
	}
	for i, m := range w.nodeAt {
		n := w.snapshot.Nodes[i]
		if m.index != i || n.Name != m.name || len(m.pods) != on[m.name] {
			add("node %s has %d pods, %d were counted", n.Name, on[m.name], len(m.pods))
		}
		cpu, memory := n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
		for _, p := range m.pods {
			cpu, memory = cpu-p.cpu, memory-p.memory
		}
		if cpu < 0 || memory < 0 {
			add("node %s has more on it than it holds", n.Name)
		}
	}
	for _, g := range w.snapshot.Groups {
		live, leaving := 0, 0
		for _, i := range g.Instances {
			if i.Live() {
				live++
			} else if i.Terminating() {
				leaving++
			}
			if i.State == fleet.InService && w.instances[i.ID] == nil {
				add("instance %s is nobody's", i.ID)
			}
		}
		if billed := w.groups[g.Name].billed(); billed != live {
			add("group %s pays for %d instances and has %d, with %d leaving", g.Name, billed, live, leaving)
		}
		if live > g.Max || g.Desired > g.Max || g.Desired < g.Min {
			add("group %s has %d of %d desired, and may have %d to %d", g.Name, live, g.Desired, g.Min, g.Max)
		}
	}
	return errors.Join(wrong...)
}
