package scaleup

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/seats"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// doubtful is how long kube-scheduler must have called a pod Unschedulable, or failed to bind it,
	// for it to be a dispute at all: it may be about to try again.
	doubtful = 30 * time.Second
	// disputedAfter is how long a pod has had room by our reckoning until it is reported that it
	// does not get there: kube-scheduler tries again within five minutes what it has put aside.
	// https://kubernetes.io/docs/concepts/scheduling-eviction/scheduling-framework/
	disputedAfter = 5 * time.Minute
	// mostDisputed bounds fleet.State.Disputed.
	mostDisputed = 50
)

// dispute turns the verdict of a pod that has room on a node, as far as we know, and that
// kube-scheduler has long left waiting, or fails to bind. It triggers no scale-up, as the next would
// have room for it just as little. People have to act.
func (d *ScaleUp) dispute(s seats.Seat) seats.Seat {
	p := s.Pod.Pod
	if s.Reason != verdict.PodFitsNode || !isLeft(p) || d.Now.Sub(p.Judged.Time()) < doubtful {
		return s
	}
	since, known := d.Given.Disputed[string(p.UID)]
	if !known {
		since = d.Now
	}
	if len(d.State.Disputed) < mostDisputed {
		d.State.Disputed[string(p.UID)] = since
	} else {
		since, _ = d.disputedSince(p)
	}
	if due := since.Add(disputedAfter); d.Now.Before(due) {
		d.Clock.At(due)
		return s
	}
	s.Reason = verdict.PodNotScheduled
	s.Details = s.Details.And(", as far as Windlass knows, since {since}, and kube-scheduler finds none: check the pod's own Events and scheduler plugins beyond the default ones", verdict.Since(since)).
		Then(verdict.Say("another node would not help"))
	return s
}

// isLeft reports whether kube-scheduler has found no place for a pod, or failed to bind it.
func isLeft(p *fleet.Pod) bool {
	return p.Scheduling == fleet.Unschedulable || p.Scheduling == fleet.Unbindable
}

// disputedSince is since when a pod counts as disputed. Of more than are remembered it is since the pod had
// long been left: one tenant's must not hide those of others.
func (d *ScaleUp) disputedSince(p *fleet.Pod) (since time.Time, is bool) {
	if since, is = d.State.Disputed[string(p.UID)]; is {
		return since, true
	}
	return p.Judged.Time().Add(disputedAfter), len(d.State.Disputed) >= mostDisputed && isLeft(p)
}

// LeftWaiting reports whether the pod is reported to people by now.
func (d *ScaleUp) LeftWaiting(p *fleet.Pod) bool {
	since, is := d.disputedSince(p)
	return is && !d.Now.Before(since.Add(disputedAfter))
}
