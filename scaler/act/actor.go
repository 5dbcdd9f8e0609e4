package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
)

// Groups changes Auto Scaling groups. Calls whose effect depends on the group read it first, and stop
// with asg.ErrChanged if it is not as expected. Verbs of package asg is one.
type Groups interface {
	SetDesired(ctx context.Context, group string, from, to int) error
	Lower(ctx context.Context, group string, from, to int) error
	Launch(ctx context.Context, order asg.LaunchOrder) (asg.Launched, error)
	Terminate(ctx context.Context, group, instance string, decrement bool) error
	Complete(ctx context.Context, wait asg.Wait) error
	Heartbeat(ctx context.Context, wait asg.Wait) error
	// Serves fails unless the instance is in service at this moment.
	Serves(ctx context.Context, group, instance string) error
	// Down fails unless EC2 answers at this moment that the instance is switched off.
	Down(ctx context.Context, instance string) error
	Suspend(ctx context.Context, group, process string) error
	Claim(ctx context.Context, group string, owner types.UID) error
}

var _ Groups = (*asg.Verbs)(nil)

// Events takes news for people; it reports whether there was room.
type Events interface {
	Write(kube.Event) bool
}

var _ Events = (*kube.EventWriter)(nil)

// Actor carries out actions. Use New.
type Actor struct {
	Nodes  corev1client.NodeInterface
	Pods   corev1client.PodsGetter // of a client that kube.Bound bounds
	Groups Groups
	// Buffers writes the status of CapacityBuffers; nil where buffers are not read.
	Buffers dynamic.NamespaceableResourceInterface
	Events  Events
	Logger  *slog.Logger
	// Await waits until observations know a version of a node, so that the next evaluation
	// does not decide the same again.
	Await func(ctx context.Context, node, version string)
	// AwaitBuffer does the same for a CapacityBuffer; may be nil.
	AwaitBuffer func(ctx context.Context, namespace, name, version string)
	// Now is the time that what is written down goes by; nil for the node's own clock.
	Now func() time.Time
	// Alive, if not nil, is called after each action: an evaluation with many of them may
	// last, and is no loop that hangs.
	Alive func()
	// EndsAtOnce is how many terminations go side by side, where that is fewer than usual; 0 for as
	// many as usual. Where Groups take those of a group one after the other, their time runs while they
	// wait.
	EndsAtOnce int

	backOffs backOffs
	// putOff: something was left to the next evaluation since Due was asked last.
	putOff atomic.Bool

	mu      sync.Mutex
	written map[string]string // the version of each node that Do wrote
}

func (a *Actor) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

// Result is what became of an action.
type Result struct {
	Action action.Action
	// Outcome is one word, for metrics.
	Outcome Outcome
	// Err is why it was not done; for Paused, why it failed before, nil if it only stopped then,
	// or was late.
	Err error
	// Before is true if it had been done before, so that nothing was to be done now.
	Before bool
	// Answer is what AWS answered to a Grow with a token, nil if it was not asked.
	Answer *launch.Answer
	// Ended is when the action did, Took how long it took.
	Ended time.Time
	Took  time.Duration
}

// Settled is what the state goes by.
func (r Result) Settled() plan.Result {
	settled := plan.Result{Action: r.Action, Done: r.Outcome == Done, Answer: r.Answer, Ended: r.Ended}
	var call *asg.CallError
	if r.Outcome == Failed && errors.As(r.Err, &call) {
		settled.Unheard = asg.Unheard(r.Err)
		settled.Refusal = plan.Refusal{Code: call.Code, Message: call.Message, ForGood: errors.Is(r.Err, asg.ErrRefused), Lack: call.Lack()}
	}
	return settled
}

// Outcome of an action.
type Outcome string

// The outcomes.
const (
	Done Outcome = "done"
	// Stopped: the world was not as the action expects; nothing was done.
	Stopped Outcome = "stopped"
	Failed  Outcome = "failed"
	// Begun: AWS carries it out and has not answered yet. A later evaluation reads the answer.
	Begun Outcome = "begun"
	// Paused: it was not tried, as it failed or stopped a moment ago, as there was no time left for
	// it in this evaluation, or as the state that guards it could not be written.
	Paused Outcome = "paused"
)

