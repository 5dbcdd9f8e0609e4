package asg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/asg/template"
)

// bed is a fake AWS with the SDK's own clients in front of it, reached by the
// standard environment.
type bed struct {
	*fakeaws.Server
	account *asg.Account

	mu    sync.Mutex
	codes map[string]int // "operation code" → calls, as recorded
}

var timing = fakeaws.Timing{
	Quick:     true,
	Reconcile: fakeaws.Seconds(.002), Pending: fakeaws.Seconds(.005), Boot: fakeaws.Seconds(.01),
	Terminating: fakeaws.Seconds(.005), Shutdown: fakeaws.Seconds(.005), LaunchRetry: fakeaws.Seconds(.05),
}

func start(t *testing.T, spec fakeaws.Spec) *bed {
	t.Helper()
	if spec.Timing == (fakeaws.Timing{}) {
		spec.Timing = timing
	}
	s, err := fakeaws.Start(fakeaws.Config{Spec: spec, NoIMDS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	environment(t, s.URL())
	b := &bed{Server: s, codes: map[string]int{}}
	b.account, err = asg.Dial(t.Context(), func(c asg.Call) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.codes[c.Operation+" "+c.Code]++
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func environment(t *testing.T, url string) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
}

var assume = template.Assumptions{MemoryOverhead: 0.075, Prices: prices.Shipped(), SpotFactor: 0.4}

func (b *bed) reader(t *testing.T, nodes, discovery []string) *asg.Reader {
	t.Helper()
	return b.readerThatTells(t, nodes, discovery, nil)
}

func (b *bed) readerThatTells(t *testing.T, nodes, discovery []string, changed func(expected bool)) *asg.Reader {
	t.Helper()
	selection, err := asg.ParseSelection(nodes, discovery)
	if err != nil {
		t.Fatal(err)
	}
	return asg.NewReader(b.account, selection, assume, slog.New(slog.NewTextHandler(io.Discard, nil)), changed)
}

func read(t *testing.T, r *asg.Reader) map[string]fleet.Group {
	t.Helper()
	if err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return byName(r)
}

func byName(r *asg.Reader) map[string]fleet.Group {
	groups, _, _ := r.Groups(nil)
	out := map[string]fleet.Group{}
	for _, g := range groups {
		out[g.Name] = g
	}
	return out
}

// settled waits until a group has n instances in service and no other.
func (b *bed) settled(t *testing.T, group string, n int) []fakeaws.Instance {
	t.Helper()
	var instances []fakeaws.Instance
	b.until(t, fmt.Sprintf("%d instances of %s in service", n, group), func() bool {
		status, err := b.Group(group)
		if err != nil {
			t.Fatal(err)
		}
		instances = status.Instances
		waits := func(i fakeaws.Instance) bool { return i.LifecycleState != fakeaws.InService }
		return len(instances) == n && !slices.ContainsFunc(instances, waits)
	})
	return instances
}

// until lets the cloud do what it still has to do, one thing after another, until
// a condition holds: at other moments nothing in it changes by itself.
func (b *bed) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		next, more := b.nextMove(t) // asked first: what happens meanwhile is not missed
		if holds() {
			return
		}
		if !more {
			t.Fatalf("never: %s: nothing happens any more", what)
		}
		if err := b.Sleep(ctx, time.Until(next)); err != nil {
			t.Fatalf("never: %s: %v", what, err)
		}
	}
}

// nextMove is when the cloud does something next, if it ever does.
func (b *bed) nextMove(t *testing.T) (at time.Time, ever bool) {
	t.Helper()
	if err := b.With(func(c *cloud.Cloud, _ time.Time) error { at, ever = c.Next(); return nil }); err != nil {
		t.Fatal(err)
	}
	return at, ever
}

func desired(n int) *int { return &n }

func enabled() map[string]string { return map[string]string{"k8s.io/cluster-autoscaler/enabled": ""} }

const discoverEnabled = "asg:tag=k8s.io/cluster-autoscaler/enabled"

// One paged call finds all groups that carry the tags; named groups have the
// flag's bounds.
func TestDiscovery(t *testing.T) {
	var spec fakeaws.Spec
	for i := range 120 {
		spec.Groups = append(spec.Groups, fakeaws.Group{Name: "g" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Max: 5, Type: "m5.large", Tags: enabled()})
	}
	spec.Groups = append(spec.Groups,
		fakeaws.Group{Name: "other", Max: 5, Type: "m5.large"},
		fakeaws.Group{Name: "named", Min: 0, Max: 9, Type: "m5.large"})
	b := start(t, spec)
	groups := read(t, b.reader(t, []string{"0:3:named", "1:2:ghost"}, []string{discoverEnabled}))
	if len(groups) != 122 {
		t.Fatalf("%d groups", len(groups))
	}
	if _, ok := groups["other"]; ok {
		t.Error("a group without the tag was discovered")
	}
	if g := groups["named"]; g.Min != 0 || g.Max != 3 || len(g.Faults) != 0 {
		t.Errorf("named: %d..%d, faults %q", g.Min, g.Max, g.Faults)
	}
	if g := groups["ghost"]; len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "no Auto Scaling group ghost in eu-west-1") {
		t.Errorf("ghost: faults %q", g.Faults)
	}
	if n := len(b.Calls(fakeaws.Operation("DescribeAutoScalingGroups"))); n != 3 {
		t.Errorf("%d calls describe 122 groups, want 2 pages and 1 of names", n)
	}
}

