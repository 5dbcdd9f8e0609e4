package contract

import (
	"encoding/json"
	"slices"
	"strings"
)

// MostServed is how many served notices a node remembers: more than can stand at once, or one
// that is forgotten would be drained for again.
const MostServed = 48

// Served is one notice that the agent is done with. A served notice starts no
// second drain; only a notice of a stronger kind does.
type Served struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Boot is the node's boot id at the time: after a reboot a node that was
	// drained for it may serve again.
	Boot string `json:"boot,omitempty"`
	At   Time   `json:"at,omitzero"`
	// Asked is the date of the request that was served, by the clock of whoever asked;
	// zero where there was none, or none with a date.
	Asked Time `json:"asked,omitzero"`
	// Withdrawn means that the notice was taken back before it was fulfilled.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Fulfilled means that the machine has rebooted, as the notice announced: should the metadata list it
	// again, after they have not for a moment, it is the same.
	Fulfilled bool `json:"fulfilled,omitempty"`
	// Over means that the time of the event was over without a reboot. Given another one, under the same
	// id, it is to come again.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/reschedule-event.html
	Over bool `json:"over,omitempty"`
}

// ServedList is the value of AnnotationServed, the oldest first.
type ServedList []Served

// ParseServed reads the annotation's value; an empty value is an empty list. What is longer
// than any agent writes is an error.
func ParseServed(value string) (ServedList, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	if err := tooLong(AnnotationServed, len(value), mostReport, "bytes"); err != nil {
		return nil, err
	}
	var list ServedList
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return nil, notJSON(AnnotationServed, value, err)
	}
	if err := tooLong(AnnotationServed, len(list), mostEntries, "entries"); err != nil {
		return nil, err
	}
	return list, nil
}

// String prints the annotation's value, without as many entries as make it too long to be read
// again: what was withdrawn goes first.
func (l ServedList) String() string {
	l = slices.Clone(l)
	for len(l) > 0 && len(encode(l)) > mostReport {
		l = l.withoutFirst()
	}
	if len(l) == 0 {
		return ""
	}
	return encode(l)
}

// withoutFirst is the list without the entry that says least: the oldest that was withdrawn,
// as it says nothing about what stands, or the oldest.
func (l ServedList) withoutFirst() ServedList {
	first := max(0, slices.IndexFunc(l, func(s Served) bool { return s.Withdrawn }))
	return slices.Delete(l, first, first+1)
}

// Add returns the list with s as its newest entry, without an older entry of
// the same id, and no longer than MostServed.
func (l ServedList) Add(s Served) ServedList {
	out := make(ServedList, 0, len(l)+1)
	for _, old := range l {
		if old.ID != s.ID {
			out = append(out, old)
		}
	}
	out = append(out, s)
	for len(out) > MostServed {
		out = out.withoutFirst()
	}
	return out
}

// Find returns the entry of a notice.
func (l ServedList) Find(id string) (Served, bool) {
	for _, s := range l {
		if s.ID == id {
			return s, true
		}
	}
	return Served{}, false
}

// Cordon is the value of AnnotationCordonedBy: this cordon is ours.
type Cordon struct {
	// By names the program, AppAgent or AppScaler.
	By string `json:"by"`
	// Notice is the id of the notice the node was cordoned for.
	Notice string `json:"notice"`
	// Boot is the node's boot id at the time.
	Boot string `json:"boot,omitempty"`
	At   Time   `json:"at,omitzero"`
}

// ParseCordon reads the annotation's value.
func ParseCordon(value string) (Cordon, error) {
	var c Cordon
	if err := json.Unmarshal([]byte(value), &c); err != nil {
		return Cordon{}, notJSON(AnnotationCordonedBy, value, err)
	}
	if err := tooLong(AnnotationCordonedBy+" notice", written(c.Notice), mostID, "bytes"); err != nil {
		return Cordon{}, err
	}
	return c, nil
}

// String prints the annotation's value.
func (c Cordon) String() string { return encode(c) }