// Outcomes are all of them.
var Outcomes = []Outcome{Done, Stopped, Failed, Begun, Paused}

// ErrStopped means that the world is not as the action expects.
var ErrStopped = errors.New("stopped")

func stopped(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrStopped}, args...)...)
}

const (
	// lanesAtOnce bounds how many actions of one queue are carried out at the same time, and
	// writesAtOnce how many writes on Nodes, and beside them how many terminations, which write there
	// too: a scale-down of sixty nodes is asked for within their budget, also where a write takes a third
	// of a second, and ends soon where all are drained in one moment. What is not asked for would wait
	// until the pods of the others are scheduled.
	lanesAtOnce, writesAtOnce = 8, 24
	// listsAtOnce bounds how many nodes' pods one queue lists at the same time, so that the answers leave
	// the scaler its memory: on each node a tenant may have pods of kube.MostBytes that have ended.
	listsAtOnce = 8
	// awaitTime is how long to wait for the observers to know what was written.
	awaitTime = time.Second
)

// Do carries out actions and returns when the observers know of them. Those
// that change a group run one after the other, in their order, as do those that
// concern the same node or instance; all others run side by side. Results come
// in the order of the actions. An action that fails does not keep the next one
// back.
func (a *Actor) Do(ctx context.Context, actions []action.Action) []Result {
	nodes := a.newListing(ctx, actions)
	results := make([]Result, len(actions))
	var working sync.WaitGroup
	for _, queue := range a.queues(actions) {
		working.Go(func() {
			b := &batch{nodes, make(chan struct{}, listsAtOnce)}
			var atOnce errgroup.Group
			atOnce.SetLimit(queue.atOnce)
			for _, lane := range queue.lanes {
				atOnce.Go(func() error {
					a.inOrder(ctx, lane, actions, results, b)
					return nil
				})
			}
			_ = atOnce.Wait() // failures are results
		})
	}
	working.Wait()
	a.await(ctx)
	return results
}

// inOrder carries out the actions of one lane.
func (a *Actor) inOrder(ctx context.Context, lane []int, actions []action.Action, results []Result, b *batch) {
	chain := chain{unsent: true}
	for _, i := range lane {
		if chain.broken(actions[i]) {
			results[i] = Result{Action: actions[i], Outcome: Stopped, Err: stopped("the launch before it was not made"), Ended: a.now()}
			continue
		}
		if b.late(actions[i]) {
			results[i] = Result{Action: actions[i], Outcome: Paused}
			a.putOff.Store(true)
			continue
		}
		results[i] = a.one(ctx, actions[i], b)
		chain.note(results[i])
		if a.Alive != nil {
			a.Alive()
		}
	}
}

// Beat sends one heartbeat, also while Do carries out other actions.
func (a *Actor) Beat(ctx context.Context, x action.Heartbeat) Result { return a.one(ctx, x, nil) }

// chain is the launches of one group in one evaluation: the first of them reads the group,
// and the others go by that. Without it they are not made.
type chain struct{ unsent bool }

func (c *chain) broken(todo action.Action) bool {
	x, grows := todo.(action.Grow)
	return grows && x.Follows && c.unsent
}

func (c *chain) note(r Result) {
	if x, grows := r.Action.(action.Grow); grows && !x.Again && !x.Follows {
		c.unsent = r.Answer == nil || r.Answer.Unsent
	}
}

// queue is lanes of which so many run side by side.
type queue struct {
	lanes  [][]int
	atOnce int
}

