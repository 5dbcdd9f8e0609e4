package cloud

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
)

// Images that exist in every cloud.
const (
	DefaultImageX86 = "ami-0a1b2c3d4e5f60001"
	DefaultImageARM = "ami-0a1b2c3d4e5f60002"
)

// Processes of a group that can be suspended.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
var Processes = []string{
	"Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck", "InstanceRefresh", "ReplaceUnhealthy", "ScheduledActions",
}

// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
var terminationPolicies = []string{
	"Default", "AllocationStrategy", "OldestLaunchTemplate", "OldestLaunchConfiguration", "ClosestToNextInstanceHour", "NewestInstance", "OldestInstance",
}

const (
	defaultHeartbeat = 3600
	maxGlobal        = 48 * 3600
	heartbeatsAtMost = 100
	defaultCooldown  = 300
)

func withDefaults(s Spec) Spec {
	s.Region = cmp.Or(s.Region, "eu-west-1")
	s.Account = cmp.Or(s.Account, "123456789012")
	s.TimeScale = cmp.Or(s.TimeScale, 1)
	s.MemoryOverhead = cmp.Or(s.MemoryOverhead, catalog.DefaultMemoryOverhead)
	s.Timing = timingWithDefaults(s.Timing)
	s.Images = append([]Image{
		{ID: DefaultImageX86, Name: "amazon-eks-node-al2023-x86_64-standard-1.36-v20260801", Arch: string(catalog.X86)},
		{ID: DefaultImageARM, Name: "amazon-eks-node-al2023-arm64-standard-1.36-v20260801", Arch: string(catalog.ARM)},
	}, s.Images...)
	for i := range s.Images {
		s.Images[i].Arch = cmp.Or(s.Images[i].Arch, string(catalog.X86))
		s.Images[i].Name = cmp.Or(s.Images[i].Name, s.Images[i].ID)
		s.Images[i].Volume = completeVolume(s.Images[i].Volume)
	}
	s.LaunchTemplates = slices.Clone(s.LaunchTemplates)
	for i := range s.LaunchTemplates {
		s.LaunchTemplates[i] = completeTemplate(s.LaunchTemplates[i])
	}
	return s
}

func timingWithDefaults(t Timing) Timing {
	set := func(d *Duration, real, quick time.Duration) {
		switch {
		case *d != 0:
		case t.Quick:
			*d = Duration(quick)
		default:
			*d = Duration(real)
		}
	}
	set(&t.Reconcile, time.Second, 50*time.Millisecond)
	set(&t.Pending, 16500*time.Millisecond, 200*time.Millisecond)
	set(&t.Boot, 30*time.Second, time.Second)
	set(&t.WarmStart, 15*time.Second, 500*time.Millisecond)
	set(&t.Terminating, 2*time.Second, 100*time.Millisecond)
	set(&t.Shutdown, 30*time.Second, 300*time.Millisecond)
	set(&t.HealthCheck, time.Minute, 200*time.Millisecond)
	set(&t.LaunchRetry, time.Minute, 5*time.Second)
	set(&t.LaunchInstances, 2500*time.Millisecond, 0)
	set(&t.Lag, time.Second, 0)
	set(&t.SpotNotice, 2*time.Minute, 2*time.Minute)
	set(&t.Linger, time.Hour, time.Hour)
	return t
}

func completeVolume(v Volume) Volume {
	v.Device = cmp.Or(v.Device, "/dev/xvda")
	v.Type = cmp.Or(v.Type, "gp3")
	v.SizeGiB = cmp.Or(v.SizeGiB, 20)
	return v
}

func completeTemplate(t LaunchTemplate) LaunchTemplate {
	t.ID = cmp.Or(t.ID, "lt-0"+digest("template" + t.Name)[:16])
	t.Default = cmp.Or(t.Default, 1)
	t.Versions = slices.Clone(t.Versions)
	for i := range t.Versions {
		v := &t.Versions[i]
		v.HopLimit = cmp.Or(v.HopLimit, 2)
		v.Volumes = slices.Clone(v.Volumes)
		for j := range v.Volumes {
			v.Volumes[j] = completeVolume(v.Volumes[j])
		}
	}
	return t
}

// completeGroup fills in what the spec leaves out, and makes the launch template that Type and Types stand for.
func completeGroup(g Group, region string) (Group, *LaunchTemplate) {
	if len(g.Zones) == 0 {
		g.Zones = []string{region + "a"}
	}
	if g.Desired == nil {
		g.Desired = &g.Min
	}
	g.CooldownSeconds = cmp.Or(g.CooldownSeconds, defaultCooldown)
	g.Hooks = slices.Clone(g.Hooks)
	for i := range g.Hooks {
		g.Hooks[i] = completeHook(g.Hooks[i])
	}
	if g.WarmPool != nil {
		pool := *g.WarmPool
		pool.State = cmp.Or(pool.State, "Stopped")
		g.WarmPool = &pool
	}
	template := ownTemplate(&g)
	g.Tags = groupTags(g)
	return g, template
}

