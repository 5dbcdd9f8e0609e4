package contract

import (
	"encoding/json"
	"time"
)

// A drain that waits for its permit may wait for days where many nodes shall go and few
// may go at a time. Its agent cannot tell that from a scaler that is dead, so the scaler
// says so, again and again.
const (
	// WaitReportEvery is how often the agent renews the report of such a drain, once the
	// scaler has said that it is not its turn and while the node is open to pods: nobody
	// asks before the permit, and a thousand nodes may wait for days.
	WaitReportEvery = 2 * time.Minute
	// WaitGoneAfter is what UnresponsiveAfter is for such a report.
	WaitGoneAfter = 5 * time.Minute
)

// NotYet is the value of AnnotationDrainNotYet: the scaler lives, and it is not this
// drain's turn.
type NotYet struct {
	// ID is what the report wants a permit for.
	ID string `json:"id"`
	// At is when the scaler said so, by its own clock. It makes each renewal another
	// value; the agent counts from when that arrived, as clocks differ.
	At Time `json:"at"`
	// Why is what the drain waits for, in words.
	Why string `json:"why,omitempty"`
}

// ParseNotYet reads the annotation's value.
func ParseNotYet(value string) (NotYet, error) {
	var n NotYet
	if err := json.Unmarshal([]byte(value), &n); err != nil {
		return NotYet{}, notJSON(AnnotationDrainNotYet, value, err)
	}
	return n, nil
}

// String prints the annotation's value.
func (n NotYet) String() string { return encode(n) }
