package cloud

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Activity is a scaling activity.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Activity.html
type Activity struct {
	ID            string    `json:"id"`
	Group         string    `json:"group"`
	GroupARN      string    `json:"groupARN"`
	Description   string    `json:"description"`
	Cause         string    `json:"cause"`
	Details       string    `json:"details"` // JSON
	Start         time.Time `json:"start"`
	End           time.Time `json:"end,omitzero"` // zero while it runs
	StatusCode    string    `json:"statusCode"`
	StatusMessage string    `json:"statusMessage,omitempty"`
	Progress      int       `json:"progress"`
}

// Status codes that the fake uses.
const (
	statusPreInService = "PreInService"
	statusInProgress   = "InProgress"
	statusMidLifecycle = "MidLifecycleAction"
	statusSuccessful   = "Successful"
	statusFailed       = "Failed"
	statusCancelled    = "Cancelled"
)

// Open tells an activity that still runs.
func (a Activity) Open() bool { return a.End.IsZero() }

type activity struct{ Activity }

// Activities lists the scaling activities of a group ("" for all), newest first and those still running before the others.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_DescribeScalingActivities.html
func (c *Cloud) Activities(group string) []Activity {
	var open, closed []Activity
	for _, a := range slices.Backward(c.activities) {
		if group != "" && a.Group != group {
			continue
		}
		if a.Open() {
			open = append(open, a.Activity)
			continue
		}
		closed = append(closed, a.Activity)
	}
	return append(open, closed...)
}

func (c *Cloud) startActivity(g *group, zone, description, cause, status string) *activity {
	a := &activity{Activity{
		ID: c.uuid(), Group: g.spec.Name, GroupARN: g.arn, Description: description, Cause: cause,
		Details: fmt.Sprintf(`{"Subnet ID":%q,"Availability Zone":%q}`, subnetOf(zone), zone),
		Start:   c.now, StatusCode: status,
	}}
	c.activities = append(c.activities, a)
	return a
}

func (c *Cloud) endActivity(a *activity, status, message string) {
	if a == nil || !a.Open() {
		return
	}
	a.End, a.StatusCode, a.StatusMessage, a.Progress = c.now, status, message, 100
}

func (a *activity) progress(status string, percent int) {
	if a == nil || !a.Open() {
		return
	}
	a.StatusCode, a.Progress = status, percent
}

// sentence words one part of an activity's cause.
func (c *Cloud) sentence(format string, args ...any) string {
	return "At " + c.now.UTC().Format(time.RFC3339) + " " + fmt.Sprintf(format, args...) + "."
}

// because remembers why the desired capacity changed, for the cause of the activities that follow from it.
func (g *group) because(format string, args ...any) {
	g.causes = append(g.causes, g.cloud.sentence(format, args...))
}

// cause joins why the capacity changed with what is done about it.
func (g *group) cause(format string, args ...any) string {
	return strings.Join(append(slices.Clone(g.causes), g.cloud.sentence(format, args...)), "  ")
}
