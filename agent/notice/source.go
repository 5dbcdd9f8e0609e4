package notice

import "time"

// SourceName is where a notice was read: a path of the instance metadata, or
// the Node annotation.
type SourceName string

const (
	// FromRequest is the drain-request annotation of the Node. It sorts before
	// the paths of the metadata.
	FromRequest SourceName = "annotation"
	// FromTargetState tells the lifecycle state that Auto Scaling leads the
	// instance to. Absent where there is no group, or no transition yet.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
	FromTargetState SourceName = "autoscaling/target-lifecycle-state"
	// FromInstanceAction announces a spot interruption, two minutes ahead.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
	FromInstanceAction SourceName = "spot/instance-action"
)

// Source is one path below /latest/meta-data/ that may give notices.
type Source struct {
	Path SourceName
	// Every is how often the path is read; AWS advises five seconds for spot.
	Every time.Duration
	// SpotOnly paths are read only where the instance is, or may be, a spot
	// instance.
	SpotOnly bool
	// Parse reads the body. A body that says "nothing to do" gives no notices;
	// one that cannot be understood is an error that quotes it.
	Parse func(instance, body string) ([]Notice, error)
}

// Sources lists every path that is read.
var Sources = []Source{
	{Path: FromTargetState, Every: 5 * time.Second, Parse: ParseTargetState},
	{Path: FromInstanceAction, Every: 5 * time.Second, SpotOnly: true, Parse: ParseInstanceAction},
}
