package asg_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// How a group launches decides whether LaunchInstances works for it.
func TestHowAGroupLaunches(t *testing.T) {
	mix := func(base int, percent *int, overrides ...fakeaws.Override) *fakeaws.MixedInstances {
		return &fakeaws.MixedInstances{LaunchTemplate: fakeaws.TemplateRef{Name: "lt", Version: "$Latest"}, OnDemandBase: base, OnDemandPercentAbove: percent, Overrides: overrides}
	}
	types := []fakeaws.Override{{Type: "m5.large"}, {Type: "c5.xlarge"}}
	b := start(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{
			{Name: "lt", ID: "lt-0aaaaaaaaaaaaaaaa", Versions: []fakeaws.TemplateVersion{{Type: "m5.large"}, {Type: "m5.xlarge", Image: cloud.DefaultImageX86}}},
			{Name: "spot", ID: "lt-0bbbbbbbbbbbbbbbb", Versions: []fakeaws.TemplateVersion{{Type: "m5.large", Spot: true}}},
		},
		LaunchConfigurations: []fakeaws.LaunchConfiguration{{Name: "lc", Type: "m5.large"}},
		Groups: []fakeaws.Group{
			{Name: "default", Max: 5, Desired: desired(1), LaunchTemplate: &fakeaws.TemplateRef{Name: "lt"}},
			{Name: "latest", Max: 5, LaunchTemplate: &fakeaws.TemplateRef{Name: "lt", Version: "$Latest"}},
			{Name: "spot", Max: 5, LaunchTemplate: &fakeaws.TemplateRef{Name: "spot"}},
			{Name: "old", Max: 5, LaunchConfiguration: "lc"},
			{Name: "onDemand", Max: 5, Desired: desired(1), MixedInstances: mix(0, nil, types...)},
			{Name: "onlySpot", Max: 5, Desired: desired(1), MixedInstances: mix(0, ptr(0), types...)},
			{Name: "both", Max: 5, Desired: desired(1), MixedInstances: mix(0, ptr(50), types...)},
			{Name: "baseAndSpot", Max: 5, MixedInstances: mix(1, ptr(0), types...)},
			{Name: "pool", Max: 1, LaunchTemplate: &fakeaws.TemplateRef{Name: "lt"}, WarmPool: &fakeaws.WarmPool{}},
		},
	})
	var nodes []string
	for _, g := range []string{"default", "latest", "spot", "old", "onDemand", "onlySpot", "both", "baseAndSpot", "pool"} {
		nodes = append(nodes, "0:1:"+g)
	}
	groups := read(t, b.reader(t, nodes, nil))
	const large, xlarge, c5xlarge = 0.096, 0.192, 0.17 // dollars an hour
	for _, tc := range []struct {
		group, template          string
		spot, both, mixed, steer bool
		price                    float64
	}{
		{"default", "lt-0aaaaaaaaaaaaaaaa:1", false, false, false, true, large},
		{"latest", "lt-0aaaaaaaaaaaaaaaa:2", false, false, false, true, xlarge},
		{"spot", "lt-0bbbbbbbbbbbbbbbb:1", true, false, false, true, large * 0.4},
		{"old", "", false, false, false, false, large},
		{"onDemand", "lt-0aaaaaaaaaaaaaaaa:2", false, false, true, true, c5xlarge}, // the dearest
		{"onlySpot", "lt-0aaaaaaaaaaaaaaaa:2", true, false, true, true, c5xlarge * 0.4},
		{"both", "lt-0aaaaaaaaaaaaaaaa:2", false, true, true, false, c5xlarge},
		{"baseAndSpot", "lt-0aaaaaaaaaaaaaaaa:2", false, true, true, false, c5xlarge},
		{"pool", "lt-0aaaaaaaaaaaaaaaa:1", false, false, false, false, large},
	} {
		g := groups[tc.group]
		if g.Template != tc.template || g.Spot != tc.spot || g.Both != tc.both || g.Mixed != tc.mixed || g.Synchronous != tc.steer {
			t.Errorf("%s: template %s, spot %v, both %v, mixed %v, synchronous %v", tc.group, g.Template, g.Spot, g.Both, g.Mixed, g.Synchronous)
		}
		if len(g.NodeTemplates) != 1 || math.Abs(g.NodeTemplates[0].PricePerHour-tc.price) > 1e-9 {
			t.Errorf("%s: shapes %+v, want the price %v; faults %q", tc.group, g.NodeTemplates, tc.price, g.Faults)
		}
	}
	// An instance of a group with several types costs what its own does, unless both may have come.
	for name, share := range map[string]float64{"default": 0, "onDemand": 1, "onlySpot": 0.4, "both": 0} {
		i := groups[name].Instances[0]
		if want := share * map[string]float64{"m5.large": large, "c5.xlarge": c5xlarge}[i.Type]; math.Abs(i.PricePerHour-want) > 1e-9 {
			t.Errorf("%s: an %s for %v, want %v", name, i.Type, i.PricePerHour, want)
		}
	}
	if image := groups["latest"].NodeTemplates[0].Image; image != cloud.DefaultImageX86 {
		t.Errorf("image %q", image)
	}
}

