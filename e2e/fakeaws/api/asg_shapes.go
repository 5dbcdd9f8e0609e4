package api

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// The structures of the Auto Scaling API, as far as the fake fills them.
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Types.html

type asgGroup struct {
	AutoScalingGroupName             string
	AutoScalingGroupARN              string
	LaunchConfigurationName          string         `xml:",omitempty"`
	LaunchTemplate                   *asgTemplate   `xml:",omitempty"`
	MixedInstancesPolicy             *asgMixed      `xml:",omitempty"`
	MinSize                          int            `xml:"MinSize"`
	MaxSize                          int            `xml:"MaxSize"`
	DesiredCapacity                  int            `xml:"DesiredCapacity"`
	DefaultCooldown                  int            `xml:"DefaultCooldown"`
	AvailabilityZones                []string       `xml:"AvailabilityZones>member"`
	HealthCheckType                  string         `xml:"HealthCheckType"`
	HealthCheckGracePeriod           int            `xml:"HealthCheckGracePeriod"`
	Instances                        []asgInstance  `xml:"Instances>member"`
	CreatedTime                      wire.Time      `xml:"CreatedTime"`
	SuspendedProcesses               []asgSuspended `xml:"SuspendedProcesses>member"`
	VPCZoneIdentifier                string
	Tags                             []asgTag `xml:"Tags>member"`
	TerminationPolicies              []string `xml:"TerminationPolicies>member"`
	NewInstancesProtectedFromScaleIn bool
	ServiceLinkedRoleARN             string
	CapacityRebalance                bool        `xml:"CapacityRebalance,omitempty"`
	MaxInstanceLifetime              int         `xml:"MaxInstanceLifetime,omitempty"`
	WarmPoolConfiguration            *asgPool    `xml:",omitempty"`
	WarmPoolSize                     *int        `xml:",omitempty"`
	InstanceLifecyclePolicy          *asgRetains `xml:",omitempty"`
	Status                           string      `xml:",omitempty"` // while it is being deleted
}

type asgTemplate struct {
	LaunchTemplateID   string `xml:"LaunchTemplateId,omitempty"`
	LaunchTemplateName string `xml:",omitempty"`
	Version            string `xml:",omitempty"`
}

type asgInstance struct {
	InstanceID              string       `xml:"InstanceId"`
	AutoScalingGroupName    string       `xml:",omitempty"` // in DescribeAutoScalingInstances only
	InstanceType            string       `xml:"InstanceType"`
	AvailabilityZone        string       `xml:"AvailabilityZone"`
	AvailabilityZoneID      string       `xml:"AvailabilityZoneId"`
	LifecycleState          string       `xml:"LifecycleState"`
	HealthStatus            string       `xml:"HealthStatus"`
	ImageID                 string       `xml:"ImageId"`
	LaunchConfigurationName string       `xml:",omitempty"`
	LaunchTemplate          *asgTemplate `xml:",omitempty"`
	ProtectedFromScaleIn    bool
	WeightedCapacity        string `xml:",omitempty"`
}

type asgTag struct {
	ResourceID        string `xml:"ResourceId"`
	ResourceType      string
	Key               string
	Value             string
	PropagateAtLaunch bool
}

type asgSuspended struct {
	ProcessName      string
	SuspensionReason string
}

type asgMixed struct {
	LaunchTemplate        asgMixedTemplate
	InstancesDistribution asgDistribution
}

type asgMixedTemplate struct {
	LaunchTemplateSpecification asgTemplate
	Overrides                   []asgOverride `xml:"Overrides>member"`
}

type asgOverride struct {
	InstanceType                string           `xml:",omitempty"`
	WeightedCapacity            string           `xml:",omitempty"`
	LaunchTemplateSpecification *asgTemplate     `xml:",omitempty"`
	InstanceRequirements        *asgRequirements `xml:",omitempty"`
}

type asgDistribution struct {
	OnDemandAllocationStrategy          string
	OnDemandBaseCapacity                int
	OnDemandPercentageAboveBaseCapacity int
	SpotAllocationStrategy              string
}

type asgPool struct {
	MinSize                  int
	MaxGroupPreparedCapacity *int `xml:",omitempty"`
	PoolState                string
	InstanceReusePolicy      *asgReuse `xml:",omitempty"`
}

type asgReuse struct{ ReuseOnScaleIn bool }

type asgRetains struct{ RetentionTriggers asgTriggers }

type asgTriggers struct{ TerminateHookAbandon string }

