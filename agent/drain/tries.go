package drain

import (
	"hash/fnv"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// Outcome is what came of asking for an eviction.
type Outcome string

const (
	// Accepted: the API server deletes the pod.
	Accepted Outcome = "accepted"
	// Gone: there is no such pod any more, or another one has its name.
	Gone Outcome = "gone"
	// Refused: a budget has no room.
	Refused Outcome = "refused"
	// Forbidden: we have not the right, or an admission rule denies it.
	Forbidden Outcome = "forbidden"
	// Overloaded: the API server has no time for us.
	Overloaded Outcome = "overloaded"
	// Failed: anything else, and it is not known whether the pod was deleted.
	Failed Outcome = "failed"
)

// Answer is what the API server said to one eviction.
type Answer struct {
	Outcome Outcome
	// Budget that refused, as namespace/name; empty if it is not named.
	Budget string
	// Message in the words of the server.
	Message string
	// RetryAfter is how long an overloaded server wants to be left alone; zero where it does
	// not say.
	RetryAfter time.Duration
}

// Try is what is known of the evictions of one pod.
type Try struct {
	// At is when the last one was sent or answered.
	At time.Time
	// Sent: the last one is not answered yet; Answer and Count are those of the one
	// before.
	Sent bool
	// Deleted: the last one asked for the deletion of the pod, past its budgets.
	Deleted bool
	Answer
	// Count is how many in a row did not succeed.
	Count int
	// Undeletable: its deletion was forbidden.
	Undeletable bool
	// Maker makes the pod; see drainable.MakerOf. Left is when it was first not seen any
	// more.
	Maker string
	Left  time.Time
}

// Limit is what is known of a budget that has refused.
type Limit struct {
	// At is when it last refused.
	At time.Time
	// Rounds counts refusals in a row, those at one time once.
	Rounds int
	// Room: since then it has let a pod go.
	Room bool
	// Message in the words of the server.
	Message string
}

// Tries is what a drain keeps of its evictions. The zero value is empty.
type Tries struct {
	Pods    map[types.UID]Try
	Budgets map[string]Limit
}

// oneRound: refusals closer together than this answer one round of asking.
const oneRound = 500 * time.Millisecond

// Send returns the tries after steps were sent.
func (t Tries) Send(now time.Time, steps ...Evict) Tries {
	if len(steps) == 0 {
		return t
	}
	t = t.clone()
	for _, step := range steps {
		try := t.Pods[step.UID]
		try.At, try.Sent, try.Deleted, try.Maker = now, true, step.Delete, step.Maker
		t.Pods[step.UID] = try
	}
	return t
}

// Learn returns the tries after a step was answered.
func (t Tries) Learn(pod types.UID, now time.Time, answer Answer) Tries {
	t = t.clone()
	answer.Message = contract.Shorten(answer.Message, contract.MostText)
	before := t.Pods[pod]
	// An accepted pod is kept with the budget that had refused it: this
	// budget has room.
	if answer.Outcome == Accepted && before.Budget != "" {
		limit := t.Budgets[before.Budget]
		limit.Rounds, limit.Room = 0, true
		t.Budgets[before.Budget] = limit
	}
	try := Try{At: now, Deleted: before.Deleted, Maker: before.Maker, Answer: answer}
	if answer.Outcome != Accepted && answer.Outcome != Gone {
		try.Count = before.Count + 1
		try.Undeletable = before.Undeletable || before.Deleted && answer.Outcome == Forbidden
	}
	t.Pods[pod] = try
	if answer.Outcome == Refused && answer.Budget != "" {
		t.Budgets[answer.Budget] = t.Budgets[answer.Budget].refuse(now, answer.Message)
	}
	return t
}

func (l Limit) refuse(now time.Time, message string) Limit {
	if l.Room || now.Sub(l.At) >= oneRound {
		l.Rounds++
	}
	l.At, l.Room, l.Message = now, false, message
	return l
}

// Only returns the tries of the pods that are still there, or left a moment ago, or whose
// answer is still to come, so that the list does not grow.
func (t Tries) Only(there func(types.UID) bool, now time.Time) Tries {
	t = t.clone()
	for uid, try := range t.Pods {
		switch {
		case there(uid), try.Sent:
		case try.Outcome != Accepted || drainable.Eviction{Left: try.Left}.Expired(now):
			delete(t.Pods, uid)
		case try.Left.IsZero():
			try.Left = now
			t.Pods[uid] = try
		}
	}
	named := map[string]bool{}
	for _, try := range t.Pods {
		named[try.Budget] = true
	}
	maps.DeleteFunc(t.Budgets, func(budget string, _ Limit) bool { return !named[budget] })
	return t
}

func (t Tries) clone() Tries {
	out := Tries{Pods: maps.Clone(t.Pods), Budgets: maps.Clone(t.Budgets)}
	if out.Pods == nil {
		out.Pods = map[types.UID]Try{}
	}
	if out.Budgets == nil {
		out.Budgets = map[string]Limit{}
	}
	return out
}

const (
	// goneFor is how long the watch may go on showing a pod that the API server
	// calls gone.
	goneFor = 10 * time.Second
	// patience is how many failures in a row are taken for passing ones, and
	// crowdPatience how many answers that the API server has no time: to report those is
	// to ask more of it, and pods that wait their turn are kept by nothing.
	patience, crowdPatience = 3, 10
)

// backOff after that many failures in a row: 1, 2, 4, 8, 10 s.
func backOff(count int) time.Duration {
	const longest = 10 * time.Second
	return min(time.Second<<min(max(count-1, 0), 4), longest)
}

// again is when a pod that was not refused by a named budget is asked for
// again; ok is false where it is not, or not yet known. A server that took a
// write (the last at written) after it had failed us is back.
func (t Try) again(uid types.UID, written time.Time) (at time.Time, ok bool) {
	if t.Sent {
		return time.Time{}, false
	}
	switch t.Outcome {
	case Accepted:
		return time.Time{}, false
	case Gone:
		return t.At.Add(goneFor), true
	case "":
		return t.At, true
	case Overloaded: // the loop asks for fewer at a time then, of all pods
		return t.At.Add(spread(uid, time.Second)), true
	case Failed:
		if written.After(t.At) {
			return t.At.Add(spread(uid, time.Second)), true
		}
	}
	return t.At.Add(spread(uid, backOff(t.Count))), true
}

// spread makes a pause up to a quarter longer, each pod by a share of its own,
// so that a thousand agents do not come back in the same moment.
func spread(uid types.UID, pause time.Duration) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return pause + pause/4*time.Duration(h.Sum32()%256)/256
}

// String says what came of it.
func (t Try) String() string {
	text := "eviction " + string(t.Outcome)
	if t.Deleted {
		text = "deletion " + string(t.Outcome)
	}
	if t.Message == "" {
		return text
	}
	return text + ": " + t.Message
}

// stuck reports whether a pod stays for reasons that time alone may not mend. A server
// that has just started forbids what it has not read the rules of, and one that has
// not heard yet where a new pod runs forbids its eviction to the node: what is
// forbidden is forbidden twice.
func (t Try) stuck() bool {
	switch t.Outcome {
	case Refused:
		return true
	case Forbidden:
		return t.Count > 1
	case Failed:
		return t.Count >= patience
	case Overloaded:
		return t.Count >= crowdPatience
	}
	return false
}

// asked is what came of it, for the tally.
func (t Try) asked() drainable.Asked {
	switch {
	case t.Outcome == Accepted:
		return drainable.Granted
	case t.stuck():
		return drainable.Stuck
	}
	return drainable.NotRefused
}