// queues are lanes that do not wait for those of another queue: all others, writes on Nodes,
// terminations, and what failed when it was tried last and may hang again and take all the time that
// there is. Of that comes first what failed less often. What is asked of a whole group, or keeps the
// time of a hook, is among the others also where it failed.
func (a *Actor) queues(actions []action.Action) []queue {
	traits, now := make([]action.Traits, len(actions)), a.now()
	for i, todo := range actions {
		traits[i] = action.TraitsOf(todo)
	}
	var others, writes, ends [][]int
	type retry struct {
		lane []int
		failure
	}
	var again []retry
	for _, lane := range lanes(actions, traits) {
		var last failure
		mayWait := true
		for _, i := range lane {
			last = cmp.Or(a.backOffs.failed(traits[i], now), last)
			mayWait = mayWait && traits[i].Turn >= action.ForNodes && (traits[i].Beside != "" || !traits[i].ChangesGroup)
		}
		switch {
		case mayWait && last.times > 0:
			again = append(again, retry{lane, last})
		case traits[lane[0]].OnNode:
			writes = append(writes, lane)
		case traits[lane[0]].Turn == action.ForTheBill:
			ends = append(ends, lane)
		default:
			others = append(others, lane)
		}
	}
	slices.SortStableFunc(again, func(a, b retry) int { return a.compare(b.failure) })
	failed := make([][]int, len(again))
	for i := range again {
		failed[i] = again[i].lane
	}
	return []queue{{others, lanesAtOnce}, {writes, writesAtOnce}, {ends, cmp.Or(a.EndsAtOnce, writesAtOnce)}, {failed, lanesAtOnce}}
}

// lanes groups the indices of actions that must keep their order. Those come
// first for which somebody waits. To end an instance takes one off the group's size,
// whatever that is; it stays in the group's lane where its size is set to a figure.
func lanes(actions []action.Action, traits []action.Traits) [][]int {
	sized := map[string]bool{} // lanes of groups whose size is set by a figure
	for i, todo := range actions {
		if traits[i].Sizes && traits[i].Beside == "" {
			sized[todo.Lane()] = true
		}
	}
	type lane struct {
		group, beside string
		onNode        bool // a Node may be named as its instance is
	}
	var out [][]int
	place := map[lane]int{}
	for i, todo := range actions {
		l := lane{todo.Lane(), traits[i].Beside, traits[i].OnNode}
		if traits[i].Sizes && sized[l.group] {
			l.beside = ""
		}
		at, known := place[l]
		if !known {
			at = len(out)
			place[l] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	first := func(lane []int) action.Turn {
		turn := traits[lane[0]].Turn
		for _, i := range lane {
			turn = min(turn, traits[i].Turn)
		}
		return turn
	}
	slices.SortStableFunc(out, func(a, b []int) int { return cmp.Compare(first(a), first(b)) })
	return out
}

// await waits until the observers know all that was written.
func (a *Actor) await(ctx context.Context) {
	a.mu.Lock()
	written := a.written
	a.written = nil
	a.mu.Unlock()
	if a.Await == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	for _, node := range slices.Sorted(maps.Keys(written)) {
		a.Await(ctx, node, written[node])
	}
}

// BackedOff reports whether an action failed or stopped a moment ago and would not be
// tried now; the result is what Do would return.
func (a *Actor) BackedOff(action action.Action) (Result, bool) {
	why, runs := a.backOffs.runs(action, a.now())
	return Result{Action: action, Outcome: Paused, Err: why}, runs
}

func (a *Actor) one(ctx context.Context, todo action.Action, b *batch) Result {
	began := time.Now()
	if result, paused := a.BackedOff(todo); paused {
		return result
	}
	within, cancel := context.WithTimeout(ctx, a.timeFor(todo))
	defer cancel()
	answer, err := a.do(within, todo, b)
	if errors.Is(err, asg.ErrAlready) {
		return Result{Action: todo, Outcome: Done, Before: true, Ended: a.now(), Took: time.Since(began)} // which is no news
	}
	result := Result{Action: todo, Outcome: outcomeOf(err), Err: err, Answer: answer, Ended: a.now(), Took: time.Since(began)}
	if err != nil && ctx.Err() != nil {
		return result // whoever leads next decides that anew: it has not failed
	}
	news := a.backOffs.note(todo, result)
	if news && result.Outcome == Failed {
		a.tellFailure(result)
	}
	if news || result.Outcome == Failed {
		a.log(result)
	}
	return result
}

// timeFor is how long an action may take. Where a write on a Node did not come to its end, a webhook
// may take long, and it has more the next time.
func (a *Actor) timeFor(todo action.Action) time.Duration {
	t := action.TraitsOf(todo)
	if t.OnNode && a.backOffs.failed(t, a.now()).times > 0 {
		return action.UsualTime
	}
	return t.Time
}

func (a *Actor) do(ctx context.Context, todo action.Action, b *batch) (*launch.Answer, error) {
	if x, ok := todo.(action.Grow); ok {
		return a.grow(ctx, x)
	}
	return nil, a.plain(ctx, todo, b)
}

// plain does what is either done or not.
func (a *Actor) plain(ctx context.Context, todo action.Action, b *batch) error {
	switch x := todo.(type) {
	case action.Lower:
		return a.Groups.Lower(ctx, x.Group, x.From, x.To)
	case action.RequestDrain:
		return a.requestDrain(ctx, x)
	case action.CancelDrain:
		return a.cancelDrain(ctx, x)
	case action.Permit:
		return a.permit(ctx, x)
	case action.NotYet:
		return a.notYet(ctx, x)
	case action.Release:
		return a.release(ctx, x)
	case action.ClearTerminationMark:
		return a.clearTerminationMark(ctx, x)
	case action.OutOfService:
		return a.outOfService(ctx, x, b)
	case action.InServiceAgain:
		return a.inServiceAgain(ctx, x)
	case action.TakeOver:
		return a.takeOver(ctx, x)
	case action.Mark:
		return a.mark(ctx, x)
	case action.Unmark:
		return a.unmark(ctx, x)
	case action.Steer:
		return a.steer(ctx, x)
	case action.Cordon:
		return a.cordon(ctx, x)
	case action.Evict:
		return a.evict(ctx, x)
	case action.Terminate:
		return a.terminate(ctx, x, b)
	case action.Heartbeat:
		return a.Groups.Heartbeat(ctx, asg.Wait{Group: x.Group, Instance: x.Instance, Hook: x.Hook, State: x.State})
	case action.Complete:
		return a.complete(ctx, x, b)
	case action.Suspend:
		return a.Groups.Suspend(ctx, x.Group, x.Process)
	case action.Claim:
		return a.Groups.Claim(ctx, x.Group, x.Owner)
	case action.UpdateBuffer:
		return a.updateBuffer(ctx, x)
	}
	return fmt.Errorf("no code carries out a %T", todo)
}

func outcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, asg.ErrUnderWay):
		return Begun
	case errors.Is(err, ErrStopped), errors.Is(err, kube.ErrChanged), errors.Is(err, asg.ErrChanged), errors.Is(err, asg.ErrTooEarly),
		errors.Is(err, asg.ErrStillBusy), errors.Is(err, asg.ErrBusy):
		return Stopped
	}
	return Failed
}

