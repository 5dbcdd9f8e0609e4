package notice

import (
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// SourceName is where a notice was read: a path of the instance metadata, or
// the Node annotation.
type SourceName string

const (
	// FromRequest is the drain-request annotation of the Node. It sorts before
	// the paths of the metadata.
	FromRequest SourceName = "annotation"
	// FromTargetState gives the lifecycle state that Auto Scaling leads the
	// instance to. Absent where there is no group, or no transition yet.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
	FromTargetState SourceName = "autoscaling/target-lifecycle-state"
	// FromInstanceAction announces a spot interruption, two minutes ahead.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
	FromInstanceAction SourceName = "spot/instance-action"
	// FromRebalance reports that a spot instance is at a higher risk of
	// interruption. It stays for as long as the instance lives.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
	FromRebalance SourceName = "events/recommendations/rebalance"
	// FromMaintenance lists scheduled events.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_scheduled_events.html
	FromMaintenance SourceName = "events/maintenance/scheduled"
	// FromMaintenanceHistory lists those that are completed or cancelled.
	FromMaintenanceHistory SourceName = "events/maintenance/history"
)

// Source is where notices of the cause are read; empty for an unknown one.
func (c Cause) Source() SourceName {
	switch c {
	case Rebalance:
		return FromRebalance
	case ScaleDown, Request:
		return FromRequest
	}
	switch c.Kind() {
	case contract.KindSpot:
		return FromInstanceAction
	case contract.KindMaintenance:
		return FromMaintenance
	case contract.KindASG:
		return FromTargetState
	}
	return ""
}

// Source is one path below /latest/meta-data/ that may give notices.
type Source struct {
	Path SourceName
	// Every is how often the path is read. AWS advises five seconds for a spot
	// interruption, which comes two minutes ahead; the others leave more time.
	Every time.Duration
	// SpotOnly paths are read once a minute where the instance is on demand.
	SpotOnly bool
	// Missing is how many answers in a row must lack the path (404) until what it gave is
	// over: one may be missing for a failure of the service.
	Missing int
	// Parse reads the body. A body that says "nothing to do" gives no notices.
	// What cannot be understood is an error that quotes it; beside it stand the
	// notices that could be.
	Parse func(instance, body string) ([]Notice, error)
	// History is a second path, which lists what of the first is over; nil where
	// there is none. It is read right after the first, and only while that gives
	// notices.
	History *History
}

// History is a path that lists what is over.
type History struct {
	Path SourceName
	// Without leaves out the notices that are over by this body. What cannot be
	// understood is an error, and ends nothing.
	Without func(notices []Notice, body string) ([]Notice, error)
}

// Sources lists every path that is read. All of them together are less than half
// a request a second.
var Sources = []Source{
	{Path: FromTargetState, Every: 5 * time.Second, Missing: 3, Parse: ParseTargetState},
	// An interruption that is missing stands by its time: Notice.AbsentUntil.
	{Path: FromInstanceAction, Every: 5 * time.Second, Missing: 1, SpotOnly: true, Parse: ParseInstanceAction},
	{Path: FromRebalance, Every: 30 * time.Second, Missing: 3, SpotOnly: true, Parse: ParseRebalance},
	{Path: FromMaintenance, Every: time.Minute, Missing: 3, Parse: ParseMaintenance,
		History: &History{Path: FromMaintenanceHistory, Without: WithoutHistory}},
}