// A node template states what a new node will report, zone by zone, before there is one.
func TestShape(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{
		Name: "web", Max: 5, Type: "m5.large", VolumeGiB: 50, Zones: []string{"eu-west-1b", "eu-west-1a"},
		Tags: map[string]string{
			contract.TagTemplateLabel + "team":                   "blue",
			contract.TagTemplateTaint + "dedicated":              "web:NoSchedule",
			contract.TagTemplateResource + "example.com/dongles": "2",
			contract.TagTemplateLabel + "not a label":            "x",
		},
	}}})
	r := b.reader(t, []string{"0:5:web"}, nil)
	g := read(t, r)["web"]
	if len(g.NodeTemplates) != 2 || g.NodeTemplates[0].Zone != "eu-west-1a" || g.NodeTemplates[1].Zone != "eu-west-1b" {
		t.Fatalf("shapes %+v", g.NodeTemplates)
	}
	shape := g.NodeTemplates[1]
	for name, want := range map[corev1.ResourceName]string{
		"cpu": "1930m", "pods": "29", "example.com/dongles": "2", "memory": "6903Mi", "ephemeral-storage": "44Gi",
	} {
		got, wanted := shape.Allocatable[name], resource.MustParse(want)
		if name == "memory" {
			got.Set(got.Value() >> 20 << 20) // whole MiB will do
		}
		if got.Cmp(wanted) != 0 {
			t.Errorf("allocatable %s: %s, want %s", name, got.String(), want)
		}
	}
	for name, want := range map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m5.large",
		"topology.kubernetes.io/zone": "eu-west-1b", "topology.kubernetes.io/region": "eu-west-1", "team": "blue",
	} {
		if got := shape.Labels[name]; got != want {
			t.Errorf("label %s=%s, want %s", name, got, want)
		}
	}
	if _, ok := shape.Labels["kubernetes.io/hostname"]; ok {
		t.Error("the shape has a host's name")
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}}, shape.Taints); diff != "" {
		t.Error(diff)
	}
	if len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "label/not a label") {
		t.Errorf("faults %q do not name the malformed tag", g.Faults)
	}

	// What was seen of a type is better than what is on paper.
	seen := resource.MustParse("7800Mi")
	groups, _, _ := r.Groups(map[string]resource.Quantity{"m5.large": seen})
	if got := groups[0].NodeTemplates[0].Capacity[corev1.ResourceMemory]; got.Cmp(seen) != 0 {
		t.Errorf("memory %s, seen were %s", got.String(), seen.String())
	}
}

func ptr[T any](v T) *T { return &v }

