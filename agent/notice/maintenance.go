package notice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// scheduledEvent is one element of what the metadata say about maintenance.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
type scheduledEvent struct {
	EventID     string `json:"EventId"`
	Code        string
	Description string
	NotBefore   string
	NotAfter    string
	State       string
}

// eventTime is how the metadata spell the times of scheduled events.
const eventTime = "2 Jan 2006 15:04:05 GMT"

// acts says for people what EC2 does under each code.
var acts = map[Cause]string{
	InstanceReboot:     "EC2 reboots the instance",
	SystemReboot:       "EC2 reboots the host of the instance",
	SystemMaintenance:  "EC2 works on the network or the power of the host",
	InstanceStop:       "EC2 stops the instance",
	InstanceRetirement: "EC2 retires the instance, whose host degrades",
}

// ParseMaintenance reads the scheduled events that are active. Each is a notice
// whose deadline is the first moment at which EC2 may act, and whose NotAfter the
// last; a moment that is not given, or cannot be read, is zero. An event of a code that is
// not known is taken for a retirement, after which nothing of the instance is
// left, and its reason says so.
//
// An event that cannot be distinguished from others is an error; the others are returned
// all the same.
func ParseMaintenance(instance, body string) ([]Notice, error) {
	events, err := parseEvents(FromMaintenance, body)
	var notices []Notice
	for _, e := range events {
		if !e.over() {
			notices = append(notices, e.notice(instance))
		}
	}
	return soonest(Standing(notices...)), err
}

// mostEvents is how many events of an instance are believed, those that come first: the Node
// has room for a few notices more. EC2 announces one or two.
const mostEvents = 32

// soonest leaves out the events that come last where they are too many, and says so.
func soonest(notices []Notice) []Notice {
	many := len(notices) - mostEvents
	if many <= 0 {
		return notices
	}
	slices.SortStableFunc(notices, func(a, b Notice) int { return a.Deadline.Compare(b.Deadline) })
	notices = notices[:mostEvents]
	notices[mostEvents-1].Reason += fmt.Sprintf("; %d later events are left out", many)
	return Standing(notices...)
}

// WithoutHistory leaves out the notices of scheduled events that the history
// lists, whatever the list of scheduled events says about them. An error says
// what of the history was not understood, and so ended nothing.
func WithoutHistory(notices []Notice, body string) ([]Notice, error) {
	events, err := parseEvents(FromMaintenanceHistory, body)
	ended := map[string]bool{}
	for _, e := range events {
		ended[e.EventID] = ended[e.EventID] || !strings.EqualFold(e.State, "active")
	}
	return slices.DeleteFunc(slices.Clone(notices), func(n Notice) bool { return ended[detail(n.ID)] }), err
}

// parseEvents reads a list of events. It returns those that it understands, and
// an error about the others.
func parseEvents(from SourceName, body string) ([]scheduledEvent, error) {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return nil, fmt.Errorf("%s: %s is not a list in JSON: %w", from, Quote(body), err)
	}
	var events []scheduledEvent
	var errs []error
	for _, raw := range list {
		var e scheduledEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %s is not an event: %w", from, Quote(string(raw)), err))
			continue
		}
		if e.EventID == "" {
			errs = append(errs, fmt.Errorf("%s: %s has no EventId", from, Quote(string(raw))))
			continue
		}
		e.EventID = contract.ShortID(e.EventID)
		events = append(events, e)
	}
	return events, errors.Join(errs...)
}

// over reports whether EC2 will not do it, or has done it.
func (e scheduledEvent) over() bool {
	return slices.Contains([]string{"completed", "canceled", "cancelled"}, strings.ToLower(e.State))
}

func (e scheduledEvent) notice(instance string) Notice {
	cause := e.cause()
	n := Notice{
		ID:     name(cause, instance, e.EventID),
		Cause:  cause,
		Kind:   cause.Kind(),
		Source: FromMaintenance,
		Reason: "scheduled event: " + e.what(),
	}
	if end, err := time.Parse(eventTime, e.NotAfter); err == nil && contract.IsDate(end) {
		n.NotAfter = end.UTC()
	}
	if at, err := time.Parse(eventTime, e.NotBefore); err == nil && contract.IsDate(at) {
		n.Deadline = at.UTC()
		n.Reason += ", not before " + stamp(at)
	} else {
		n.Reason += ", at a time that is not known"
	}
	return n
}

func (e scheduledEvent) known() bool { return Cause(e.Code).Kind() == contract.KindMaintenance }

func (e scheduledEvent) cause() Cause {
	if e.known() {
		return Cause(e.Code)
	}
	return InstanceRetirement
}

func (e scheduledEvent) what() string {
	if e.known() {
		return acts[e.cause()]
	}
	return fmt.Sprintf("EC2 announces %s (%s), an event that is not known here and is taken for a retirement",
		Quote(e.Code), contract.Shorten(e.Description, 250))
}
