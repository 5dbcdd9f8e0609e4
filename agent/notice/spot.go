package notice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// ParseInstanceAction reads a spot interruption. An action that AWS may add one
// day is an interruption too: the instance goes. So is one without a time, or with one that cannot
// be read: it is drained for at once in any case.
func ParseInstanceAction(instance, body string) ([]Notice, error) {
	var action struct {
		Action string `json:"action"`
		Time   any    `json:"time"`
	}
	if err := json.Unmarshal([]byte(body), &action); err != nil {
		return nil, fmt.Errorf("%s: %s is not valid JSON: %w", FromInstanceAction, Quote(body), err)
	}
	if action.Action == "" {
		return nil, fmt.Errorf("%s: %s names no action", FromInstanceAction, Quote(body))
	}
	cause := spotCause(action.Action)
	n := Notice{
		ID:     name(cause, instance),
		Cause:  cause,
		Kind:   cause.Kind(),
		Source: FromInstanceAction,
		Reason: interruption(action.Action, "a time that is not known"),
	}
	said, _ := action.Time.(string)
	if at, err := time.Parse(time.RFC3339, said); err == nil && contract.IsDate(at) {
		n.ID, n.Reason, n.Deadline = name(cause, instance, stamp(at)), interruption(action.Action, stamp(at)), at.UTC()
	}
	return []Notice{n}, nil
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

// interruption distinguishes the actions of EC2: a terminated instance never
// comes back, a stopped or hibernated one may.
func interruption(action, at string) string {
	does := map[string]string{
		"terminate": "terminates",
		"stop":      "stops",
		"hibernate": "hibernates",
	}
	what := cmp.Or(does[action], "does "+strconv.Quote(action)+" to")
	return fmt.Sprintf("spot interruption: EC2 %s the instance at %s", what, at)
}

// Interruptions makes one notice of all that announce the same spot interruption: the same
// action to the same instance. There may be several, because a metadata service may give
// another time at each answer, as amazon-ec2-metadata-mock does. before are those that were
// given earlier; the notice keeps the id that it had there, and the earliest time ever
// given. Other notices are as they were.
func Interruptions(given, before []Notice) []Notice {
	before = Standing(before...)
	var out []Notice
	for _, n := range Standing(given...) { // the earliest first
		if slices.ContainsFunc(out, n.sameInterruption) {
			continue
		}
		if at := slices.IndexFunc(before, n.sameInterruption); at >= 0 {
			n.ID = before[at].ID
			if compareDeadlines(before[at].Deadline, n.Deadline) < 0 {
				n.Deadline, n.Reason = before[at].Deadline, before[at].Reason
			}
		}
		out = append(out, n)
	}
	return Standing(out...)
}

func (n Notice) sameInterruption(other Notice) bool {
	return n.Kind == contract.KindSpot && n.Cause == other.Cause && instanceOf(n.ID) == instanceOf(other.ID)
}

const (
	// longestWarning is more than EC2 gives ahead of an interruption, which is two minutes.
	longestWarning = 10 * time.Minute
	// lingers is how long an instance is taken to be about to go after its time.
	lingers = 2 * time.Minute
)

// AbsentUntil is until when a notice stands that the metadata gave and give no more, if it
// is known since that moment; zero where it ends with them. AWS knows no way to take a spot
// interruption back, so one that is missing means that the service failed.
func (n Notice) AbsentUntil(since time.Time) time.Time {
	if n.Kind != contract.KindSpot {
		return time.Time{}
	}
	return Earliest(n.Deadline, since.Add(longestWarning)).Add(lingers)
}

// ParseRebalance reads a rebalance recommendation: the instance is at risk, and
// no time is given.
func ParseRebalance(instance, body string) ([]Notice, error) {
	var recommendation struct {
		NoticeTime string `json:"noticeTime"`
	}
	if err := json.Unmarshal([]byte(body), &recommendation); err != nil {
		return nil, fmt.Errorf("%s: %s is not valid JSON: %w", FromRebalance, Quote(body), err)
	}
	at, err := time.Parse(time.RFC3339, recommendation.NoticeTime)
	if err != nil || !contract.IsDate(at) {
		return nil, fmt.Errorf("%s: %s has no noticeTime such as 2006-01-02T15:04:05Z", FromRebalance, Quote(body))
	}
	return []Notice{{
		ID:     name(Rebalance, instance, stamp(at)),
		Cause:  Rebalance,
		Kind:   Rebalance.Kind(),
		Source: FromRebalance,
		Reason: "rebalance recommendation: EC2 may soon interrupt the instance",
		At:     at.UTC(),
	}}, nil
}