// The upcoming node reports what its node template said, but for the memory, of which the
// template promises no more.
func TestShapeAgreesWithTheCatalog(t *testing.T) {
	for _, name := range []string{"m5.large", "c5.4xlarge", "r6g.2xlarge", "t3.medium", "g4dn.xlarge"} {
		figures, ok := fakeaws.LookupType(name)
		if !ok {
			t.Fatalf("the catalog does not know %s", name)
		}
		b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "g", Max: 1, Type: name}}})
		g := read(t, b.reader(t, []string{"0:1:g"}, nil))["g"]
		if len(g.NodeTemplates) != 1 {
			t.Fatalf("%s: shapes %v, faults %q", name, g.NodeTemplates, g.Faults)
		}
		capacity := g.NodeTemplates[0].Capacity
		if got := capacity.Cpu().Value(); got != int64(figures.VCPUs) {
			t.Errorf("%s: %d cpus, want %d", name, got, figures.VCPUs)
		}
		if got, most := capacity.Memory().Value()>>20, int64(figures.MemoryMiB); got >= most || got < most*9/10 {
			t.Errorf("%s: %d MiB of %d", name, got, most)
		}
	}
}

// Where several types may come the node template is the least of each resource.
func TestMixedInstances(t *testing.T) {
	b := start(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{
			{Name: "lt", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}},
			{Name: "lt-arm", Versions: []fakeaws.TemplateVersion{{Image: "ami-arm"}}},
		},
		Images: []fakeaws.Image{{ID: "ami-arm", Arch: "arm64"}},
		Groups: []fakeaws.Group{
			{Name: "mixed", Max: 5, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "lt", Version: "$Latest"},
				Overrides:      []fakeaws.Override{{Type: "c5.xlarge"}, {Type: "m5.large"}},
			}},
			{Name: "weighted", Max: 5, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "lt"},
				Overrides:      []fakeaws.Override{{Type: "c5.xlarge", Weight: 2}, {Type: "m5.large", Weight: 1}},
			}},
			{Name: "byRequirements", Max: 5, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "lt"},
				Overrides: []fakeaws.Override{{Requirements: &fakeaws.Requirements{
					VCPUs: fakeaws.Range{Min: ptr(2.0), Max: ptr(4.0)}, MemoryMiB: fakeaws.Range{Min: ptr(8192.0)}, AllowedTypes: []string{"m5.*"}}}},
			}},
			{Name: "byImage", Max: 5, MixedInstances: &fakeaws.MixedInstances{
				LaunchTemplate: fakeaws.TemplateRef{Name: "lt-arm"},
				Overrides:      []fakeaws.Override{{Requirements: &fakeaws.Requirements{VCPUs: fakeaws.Range{Min: ptr(2.0), Max: ptr(4.0)}}}},
			}},
		},
	})
	groups := read(t, b.reader(t, []string{"0:5:mixed", "0:5:weighted", "0:5:byRequirements", "0:5:byImage"}, nil))
	mixed := groups["mixed"]
	if len(mixed.NodeTemplates) != 1 {
		t.Fatalf("shapes %v, faults %q", mixed.NodeTemplates, mixed.Faults)
	}
	if got := mixed.NodeTemplates[0].Capacity; got.Cpu().Value() != 2 || got.Memory().Value() > 8<<30 {
		t.Errorf("capacity %v", got)
	}
	if got := mixed.NodeTemplates[0].Largest; got.Cpu().Value() != 4 || got.Memory().Value() < 7<<30 {
		t.Errorf("the largest that may come is %v, want the cores of one type and the memory of the other", got)
	}
	if _, ok := mixed.NodeTemplates[0].Labels["node.kubernetes.io/instance-type"]; ok || mixed.NodeTemplates[0].InstanceType != "" {
		t.Error("one of several types is promised")
	}
	if g := groups["weighted"]; len(g.NodeTemplates) != 0 || !g.Uncountable || len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "weight 2") {
		t.Errorf("weighted: shapes %v, uncountable %v, faults %q", g.NodeTemplates, g.Uncountable, g.Faults)
	}
	if g := groups["byRequirements"]; len(g.NodeTemplates) != 1 || g.NodeTemplates[0].Capacity.Cpu().Value() != 2 {
		t.Errorf("by requirements: shapes %v, faults %q", g.NodeTemplates, g.Faults)
	}
	if g := groups["byImage"]; len(g.NodeTemplates) != 1 || g.NodeTemplates[0].Labels[corev1.LabelArchStable] != "arm64" {
		t.Errorf("by requirements, with an image for arm64: shapes %v, faults %q", g.NodeTemplates, g.Faults)
	}
}

