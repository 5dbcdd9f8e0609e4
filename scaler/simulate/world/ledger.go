package world

import (
	"slices"

	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Ledger is what a time cost and what happened in it.
type Ledger struct {
	// Bills are by group, in the order of the world's, and by what its zones cost.
	Bills []Bill
	// Launches are instances, launch failures calls. Idle are the instances that were ended
	// without ever having hosted a pod, Relaunches those launched in a group in which a node
	// was scaled down less than ten minutes before.
	Launches, LaunchFailures, Idle, Relaunches int
	Terminations, Interruptions                int
	// Drains are scale-downs that began, Cancelled those that were cancelled. Marks are
	// unneeded marks, ShortMarks those that were cleared within a minute.
	Drains, Cancelled, Marks, ShortMarks int
	// Evictions are what agents and the scaler asked for; Killed are pods whose node went
	// under them, Lost those that are not made again.
	Evictions, Killed, Lost int
	// Unserved are pods that ended without ever having had a node, Pending those that wait
	// at the end.
	Unserved, Pending int
	// Waits are how long pods waited for a node, in seconds and in order, those that were
	// made again for each time.
	Waits []int64
	// Evaluations and Steps are what deciding took.
	Evaluations int
	Steps       int64
	Samples     []Sample
	// Decisions are the actions that people would read of, at most mostDecisions; Hidden
	// counts those beyond.
	Decisions []Decision
	Hidden    int

	podSeconds int64
	running    int
	// waiting is the most pods that were pending at once since the last sample.
	waiting int
	// every is how far samples are apart, next when the next one is.
	every, next int64
}

// Bill is what the nodes of a group cost at one price.
type Bill struct {
	Group, Type string
	Price       float64
	// Seconds are from launch calls to termination calls.
	Seconds int64
}

// Dollars are US dollars.
func (b Bill) Dollars() float64 { return float64(b.Seconds) * b.Price / 3600 }

// Sample is the world at a moment.
type Sample struct {
	At int64
	// Dollars is the bill so far, and Evictions count likewise.
	Dollars   float64
	Evictions int
	// Pending is the most at once since the sample before.
	Pending int
	// Nodes are those that are paid for, in the order of Bills.
	Nodes []int
}

// Decision is an action, with the verdict on what it is about.
type Decision struct {
	At         int64
	Kind, Text string
	Verdict    string
}

const (
	// mostSamples bounds how many samples are kept.
	mostSamples   = 720
	mostDecisions = 5000
	// finest is how near samples are to each other at the nearest, in seconds.
	finest = 60
)

func newLedger(seconds int64) Ledger {
	return Ledger{every: max(finest, (seconds+mostSamples-1)/mostSamples)}
}

// Dollars is the bill.
func (l *Ledger) Dollars() (sum float64) {
	for _, b := range l.Bills {
		sum += b.Dollars()
	}
	return sum
}

// NodeHours are those that are paid for.
func (l *Ledger) NodeHours() float64 {
	seconds := int64(0)
	for _, b := range l.Bills {
		seconds += b.Seconds
	}
	return float64(seconds) / 3600
}

// PodHours are those of pods on nodes.
func (l *Ledger) PodHours() float64 { return float64(l.podSeconds) / 3600 }

func (l *Ledger) waited(seconds int64) { l.Waits = append(l.Waits, seconds) }

// bills are those of all groups up to now, one for each price that the zones of a group have.
func (w *World) bills() []Bill {
	list := make([]Bill, 0, len(w.snapshot.Groups))
	for i := range w.snapshot.Groups {
		g := w.groups[w.snapshot.Groups[i].Name]
		for _, t := range g.tariffs {
			list = append(list, Bill{Group: g.name, Type: w.snapshot.Groups[i].TemplateIn("").InstanceType, Price: t.price, Seconds: t.seconds})
		}
	}
	return list
}

// sample notes how the world is.
func (w *World) sample() {
	l := &w.ledger
	s := Sample{At: w.now, Evictions: l.Evictions, Pending: l.waiting}
	for _, b := range w.bills() {
		s.Dollars += b.Dollars()
	}
	for i := range w.snapshot.Groups {
		for _, t := range w.groups[w.snapshot.Groups[i].Name].tariffs {
			s.Nodes = append(s.Nodes, t.billed)
		}
	}
	l.Samples = append(l.Samples, s)
	l.next += l.every
	l.waiting = 0
}

// closeBooks counts what is open at the end. Nodes of the last minutes may be for pods to come
// and do not count as idle.
func (w *World) closeBooks() {
	l := &w.ledger
	l.Bills = w.bills()
	if n := len(l.Samples); n == 0 || l.Samples[n-1].At < w.now {
		w.sample()
	}
	for _, p := range w.scheduler.queue {
		l.Pending++
		l.waited(w.now - p.made)
	}
	slices.Sort(l.Waits)
}

// note keeps the actions of a plan that people would read of.
func (w *World) note(p plan.Plan) {
	for _, a := range p.Actions {
		t := action.TraitsOf(a)
		if t.Routine || t.Turn == action.ForNobody {
			continue
		}
		if len(w.ledger.Decisions) == mostDecisions {
			w.ledger.Hidden++
			continue
		}
		w.ledger.Decisions = append(w.ledger.Decisions, Decision{At: w.now, Kind: t.Kind, Text: a.String(), Verdict: verdictOn(p.Verdicts, a, t)})
	}
}

// verdictOn is the verdict on the node that an action is about; where a group grows, on the
// first pod that it grows for, or on the group.
func verdictOn(list []*verdict.Verdict, a action.Action, t action.Traits) string {
	of, name := verdict.OfNode, t.Node.Name
	if grow, is := a.(action.Grow); is {
		of, name = verdict.OfGroup, grow.Group
		if len(grow.For) > 0 {
			of, name = verdict.OfPod, grow.For[0].String()
		}
	}
	for _, v := range list {
		if v.Of == of && v.Name == name {
			return v.String()
		}
	}
	return ""
}
