package world

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate/dice"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// World is a cluster at a moment of virtual time.
type World struct {
	spec   Spec
	policy policy.Policy
	seed   uint64
	trace  trace.Trace

	// now is in seconds since the start.
	now     int64
	events  calendar
	planned int64

	// snapshot is what the scaler observes. It is kept as things happen, never made anew;
	// podAt and nodeAt are what stands behind its pods and nodes, by their indices.
	snapshot fleet.Snapshot
	podAt    []*pod
	nodeAt   []*machine

	planner *plan.Planner
	// changed is true if something has changed since the last evaluation, which was at
	// evaluated; soonest is from when on the next one may be, and wake is when the plan wants
	// it.
	changed                  bool
	evaluated, soonest, wake int64

	groups   map[string]*group
	machines map[string]*machine // by node name
	// instances are the same by instance id, with those that have not joined.
	instances map[string]*machine
	launched  int
	came      map[string]int // instances by client token

	workloads []workload
	pods      map[types.UID]*pod
	born      int
	budgets   budgets
	scheduler scheduler
	draining  []*machine

	chance *dice.Dice
	ledger Ledger
	fault  error
}

// distrust is how long the answer of an evaluation holds where nothing changes, as in the
// scaler's loop; retry is how long a world waits after actions of which none could be done.
const distrust, retry = 600, 10

// New is a world in which the trace is about to begin.
func New(spec Spec, t trace.Trace, p policy.Policy, seed uint64) (*World, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	w := &World{
		spec: spec, policy: p, seed: seed, trace: t, planner: plan.NewPlanner(), chance: dice.New(seed, "scheduler"), changed: true,
		groups: map[string]*group{}, machines: map[string]*machine{}, instances: map[string]*machine{}, came: map[string]int{}, pods: map[types.UID]*pod{},
		evaluated: -1, wake: math.MaxInt64,
	}
	w.ledger = newLedger(t.Seconds)
	if t.Snapshot != nil {
		w.snapshot = *t.Snapshot
		w.snapshot.Groups, w.snapshot.Nodes, w.snapshot.Pods, w.snapshot.Budgets = nil, nil, nil, nil
	} else {
		w.snapshot.Cluster = "simulated"
		for i := range t.Workloads {
			namespace := t.Workloads[i].Namespace
			if w.snapshot.Namespaces == nil {
				w.snapshot.Namespaces = map[string]map[string]string{}
			}
			w.snapshot.Namespaces[namespace] = map[string]string{corev1.LabelMetadataName: namespace}
		}
	}
	w.snapshot.Now, w.snapshot.Leads, w.snapshot.Agents = t.Start, t.Start, map[string]bool{}
	if err := w.settleIn(); err != nil {
		return nil, err
	}
	for i := range t.Workloads {
		w.workloads = append(w.workloads, w.newWorkload(&t.Workloads[i]))
	}
	for i := range t.Pods {
		p := &t.Pods[i]
		if p.Given != nil {
			w.begin(p, p.Given)
			continue
		}
		if p.Arrive < t.Seconds {
			w.at(p.Arrive, func() { w.begin(p, nil) })
		}
	}
	return w, nil
}

// settleIn takes over groups, nodes and pods that are there at the start.
func (w *World) settleIn() error {
	groups := w.spec.Shapes()
	given := w.trace.Snapshot
	if given != nil {
		groups = append(groups, given.Groups...)
		w.budgets.given = given.Budgets
	}
	for i, g := range groups {
		if slices.ContainsFunc(g.NodeTemplates, func(t fleet.NodeTemplate) bool { return !(t.PricePerHour > 0) }) {
			return fmt.Errorf("the price of group %s is not known: give one in the snapshot, as pricePerHour of its node template, or by --price-file", g.Name)
		}
		if w.groups[g.Name] != nil {
			return fmt.Errorf("there are two groups %s, one of the world and one of the snapshot: leave --world away, or name it otherwise", g.Name)
		}
		w.addGroup(g, i)
	}
	if given == nil {
		return nil
	}
	for _, n := range given.Nodes {
		w.adopt(n)
	}
	for _, g := range given.Groups {
		for _, i := range g.Instances {
			w.awaitNode(g.Name, i)
			w.goOnGoing(g.Name, i)
		}
	}
	for _, p := range given.Pods {
		if drainable.BelongsToNode(p) && !p.Ended() {
			w.enter(&pod{seen: p})
		}
	}
	for _, m := range w.nodeAt {
		w.hearRequest(m)
	}
	return nil
}