// The architecture of an image that cannot be read is waited for. Without the right to read it, and where
// nothing tells it, it is x86_64, and the group says so.
func TestArchitecturesOfImages(t *testing.T) {
	byRequirements := []fakeaws.Override{{Requirements: &fakeaws.Requirements{VCPUs: fakeaws.Range{Min: ptr(2.0), Max: ptr(4.0)}}}}
	for name, c := range map[string]struct {
		image string
		fault *fakeaws.Fault
		arch  string // empty: no node template
		said  string
	}{
		"of an image":                 {"ami-arm", nil, "arm64", ""},
		"of an image that is away":    {"ami-arm", &fakeaws.Fault{Operation: "DescribeImages", Code: "InternalError"}, "", "its node template is not known: the architecture of image ami-arm"},
		"without the right":           {"ami-arm", &fakeaws.Fault{Operation: "DescribeImages", Code: "UnauthorizedOperation"}, "amd64", "as image ami-arm is not known"},
		"of an image that is no more": {"ami-gone", nil, "", "the architecture of image ami-gone"},
		"of AWS's parameter":          {"resolve:ssm:/aws/service/eks/optimized-ami/1.31/amazon-linux-2-arm64/recommended/image_id", nil, "arm64", ""},
		"of AWS's older parameter":    {"resolve:ssm:/aws/service/eks/optimized-ami/1.31/amazon-linux-2/recommended/image_id", nil, "amd64", ""},
		"of a parameter":              {"resolve:ssm:/golden/eks-graviton", nil, "arm64", ""},
		"of one that tells nothing":   {"resolve:ssm:/golden/eks", nil, "amd64", "parameter /golden/eks tells no architecture"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, fakeaws.Spec{
				LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "lt", Versions: []fakeaws.TemplateVersion{{Image: c.image}}}},
				Images:          []fakeaws.Image{{ID: "ami-arm", Arch: "arm64"}},
				Groups:          []fakeaws.Group{{Name: "any", Max: 5, MixedInstances: &fakeaws.MixedInstances{LaunchTemplate: fakeaws.TemplateRef{Name: "lt"}, Overrides: byRequirements}}},
			})
			if c.fault != nil {
				b.Inject(*c.fault)
			}
			g, arch := read(t, b.reader(t, []string{"0:5:any"}, nil))["any"], ""
			if len(g.NodeTemplates) > 0 {
				arch = g.NodeTemplates[0].Labels[corev1.LabelArchStable]
			}
			if said := strings.Join(g.Faults, "; "); arch != c.arch || !strings.Contains(said, c.said) || (said == "") != (c.said == "") {
				t.Errorf("%q with faults %q, want %q with %q", arch, said, c.arch, c.said)
			}
		})
	}
}

func TestLaunchConfiguration(t *testing.T) {
	b := start(t, fakeaws.Spec{
		LaunchConfigurations: []fakeaws.LaunchConfiguration{{Name: "lc", Type: "m6g.large"}},
		Groups:               []fakeaws.Group{{Name: "old", Max: 5, LaunchConfiguration: "lc"}},
	})
	g := read(t, b.reader(t, []string{"0:5:old"}, nil))["old"]
	if len(g.NodeTemplates) != 1 || g.NodeTemplates[0].Labels["kubernetes.io/arch"] != "arm64" {
		t.Errorf("shapes %+v, faults %q", g.NodeTemplates, g.Faults)
	}
}