// What user data sets reaches the node template; tags win over it.
func TestShapeByUserData(t *testing.T) {
	script := `#!/bin/bash
/etc/eks/bootstrap.sh prod --use-max-pods false --kubelet-extra-args '--max-pods=50 --node-labels=team=red,tier=web,x=$(id) --register-with-taints=dedicated=web:NoSchedule --eviction-hard=memory.available<1Gi'
`
	bottlerocket := "[settings.kubernetes]\nmax-pods = 20\n"
	b := start(t, fakeaws.Spec{
		LaunchTemplates: []fakeaws.LaunchTemplate{
			{Name: "br", Versions: []fakeaws.TemplateVersion{{Type: "m5.large", UserData: bottlerocket, Volumes: []fakeaws.Volume{{SizeGiB: 2}, {Device: "/dev/xvdb", SizeGiB: 80}}}}},
			{Name: "raid", Versions: []fakeaws.TemplateVersion{{Type: "c5d.xlarge", UserData: "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {instance: {localStorage: {strategy: RAID0}}}\n"}}},
		},
		Groups: []fakeaws.Group{
			{Name: "al2", Max: 5, Type: "m5.large", UserData: script, Tags: map[string]string{contract.TagTemplateLabel + "team": "blue"}},
			{Name: "br", Max: 5, LaunchTemplate: &fakeaws.TemplateRef{Name: "br"}},
			{Name: "raid", Max: 5, LaunchTemplate: &fakeaws.TemplateRef{Name: "raid"}},
		},
	})
	groups := read(t, b.reader(t, []string{"0:5:al2", "0:5:br", "0:5:raid"}, nil))
	shape := func(name string) fleet.NodeTemplate {
		if len(groups[name].NodeTemplates) != 1 {
			t.Fatalf("%s: shapes %v, faults %q", name, groups[name].NodeTemplates, groups[name].Faults)
		}
		return groups[name].NodeTemplates[0]
	}
	al2 := shape("al2")
	if al2.Labels["team"] != "blue" || al2.Labels["tier"] != "web" {
		t.Errorf("labels %v", al2.Labels)
	}
	if faults := groups["al2"].Faults; len(faults) != 1 || !strings.Contains(faults[0], "--node-labels: x=$(id) is left out") {
		t.Errorf("faults %q", faults)
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Value: "web", Effect: "NoSchedule"}}, al2.Taints); diff != "" {
		t.Error(diff)
	}
	// 8192 MiB − 7.5 % − 255 − 11 × 29 (not 50: bootstrap.sh does not look) − 1024.
	wantQuantity(t, "al2", al2.Allocatable, "memory", "5979Mi")
	wantQuantity(t, "al2", al2.Allocatable, "pods", "50")
	// No threshold for files is left where the flag names one for memory alone.
	wantQuantity(t, "al2", al2.Allocatable, "ephemeral-storage", "19Gi")

	br := shape("br")
	wantQuantity(t, "bottlerocket", br.Capacity, "ephemeral-storage", "80Gi")
	wantQuantity(t, "bottlerocket", br.Allocatable, "memory", "7002Mi") // 255 + 11 × 20
	wantQuantity(t, "raid", shape("raid").Capacity, "ephemeral-storage", "100G")

	for name, want := range map[string]string{"topology.ebs.csi.aws.com/zone": "eu-west-1a", "topology.k8s.aws/zone-id": cloud.ZoneID("eu-west-1a")} {
		if got := br.Labels[name]; got != want {
			t.Errorf("label %s=%s, want %s", name, got, want)
		}
	}
}

// wantQuantity compares in whole MiB.
func wantQuantity(t *testing.T, who string, list corev1.ResourceList, name corev1.ResourceName, want string) {
	t.Helper()
	got, wanted := list[name], resource.MustParse(want)
	if name != corev1.ResourcePods {
		got.Set(got.Value() >> 20 << 20)
		wanted.Set(wanted.Value() >> 20 << 20)
	}
	if got.Cmp(wanted) != 0 {
		t.Errorf("%s: %s %s, want %s", who, name, got.String(), want)
	}
}