// Run plays the trace to its end.
func (w *World) Run() (*Ledger, error) {
	if err := w.play(); err != nil {
		return &w.ledger, err
	}
	w.closeBooks()
	return &w.ledger, w.fault
}

func (w *World) play() error {
	for w.fault == nil {
		next := w.trace.Seconds
		if len(w.events) > 0 {
			next = min(next, w.events[0].at)
		}
		next = max(w.now, min(next, w.due()))
		if next >= w.trace.Seconds {
			w.advance(w.trace.Seconds)
			break
		}
		w.advance(next)
		w.happen()
		w.schedule()
		if w.now >= w.due() {
			w.evaluate()
			w.schedule() // what it had evicted
		}
	}
	return w.fault
}

// due is when the next evaluation is.
func (w *World) due() int64 {
	if w.evaluated < 0 {
		return 0
	}
	next := w.evaluated + max(1, int64(w.spec.Interval.Seconds()))
	if w.changed {
		return max(w.soonest, next)
	}
	return max(next, min(w.wake, w.evaluated+distrust))
}

// advance moves the clock; what costs by time is counted.
func (w *World) advance(to int64) {
	for w.ledger.next <= to {
		w.accrue(w.ledger.next)
		w.sample()
	}
	w.accrue(to)
}

func (w *World) accrue(to int64) {
	elapsed := to - w.now
	for i := range w.snapshot.Groups {
		g := w.groups[w.snapshot.Groups[i].Name]
		for _, t := range g.tariffs {
			t.seconds += elapsed * int64(t.billed)
		}
	}
	w.ledger.podSeconds += elapsed * int64(w.ledger.running)
	if elapsed > 0 {
		w.ledger.waiting = max(w.ledger.waiting, len(w.scheduler.queue))
	}
	w.now = to
}

func (w *World) time() time.Time { return w.timeAt(w.now) }

func (w *World) timeAt(seconds int64) time.Time {
	return w.trace.Start.Add(time.Duration(seconds) * time.Second)
}

// secondsAt is the first whole second at which a moment has come.
func (w *World) secondsAt(t time.Time) int64 {
	d := t.Sub(w.trace.Start)
	seconds := int64(d / time.Second)
	if d > time.Duration(seconds)*time.Second {
		seconds++
	}
	return seconds
}

// observe has the snapshot show what is so now.
func (w *World) observe() {
	w.snapshot.Now = w.time()
	w.renewReports()
	w.snapshot.Budgets = w.budgets.seen
	w.countOwners()
}

// evaluate decides and acts once.
func (w *World) evaluate() {
	w.observe()
	p := w.planner.Decide(w.snapshot, w.policy)
	w.ledger.Evaluations++
	w.ledger.Steps += p.Steps
	before := w.snapshot
	if len(p.Actions) > 0 {
		before.Groups = copied(w.snapshot.Groups)
	}
	w.evaluated, w.soonest, w.changed, w.wake = w.now, 0, false, math.MaxInt64
	if !p.Wake.IsZero() {
		w.wake = w.secondsAt(p.Wake)
	}
	w.note(p)
	results, done := w.carryOut(p.Actions)
	w.snapshot.State = plan.Settle(before, w.policy, p.State, results)
	if len(p.Actions) > 0 {
		w.changed = true
		if !done {
			w.soonest = w.now + retry
		}
	}
}

// copied are groups whose instances may change without them.
func copied(groups []fleet.Group) []fleet.Group {
	out := append([]fleet.Group(nil), groups...)
	for i := range out {
		out[i].Instances = append([]fleet.Instance(nil), out[i].Instances...)
	}
	return out
}
