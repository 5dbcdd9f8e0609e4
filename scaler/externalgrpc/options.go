package externalgrpc

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Defaults are the flags that a provider may answer otherwise for a group.
type Defaults struct {
	UtilizationThreshold, GPUUtilizationThreshold   float64
	UnneededTime, UnreadyTime, MaxNodeProvisionTime time.Duration
	IgnoreDaemonSets                                bool
}

// message has each of them by the numbers of both generations.
func (d Defaults) message() *protocol.NodeGroupAutoscalingOptions {
	old := func(d time.Duration) *protocol.MetaDuration { return &protocol.MetaDuration{Duration: int64(d)} }
	return &protocol.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: d.UtilizationThreshold, ScaleDownGpuUtilizationThreshold: d.GPUUtilizationThreshold,
		IgnoreDaemonSetsUtilization: d.IgnoreDaemonSets,
		ScaleDownUnneededTime:       old(d.UnneededTime), ScaleDownUnneededDuration: durationpb.New(d.UnneededTime),
		ScaleDownUnreadyTime: old(d.UnreadyTime), ScaleDownUnreadyDuration: durationpb.New(d.UnreadyTime),
		MaxNodeProvisionTime: old(d.MaxNodeProvisionTime), MaxNodeProvisionDuration: durationpb.New(d.MaxNodeProvisionTime),
	}
}

// longest is the most that a time of these may be.
const longest = 30 * 24 * time.Hour

// readOptions takes over what is possible, and says what is not; asked is what the provider was
// told. A provider without any answers no message.
func readOptions(m *protocol.NodeGroupAutoscalingOptions, asked Defaults) (o fleet.ScaleDownOptions, atOnce bool, err error) {
	if m == nil {
		return fleet.ScaleDownOptions{}, false, nil
	}
	var wrong []error
	share := func(name string, share float64) *float64 {
		if !(share >= 0 && share <= 1) { // NaN is neither
			wrong = append(wrong, fmt.Errorf("%s is %v: want a share from 0 to 1", name, share))
			return nil
		}
		return &share
	}
	duration := func(name string, asked time.Duration, new *durationpb.Duration, old *protocol.MetaDuration) *metav1.Duration {
		d := new.AsDuration()
		// Who answers by the old number alone may send back what the new one said.
		if old != nil && (new == nil || d == asked) {
			d = time.Duration(old.GetDuration())
		} else if new == nil {
			return nil
		}
		if d < 0 || d > longest {
			wrong = append(wrong, fmt.Errorf("%s is %s: want 0 to %s", name, d, longest))
			return nil
		}
		return &metav1.Duration{Duration: d}
	}
	provision := duration("maxNodeProvisionDuration", asked.MaxNodeProvisionTime, m.GetMaxNodeProvisionDuration(), m.GetMaxNodeProvisionTime())
	if provision != nil && provision.Duration == 0 {
		wrong, provision = append(wrong, errors.New("maxNodeProvisionDuration is 0s: want more than 0")), nil
	}
	ignore := m.GetIgnoreDaemonSetsUtilization()
	o = fleet.ScaleDownOptions{
		UtilizationThreshold:    share("scaleDownUtilizationThreshold", m.GetScaleDownUtilizationThreshold()),
		GPUUtilizationThreshold: share("scaleDownGpuUtilizationThreshold", m.GetScaleDownGpuUtilizationThreshold()),
		UnneededTime:            duration("scaleDownUnneededDuration", asked.UnneededTime, m.GetScaleDownUnneededDuration(), m.GetScaleDownUnneededTime()),
		UnreadyTime:             duration("scaleDownUnreadyDuration", asked.UnreadyTime, m.GetScaleDownUnreadyDuration(), m.GetScaleDownUnreadyTime()),
		IgnoreDaemonSets:        &ignore,
		MaxNodeProvisionTime:    provision,
	}
	return o, m.GetZeroOrMaxNodeScaling(), errors.Join(wrong...)
}