// A managed group's labels and taints come from EKS, valueless ones too; tags
// overrule them.
func TestManagedNodeGroup(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{
		Name: "eks-web", Max: 5, Type: "m5.large",
		Tags: map[string]string{contract.TagTemplateLabel + "tier": "front"},
		EKS: &fakeaws.Nodegroup{Cluster: "prod", Name: "web", Labels: map[string]string{"tier": "web", "empty": ""},
			Taints: []fakeaws.Taint{{Key: "special", Effect: "NO_EXECUTE"}, {Key: "color", Value: ptr("red"), Effect: "PREFER_NO_SCHEDULE"}}},
	}}})
	r := b.reader(t, []string{"0:5:eks-web"}, nil)
	g := read(t, r)["eks-web"]
	if len(g.NodeTemplates) != 1 || len(g.Faults) != 0 {
		t.Fatalf("shapes %v, faults %q", g.NodeTemplates, g.Faults)
	}
	labels := g.NodeTemplates[0].Labels
	if value, ok := labels["empty"]; !ok || value != "" || labels["tier"] != "front" || labels["eks.amazonaws.com/nodegroup"] != "web" {
		t.Errorf("labels %v", labels)
	}
	want := []corev1.Taint{{Key: "color", Value: "red", Effect: "PreferNoSchedule"}, {Key: "special", Effect: "NoExecute"}}
	if diff := cmp.Diff(want, g.NodeTemplates[0].Taints); diff != "" {
		t.Error(diff)
	}

	b.Deny("eks:DescribeNodegroup")
	g = read(t, b.reader(t, []string{"0:5:eks-web"}, nil))["eks-web"]
	if len(g.NodeTemplates) != 1 || len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "no right to call eks:DescribeNodegroup") {
		t.Errorf("denied: shapes %d, faults %q", len(g.NodeTemplates), g.Faults)
	}
}

// One group's trouble is its own.
func TestMissingTemplateHidesNobody(t *testing.T) {
	b := start(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{{Name: "lt", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}}}},
		Groups: []fakeaws.Group{
			{Name: "broken", Max: 5, LaunchTemplate: &fakeaws.TemplateRef{Name: "lt"}},
			{Name: "whole", Max: 5, Type: "m5.large"},
		},
	})
	if err := b.DeleteTemplate("lt"); err != nil {
		t.Fatal(err)
	}
	groups := read(t, b.reader(t, []string{"0:5:broken", "0:5:whole"}, nil))
	if g := groups["broken"]; len(g.NodeTemplates) != 0 || len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "launch template lt") {
		t.Errorf("broken: shapes %v, faults %q", g.NodeTemplates, g.Faults)
	}
	if g := groups["whole"]; len(g.NodeTemplates) != 1 || len(g.Faults) != 0 {
		t.Errorf("whole: shapes %v, faults %q", g.NodeTemplates, g.Faults)
	}
}

// A group of which nothing changes costs one call a reading.
func TestReadingIsCheap(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{
		{Name: "a", Max: 5, Desired: desired(2), Type: "m5.large", Tags: enabled()},
		{Name: "b", Max: 5, Type: "c5.large", Tags: enabled()},
	}})
	b.settled(t, "a", 2)
	r := b.reader(t, nil, []string{discoverEnabled})
	read(t, r)
	after := b.LastSeq()
	for range 5 {
		read(t, r)
	}
	if calls := b.Calls(fakeaws.After(after)); len(calls) != 5 {
		t.Errorf("5 readings cost %d calls: %v", len(calls), calls)
	}
}

// Failed launches are reported, with their cause and zone: also those that a hook of others throws away.
func TestFailures(t *testing.T) {
	for cause, hooks := range map[string][]fakeaws.Hook{
		"InsufficientInstanceCapacity": nil,
		"LifecycleActionAbandoned":     {{Name: "up", Transition: fleet.OnLaunch}},
	} {
		t.Run(cause, func(t *testing.T) {
			b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large", Zones: []string{"eu-west-1a"}, Hooks: hooks}}})
			if len(hooks) == 0 {
				if err := b.SetShortages(fakeaws.Shortage{Group: "web"}); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.SetDesired("web", 1); err != nil {
				t.Fatal(err)
			}
			r := b.reader(t, []string{"0:5:web"}, nil)
			var failures []fleet.Failure
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for len(failures) == 0 {
				g := read(t, r)["web"]
				for _, i := range g.Instances {
					err := b.With(func(c *cloud.Cloud, now time.Time) error {
						return c.CompleteLifecycleAction("web", "up", i.ID, "", cloud.Abandon, now)
					})
					if i.State == fleet.PendingWait && err != nil {
						t.Fatal(err)
					}
				}
				failures = g.Failures
				if err := b.Sleep(ctx, 20*time.Millisecond); err != nil {
					t.Fatal("no failure was told of")
				}
			}
			if f := failures[0]; f.Cause != cause || f.Zone != "eu-west-1a" || time.Since(f.At) > time.Minute {
				t.Errorf("failure %+v", f)
			}
		})
	}
}

// A departure has the time at which its activity began, and its hooks.
func TestLeavingSince(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(2), Type: "m5.large",
		Hooks: []fakeaws.Hook{{Name: "windlass", Transition: fleet.OnTerminate, HeartbeatSeconds: 300}}}}})
	gone := b.settled(t, "web", 2)[0]
	r := b.reader(t, []string{"0:5:web"}, nil)
	read(t, r)
	if err := b.Terminate(gone.ID, true); err != nil {
		t.Fatal(err)
	}
	began := b.Activities("web")[0].Start
	g := read(t, r)["web"]
	for _, i := range g.Instances {
		if i.Terminating() != (i.ID == gone.ID) {
			t.Errorf("%s is %s", i.ID, i.State)
		}
		if i.Terminating() && i.TerminatingSince.Sub(began).Abs() > time.Second {
			t.Errorf("leaving since %s, the activity began at %s", i.TerminatingSince, began)
		}
	}
	if g.Desired != 1 || len(g.Hooks) != 1 || g.Hooks[0].Heartbeat.Duration != 5*time.Minute || g.Hooks[0].Transition != fleet.OnTerminate {
		t.Errorf("desired %d, hooks %+v", g.Desired, g.Hooks)
	}
}

