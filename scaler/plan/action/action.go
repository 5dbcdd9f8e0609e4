package action

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Action is one small thing to do. It carries what it expects to find: if the
// world differs, nothing is done, and the next evaluation decides again. Its String
// is the one text for logs, Events and golden files.
//
// Actions of one Lane are carried out in sequence, lanes in parallel.
type Action interface {
	fmt.Stringer
	Lane() string
}

// PodRef names a pod.
type PodRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

// NodeRef names a node as it was seen: a node of the same name with another
// UID is another node.
type NodeRef struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

func (n NodeRef) String() string { return n.Name }

// Grow raises a group's desired capacity, if it still is From. Without a Token it
// is set to To, and Auto Scaling launches where it likes. With one Count instances
// are launched in Zone, or none; the same call is repeated with the same Token
// until its answer was seen.
type Grow struct {
	Group string
	// Zone is where the new nodes are wanted; empty where Auto Scaling chooses.
	Zone     string
	From, To int

	Token string
	Count int
	// Attempt is the number of the launch in this zone: it rises with each answer.
	Attempt int
	// Part distinguishes the launches of one evaluation in the same zone, from 0; see
	// fleet.LaunchKey.
	Part int
	// Asks is how many more instances are counted as asked for with this launch and those of
	// the same evaluation in other zones; 0 but for the first of them.
	Asks int
	// Again: this was decided by an earlier evaluation, and perhaps done: the
	// group may be as it was before that or after.
	Again bool
	// Follows: other launches of the same evaluation come before this one. It
	// is not done if they were not.
	Follows bool

	// For are the pending pods that the new nodes are for; none where a group grows to its minimum,
	// or only to reach a zone.
	For []PodRef
	// Why says which nodes the new node replaces, where no pod waits for it.
	Why string
}

func (a Grow) String() string {
	where := ""
	if a.Zone != "" {
		where = " in " + a.Zone
	}
	if a.Again {
		return fmt.Sprintf("grow %s %d→%d%s as before", a.Group, a.From, a.To, where)
	}
	switch {
	case a.Why != "":
		return fmt.Sprintf("grow %s %d→%d%s: %s", a.Group, a.From, a.To, where, a.Why)
	case len(a.For) == 0:
		return fmt.Sprintf("grow %s %d→%d%s", a.Group, a.From, a.To, where)
	}
	return fmt.Sprintf("grow %s %d→%d%s for %s", a.Group, a.From, a.To, where, few(a.For))
}

// Lower lowers a group's desired capacity by what it does not get, if that capacity still is From,
// and if Auto Scaling cannot end any instance for it.
type Lower struct {
	Group    string
	From, To int
	// Drops is how many instances are not counted as asked for any more.
	Drops int
	Why   string
}

func (a Lower) String() string {
	return fmt.Sprintf("lower %s %d→%d: %s", a.Group, a.From, a.To, a.Why)
}

// RequestDrain asks the node's agent to drain it: the request and the draining taint
// in one patch. It is also how the scaler answers a termination that Auto
// Scaling began with the deadline that the instance metadata service does not give.
type RequestDrain struct {
	Group string
	Node  NodeRef
	// ID is stable over evaluations; see contract.ScaleDownID and contract.TerminateID.
	ID   string
	Kind contract.Kind
	// Why is a sentence for people.
	Why string
	// Deadline is zero for a drain that may wait for budgets.
	Deadline time.Time
	// Unready means that it is asked because the node is not Ready.
	Unready bool
}

// Request is what is written on the node.
func (a RequestDrain) Request(now time.Time) contract.Request {
	return contract.Request{
		ID: a.ID, Kind: a.Kind, Reason: a.Why, By: contract.AppScaler,
		At: contract.At(now), Deadline: contract.At(a.Deadline), Unready: a.Unready,
	}
}

func (a RequestDrain) String() string {
	deadline := ""
	if !a.Deadline.IsZero() {
		deadline = " by " + a.Deadline.UTC().Format(time.TimeOnly)
	}
	return fmt.Sprintf("drain %s (%s)%s: %s", a.Node, a.Kind, deadline, a.Why)
}

// CancelDrain cancels a scale-down, if the request ID still stands on the node and
// the instance is not being terminated.
type CancelDrain struct {
	Group string
	Node  NodeRef
	// ID is empty where no request stands on the node any more, and only what
	// the drain left there is to be undone.
	ID string
	// Instance, if not empty, has to be in service at that moment: a reading of its group
	// may be older than the request.
	Instance string
	// AgentGone: no agent undoes the drain. Its taint, its cordon, its label and its report are
	// removed together with the request.
	AgentGone bool
	// Ended are the ids of drains that ended with the return of the instance into
	// service. With AgentGone a drain that Auto Scaling brought about is undone as
	// well, if nothing on the node names another.
	Ended []string
	Why   string
}

func (a CancelDrain) String() string {
	undo := ""
	if a.AgentGone {
		undo = " and undo its drain"
	}
	return fmt.Sprintf("cancel drain of %s%s: %s", a.Node, undo, a.Why)
}

// Permit lets the agent begin the drain that it holds back.
type Permit struct {
	Group string
	Node  NodeRef
	ID    string
}

func (a Permit) String() string { return fmt.Sprintf("permit %s on %s", a.ID, a.Node) }

// NotYet has an agent's drain wait on: the scaler lives, and it is not the drain's turn. It is
// renewed before the agent's wait ends.
type NotYet struct {
	Group string
	Node  NodeRef
	ID    string
	Why   string
}

func (a NotYet) String() string {
	return fmt.Sprintf("put off drain %s on %s: %s", a.ID, a.Node, a.Why)
}