// Memory that was seen counts for nodes of the same image, then for the type.
func TestSeenByImage(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Type: "m5.large", Image: cloud.DefaultImageX86}}})
	r := b.reader(t, []string{"0:5:web"}, nil)
	read(t, r)
	seen := map[string]resource.Quantity{
		"m5.large": resource.MustParse("7700Mi"), fleet.SeenKey("m5.large", "ami-other"): resource.MustParse("7600Mi"),
	}
	memory := func() string {
		groups, _, _ := r.Groups(seen)
		return groups[0].NodeTemplates[0].Capacity.Memory().String()
	}
	if got := memory(); got != "7700Mi" {
		t.Errorf("memory %s", got)
	}
	seen[fleet.SeenKey("m5.large", cloud.DefaultImageX86)] = resource.MustParse("7800Mi")
	if got := memory(); got != "7800Mi" {
		t.Errorf("memory %s of the same image", got)
	}
	onPaper, _, _ := r.Groups(nil)
	for _, lie := range []string{"16Mi", "64Gi"} {
		seen = map[string]resource.Quantity{"m5.large": resource.MustParse(lie)}
		if got, want := memory(), onPaper[0].NodeTemplates[0].Capacity.Memory().String(); got != want {
			t.Errorf("memory %s by a node that has reported %s, want %s", got, lie, want)
		}
	}
}

// Instances of a warm pool stand among the group's, and are neither live nor terminating;
// nothing is asked while nothing changes.
func TestWarmPool(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(1), Type: "m5.large", WarmPool: &fakeaws.WarmPool{}}}})
	b.settled(t, "web", 1)
	r := b.reader(t, []string{"0:3:web"}, nil)
	states := func() []string {
		var out []string
		for _, i := range read(t, r)["web"].Instances {
			if out = append(out, i.State); i.Warmed() == i.Live() {
				t.Errorf("%s is %s", i.ID, i.State)
			}
		}
		slices.Sort(out)
		return out
	}
	b.until(t, "two instances rest in the pool", func() bool {
		return slices.Equal(states(), []string{"InService", "Warmed:Stopped", "Warmed:Stopped"})
	})
	g := byName(r)["web"]
	if g.WarmPool == nil || g.WarmPool.State != "Stopped" || g.Synchronous {
		t.Errorf("warm pool %+v, synchronous %v", g.WarmPool, g.Synchronous)
	}
	after := b.LastSeq()
	for range 3 {
		read(t, r)
	}
	if n := len(b.Calls(fakeaws.After(after), fakeaws.Operation("DescribeWarmPool"))); n != 0 {
		t.Errorf("%d calls while the pool rests", n)
	}
	// One of the two comes into the group.
	if err := b.SetDesired("web", 2); err != nil {
		t.Fatal(err)
	}
	b.until(t, "one of them is in service", func() bool {
		return slices.Equal(states(), []string{"InService", "InService", "Warmed:Stopped"})
	})
}

// An instance that is too many in the pool is seen to leave it, though neither the group's instances nor
// the number of the pool's have changed.
func TestWarmPoolTooLarge(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(2), Type: "m5.large", WarmPool: &fakeaws.WarmPool{MinSize: 1},
		Hooks: []fakeaws.Hook{{Name: "windlass", Transition: fleet.OnTerminate, HeartbeatSeconds: 300}}}}})
	b.settled(t, "web", 2)
	r := b.reader(t, []string{"0:3:web"}, nil)
	count := func(state string) int {
		return len(slices.DeleteFunc(slices.Clone(read(t, r)["web"].Instances), func(i fleet.Instance) bool { return i.State != state }))
	}
	id := b.Instances()[0].ID
	b.until(t, "one rests in the pool", func() bool { return count("Warmed:Stopped") == 1 })
	if err := b.EnterStandby(id, true); err != nil {
		t.Fatal(err)
	}
	b.until(t, "two rest there", func() bool { return count("Warmed:Stopped") == 2 && count("Standby") == 1 })
	if err := b.ExitStandby(id); err != nil {
		t.Fatal(err)
	}
	b.until(t, "one of them leaves", func() bool { return count("Warmed:Terminating:Wait") == 1 })
}