// A reading that fails leaves the last one, with a fault.
func TestStaleReading(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large"}}})
	r := b.reader(t, []string{"0:5:web"}, nil)
	read(t, r)
	fault := b.Inject(fakeaws.Fault{Operation: "DescribeAutoScalingGroups", Code: "Throttling"})
	if err := r.Read(t.Context()); !errors.Is(err, asg.ErrThrottled) {
		t.Errorf("error %v", err)
	}
	g := byName(r)["web"]
	if len(g.NodeTemplates) != 1 || len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "autoscaling:DescribeAutoScalingGroups: Throttling") {
		t.Errorf("shapes %d, faults %q", len(g.NodeTemplates), g.Faults)
	}
	b.RemoveFault(fault)
	if g := read(t, r)["web"]; len(g.Faults) != 0 {
		t.Errorf("faults %q", g.Faults)
	}

	b.Deny("autoscaling:DescribeAutoScalingGroups")
	if err := r.Read(t.Context()); !errors.Is(err, asg.ErrDenied) || !strings.HasPrefix(err.Error(), "no right to call autoscaling:DescribeAutoScalingGroups") {
		t.Errorf("error %v", err)
	}
}

// A group whose hooks may not be read works, with a fault.
func TestDeniedHooksAreAFault(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large"}}})
	b.Deny("autoscaling:DescribeLifecycleHooks")
	g := read(t, b.reader(t, []string{"0:5:web"}, nil))["web"]
	if len(g.NodeTemplates) != 1 || len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "autoscaling:DescribeLifecycleHooks") {
		t.Errorf("shapes %d, faults %q", len(g.NodeTemplates), g.Faults)
	}
}

func TestDialSaysWhatIsMissing(t *testing.T) {
	environment(t, "http://127.0.0.1:1")
	t.Setenv("AWS_REGION", "")
	if _, err := asg.Dial(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("no region: %v", err)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if _, err := asg.Dial(t.Context(), nil); !errors.Is(err, asg.ErrCredentials) || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("no credentials: %v", err)
	}
}

func TestSetDesired(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large"}}})
	v := asg.NewVerbs(b.account)
	if err := v.SetDesired(t.Context(), "web", 0, 2); err != nil {
		t.Fatal(err)
	}
	// What somebody else wished meanwhile is not overwritten.
	if err := v.SetDesired(t.Context(), "web", 0, 4); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("error %v", err)
	}
	if err := v.SetDesired(t.Context(), "web", 2, 9); err == nil || !strings.Contains(err.Error(), "ValidationError") {
		t.Errorf("above max: %v", err)
	}
	if err := v.SetDesired(t.Context(), "ghost", 2, 9); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("no group: %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("SetDesiredCapacity"))); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	if status, err := b.Group("web"); err != nil || status.Desired != 2 {
		t.Errorf("desired %d, error %v", status.Desired, err)
	}
}

