package cloud

import "time"

// LifecycleState is where an instance stands in its group.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
type LifecycleState string

// Lifecycle states, those of the Auto Scaling API.
const (
	Pending                    LifecycleState = "Pending"
	PendingWait                LifecycleState = "Pending:Wait"
	PendingProceed             LifecycleState = "Pending:Proceed"
	Quarantined                LifecycleState = "Quarantined"
	InService                  LifecycleState = "InService"
	Terminating                LifecycleState = "Terminating"
	TerminatingWait            LifecycleState = "Terminating:Wait"
	TerminatingProceed         LifecycleState = "Terminating:Proceed"
	TerminatingRetained        LifecycleState = "Terminating:Retained"
	Terminated                 LifecycleState = "Terminated"
	Detaching                  LifecycleState = "Detaching"
	Detached                   LifecycleState = "Detached"
	EnteringStandby            LifecycleState = "EnteringStandby"
	Standby                    LifecycleState = "Standby"
	ReplacingRootVolume        LifecycleState = "ReplacingRootVolume"
	ReplacingRootVolumeWait    LifecycleState = "ReplacingRootVolume:Wait"
	ReplacingRootVolumeProceed LifecycleState = "ReplacingRootVolume:Proceed"
	RootVolumeReplaced         LifecycleState = "RootVolumeReplaced"
	WarmedPending              LifecycleState = "Warmed:Pending"
	WarmedPendingWait          LifecycleState = "Warmed:Pending:Wait"
	WarmedPendingProceed       LifecycleState = "Warmed:Pending:Proceed"
	WarmedPendingRetained      LifecycleState = "Warmed:Pending:Retained"
	WarmedTerminating          LifecycleState = "Warmed:Terminating"
	WarmedTerminatingWait      LifecycleState = "Warmed:Terminating:Wait"
	WarmedTerminatingProceed   LifecycleState = "Warmed:Terminating:Proceed"
	WarmedTerminatingRetained  LifecycleState = "Warmed:Terminating:Retained"
	WarmedTerminated           LifecycleState = "Warmed:Terminated"
	WarmedStopped              LifecycleState = "Warmed:Stopped"
	WarmedRunning              LifecycleState = "Warmed:Running"
	WarmedHibernated           LifecycleState = "Warmed:Hibernated"
)

// States are all lifecycle states, in the order of an instance's life.
var States = []LifecycleState{
	Pending, PendingWait, PendingProceed, Quarantined, InService,
	Terminating, TerminatingWait, TerminatingProceed, TerminatingRetained, Terminated,
	Detaching, Detached, EnteringStandby, Standby,
	ReplacingRootVolume, ReplacingRootVolumeWait, ReplacingRootVolumeProceed, RootVolumeReplaced,
	WarmedPending, WarmedPendingWait, WarmedPendingProceed, WarmedPendingRetained,
	WarmedTerminating, WarmedTerminatingWait, WarmedTerminatingProceed, WarmedTerminatingRetained, WarmedTerminated,
	WarmedStopped, WarmedRunning, WarmedHibernated,
}

// Warm tells the states of an instance in the warm pool.
func (s LifecycleState) Warm() bool {
	return len(s) > 7 && s[:7] == "Warmed:"
}

// Leaving tells the states of an instance on its way out of the group for good.
func (s LifecycleState) Leaving() bool {
	switch s {
	case Terminating, TerminatingWait, TerminatingProceed, TerminatingRetained, Terminated, Detaching, Detached,
		WarmedTerminating, WarmedTerminatingWait, WarmedTerminatingProceed, WarmedTerminatingRetained, WarmedTerminated:
		return true
	}
	return false
}

// Counts tells the states that count towards the desired capacity.
func (s LifecycleState) Counts() bool {
	return !s.Warm() && !s.Leaving() && s != Standby && s != EnteringStandby
}

// target is what the instance metadata shows as autoscaling/target-lifecycle-state: where the instance is going.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html
func (s LifecycleState) target(pool LifecycleState) string {
	switch s {
	case Terminating, TerminatingWait, TerminatingProceed, TerminatingRetained, Terminated:
		return "Terminated"
	case Detaching, Detached:
		return "Detached"
	case EnteringStandby, Standby:
		return "Standby"
	case WarmedPending, WarmedPendingWait, WarmedPendingProceed, WarmedPendingRetained:
		return string(pool)
	case WarmedTerminating, WarmedTerminatingWait, WarmedTerminatingProceed, WarmedTerminatingRetained, WarmedTerminated:
		return "Warmed:Terminated"
	case WarmedStopped, WarmedRunning, WarmedHibernated:
		return string(s)
	}
	return "InService"
}

// OSState tells how far the operating system of an instance is.
type OSState string

// States of an operating system. A node can exist while it is up.
const (
	OSOff     OSState = "off"
	OSBooting OSState = "booting"
	OSUp      OSState = "up"
)

// Instance is an instance as it was at one moment.
type Instance struct {
	ID             string         `json:"id"`
	Group          string         `json:"group,omitempty"` // "" once detached
	Zone           string         `json:"zone"`
	ZoneID         string         `json:"zoneID"`
	Subnet         string         `json:"subnet"`
	Type           string         `json:"type"`
	Image          string         `json:"image"`
	PrivateIP      string         `json:"privateIP"`
	PrivateDNSName string         `json:"privateDNSName"`
	LifecycleState LifecycleState `json:"lifecycleState"`
	// Health is Healthy or Unhealthy, as Auto Scaling sees it.
	Health string `json:"health"`
	// EC2State is pending, running, stopping, stopped, shutting-down or terminated.
	EC2State string  `json:"ec2State"`
	OS       OSState `json:"os"`
	// BootID is another one after each boot of the operating system.
	BootID     string    `json:"bootID,omitempty"`
	LaunchedAt time.Time `json:"launchedAt"`
	// IMDSAddr is the host:port of the instance's own metadata service.
	IMDSAddr string `json:"imdsAddr,omitempty"`

	LaunchTemplate        string `json:"launchTemplate,omitempty"`
	LaunchTemplateID      string `json:"launchTemplateID,omitempty"`
	LaunchTemplateVersion int    `json:"launchTemplateVersion,omitempty"`
	LaunchConfiguration   string `json:"launchConfiguration,omitempty"`

	Protected bool              `json:"protected,omitempty"`
	Spot      bool              `json:"spot,omitempty"`
	Weight    int               `json:"weight,omitempty"` // 0 where the group has no weights
	Tags      map[string]string `json:"tags,omitempty"`
	// MemoryMiB is what its operating system reports, less than the nominal size of the type.
	MemoryMiB int `json:"memoryMiB"`
	// Waiting are the lifecycle actions under way.
	Waiting []Action `json:"waiting,omitempty"`
	// Gone is set in the last snapshot: the instance is terminated or detached.
	Gone bool `json:"gone,omitempty"`
}

// ProviderID is the spec.providerID of the instance's Node.
func (i Instance) ProviderID() string { return "aws:///" + i.Zone + "/" + i.ID }

// Action is a lifecycle action: one hook that an instance waits for.
type Action struct {
	Hook  string `json:"hook"`
	Token string `json:"token"`
	// Until is when the heartbeat times out, End when the global time-out does.
	Until time.Time `json:"until"`
	End   time.Time `json:"end"`
	Beats int       `json:"beats,omitempty"` // heartbeats recorded
	// Since is when the instance began to wait, Beat when the last heartbeat was
	// recorded, or the same.
	Since time.Time `json:"since"`
	Beat  time.Time `json:"beat"`
}
