package notice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// terminated is the one target state that makes the node leave.
const terminated = "Terminated"

// otherStates are the target states that ask for nothing.
var otherStates = []string{
	"InService", "Detached", "Standby",
	"Warmed:Hibernated", "Warmed:Running", "Warmed:Stopped", "Warmed:Terminated",
}

// ParseTargetState reads the lifecycle state that Auto Scaling leads an
// instance to. Its id is the one that the scaler derives too.
func ParseTargetState(instance, body string) ([]Notice, error) {
	state := strings.TrimSpace(body)
	if slices.Contains(otherStates, state) {
		return nil, nil
	}
	if state != terminated {
		return nil, fmt.Errorf("%s: unknown state %s", FromTargetState, quote(body))
	}
	return []Notice{{
		ID:     contract.TerminateID(instance),
		Cause:  ASGTerminate,
		Kind:   contract.KindASG,
		Source: FromTargetState,
		Reason: "Auto Scaling terminates the instance",
	}}, nil
}

// ParseInstanceAction reads a spot interruption. An action that AWS may add one
// day is an interruption too: the instance goes.
func ParseInstanceAction(instance, body string) ([]Notice, error) {
	var action struct {
		Action string `json:"action"`
		Time   string `json:"time"`
	}
	if err := json.Unmarshal([]byte(body), &action); err != nil {
		return nil, fmt.Errorf("%s: %s is not valid JSON: %w", FromInstanceAction, quote(body), err)
	}
	if action.Action == "" {
		return nil, fmt.Errorf("%s: %s names no action", FromInstanceAction, quote(body))
	}
	at, err := time.Parse(time.RFC3339, action.Time)
	if err != nil {
		return nil, fmt.Errorf("%s: %s has no time such as 2006-01-02T15:04:05Z", FromInstanceAction, quote(body))
	}
	at = at.UTC()
	cause := spotCause(action.Action)
	return []Notice{{
		ID:       string(cause) + ":" + instance + ":" + at.Format(time.RFC3339),
		Cause:    cause,
		Kind:     contract.KindSpot,
		Source:   FromInstanceAction,
		Reason:   interruption(action.Action, at),
		Deadline: at,
	}}, nil
}

// spotCause of an action. One that AWS may add one day is taken for the worst.
func spotCause(action string) Cause {
	switch action {
	case "stop":
		return SpotStop
	case "hibernate":
		return SpotHibernate
	}
	return SpotTerminate
}

// interruption tells the actions of EC2 apart: a terminated instance never
// comes back, a stopped or hibernated one may.
func interruption(action string, at time.Time) string {
	does := map[string]string{
		"terminate": "terminates",
		"stop":      "stops",
		"hibernate": "hibernates",
	}
	what := cmp.Or(does[action], "does "+strconv.Quote(action)+" to")
	return fmt.Sprintf("spot interruption: EC2 %s the instance at %s", what, at.Format(time.RFC3339))
}

// ParseRequest reads the value of the drain-request annotation.
func ParseRequest(value string) (Notice, error) {
	r, err := contract.ParseRequest(value)
	if err != nil {
		return Notice{}, err
	}
	return Notice{
		ID:       r.ID,
		Cause:    causeOf(r),
		Kind:     r.Kind,
		Source:   FromRequest,
		Reason:   r.Reason,
		By:       r.By,
		At:       r.At.Time,
		Deadline: r.Deadline.Time,
	}, nil
}

// causeOf a request: the scaler answers notices of the metadata by their id.
func causeOf(r contract.Request) Cause {
	if c, ok := OfMetadata(r.ID); ok {
		return c
	}
	if r.Kind == contract.KindScaleDown {
		return ScaleDown
	}
	return Request
}

// quote shortens a body, which may be anything, for use in a message.
func quote(body string) string {
	const most = 120
	if len(body) > most {
		return strconv.Quote(body[:most]) + "…"
	}
	return strconv.Quote(body)
}