type asgActivity struct {
	ActivityID           string `xml:"ActivityId"`
	AutoScalingGroupName string
	AutoScalingGroupARN  string
	Description          string
	Cause                string
	StartTime            wire.Time
	EndTime              *wire.Time `xml:",omitempty"`
	StatusCode           string
	StatusMessage        string `xml:",omitempty"`
	Progress             int
	Details              string
}

type asgHook struct {
	LifecycleHookName     string
	AutoScalingGroupName  string
	LifecycleTransition   string
	NotificationTargetARN string `xml:",omitempty"`
	NotificationMetadata  string `xml:",omitempty"`
	RoleARN               string `xml:",omitempty"`
	HeartbeatTimeout      int
	GlobalTimeout         int
	DefaultResult         string
}

type asgConfiguration struct {
	LaunchConfigurationName string
	LaunchConfigurationARN  string
	ImageID                 string `xml:"ImageId"`
	InstanceType            string
	KernelID                string      `xml:"KernelId"`
	RamdiskID               string      `xml:"RamdiskId"`
	KeyName                 string      `xml:"KeyName"`
	UserData                string      // base64
	SpotPrice               string      `xml:",omitempty"`
	EbsOptimized            bool        `xml:"EbsOptimized"`
	CreatedTime             wire.Time   `xml:"CreatedTime"`
	BlockDeviceMappings     []asgDevice `xml:"BlockDeviceMappings>member"`
}

type asgDevice struct {
	DeviceName string
	Ebs        asgEBS
}

type asgEBS struct {
	VolumeSize          int
	VolumeType          string
	DeleteOnTermination bool
}

type asgRefresh struct {
	InstanceRefreshID    string `xml:"InstanceRefreshId"`
	AutoScalingGroupName string
	Status               string
	StatusReason         string `xml:",omitempty"`
	StartTime            wire.Time
	EndTime              *wire.Time `xml:",omitempty"`
	PercentageComplete   int
	InstancesToUpdate    int
	Strategy             string
	Preferences          asgPreferences
}

type asgPreferences struct {
	MinHealthyPercentage      int
	ScaleInProtectedInstances string
	SkipMatching              bool
}

// What every group of this fake has.
const (
	healthCheckType  = "EC2"
	healthCheckGrace = 300 // seconds
)

func groupShape(c *cloud.Cloud, g cloud.GroupStatus, withInstances bool) asgGroup {
	s := g.Spec
	shape := asgGroup{
		AutoScalingGroupName: s.Name, AutoScalingGroupARN: g.ARN, LaunchConfigurationName: s.LaunchConfiguration,
		MinSize: g.Min, MaxSize: g.Max, DesiredCapacity: g.Desired, DefaultCooldown: s.CooldownSeconds,
		AvailabilityZones: s.Zones, HealthCheckType: healthCheckType, HealthCheckGracePeriod: healthCheckGrace, CreatedTime: wire.Time{Time: g.Created},
		VPCZoneIdentifier: subnets(s.Zones), TerminationPolicies: s.TerminationPolicies, NewInstancesProtectedFromScaleIn: s.ProtectNewInstances,
		CapacityRebalance: s.CapacityRebalance, MaxInstanceLifetime: s.MaxInstanceLifetimeSec,
		ServiceLinkedRoleARN: "arn:aws:iam::" + c.Account() + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
	}
	if len(shape.TerminationPolicies) == 0 {
		shape.TerminationPolicies = []string{"Default"}
	}
	if g.Deleting {
		shape.Status = "Delete in progress"
	}
	if s.LaunchTemplate != nil {
		shape.LaunchTemplate = templateShape(c, *s.LaunchTemplate)
	}
	if s.MixedInstances != nil {
		shape.MixedInstancesPolicy = mixedShape(c, *s.MixedInstances)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Tags)) {
		shape.Tags = append(shape.Tags, asgTag{ResourceID: s.Name, ResourceType: "auto-scaling-group", Key: key, Value: s.Tags[key], PropagateAtLaunch: !slices.Contains(s.OwnTags, key)})
	}
	for _, p := range slices.Sorted(maps.Keys(g.Suspended)) {
		shape.SuspendedProcesses = append(shape.SuspendedProcesses, asgSuspended{ProcessName: p, SuspensionReason: g.Suspended[p]})
	}
	if s.WarmPool != nil {
		size := len(g.Warm)
		shape.WarmPoolConfiguration, shape.WarmPoolSize = poolShape(*s.WarmPool), &size
	}
	if s.RetainOnTerminateHookAbandon {
		shape.InstanceLifecyclePolicy = &asgRetains{RetentionTriggers: asgTriggers{TerminateHookAbandon: "retain"}}
	}
	if withInstances {
		for _, i := range g.Instances {
			shape.Instances = append(shape.Instances, instanceShape(i))
		}
	}
	return shape
}

