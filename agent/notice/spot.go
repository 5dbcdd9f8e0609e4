package notice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

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
	cause := spotCause(action.Action)
	return []Notice{{
		ID:       name(cause, instance, stamp(at)),
		Cause:    cause,
		Kind:     cause.Kind(),
		Source:   FromInstanceAction,
		Reason:   interruption(action.Action, at),
		Deadline: at.UTC(),
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
	return fmt.Sprintf("spot interruption: EC2 %s the instance at %s", what, stamp(at))
}

// ParseRebalance reads a rebalance recommendation: the instance is at risk, and
// nobody says when it goes.
func ParseRebalance(instance, body string) ([]Notice, error) {
	var recommendation struct {
		NoticeTime string `json:"noticeTime"`
	}
	if err := json.Unmarshal([]byte(body), &recommendation); err != nil {
		return nil, fmt.Errorf("%s: %s is not valid JSON: %w", FromRebalance, quote(body), err)
	}
	at, err := time.Parse(time.RFC3339, recommendation.NoticeTime)
	if err != nil {
		return nil, fmt.Errorf("%s: %s has no noticeTime such as 2006-01-02T15:04:05Z", FromRebalance, quote(body))
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