// Release takes the cordon of an agent off a node, if it still stands there for the
// rebalance recommendation ID and the node does not drain.
type Release struct {
	Group string
	Node  NodeRef
	ID    string
	Why   string
}

func (a Release) String() string { return fmt.Sprintf("uncordon %s: %s", a.Node, a.Why) }

// Mark puts the unneeded taint on a node, so that its clock outlives us.
type Mark struct {
	Group string
	Node  NodeRef
	Since time.Time
}

func (a Mark) String() string {
	return fmt.Sprintf("mark %s unneeded since %s", a.Node, a.Since.UTC().Format(time.TimeOnly))
}

// Unmark takes the unneeded taint off.
type Unmark struct {
	Group string
	Node  NodeRef
	Why   string
}

func (a Unmark) String() string { return fmt.Sprintf("unmark %s: %s", a.Node, a.Why) }

// Steer says by taints when kube-scheduler fills a node.
type Steer struct {
	Group string
	Node  NodeRef
	Fill  contract.FillTurn
}

func (a Steer) String() string {
	return fmt.Sprintf("have new pods fill %s %s", a.Node, [...]string{"first", "later", "last"}[a.Fill])
}

// Terminate ends an instance. With a node, the terminating mark is written
// first, for the request ID, and the node's pods are listed live: if one must
// be placed again, the mark is taken off and nothing is terminated.
type Terminate struct {
	Group    string
	Instance string
	// Node is empty for an instance that never joined.
	Node NodeRef
	ID   string
	// Decrement lowers the group's desired capacity by one.
	Decrement bool
	// Surplus: the group has more instances than desired, so that none replaces it though desired
	// stays as it is.
	Surplus bool
	// Asks: the instance that replaces it is counted as asked for.
	Asks bool
	Why  string
}

func (a Terminate) String() string {
	how := "and replace"
	switch {
	case a.Decrement:
		how = "with decrement"
	case a.Surplus:
		how = "without decrement"
	}
	return fmt.Sprintf("terminate %s of %s %s: %s", a.Instance, a.Group, how, a.Why)
}

// ClearTerminationMark takes the terminating mark off a node whose instance has outlived the
// termination, and the request of ours with it, if the instance is in service at
// that moment: it came back from a warm pool, from standby, or was attached again.
type ClearTerminationMark struct {
	Group string
	Node  NodeRef
	// Instance is the node's, and ID what the mark is for.
	Instance, ID string
}

func (a ClearTerminationMark) String() string {
	return fmt.Sprintf("clear the termination mark of %s: %s of %s has outlived its termination", a.Node, a.Instance, a.Group)
}

// Heartbeat restarts the timer of an instance that waits for a hook in State.
type Heartbeat struct {
	Group, Instance, Hook string
	State                 string
}

func (a Heartbeat) String() string {
	return fmt.Sprintf("heartbeat %s of %s for %s", a.Hook, a.Group, a.Instance)
}

// Complete has Auto Scaling go on with an instance that waits for a hook in State. The result is
// always CONTINUE. With a node, its pods are listed live first, and with one left that must not
// lose its node nothing is done.
type Complete struct {
	Group, Instance, Hook string
	State                 string
	// Early: it was not seen to wait yet, and has had the time to come there.
	Early bool
	// Since is when the instance came on the way on which it waits, where that is known.
	Since time.Time
	// Node is empty for an instance that never joined.
	Node NodeRef
	// Occupied: pods may be on the node all the same: its drain failed, or
	// it comes into service.
	Occupied bool
	Why      string
}

func (a Complete) String() string {
	return fmt.Sprintf("complete %s of %s for %s: %s", a.Hook, a.Group, a.Instance, a.Why)
}

// Suspend stops one of the group's own processes.
type Suspend struct {
	Group, Process string
	Why            string
}

func (a Suspend) String() string {
	return fmt.Sprintf("suspend %s of %s: %s", a.Process, a.Group, a.Why)
}

// Claim writes on a group that this cluster owns it, if no cluster does.
type Claim struct {
	Group string
	// Owner is the UID of the cluster; see fleet.Snapshot.Cluster.
	Owner types.UID
}

func (a Claim) String() string { return fmt.Sprintf("claim %s for cluster %s", a.Group, a.Owner) }

// few names up to three pods and counts the rest.
func few(pods []PodRef) string {
	const most = 3
	names := make([]string, 0, most)
	for _, p := range pods[:min(most, len(pods))] {
		names = append(names, p.String())
	}
	text := strings.Join(names, ", ")
	if rest := len(pods) - len(names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// BufferRef names a CapacityBuffer as it was seen.
type BufferRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

func (b BufferRef) String() string { return b.Namespace + "/" + b.Name }

// UpdateBuffer writes on a CapacityBuffer what becomes of it, if it still is as it was seen.
type UpdateBuffer struct {
	Buffer BufferRef
	// Version is the buffer's resourceVersion.
	Version string
	Status  fleet.BufferStatus
}

func (a UpdateBuffer) String() string {
	words := make([]string, 0, 1+len(a.Status.Conditions))
	if n := a.Status.Replicas; n != nil {
		words = append(words, fmt.Sprintf("%d replicas", *n))
	}
	for _, c := range a.Status.Conditions {
		word := fmt.Sprintf("%s %s (%s)", c.Type, c.Status, c.Reason)
		if asExpected := c.Status == metav1.ConditionTrue && c.Type != fleet.BufferLimited; !asExpected && c.Message != "" {
			word = fmt.Sprintf("%s %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
		words = append(words, word)
	}
	return fmt.Sprintf("update status of buffer %s: %s", a.Buffer, strings.Join(words, ", "))
}