func subnets(zones []string) string {
	text := ""
	for n, z := range zones {
		if n > 0 {
			text += ","
		}
		text += cloud.SubnetOf(z)
	}
	return text
}

// templateShape names a template by id and name, as AWS answers whatever of the two was given.
func templateShape(c *cloud.Cloud, ref cloud.TemplateRef) *asgTemplate {
	if t, err := c.Template(ref.ID, ref.Name); err == nil {
		ref.ID, ref.Name = t.ID, t.Name
	}
	return &asgTemplate{LaunchTemplateID: ref.ID, LaunchTemplateName: ref.Name, Version: ref.Version}
}

func mixedShape(c *cloud.Cloud, m cloud.MixedInstances) *asgMixed {
	percent := 100
	if m.OnDemandPercentAbove != nil {
		percent = *m.OnDemandPercentAbove
	}
	shape := &asgMixed{
		LaunchTemplate: asgMixedTemplate{LaunchTemplateSpecification: *templateShape(c, m.LaunchTemplate)},
		InstancesDistribution: asgDistribution{
			OnDemandAllocationStrategy: or(m.OnDemandAllocation, "prioritized"), OnDemandBaseCapacity: m.OnDemandBase,
			OnDemandPercentageAboveBaseCapacity: percent, SpotAllocationStrategy: or(m.SpotAllocation, "price-capacity-optimized"),
		},
	}
	for _, o := range m.Overrides {
		override := asgOverride{InstanceType: o.Type, InstanceRequirements: requirementsShape(o.Requirements)}
		if o.Weight > 0 {
			override.WeightedCapacity = fmt.Sprint(o.Weight)
		}
		if o.LaunchTemplate != nil {
			override.LaunchTemplateSpecification = templateShape(c, *o.LaunchTemplate)
		}
		shape.LaunchTemplate.Overrides = append(shape.LaunchTemplate.Overrides, override)
	}
	return shape
}

func or(s, missing string) string {
	if s == "" {
		return missing
	}
	return s
}

func poolShape(p cloud.WarmPool) *asgPool {
	shape := &asgPool{MinSize: p.MinSize, MaxGroupPreparedCapacity: p.MaxPrepared, PoolState: p.State}
	if p.ReuseOnScaleIn {
		shape.InstanceReusePolicy = &asgReuse{ReuseOnScaleIn: true}
	}
	return shape
}

func instanceShape(i cloud.Instance) asgInstance {
	shape := asgInstance{
		InstanceID: i.ID, InstanceType: i.Type, AvailabilityZone: i.Zone, AvailabilityZoneID: i.ZoneID, LifecycleState: string(i.LifecycleState),
		HealthStatus: i.Health, ImageID: i.Image, LaunchConfigurationName: i.LaunchConfiguration, ProtectedFromScaleIn: i.Protected,
	}
	if i.LaunchTemplateID != "" {
		shape.LaunchTemplate = &asgTemplate{LaunchTemplateID: i.LaunchTemplateID, LaunchTemplateName: i.LaunchTemplate, Version: fmt.Sprint(i.LaunchTemplateVersion)}
	}
	if i.Weight > 0 {
		shape.WeightedCapacity = fmt.Sprint(i.Weight)
	}
	return shape
}

func activityShape(a cloud.Activity) asgActivity {
	return asgActivity{
		ActivityID: a.ID, AutoScalingGroupName: a.Group, AutoScalingGroupARN: a.GroupARN, Description: a.Description, Cause: a.Cause,
		StartTime: wire.Time{Time: a.Start}, EndTime: wire.At(a.End), StatusCode: a.StatusCode, StatusMessage: a.StatusMessage,
		Progress: a.Progress, Details: a.Details,
	}
}

func hookShape(group string, h cloud.Hook) asgHook {
	return asgHook{
		LifecycleHookName: h.Name, AutoScalingGroupName: group, LifecycleTransition: h.Transition, NotificationTargetARN: h.Target,
		NotificationMetadata: h.Metadata, RoleARN: h.Role, HeartbeatTimeout: h.HeartbeatSeconds, GlobalTimeout: h.GlobalSeconds, DefaultResult: h.Default,
	}
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
