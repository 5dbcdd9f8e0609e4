package notice

import "time"

// Deed is what the agent does about a notice.
type Deed string

const (
	// Ignore: the notice is shown, and nothing is done.
	Ignore Deed = "ignore"
	// Cordon: no new pods, and those that are there stay.
	Cordon Deed = "cordon"
	// Drain: the pods leave.
	Drain Deed = "drain"
)

// LastChance is what becomes of pods that a budget still keeps when the deadline
// is near.
type LastChance string

const (
	// Leave them: they go with the instance.
	Leave LastChance = "leave"
	// Delete them past their budget, with what grace is left, so that they hear of
	// their end. It takes a right that the agent does not have by default.
	Delete LastChance = "delete"
)

// Response is how the agent answers one cause.
type Response struct {
	Do Deed
	// Lead is how long before the deadline a drain begins; 0 is at once, and so is
	// a notice without a deadline.
	Lead time.Duration
	// Permit: there is no hurry, so the drain waits, for a bounded time, until the
	// scaler permits it.
	Permit     bool
	LastChance LastChance
}

// Responses by cause. A cause that is missing is answered as in DefaultResponses.
type Responses map[Cause]Response

// maintenanceLead is how long before an event that the machine survives its drain
// begins.
const maintenanceLead = 30 * time.Minute

// DefaultResponses are those without flags. A degraded machine (stop, retirement)
// is left at once, one that comes back shortly before. A rebalance recommendation is only
// shown: it has no deadline, is never taken back, and may come for most of a group, and to
// close its nodes would launch others in their place.
func DefaultResponses() Responses {
	return Responses{
		SpotTerminate:      {Do: Drain, LastChance: Leave},
		SpotStop:           {Do: Drain, LastChance: Leave},
		SpotHibernate:      {Do: Drain, LastChance: Leave},
		Rebalance:          {Do: Ignore, Permit: true, LastChance: Leave},
		InstanceReboot:     {Do: Drain, Lead: maintenanceLead, Permit: true, LastChance: Leave},
		SystemReboot:       {Do: Drain, Lead: maintenanceLead, Permit: true, LastChance: Leave},
		SystemMaintenance:  {Do: Drain, Lead: maintenanceLead, Permit: true, LastChance: Leave},
		InstanceStop:       {Do: Drain, Permit: true, LastChance: Leave},
		InstanceRetirement: {Do: Drain, Permit: true, LastChance: Leave},
		ASGTerminate:       {Do: Drain, LastChance: Leave},
		ASGWarm:            {Do: Drain, LastChance: Leave},
		ASGStandby:         {Do: Cordon, LastChance: Leave},
		ASGDetach:          {Do: Ignore, LastChance: Leave},
		ScaleDown:          {Do: Drain, Permit: true, LastChance: Leave},
		Request:            {Do: Drain, LastChance: Leave},
	}
}

// To is the response to a notice. A request is a wish to drain now, whatever its
// kind, and also where the metadata announce the same: of the policy for its cause
// only the permit and the last chance count.
func (r Responses) To(n Notice) Response {
	response, ok := r[n.Cause]
	if !ok {
		response = DefaultResponses()[n.Cause]
	}
	if n.Source == FromRequest {
		response.Do, response.Lead = Drain, 0
	}
	return response
}
