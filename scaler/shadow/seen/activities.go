package seen

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"windlass.dev/windlass/scaler/shadow/record"
)

// Activity is one of an Auto Scaling group, as `aws autoscaling describe-scaling-activities` prints
// it.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Activity.html
type Activity struct {
	ID            string    `json:"ActivityId"`
	Group         string    `json:"AutoScalingGroupName"`
	Description   string    `json:"Description"`
	Cause         string    `json:"Cause"`
	StatusCode    string    `json:"StatusCode"`
	StatusMessage string    `json:"StatusMessage"`
	Start         time.Time `json:"StartTime"`
}

// ReadActivities reads what that command prints.
func ReadActivities(text []byte) ([]Activity, error) {
	var out struct{ Activities []Activity }
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("want what aws autoscaling describe-scaling-activities prints: %w", err)
	}
	return out.Activities, nil
}

// What Auto Scaling writes into descriptions and causes.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
var (
	instanceID = regexp.MustCompile(`\bi-[0-9a-f]+\b`)
	// changed is a change of desired capacity, with when and by whom.
	changed = regexp.MustCompile(`At (\S+) (an? [^.]*?)\s*changing the desired capacity from (\d+) to (\d+)`)
)

const (
	launching   = "Launching a new EC2 instance"
	terminating = "Terminating EC2 instance"
	userRequest = "user request"
)

// OfActivity is what an activity says: an instance that came or went, for a cause, and before it the
// change of desired capacity that its cause names. Activities of one change each name it.
func OfActivity(a Activity) (records []record.Record) {
	add := func(at time.Time, s record.Seen) {
		s.Group, s.Why = a.Group, a.Cause
		if s.Kind == record.Failed {
			s.Why = a.StatusMessage
		}
		records = append(records, record.Record{At: at, Seen: &s}.Normal())
	}
	for _, m := range changed.FindAllStringSubmatch(a.Cause, mostGroups) {
		at, err := time.Parse(time.RFC3339, m[1])
		if from, to := number(m[3]), number(m[4]); err == nil && from != to {
			kind := record.ScaleUp
			if to < from {
				kind = record.DesiredChanged
			}
			add(at, record.Seen{By: byOf(m[2]), Kind: kind, From: from, To: to})
		}
	}
	by, instance := byOf(a.Cause), instanceID.FindString(a.Description)
	switch {
	case strings.HasPrefix(a.Description, launching) && a.StatusCode == "Failed":
		add(a.Start, record.Seen{By: record.ByAutoScaling, Kind: record.Failed})
	case strings.HasPrefix(a.Description, launching) && instance != "":
		add(a.Start, record.Seen{By: by, Kind: record.NodeCame, Instance: instance})
	case strings.HasPrefix(a.Description, terminating) && instance != "":
		add(a.Start, record.Seen{By: by, Kind: record.ScaleDown, Instance: instance})
	}
	return records
}

// byOf says whose a cause is. A request may be Cluster Autoscaler's or people's.
func byOf(cause string) string {
	if cause == "" || strings.Contains(cause, userRequest) {
		return record.ByUnknown
	}
	return record.ByAutoScaling
}
