package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is the value of AnnotationDrainRequest: somebody asks that the node
// be drained.
type Request struct {
	// ID is stable: the same wish has the same id however often it is written,
	// and the report that answers it names the id.
	ID string `json:"id"`
	// Kind says why; empty means KindRequest.
	Kind Kind `json:"kind,omitempty"`
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
	// By names who asks, e.g. "windlass-scaler".
	By string `json:"by,omitempty"`
	// At is when it was asked.
	At Time `json:"at,omitzero"`
	// Deadline is when the instance goes whatever is left on it; zero means
	// that there is no such moment and the drain may wait for budgets.
	Deadline Time `json:"deadline,omitzero"`
	// Unready says that the scaler asks because the node is not Ready: it asks no more when it is.
	Unready bool `json:"unready,omitempty"`
}

// word is what people write by hand: `kubectl annotate node n
// windlass.dev/drain-request=upgrade`.
var word = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62})$`)

// no are the words of those who want no drain, such as a template that writes what is unset.
var no = []string{"null", "false"}

// ParseRequest reads a drain request: JSON, or a bare word, which is taken as
// the reason and gives the id "request:<word>". An empty object is a request without a
// reason; null and false ask for nothing. Anything else is an error
// that quotes the value, and so is what is longer than any request need be.
func ParseRequest(value string) (Request, error) {
	if slices.Contains(no, strings.ToLower(strings.TrimSpace(value))) {
		return Request{}, fmt.Errorf("%s is %s, which asks for no drain: remove the annotation to take a request back", AnnotationDrainRequest, quoted(value))
	}
	if word.MatchString(value) {
		return Request{ID: "request:" + value, Kind: KindRequest, Reason: value}, nil
	}
	if err := tooLong(AnnotationDrainRequest, len(value), mostRequest, "bytes"); err != nil {
		return Request{}, err
	}
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return Request{}, fmt.Errorf("%s %s is neither JSON nor a single word of at most 63 letters, digits, '.', '_' or '-'", AnnotationDrainRequest, quoted(value))
	}
	var r Request
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Request{}, notJSON(AnnotationDrainRequest, value, err)
	}
	if r.Kind == "" {
		r.Kind = KindRequest
	}
	if _, err := ParseKind(string(r.Kind)); err != nil {
		return Request{}, fmt.Errorf("%s: %w", AnnotationDrainRequest, err)
	}
	if r.ID == "" {
		r.ID = RequestID(r.Reason)
	}
	if r.ID == RequestID("") {
		r.Reason = cmp.Or(r.Reason, "no reason was given")
	}
	if err := r.bound(); err != nil {
		return Request{}, err
	}
	return r, nil
}

// idOf a request that has none is made of its reason.
func RequestID(reason string) string { return "request:" + ShortID(reason) }

// String prints the annotation's value, with texts as ParseRequest reads them.
func (r Request) String() string {
	r.shorten()
	return encode(r)
}

// TerminateID is the id of the notice that Auto Scaling is terminating an
// instance. The agent derives it from the instance metadata, the scaler from
// the group, and so they mean the same drain.
func TerminateID(instance string) string { return "asg-terminate:" + instance }

// WarmID is the id of the notice that Auto Scaling leads an instance into the
// group's warm pool, from where it may come back. Agent and scaler derive it as
// they do TerminateID.
func WarmID(instance string) string { return "asg-warm:" + instance }

// ScaleDownID is the id of a retirement. It holds the moment since which the node
// is unneeded, so that deciding again gives the same id, and a retirement that
// was taken back is not mistaken for the next one.
func ScaleDownID(instance string, unneeded time.Time) string {
	return scaleDownPrefix + instance + ":" + strconv.FormatInt(unneeded.Unix(), 10)
}

const scaleDownPrefix = "scale-down:"

// IsScaleDown reports whether the id is that of a retirement.
func IsScaleDown(id string) bool { return strings.HasPrefix(id, scaleDownPrefix) }

// quoted shortens a value that may be anything for use in a message.
func quoted(value string) string {
	const most = 80
	if len(value) > most {
		return strconv.Quote(value[:most]) + "…"
	}
	return strconv.Quote(value)
}

// notJSON says that a value is none, in few words: the decoder may quote all of it.
func notJSON(key, value string, err error) error {
	return fmt.Errorf("%s %s is not valid JSON: %s", key, quoted(value), Shorten(err.Error(), 150))
}

// encode prints a value of the contract. Its types hold strings, numbers and
// times only, which always encode.
func encode(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("contract value %T does not encode: %v", v, err))
	}
	return string(out)
}
