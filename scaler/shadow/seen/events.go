// Package seen turns what others leave behind of what they did into records of a shadow's log.
//
//	events.go     Events of Cluster Autoscaler, and its taint
//	status.go     its status
//	activities.go activities of Auto Scaling groups
package seen

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/record"
)

// OfEvent is what an Event of Cluster Autoscaler says, given its namespace; nothing where it is
// somebody else's. An Event in a namespace of tenants is a claim; see record.ByClaim. One without
// any date has records without one, which no log keeps.
func OfEvent(e *corev1.Event, namespace string) []record.Record {
	if e.Source.Component != contract.AppClusterAutoscaler && e.ReportingController != contract.AppClusterAutoscaler {
		return nil
	}
	believed := *e
	believed.Source.Component = contract.AppClusterAutoscaler // newer recorders write the other field
	message := contract.Shorten(e.Message, mostMessage)
	var all []record.Seen
	switch {
	case slices.ContainsFunc(contract.AutoscalerPlaces(namespace), func(p contract.EventPlace) bool { return p.Has(&believed) }):
		all = ofBelieved(e, message)
	case e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Namespace == e.Namespace:
		all = ofPod(e, message)
	}
	var records []record.Record
	for _, s := range all {
		s.Why = message
		records = append(records, record.Record{At: dateOf(e), Seen: &s}.Normal())
	}
	return records
}

const (
	// mostMessage is the most bytes that are read of a message. The API server takes 1 KiB of newer
	// Events.
	mostMessage = 4 << 10
	// mostGroups bounds how many groups one message names.
	mostGroups = 32
)

// dateOf is when it happened last; zero where it does not say.
func dateOf(e *corev1.Event) time.Time {
	dates := []time.Time{e.LastTimestamp.Time}
	if e.Series != nil {
		dates = append(dates, e.Series.LastObservedTime.Time)
	}
	for _, t := range append(dates, e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time) {
		if !t.IsZero() && contract.IsDate(t) {
			return t
		}
	}
	return time.Time{}
}

var (
	// resized is how a group's growth is worded.
	resized = regexp.MustCompile(`\bgroup (.+) size (?:set )?to (\d+) instead of (\d+)`)
	// triggered is one group in an Event of a pod.
	triggered = regexp.MustCompile(`\{([^{}]+) (\d+)->(\d+) \(max: \d+\)\}`)
	// ofGroup and ofNode find a name in a sentence.
	ofGroup = regexp.MustCompile(`\bgroup ([^\s:]+)`)
	ofNode  = regexp.MustCompile(`\bnode:? "?([a-z0-9][-.a-z0-9]*)`)
)

// ofBelieved is what is said of nodes and groups.
func ofBelieved(e *corev1.Event, message string) []record.Seen {
	s := record.Seen{By: record.ByAutoscaler}
	if e.InvolvedObject.Kind == "Node" {
		s.Node = e.InvolvedObject.Name
	}
	switch e.Reason {
	case contract.EventScaledUpGroup:
		m := resized.FindStringSubmatch(message)
		if m == nil {
			return nil
		}
		s.Kind, s.Group, s.To, s.From = record.ScaleUp, m[1], number(m[2]), number(m[3])
	case contract.EventScaleDown, contract.EventScaleDownEmpty:
		s.Kind = record.ScaleDown
		s.Node = cmp.Or(s.Node, nodeIn(message))
		if s.Node == "" {
			return nil
		}
	case contract.EventDeleteUnregistered:
		s.Kind, s.Instance = record.ScaleDown, instanceID.FindString(message)
		if s.Instance == "" {
			return nil
		}
	case contract.EventScaleDownFailed:
		s.Kind = record.Failed
		s.Node = cmp.Or(s.Node, nodeIn(message))
	case contract.EventFailedToScaleUpGroup, contract.EventScaleUpFailed, contract.EventScaleUpTimedOut, contract.EventFailedToRevert:
		s.Kind = record.Failed
		if m := ofGroup.FindStringSubmatch(message); m != nil {
			s.Group = m[1]
		}
	case contract.EventMaxNodesTotalReached, contract.EventClusterUnhealthy:
		s.Kind = record.Failed
	default:
		return nil
	}
	return []record.Seen{s}
}

// nodeIn is the node that a sentence names; empty where it names none.
func nodeIn(message string) string {
	if m := ofNode.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// ofPod is what is said of a pod, by whoever may write Events beside it.
func ofPod(e *corev1.Event, message string) (all []record.Seen) {
	pod := record.Seen{By: record.ByClaim, Pods: []string{e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name}, PodCount: 1}
	switch e.Reason {
	case contract.EventTriggeredScaleUp:
		for _, m := range triggered.FindAllStringSubmatch(message, mostGroups) {
			s := pod
			s.Kind, s.Group, s.From, s.To = record.ScaleUp, m[1], number(m[2]), number(m[3])
			all = append(all, s)
		}
	case contract.EventNotTriggerScaleUp:
		pod.Kind = record.Unhelped
		all = append(all, pod)
	}
	return all
}

// number is that of digits; 0 of too many.
func number(digits string) int {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// OfTaint is that Cluster Autoscaler is about to remove a node, as its taint says; false where it
// is not.
func OfTaint(node, group string, taints []corev1.Taint) (record.Record, bool) {
	since, is := contract.ToBeDeletedSince(taints)
	if !is || !contract.IsDate(since) {
		return record.Record{}, false
	}
	return record.Record{At: since, Seen: &record.Seen{By: record.ByAutoscaler, Kind: record.Tainted, Group: group, Node: node, Why: contract.TaintToBeDeleted}}.Normal(), true
}