// Desired is lowered only where Auto Scaling can end no instance for it.
func TestLower(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(2), Type: "m5.large", ProtectNewInstances: true}}})
	running := b.settled(t, "web", 2)
	if err := b.SetShortages(fakeaws.Shortage{}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetDesired("web", 5); err != nil {
		t.Fatal(err)
	}
	v := asg.NewVerbs(b.account)
	lower := func(from, to int, want string) {
		t.Helper()
		err := v.Lower(context.Background(), "web", from, to)
		if want == "" && err == nil {
			return
		}
		if !errors.Is(err, asg.ErrChanged) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d→%d: %v, want %q", from, to, err, want)
		}
	}
	lower(4, 2, "wants 5 instances, not 4")
	lower(5, 1, "has 2 instances, more than 1")
	if err := b.Protect(running[0].ID, false); err != nil {
		t.Fatal(err)
	}
	lower(5, 2, running[0].ID+" of web is not protected")
	b.wantDesired(t, 5)
	if err := b.Protect(running[0].ID, true); err != nil {
		t.Fatal(err)
	}
	lower(5, 2, "")
	b.wantDesired(t, 2)
}

// A call that changes something is never repeated by itself: the caller cannot know whether
// the one before arrived.
func TestChangesAreNotRepeated(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large"}}})
	b.Inject(fakeaws.Fault{Operation: "SetDesiredCapacity", Code: "InternalFailure"})
	err := asg.NewVerbs(b.account).SetDesired(t.Context(), "web", 0, 2)
	if !errors.Is(err, asg.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	if n := len(b.Calls(fakeaws.Operation("SetDesiredCapacity"))); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.codes["SetDesiredCapacity InternalFailure"] != 1 || b.codes["DescribeAutoScalingGroups ok"] != 1 {
		t.Errorf("recorded %v", b.codes)
	}
}

func TestTerminate(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(2), Type: "m5.large",
		Hooks: []fakeaws.Hook{{Name: "windlass", Transition: fleet.OnTerminate, HeartbeatSeconds: 300}}}}})
	id := b.settled(t, "web", 2)[0].ID
	v := asg.NewVerbs(b.account)
	if err := v.Terminate(t.Context(), "web", id, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Terminate(t.Context(), "web", id, true); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("twice: %v", err)
	}
	if status, err := b.Group("web"); err != nil || status.Desired != 1 {
		t.Errorf("desired %d, error %v", status.Desired, err)
	}
}

// Where somebody has lowered the desired capacity meanwhile, it is not lowered further with the end of an
// instance: of protected ones it would fall below what people want, and of others more would go.
func TestTerminateLowersNothingTwice(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(3), Type: "m5.large"}}})
	running := b.settled(t, "web", 3)
	for _, i := range running {
		if err := b.Protect(i.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetDesired("web", 1); err != nil {
		t.Fatal(err)
	}
	v := asg.NewVerbs(b.account)
	if err := v.Terminate(t.Context(), "web", running[0].ID, true); !errors.Is(err, asg.ErrChanged) || !strings.Contains(err.Error(), "has 3 instances, more than the 1 that it wants") {
		t.Errorf("error %v", err)
	}
	b.wantDesired(t, 1)
	if n := len(b.Calls(fakeaws.Operation("TerminateInstanceInAutoScalingGroup"))); n > 0 {
		t.Errorf("%d calls", n)
	}
	for _, i := range running[:2] {
		if err := v.Terminate(t.Context(), "web", i.ID, false); err != nil {
			t.Error(err)
		}
	}
	b.wantDesired(t, 1)
}

// What was read right before a call is part of what the reader knows then, also what others have done.
func TestFollowTakesOver(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large"}}})
	b.settled(t, "web", 1)
	r, v := b.reader(t, []string{"0:5:web"}, nil), asg.NewVerbs(b.account)
	read(t, r)
	if err := b.SetDesired("web", 3); err != nil {
		t.Fatal(err)
	}
	if err := v.Lower(t.Context(), "web", 1, 0); !errors.Is(err, asg.ErrChanged) {
		t.Errorf("error %v", err)
	}
	described := len(b.Calls(fakeaws.Operation("DescribeAutoScalingGroups")))
	r.Follow(t.Context(), time.Second)
	if g := byName(r)["web"]; g.Desired != 3 {
		t.Errorf("desired %d", g.Desired)
	}
	if n := len(b.Calls(fakeaws.Operation("DescribeAutoScalingGroups"))); n != described {
		t.Errorf("%d descriptions more", n-described)
	}
}

// Whoever is told of a reading is told whether it shows more than what we did ourselves, and is not told
// where it shows nothing new.
func TestOwnChangesAreExpected(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large"}}})
	b.settled(t, "web", 1)
	var told []bool
	r, v := b.readerThatTells(t, []string{"0:5:web"}, nil, func(expected bool) { told = append(told, expected) }), asg.NewVerbs(b.account)
	read(t, r)
	if err := v.SetDesired(t.Context(), "web", 1, 2); err != nil {
		t.Fatal(err)
	}
	r.Follow(t.Context(), time.Second)
	r.Follow(t.Context(), time.Second)
	if err := b.SetDesired("web", 3); err != nil {
		t.Fatal(err)
	}
	if err := v.SetDesired(t.Context(), "web", 3, 4); err != nil {
		t.Fatal(err)
	}
	r.Follow(t.Context(), time.Second) // which shows what was read right before the call
	if err := b.SetDesired("web", 5); err != nil {
		t.Fatal(err)
	}
	read(t, r)
	if want := []bool{false, true, false, false}; !slices.Equal(told, want) {
		t.Errorf("told %t, want %t", told, want)
	}
}

func (b *bed) await(t *testing.T, id string, state fakeaws.LifecycleState) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		i, err := b.Instance(id)
		if err != nil {
			t.Fatal(err)
		}
		if i.LifecycleState == state {
			return
		}
		if err := b.Sleep(ctx, 2*time.Millisecond); err != nil {
			t.Fatalf("%s is %s: %v", id, i.LifecycleState, err)
		}
	}
}

