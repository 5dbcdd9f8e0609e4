package contract

import (
	"encoding/json"
	"strings"
)

// Noticed is one notice of the instance metadata that stands, and what the agent
// makes of it.
type Noticed struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
	// Does is the agent's policy for it: ignore, cordon or drain.
	Does string `json:"does"`
	// Due is when its drain begins, where that is still to come.
	Due Time `json:"due,omitzero"`
	// Deadline is when the instance goes; zero where nobody has said.
	Deadline Time `json:"deadline,omitzero"`
	// NotAfter is when a scheduled event is over at the latest, where AWS has said.
	NotAfter Time `json:"notAfter,omitzero"`
	// At is since when the agents of the node know it.
	At Time `json:"at,omitzero"`
	// Boot is the node's boot id under which the notice stands: the last one under
	// which it was certain that what is announced was still to come. Once the machine
	// has come up again, what it was to reboot for has been done.
	Boot string `json:"boot,omitempty"`
}

// NoticedList is the value of AnnotationNotices, the strongest first.
type NoticedList []Noticed

// ParseNoticed reads the annotation's value; an empty value is an empty list. What is
// longer than any agent writes is an error.
func ParseNoticed(value string) (NoticedList, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	if err := tooLong(AnnotationNotices, len(value), mostReport, "bytes"); err != nil {
		return nil, err
	}
	var list NoticedList
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return nil, notJSON(AnnotationNotices, value, err)
	}
	if err := list.bound(); err != nil {
		return nil, err
	}
	return list, nil
}

// String prints the annotation's value, with texts as ParseNoticed reads them.
func (l NoticedList) String() string {
	if len(l) == 0 {
		return ""
	}
	return encode(l.fit())
}

// Find returns the entry of a notice.
func (l NoticedList) Find(id string) (Noticed, bool) {
	for _, n := range l {
		if n.ID == id {
			return n, true
		}
	}
	return Noticed{}, false
}