// A refresh is noticed when it takes the first instance, when somebody asks, and
// when it ends.
func TestRefresh(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 3, Desired: desired(2), Type: "m5.large",
		Hooks: []fakeaws.Hook{{Name: "windlass", Transition: fleet.OnTerminate, HeartbeatSeconds: 300}}}}})
	b.settled(t, "web", 2)
	r := b.reader(t, []string{"0:3:web"}, nil)
	if g := read(t, r)["web"]; g.Refresh != nil {
		t.Errorf("refresh %+v", g.Refresh)
	}
	id, err := b.StartRefresh("web", fakeaws.RefreshPreferences{})
	if err != nil {
		t.Fatal(err)
	}
	r.Recheck("web")
	if g := read(t, r)["web"]; g.Refresh == nil || g.Refresh.ID != id || g.Refresh.Status != "InProgress" {
		t.Errorf("refresh %+v, want %s", g.Refresh, id)
	}
	next := b.reader(t, []string{"0:3:web"}, nil)
	if g := read(t, next)["web"]; g.Refresh == nil {
		t.Error("a new leader does not see the refresh")
	}
	if _, err := b.CancelRefresh("web"); err != nil {
		t.Fatal(err)
	}
	r.Recheck("web")
	if g := read(t, r)["web"]; g.Refresh != nil {
		t.Errorf("refresh %+v was cancelled", g.Refresh)
	}
}

// Of many groups that launch at once each failure is reported at the next reading,
// in no more calls than a few.
func TestFailuresOfMany(t *testing.T) {
	var spec fakeaws.Spec
	var shortages []fakeaws.Shortage
	for i := range 12 {
		name := fmt.Sprintf("group-%02d", i)
		spec.Groups = append(spec.Groups, fakeaws.Group{Name: name, Max: 5, Type: "m5.large", Tags: enabled()})
		shortages = append(shortages, fakeaws.Shortage{Group: name})
	}
	b := start(t, spec)
	if err := b.SetShortages(shortages...); err != nil {
		t.Fatal(err)
	}
	r := b.reader(t, nil, []string{discoverEnabled})
	read(t, r)
	for _, g := range spec.Groups {
		if err := b.SetDesired(g.Name, 1); err != nil {
			t.Fatal(err)
		}
	}
	b.until(t, "each has failed", func() bool {
		return !slices.ContainsFunc(spec.Groups, func(g fakeaws.Group) bool {
			return !slices.ContainsFunc(b.Activities(g.Name), func(a fakeaws.Activity) bool { return a.StatusCode == "Failed" })
		})
	})
	after := b.LastSeq()
	wantFailures := func(groups map[string]fleet.Group) {
		t.Helper()
		for name, g := range groups {
			if len(g.Failures) == 0 || g.Failures[0].Cause != "InsufficientInstanceCapacity" {
				t.Errorf("%s: failures %+v", name, g.Failures)
			}
		}
	}
	wantFailures(read(t, r))
	if n := len(b.Calls(fakeaws.After(after), fakeaws.Operation("DescribeScalingActivities"))); n != 1 {
		t.Errorf("%d calls", n)
	}

	// Those of all together cannot be read, as in an account that has too many: each group is asked about
	// by itself.
	away := b.Inject(fakeaws.Fault{Operation: "DescribeScalingActivities", Code: "ServiceUnavailable"})
	r = b.reader(t, nil, []string{discoverEnabled})
	read(t, r)
	b.RemoveFault(away)
	after = b.LastSeq()
	wantFailures(read(t, r))
	if n := len(b.Calls(fakeaws.After(after), fakeaws.Operation("DescribeScalingActivities"))); n != len(spec.Groups) {
		t.Errorf("%d calls", n)
	}
}

// A rebalance between zones shows a surplus first; the activities name its cause, and
// nothing more is asked once it is over.
func TestZoneRebalanceIsNoticed(t *testing.T) {
	b := start(t, fakeaws.Spec{Groups: []fakeaws.Group{{Name: "web", Max: 5, Desired: desired(2), Type: "m5.large", Zones: []string{"eu-west-1a", "eu-west-1b"}}}})
	b.settled(t, "web", 2)
	r := b.reader(t, []string{"0:5:web"}, nil)
	if g := read(t, r)["web"]; g.Replacement != nil {
		t.Errorf("replacement %+v", g.Replacement)
	}
	if _, err := b.RebalanceZones("web", true); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the rebalance is seen, and over", func() bool {
		x := read(t, r)["web"].Replacement
		return x != nil && x.Cause == fleet.ZoneRebalance && !x.Ended.IsZero()
	})
	b.settled(t, "web", 2)
	read(t, r)
	after := b.LastSeq()
	read(t, r)
	if n := len(b.Calls(fakeaws.After(after), fakeaws.Operation("DescribeScalingActivities"))); n != 0 {
		t.Errorf("%d looks at activities while nothing moves", n)
	}
}
