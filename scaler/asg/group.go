package asg

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg/template"
)

// known is what we know of one group beside its latest description.
type known struct {
	raw *astypes.AutoScalingGroup
	// asked is when that was asked for.
	asked time.Time

	blueprint template.Blueprint
	// drawn identifies what the blueprint was made of; redrawAt is when to make
	// it again although that is the same.
	drawn    string
	redrawAt time.Time

	hooks      []fleet.Hook
	hooking    fact
	warm       []astypes.Instance
	pooling    fact
	refresh    *fleet.Refresh
	refreshing fact

	// pool identifies all by which a change of the warm pool shows, and pooled is when its instances were last read.
	pool      string
	pooled    time.Time
	refreshAt time.Time // when to read again a refresh that is under way

	failures      []fleet.Failure
	activityFault string
	activitiesAt  time.Time // when to read activities next, if there is cause
	told          log
	// replacement is what the activities report of instances that are being replaced;
	// nil if nothing.
	replacement *fleet.Replacement
	// leaving is since when instances terminate; exact are those of them for which an
	// activity had the time.
	leaving map[string]time.Time
	// pending are the instances that are not in service yet, and their states.
	pending map[string]string
	exact   map[string]bool
	// thrownAway: one that was pending is gone, and no activity was read since.
	thrownAway bool

	// moving is since when something is launching or terminating; zero while nothing
	// is. desired is the figure of then.
	moving  time.Time
	desired int
	// surprised is when something was last seen to move that no call of ours has begun.
	surprised time.Time
	// named has the bounds of --nodes; nil where the group was discovered.
	named *Named
}

// instances as AWS lists them, in the order of their ids. One that has just left the warm pool may be in an
// older description of that, too.
func (k *known) instances() []fleet.Instance {
	all := slices.Concat(k.raw.Instances, k.warm)
	out := make([]fleet.Instance, 0, len(all))
	for _, i := range all {
		instance := newInstance(i)
		instance.TerminatingSince, instance.TerminatingExact = k.leaving[instance.ID], k.exact[instance.ID]
		if k.raw.MixedInstancesPolicy != nil || k.blueprint.Spot != nil {
			instance.PricePerHour = k.blueprint.PriceOf(instance.Zone, instance.Type)
		}
		out = append(out, instance)
	}
	slices.SortStableFunc(out, func(a, b fleet.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b fleet.Instance) bool { return a.ID == b.ID })
}

func newInstance(i astypes.Instance) fleet.Instance {
	instance := fleet.Instance{
		ID:        aws.ToString(i.InstanceId),
		Zone:      aws.ToString(i.AvailabilityZone),
		Type:      aws.ToString(i.InstanceType),
		State:     string(i.LifecycleState),
		Unhealthy: aws.ToString(i.HealthStatus) == "Unhealthy",
		Protected: aws.ToBool(i.ProtectedFromScaleIn),
	}
	if t := i.LaunchTemplate; t != nil {
		instance.Template = template.VersionName(aws.ToString(t.LaunchTemplateId), aws.ToString(t.Version))
	}
	return instance
}

// group draws all together.
func (k *known) group(stale string) fleet.Group {
	raw := k.raw
	spot, onDemand := k.blueprint.Purchases()
	mode := modeOf(raw)
	g := fleet.Group{
		Name:         aws.ToString(raw.AutoScalingGroupName),
		ARN:          aws.ToString(raw.AutoScalingGroupARN),
		Owner:        ownerOf(raw),
		Observed:     mode.observed,
		Min:          int(aws.ToInt32(raw.MinSize)),
		Max:          int(aws.ToInt32(raw.MaxSize)),
		Desired:      int(aws.ToInt32(raw.DesiredCapacity)),
		Zones:        k.blueprint.Zones,
		Instances:    k.instances(),
		Hooks:        k.hooks,
		HooksUnknown: !k.hooking.read && k.hooks == nil, // those of before are better than none
		Template:     k.blueprint.Version(),
		Spot:         spot && !onDemand,
		Both:         spot && onDemand,
		Mixed:        raw.MixedInstancesPolicy != nil,
		Uncountable:  k.blueprint.Uncountable,
		Synchronous:  k.synchronous(),
		WarmPool:     newWarmPool(raw.WarmPoolConfiguration),
		Refresh:      k.refresh,
		Replacement:  k.replacement,
		Failures:     k.failures,
		ScaleDown:    k.blueprint.ScaleDown,
		Headroom:     k.blueprint.Headroom,
		Faults:       slices.Clone(k.blueprint.Faults),
	}
	if g.HooksUnknown {
		g.HooksFault = k.hooking.fault
	}
	for _, p := range raw.SuspendedProcesses {
		g.Suspended = append(g.Suspended, aws.ToString(p.ProcessName))
	}
	slices.Sort(g.Suspended)
	if k.named != nil {
		g.Min, g.Max, g.Faults = within(g.Min, g.Max, *k.named, g.Faults)
	}
	if status := aws.ToString(raw.Status); status != "" {
		g.Faults = append(g.Faults, fmt.Sprintf("Auto Scaling says of the group: %s", status))
	}
	for _, fault := range []string{mode.fault, k.hooking.fault, k.pooling.fault, k.refreshing.fault, k.activityFault, stale} {
		if fault != "" {
			g.Faults = append(g.Faults, fault)
		}
	}
	return g
}

