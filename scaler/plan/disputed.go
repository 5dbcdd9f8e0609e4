package plan

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

const (
	// doubtful is how long kube-scheduler must have called a pod Unschedulable for it
	// to be a dispute at all: it may be about to look again.
	doubtful = 30 * time.Second
	// disputedAfter is how long a pod has had room by our reckoning until people are
	// told that it does not get there: kube-scheduler tries again within five minutes
	// what it has put aside.
	// https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/
	disputedAfter = 5 * time.Minute
	// mostDisputed bounds fleet.State.Disputed.
	mostDisputed = 50
)

// dispute turns the verdict of a pod that has room on a node, as far as we know, and
// that kube-scheduler has long left waiting. No node is brought for it, as the next
// would have room for it just as little. People have to look.
func (d *decision) dispute(s seat) seat {
	p := s.pod.Pod
	if s.reason != PodFitsFree || p.Scheduling != fleet.Unschedulable || d.now.Sub(p.Judged) < doubtful || len(d.state.Disputed) >= mostDisputed {
		return s
	}
	since, known := d.given.Disputed[string(p.UID)]
	if !known {
		since = d.now
	}
	d.state.Disputed[string(p.UID)] = since
	if due := since.Add(disputedAfter); d.now.Before(due) {
		d.clock.at(due)
		return s
	}
	s.reason = PodDisputed
	s.message = fmt.Sprintf("%s, as far as Windlass knows, since %s, and kube-scheduler finds none: look at the pod's own Events and at scheduler plugins beyond the default ones; a node more would not help", s.message, clockTime(since))
	return s
}

// leftWaiting says that people are told of the pod by now.
func (d *decision) leftWaiting(p *fleet.Pod) bool {
	since, known := d.state.Disputed[string(p.UID)]
	return known && !d.now.Before(since.Add(disputedAfter))
}
