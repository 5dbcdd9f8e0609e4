package notice

import (
	"maps"
	"slices"

	"windlass.dev/windlass/pkg/contract"
)

// Cause says exactly what is announced. How the agent responds goes by the
// cause; its Kind, which is coarser, is what the taint and the report show. The
// id of a notice begins with its cause and a colon.
type Cause string

const (
	// The three actions of a spot interruption. A terminated instance never comes
	// back; one that stops or hibernates may, with its Node and what we wrote there.
	SpotTerminate Cause = "spot-terminate"
	SpotStop      Cause = "spot-stop"
	SpotHibernate Cause = "spot-hibernate"

	// Rebalance is a rebalance recommendation. It has no deadline and never goes
	// away while the instance lives.
	Rebalance Cause = "rebalance"

	// The codes of scheduled events.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html
	InstanceReboot     Cause = "instance-reboot"
	SystemReboot       Cause = "system-reboot"
	SystemMaintenance  Cause = "system-maintenance"
	InstanceStop       Cause = "instance-stop"
	InstanceRetirement Cause = "instance-retirement"

	// The target states of Auto Scaling that are not InService. ASGWarm leads into
	// the group's warm pool, from where the instance may come back.
	ASGTerminate Cause = "asg-terminate"
	ASGWarm      Cause = "asg-warm"
	ASGStandby   Cause = "asg-standby"
	ASGDetach    Cause = "asg-detach"

	// ScaleDown and Request are drain requests, by the scaler and by anybody else.
	ScaleDown Cause = "scale-down"
	Request   Cause = "request"
)

// kinds of the causes; it lists all of them.
var kinds = map[Cause]contract.Kind{
	SpotTerminate:      contract.KindSpot,
	SpotStop:           contract.KindSpot,
	SpotHibernate:      contract.KindSpot,
	Rebalance:          contract.KindRebalance,
	InstanceReboot:     contract.KindMaintenance,
	SystemReboot:       contract.KindMaintenance,
	SystemMaintenance:  contract.KindMaintenance,
	InstanceStop:       contract.KindMaintenance,
	InstanceRetirement: contract.KindMaintenance,
	ASGTerminate:       contract.KindASG,
	ASGWarm:            contract.KindASG,
	ASGStandby:         contract.KindASG,
	ASGDetach:          contract.KindASG,
	ScaleDown:          contract.KindScaleDown,
	Request:            contract.KindRequest,
}

// Causes lists all of them, in order of their spelling.
func Causes() []Cause { return slices.Sorted(maps.Keys(kinds)) }

// Kind of the cause; empty for an unknown one.
func (c Cause) Kind() contract.Kind { return kinds[c] }
