package plan

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// Plan is what to do now, and why, and when to look again.
type Plan struct {
	Actions []Action
	// Drains are those that the scaler carries on in place of agents, by node.
	Drains []Drain
	// Verdicts has exactly one for every waiting pod, every node and every
	// group, sorted by subject.
	Verdicts []Verdict
	// Others are sentences about programs of the cluster that do what we do, and what
	// people do about it. Stopped says that one of them is an autoscaler, so that nothing
	// is done.
	Others  []string
	Stopped bool
	// Wake is the latest moment of the next look, if nothing happens before;
	// zero where only an event can change the answer.
	Wake time.Time
	// Unrecognised counts the instances that should long have become Nodes and that we did
	// not ask for, by group. Braked says that there are so many of them that none is ended.
	Unrecognised map[string]int
	Braked       bool
	// Steps is what deciding took, as fit.Cluster.Steps counts it; see Bounds.
	Steps int64
	// State replaces the snapshot's; where it differs it is written before the
	// actions are carried out.
	State fleet.State
}

// SubjectKind tells what a verdict is about.
type SubjectKind string

// The three kinds of subjects.
const (
	OfPod   SubjectKind = "pod"
	OfNode  SubjectKind = "node"
	OfGroup SubjectKind = "group"
)

// Verdict says what happens to a subject and why, or why nothing does. Its
// text is stable: no ages and no counters that tick, so that an unchanged
// world gives an unchanged verdict.
type Verdict struct {
	Of SubjectKind `json:"of"`
	// Name is namespace/name for a pod.
	Name string `json:"name"`
	// UID tells a pod or node from an earlier one of its name.
	UID string `json:"uid,omitempty"`
	// Group is the group of a node, or the one that a pod gets.
	Group  string `json:"group,omitempty"`
	Reason Reason `json:"reason"`
	// Message is one sentence for people, with the figures.
	Message string `json:"message"`
}

func (v Verdict) String() string {
	return fmt.Sprintf("%s %s: %s: %s", v.Of, v.Name, v.Reason, v.Message)
}