// ownTemplate turns Type or Types into a launch template named like the group.
func ownTemplate(g *Group) *LaunchTemplate {
	if g.Type == "" && len(g.Types) == 0 {
		return nil
	}
	v := TemplateVersion{Type: cmp.Or(g.Type, first(g.Types)), UserData: g.UserData, Spot: g.Spot && len(g.Types) == 0, Image: g.Image}
	if g.VolumeGiB > 0 {
		v.Volumes = []Volume{{SizeGiB: g.VolumeGiB}}
	}
	t := completeTemplate(LaunchTemplate{Name: g.Name, Versions: []TemplateVersion{v}})
	ref := TemplateRef{Name: t.Name, ID: t.ID, Version: "$Latest"}
	if len(g.Types) == 0 {
		g.LaunchTemplate = &ref
		return &t
	}
	mixed := &MixedInstances{LaunchTemplate: ref}
	if g.Spot {
		none := 0
		mixed.OnDemandPercentAbove = &none
	}
	for _, name := range g.Types {
		mixed.Overrides = append(mixed.Overrides, Override{Type: name})
	}
	g.MixedInstances = mixed
	return &t
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func completeHook(h Hook) Hook {
	switch h.Transition {
	case "launch":
		h.Transition = OnLaunch
	case "terminate":
		h.Transition = OnTerminate
	}
	h.HeartbeatSeconds = cmp.Or(h.HeartbeatSeconds, defaultHeartbeat)
	h.GlobalSeconds = cmp.Or(h.GlobalSeconds, min(maxGlobal, heartbeatsAtMost*h.HeartbeatSeconds))
	h.Default = cmp.Or(h.Default, "ABANDON")
	return h
}

func groupTags(g Group) map[string]string {
	tags := map[string]string{}
	for k, v := range g.Tags {
		tags[k] = v
	}
	if g.EKS != nil {
		tags["eks:cluster-name"] = g.EKS.Cluster
		tags["eks:nodegroup-name"] = g.EKS.Name
	}
	return tags
}

func check(s Spec) error {
	if s.TimeScale < 0 || s.MemoryOverhead < 0 || s.MemoryOverhead >= 1 {
		return fmt.Errorf("timeScale %v and memoryOverhead %v: want a positive factor, and a share below 1", s.TimeScale, s.MemoryOverhead)
	}
	for _, t := range s.LaunchTemplates {
		if len(t.Versions) == 0 || t.Default > len(t.Versions) {
			return fmt.Errorf("launch template %q: default version %d of %d", t.Name, t.Default, len(t.Versions))
		}
		if !IsTemplateID(t.ID) {
			return fmt.Errorf("launch template %q: id %q: want lt- and 17 hexadecimal digits, or none, which makes one", t.Name, t.ID)
		}
	}
	for _, lc := range s.LaunchConfigurations {
		if _, ok := catalog.Lookup(lc.Type); !ok {
			return fmt.Errorf("launch configuration %q: unknown instance type %q", lc.Name, lc.Type)
		}
	}
	return nil
}

func (c *Cloud) checkGroup(g Group) error {
	switch {
	case g.Name == "" || g.Min < 0:
		return fmt.Errorf("name %q must not be empty, nor min size %d below 0", g.Name, g.Min)
	case g.Min > g.Max:
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", g.Max, g.Min)
	case *g.Desired < g.Min || *g.Desired > g.Max:
		return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", *g.Desired, g.Min, g.Max)
	}
	for _, z := range g.Zones {
		if !strings.HasPrefix(z, c.spec.Region) || len(z) != len(c.spec.Region)+1 {
			return fmt.Errorf("zone %q is not one of region %s", z, c.spec.Region)
		}
	}
	for _, h := range g.Hooks {
		if h.Name == "" || (h.Transition != OnLaunch && h.Transition != OnTerminate) || (h.Default != "CONTINUE" && h.Default != "ABANDON") {
			return fmt.Errorf("hook %q: transition %q, default result %q", h.Name, h.Transition, h.Default)
		}
	}
	for _, p := range g.TerminationPolicies {
		if !slices.Contains(terminationPolicies, p) {
			return invalid("The termination policy '%s' is not supported, only %v", p, terminationPolicies)
		}
	}
	for _, p := range g.Suspended {
		if !slices.Contains(Processes, p) {
			return fmt.Errorf("process %q cannot be suspended, only %v", p, Processes)
		}
	}
	if g.WarmPool != nil && !slices.Contains([]string{"Stopped", "Running", "Hibernated"}, g.WarmPool.State) {
		return fmt.Errorf("warm pool state %q", g.WarmPool.State)
	}
	if _, err := c.sourceOf(g); err != nil {
		return err
	}
	return nil
}