// ownerOf is the cluster that has claimed the group; empty without one.
func ownerOf(raw *astypes.AutoScalingGroup) types.UID {
	for _, tag := range raw.Tags {
		if aws.ToString(tag.Key) == contract.TagOwner {
			return types.UID(aws.ToString(tag.Value))
		}
	}
	return ""
}

// mode is what a group's tag contract.TagMode says. Somebody who misspells it meant to hold us back.
type mode struct {
	observed bool
	fault    string
}

func modeOf(raw *astypes.AutoScalingGroup) mode {
	for _, tag := range raw.Tags {
		if aws.ToString(tag.Key) != contract.TagMode {
			continue
		}
		switch value := aws.ToString(tag.Value); value {
		case contract.ModeAct:
		case contract.ModeObserve:
			return mode{observed: true}
		default:
			return mode{true, fmt.Sprintf("tag %s=%s says nothing: want %s or %s; until then the group is observed", contract.TagMode, value, contract.ModeObserve, contract.ModeAct)}
		}
	}
	return mode{}
}

// synchronous reports whether LaunchInstances works for the group: it takes a launch
// template, one way of buying, and no warm pool.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html
func (k *known) synchronous() bool {
	spot, onDemand := k.blueprint.Purchases()
	return k.blueprint.Version() != "" && spot != onDemand && k.raw.WarmPoolConfiguration == nil
}

func newWarmPool(c *astypes.WarmPoolConfiguration) *fleet.WarmPool {
	if c == nil {
		return nil
	}
	state := cmp.Or(c.PoolState, astypes.WarmPoolStateStopped)
	return &fleet.WarmPool{State: string(state), Deleting: c.Status == astypes.WarmPoolStatusPendingDelete}
}

// within applies the bounds of --nodes inside the group's own. AWS refuses what
// is outside of those, whatever the flag asks for.
func within(least, most int, flag Named, faults []string) (lower, upper int, more []string) {
	clamp := func(word string, n int) int {
		holds := min(max(n, least), most)
		if holds != n {
			faults = append(faults, fmt.Sprintf("%s says %s %d, but the Auto Scaling group itself has %d..%d: %d is what holds", FlagNodes, word, n, least, most, holds))
		}
		return holds
	}
	lower, upper = clamp("min", flag.Min), clamp("max", flag.Max)
	return lower, upper, faults
}

// definition identifies everything that a blueprint is made of.
func definition(g *astypes.AutoScalingGroup) string {
	return identify(g.LaunchTemplate, g.LaunchConfigurationName, g.MixedInstancesPolicy, g.AvailabilityZones, g.Tags)
}

// identify is a text of parts of a group's description: another text where they have changed.
func identify(parts ...any) string {
	out, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("the description of an Auto Scaling group does not encode: %v", err)) // strings and numbers always do
	}
	return string(out)
}

func newHook(h astypes.LifecycleHook) fleet.Hook {
	return fleet.Hook{
		Name:       aws.ToString(h.LifecycleHookName),
		Transition: aws.ToString(h.LifecycleTransition),
		Heartbeat:  seconds(h.HeartbeatTimeout),
		Global:     seconds(h.GlobalTimeout),
		Default:    aws.ToString(h.DefaultResult),
	}
}

func seconds(n *int32) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(aws.ToInt32(n)) * time.Second}
}
