package verdict

import "fmt"

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