// With spot prices that EC2 reports, node templates and instances have those of their zone, where
// it may launch nothing but spot instances; without them all have the assumed share.
func TestSpotPricesOfZones(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{
		{Name: "spot", Max: 5, Desired: desired(2), Type: "m5.large", Zones: ab, Spot: true},
		{Name: "web", Max: 5, Desired: desired(1), Type: "m5.large", Zones: ab},
	}})
	b.settled(t, "spot", 2)
	b.settled(t, "web", 1)
	selection, err := asg.ParseSelection([]string{"0:5:spot", "0:5:web"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const onDemand = 0.096
	for _, asking := range []bool{false, true} {
		assume := assume
		assume.AskSpot = asking
		r := asg.NewReader(b.account, selection, assume, slog.New(slog.DiscardHandler), nil)
		groups, spot := read(t, r), r.Spot()
		if spot.Fault != "" || spot.At.IsZero() == asking || asking != (len(spot.Prices) == 2) {
			t.Fatalf("asking %v: %+v", asking, spot)
		}
		of := map[string]float64{}
		for _, shape := range groups["spot"].NodeTemplates {
			of[shape.Zone] = shape.PricePerHour
			want := onDemand * assume.SpotFactor
			if asking {
				want = spot.Prices[prices.Offer{Zone: shape.Zone, Type: "m5.large"}]
			}
			if shape.PricePerHour != want || !(want > 0 && want < onDemand/2) {
				t.Errorf("asking %v: a node in %s costs %v, want %v", asking, shape.Zone, shape.PricePerHour, want)
			}
		}
		if (of[ab[0]] != of[ab[1]]) != asking {
			t.Errorf("asking %v: prices of zones %v", asking, of)
		}
		for _, i := range groups["spot"].Instances {
			if asking && i.PricePerHour != of[i.Zone] {
				t.Errorf("%+v, want %v", i, of)
			}
		}
		for _, shape := range groups["web"].NodeTemplates {
			if shape.PricePerHour != onDemand {
				t.Errorf("asking %v: on demand for %v", asking, shape.PricePerHour)
			}
		}
	}
}

// Who leads again has read nothing, and decides by nothing that an earlier term read: whom the
// groups are left to may be another one by now.
func TestAnotherTermBeginsAnew(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 3, Type: "m5.large"}}})
	r := b.reader(t, []string{"0:3:web"}, nil)
	if len(read(t, r)) != 1 {
		t.Fatal("the group was not read")
	}
	r.Forget()
	if groups, at, err := r.Groups(nil); len(groups) > 0 || !at.IsZero() || err != nil {
		t.Errorf("got %+v, read at %s, %v", groups, at, err)
	}
}
