package action

import (
	"cmp"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Traits is what others have to know of an action to treat it rightly. What goes for all of
// its kind comes first, and then what this one is about.
type Traits struct {
	// Kind is its name: grow, request-drain, …
	Kind string
	// Rank orders the actions of one lane: what is most pressing goes first.
	Rank int
	// Turn orders lanes by who waits for them.
	Turn Turn
	// Budget is how long after the start of an evaluation's actions it may begin; 0 for no
	// such bound. The rest is for the next evaluation: a pod may wait for a node meanwhile.
	Budget time.Duration
	// Time is how long it may take.
	Time time.Duration
	// Sizes: it makes a group larger or smaller. Those of one group go together and
	// in their order, as each expects to find the size that the one before it leaves; so
	// they wait for the part of the plan that knows of growth.
	Sizes bool
	// ChangesGroup: it may have changed an Auto Scaling group, so that the groups
	// should be read again before the next evaluation.
	ChangesGroup bool
	// OnNode: it is written on a Node and nowhere else.
	OnNode bool
	// Hook: it is a call about a lifecycle hook.
	Hook bool
	// Confirms: the Nodes of its instance have to be listed live before.
	Confirms bool
	// Routine: people need not read of it.
	Routine bool
	// Event is the reason of what is reported of its group when it is done; empty for nothing.
	Event string
	// Guards names the parts of the state, as fleet.State spells them, that must be persisted
	// before it is carried out: without them the next leader would do it again, or do too much of
	// it. An action without any is safe twice, or is persisted on the Node, on the group or at AWS;
	// what the state keeps of it saves calls.
	Guards []string

	// Key distinguishes it from all other actions, without the figures that change from evaluation
	// to evaluation.
	Key string
	// Beside is its own lane beside that of its group. It is empty for what changes the
	// group, and the node or waiting instance for what concerns one alone: a hundred
	// drained instances need not wait for each other.
	Beside string
	// Node is the node that it is about; empty where there is none.
	Node NodeRef
	// Instance is the instance that it is about; empty where it names none.
	Instance string
}

// Turn is who waits for an action, the most pressing first.
type Turn int

// The turns.
const (
	ForPods      Turn = iota // pods, and hooks' timers
	ForInstances             // instances in a hook, which first wait for the list of Nodes
	ForNodes                 // whoever reads what stands on a Node or a group, and pods that are evicted
	ForTheBill
	ForNobody
)

const (
	// UsualTime is how long one action may take.
	UsualTime = 10 * time.Second
	// evictionTime is how long one eviction may: webhooks may hang, and the evaluation waits
	// for its last action while new pods and heartbeats wait for the next one. One that
	// was cut off is asked for again, if the pod is still there.
	evictionTime = 3 * time.Second
	// writeTime is how long a write on a Node may take that has not failed before, and laterBudget
	// for how long writes, evictions and terminations may begin: there may be hundreds, and the server
	// may be slow. They last some evaluations then, and pods get their nodes between them.
	writeTime   = 5 * time.Second
	laterBudget = 2 * time.Second
	// completeBudget bounds how old the list of Nodes may be when an instance is let go.
	completeBudget = 5 * time.Second
)

// table has a row for each action that can be done, in the order of their ranks.
var table = index(
	// Before anything of which Auto Scaling would make something. Whoever resumed a process wants
	// it to run.
	row(func(a Suspend, t *Traits) { t.Key = a.Group + "/" + a.Process },
		Traits{Rank: 0, Turn: ForNodes, ChangesGroup: true, Event: contract.EventSuspendedProcess, Guards: []string{"suspending"}}),
	row(func(a Claim, t *Traits) { t.Key = a.Group },
		Traits{Rank: 0, Turn: ForNodes, ChangesGroup: true, Event: contract.EventClaimedGroup}),
	// Before anything that lowers desired, which it expects to find as it was. The token of the
	// call guards it, and how much was asked for, when and for whom: a launch template that keeps
	// no promise would launch nodes up to the group's maximum.
	row(func(a Grow, t *Traits) { t.Key = fleet.LaunchKey(a.Group, a.Zone, a.Part) },
		Traits{Rank: 1, Turn: ForPods, Sizes: true, ChangesGroup: true, Event: contract.EventScaledUpGroup,
			Guards: []string{"launches", "grownAt", "bursts", "promises", "swap", "recognition"}}),
	row(func(a Complete, t *Traits) {
		t.waits(a.Instance, a.Hook)
		t.Node = a.Node
		if a.Early { // its failures do not delay the one that is in time
			t.Key += "/early"
		}
	},
		Traits{Rank: 2, Turn: ForInstances, Budget: completeBudget, ChangesGroup: true, Hook: true, Confirms: true}),
	row(func(a Heartbeat, t *Traits) { t.waits(a.Instance, a.Hook) }, Traits{Rank: 3, Turn: ForPods, Hook: true}),
	row(func(a Cordon, t *Traits) { t.on(a.Node) }, onNode(3, ForNodes, laterBudget)),
	// The server is slow to answer each eviction, and they do not hinder each other.
	row(func(a Evict, t *Traits) {
		t.on(a.Node)
		t.Beside += "/" + a.Pod.String()
		t.Key = a.Pod.String() + "/" + string(a.Pod.UID)
	},
		Traits{Rank: 3, Turn: ForNodes, Budget: laterBudget, Time: evictionTime}),
	row(func(a ClearTerminationMark, t *Traits) { t.ofInstance(a.Node, a.Instance) }, onNode(4, ForNodes, laterBudget)),
	row(func(a CancelDrain, t *Traits) { t.ofInstance(a.Node, a.Instance) }, onNode(4, ForNodes, laterBudget)),
	row(func(a Release, t *Traits) { t.on(a.Node) }, onNode(4, ForNodes, laterBudget)),
	row(func(a Permit, t *Traits) { t.on(a.Node) }, onNode(4, ForNodes, laterBudget)),
	row(func(a NotYet, t *Traits) { t.on(a.Node); t.Routine = true }, onNode(4, ForNobody, time.Second)),
	row(func(a OutOfService, t *Traits) { t.ofInstance(a.Node, a.Instance); t.Confirms = true }, onNode(4, ForNodes, laterBudget)),
	row(func(a InServiceAgain, t *Traits) { t.on(a.Node) }, onNode(4, ForNodes, laterBudget)),
	row(func(a TakeOver, t *Traits) { t.ofInstance(a.Node, a.Instance) }, onNode(4, ForNodes, laterBudget)),
	row(func(a RequestDrain, t *Traits) { t.on(a.Node) }, onNode(5, ForNodes, laterBudget)),
	// To a figure, and then each instance that is ended takes one off that.
	row(func(a Lower, t *Traits) { t.Key = a.Group },
		Traits{Rank: 6, Turn: ForNodes, Sizes: true, ChangesGroup: true, Event: contract.EventLoweredGroup}),
	// The mark on its Node persists why an instance is ended. Of one that never became a node that
	// served, the state does: since when it has been missed, how often that has happened in its
	// group, and how many were ended.
	row(func(a Terminate, t *Traits) {
		t.Key, t.Beside, t.Instance, t.Node = a.Instance, a.Instance, a.Instance, a.Node
		if !strings.HasPrefix(a.ID, "never-") {
			t.Guards = nil
		}
		if a.Node.Name != "" {
			t.Event = "" // which is the node's
		}
	}, Traits{Rank: 7, Turn: ForTheBill, Budget: laterBudget, Sizes: true, ChangesGroup: true, Confirms: true, Event: contract.EventDeleteUnregistered,
		Guards: []string{"unjoined", "deserted", "backOffs", "recognition"}}),
	row(func(a Unmark, t *Traits) { t.on(a.Node) }, onNode(8, ForNobody, time.Second)),
	row(func(a Mark, t *Traits) { t.on(a.Node) }, onNode(9, ForNobody, time.Second)),
	row(func(a Steer, t *Traits) { t.on(a.Node); t.Routine = true }, onNode(9, ForNobody, time.Second)),
	row(func(a UpdateBuffer, t *Traits) { t.Key = a.Buffer.String() }, Traits{Rank: 9, Turn: ForNobody, Budget: time.Second}),
)

// onNode is what goes for all of a kind that is written on a Node and nowhere else.
func onNode(rank int, turn Turn, budget time.Duration) Traits {
	return Traits{Rank: rank, Turn: turn, Budget: budget, Time: writeTime, OnNode: true}
}

// on has it concern one node alone.
func (t *Traits) on(n NodeRef) { t.Node, t.Beside, t.Key = n, n.Name, n.Name }

// ofInstance has it concern one node, of whose instance AWS is asked first.
func (t *Traits) ofInstance(n NodeRef, instance string) {
	t.on(n)
	t.Instance, t.Time = instance, UsualTime
}

// waits has it concern one instance alone that waits for a hook.
func (t *Traits) waits(instance, hook string) {
	t.Instance, t.Beside, t.Key = instance, instance, instance+"/"+hook
}

// TraitsOf an action. One that is missing from the table goes last, and waits until all of the
// state is persisted.
func TraitsOf(a Action) Traits {
	kind := rowOf(a)
	t := kind.Traits
	kind.about(a, &t)
	t.Key = t.Kind + "/" + t.Key
	return t
}

// Kinds are the names of all actions that can be done.
func Kinds() []string {
	var kinds []string
	for _, k := range table {
		kinds = append(kinds, k.Kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Ordered sorts actions by lane; within one, by rank.
func Ordered(actions []Action) []Action {
	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(cmp.Compare(a.Lane(), b.Lane()), cmp.Compare(rowOf(a).Rank, rowOf(b).Rank))
	})
	return actions
}

// Only gives the actions of one kind.
func Only[A Action](actions []Action) iter.Seq[A] {
	return func(yield func(A) bool) {
		for _, a := range actions {
			if x, is := a.(A); is && !yield(x) {
				return
			}
		}
	}
}

// capital is where the next word of a name begins.
var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// kind is a row of the table.
type kind struct {
	Traits
	is reflect.Type
	// about adds what one action is about.
	about func(Action, *Traits)
}

func row[A Action](about func(A, *Traits), t Traits) kind {
	return kindOf(reflect.TypeFor[A](), t, func(a Action, t *Traits) { about(a.(A), t) })
}

func kindOf(is reflect.Type, t Traits, about func(Action, *Traits)) kind {
	t.Kind, t.Time = strings.ToLower(capital.ReplaceAllString(is.Name(), "$1-$2")), cmp.Or(t.Time, UsualTime)
	return kind{Traits: t, is: is, about: about}
}

func index(rows ...kind) map[reflect.Type]kind {
	all := make(map[reflect.Type]kind, len(rows))
	for _, k := range rows {
		all[k.is] = k
	}
	return all
}

func rowOf(a Action) kind {
	is := reflect.TypeOf(a)
	if k, known := table[is]; known {
		return k
	}
	return kindOf(is, Traits{Rank: 9, Turn: ForNodes, Guards: fleet.StateParts()}, func(a Action, t *Traits) { t.Key = a.String() })
}

func (a Grow) Lane() string                 { return a.Group }
func (a Lower) Lane() string                { return a.Group }
func (a RequestDrain) Lane() string         { return a.Group }
func (a CancelDrain) Lane() string          { return a.Group }
func (a Permit) Lane() string               { return a.Group }
func (a NotYet) Lane() string               { return a.Group }
func (a Release) Lane() string              { return a.Group }
func (a Mark) Lane() string                 { return a.Group }
func (a Unmark) Lane() string               { return a.Group }
func (a Steer) Lane() string                { return a.Group }
func (a Terminate) Lane() string            { return a.Group }
func (a ClearTerminationMark) Lane() string { return a.Group }
func (a Heartbeat) Lane() string            { return a.Group }
func (a Complete) Lane() string             { return a.Group }
func (a Suspend) Lane() string              { return a.Group }
func (a Claim) Lane() string                { return a.Group }
func (a UpdateBuffer) Lane() string         { return "buffer " + a.Buffer.String() }
func (a Cordon) Lane() string               { return a.Group }
func (a Evict) Lane() string                { return a.Group }
func (a OutOfService) Lane() string         { return a.Group }
func (a InServiceAgain) Lane() string       { return a.Group }
func (a TakeOver) Lane() string             { return a.Group }