func (a *Actor) log(r Result) {
	logger := a.Logger.With("action", r.Action.String(), "took", r.Took.Round(time.Millisecond).String())
	switch r.Outcome {
	case Done:
		level := slog.LevelInfo
		if action.TraitsOf(r.Action).Routine {
			level = slog.LevelDebug
		}
		logger.Log(context.Background(), level, "action done")
	case Begun:
		logger.Info("action begun")
	case Stopped:
		logger.Info("action stopped", "why", r.Err)
	case Failed:
		logger.Error("action failed", "err", r.Err)
	}
}

// tell writes an Event on a node, if there is one.
func (a *Actor) tell(node action.NodeRef, reason, message string) {
	a.tellFacts(node, reason, message, contract.Facts{})
}

// tellFacts says for programs, too, what the message says.
func (a *Actor) tellFacts(node action.NodeRef, reason, message string, facts contract.Facts) {
	if node.Name == "" {
		return
	}
	a.Events.Write(kube.Event{Object: kube.NodeReference(node.Name), Reason: reason, Message: message, Warning: reason == contract.EventActionFailed, Annotations: annotated(facts)})
}

// tellFailure records an Event on the node that the action is about, if any. Those of pods
// and groups come from the Announcer.
func (a *Actor) tellFailure(r Result) {
	a.tell(action.TraitsOf(r.Action).Node, contract.EventActionFailed, fmt.Sprintf("%s: %v", r.Action, r.Err))
}
