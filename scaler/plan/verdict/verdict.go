package verdict

import (
	"encoding/json"
	"fmt"
)

// SubjectKind is what a verdict is about.
type SubjectKind string

// The three kinds of subjects.
const (
	OfPod   SubjectKind = "pod"
	OfNode  SubjectKind = "node"
	OfGroup SubjectKind = "group"
)

// Verdict says what happens to a subject and why, or why nothing does. What it
// says is stable: no ages and no counters that tick, so that an unchanged
// world gives an unchanged verdict.
type Verdict struct {
	Of SubjectKind
	// Name is namespace/name for a pod.
	Name string
	// UID distinguishes a pod or node from an earlier one of its name.
	UID string
	// Group is the group of a node, or the one that a pod gets.
	Group  string
	Reason Reason
	// Details say why, with the figures.
	Details Details
}

// Message is the details as one sentence for people.
func (v Verdict) Message() string { return v.Details.String() }

// Messages renders those of many verdicts: those that share their details, as pods of one
// class do, take no longer than one.
type Messages map[said]string

type said struct {
	first *Detail
	n     int
}

// Of is the message of a verdict.
func (m Messages) Of(v *Verdict) string {
	if len(v.Details) == 0 {
		return ""
	}
	key := said{&v.Details[0], len(v.Details)}
	text, known := m[key]
	if !known {
		text = v.Message()
		m[key] = text
	}
	return text
}

// Repeats reports whether another verdict says the same.
func (v *Verdict) Repeats(other *Verdict) bool {
	return v.Of == other.Of && v.Name == other.Name && v.UID == other.UID && v.Group == other.Group && v.Reason == other.Reason &&
		(v.Details == nil) == (other.Details == nil) && v.Details.Equal(other.Details)
}

func (v Verdict) String() string {
	return fmt.Sprintf("%s %s: %s: %s", v.Of, v.Name, v.Reason, v.Details)
}

// verdictJSON is a verdict as programs read it; docs/reference/verdict-details.md promises it.
type verdictJSON struct {
	Kind    SubjectKind `json:"kind"`
	Name    string      `json:"name"`
	UID     string      `json:"uid,omitempty"`
	Group   string      `json:"group,omitempty"`
	Reason  Reason      `json:"reason"`
	Message string      `json:"message"`
	Details Details     `json:"details"`
}

// MarshalJSON writes the message beside the details that it is made of.
func (v Verdict) MarshalJSON() ([]byte, error) {
	return json.Marshal(verdictJSON{v.Of, v.Name, v.UID, v.Group, v.Reason, v.Message(), v.Details})
}

// UnmarshalJSON reads the details; the message follows from them.
func (v *Verdict) UnmarshalJSON(text []byte) error {
	var in verdictJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*v = Verdict{in.Kind, in.Name, in.UID, in.Group, in.Reason, in.Details}
	return nil
}
