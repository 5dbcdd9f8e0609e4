package fit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

func none(corev1.Taint) bool { return false }

func parse(t interface {
	Helper()
	Fatal(...any)
}, text string) fleet.Snapshot {
	t.Helper()
	s, err := scenario.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func clusterOf(s fleet.Snapshot) *fit.Cluster {
	return fit.NewRules().Cluster(fit.World{
		Kubernetes: s.Kubernetes, Pods: s.Pods, Namespaces: s.Namespaces, Storage: s.Storage, Devices: s.Devices, DaemonSets: s.DaemonSets,
	})
}

func podNamed(s fleet.Snapshot, name string) *fleet.Pod {
	i := slices.IndexFunc(s.Pods, func(p *fleet.Pod) bool { return p.Name == name })
	return s.Pods[i]
}

// Each row asks whether the pod p fits the node n, and if not, for what reasons.
func TestFits(t *testing.T) {
	for _, tc := range []struct{ name, node, pod, others, want string }{
		{"empty node", "", "cpu=1930m mem=7Gi", "", ""},
		{"a little too much cpu", "", "cpu=1931m", "", "needs 1.931 cpu, has 1.93"},
		{"cpu and memory", "", "cpu=4 mem=8Gi", "", "needs 4 cpu, has 1.93, needs 8Gi memory, has 7Gi"},
		{"what others use", "", "cpu=1 mem=1Gi", "pod q on=n cpu=1", "needs 1 cpu, has 0.93"},
		{"ended pods use nothing", "", "cpu=1930m", "pod q on=n cpu=1 succeeded", ""},
		{"a resource the node has not", "", "gpu=1", "", "needs 1 nvidia.com/gpu, has 0"},
		{"no room for another pod", "pods=1", "", "pod q on=n", "has as many pods as it may"},
		{"a pod that asks for nothing", "", "", "pod q on=n cpu=1930m", ""},
		{"cordoned", "cordoned", "", "", "cordoned"},
		{"cordoned, and it does not mind", "cordoned", "tolerates=*", "", ""},
		{"taint", "taints=dedicated=gpu:NoSchedule", "", "", "taint dedicated=gpu:NoSchedule not tolerated"},
		{"taint of another value", "taints=dedicated=gpu:NoSchedule", "tolerates=dedicated=web", "", "taint dedicated=gpu:NoSchedule not tolerated"},
		{"taint that evicts", "taints=a=b:NoExecute", "", "", "taint a=b:NoExecute not tolerated"},
		{"soft taint", "taints=a=b:PreferNoSchedule", "", "", ""},
		{"tolerated by value, by key, by all", "taints=a=b:NoSchedule,c=d:NoSchedule", "tolerates=a=b,c", "", ""},
		{"no such label", "", "selector=disk=ssd", "", "node selector disk=ssd: no such label"},
		{"another value", "labels=disk=hdd", "selector=disk=ssd", "", "node selector disk=ssd: the label is hdd"},
		{"affinity", "labels=disk=hdd", "affinity=disk=hdd|ssd", "", ""},
		{"affinity not met", "labels=disk=tape", "affinity=disk=hdd|ssd,kubernetes.io/hostname=n", "", "node affinity disk In hdd,ssd not met"},
		{"by host name", "", "selector=kubernetes.io/hostname=n", "", ""},
		{"host port", "", "hostport=80", "pod q on=n hostport=80", "host port 80/TCP is taken"},
		{"another host port", "", "hostport=81", "pod q on=n hostport=80", ""},
		{"several reasons, static ones first", "cordoned taints=a=b:NoSchedule", "cpu=2 selector=disk=ssd hostport=80", "pod q on=n hostport=80",
			"cordoned, taint a=b:NoSchedule not tolerated, node selector disk=ssd: no such label, host port 80/TCP is taken, needs 2 cpu, has 1.93"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, fmt.Sprintf("node n %s\npod p %s\n%s", tc.node, tc.pod, tc.others))
			c := clusterOf(s)
			place := c.Add(c.TemplateFrom(&s.Nodes[0], none))
			for _, p := range s.Pods {
				if p.Node == "n" && !p.Ended() {
					c.Put(c.Tenant(p), place)
				}
			}
			p := c.Tenant(podNamed(s, "p"))
			if got := c.Fits(p.Class, place).String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if seated := c.TrySeat(p, place); seated != (tc.want == "") {
				t.Errorf("TrySeat says %v", seated)
			}
		})
	}
}

// Equal pods are of one class whatever their names and owners and however their
// lists are ordered; pods that differ in what filters read are not.
func TestClass(t *testing.T) {
	s := parse(t, `
pod a cpu=1 tolerates=x,y
pod b cpu=1000m tolerates=y,x owner=other
pod c cpu=1
pod d cpu=1 tolerates=x,y selector=disk=ssd
pod e cpu=1 tolerates=x,y hostport=80
pod f cpu=1 tolerates=x,y priority=7
`)
	c := clusterOf(s)
	class := func(name string) *fit.Class { return c.Tenant(podNamed(s, name)).Class }
	for _, name := range []string{"b", "f"} {
		if class(name) != class("a") {
			t.Errorf("%s is not of a's class", name)
		}
	}
	for _, name := range []string{"c", "d", "e"} {
		if class(name) == class("a") {
			t.Errorf("%s is of a's class", name)
		}
	}
}

// A group whose zones are ours to choose gives every pod the zone that it needs;
// of one whose zones are not, the next node comes where it has fewest.
func TestPackZones(t *testing.T) {
	for _, tc := range []struct {
		name, pods string
		have       []int
		steered    bool
		want, left []string
	}{
		{"ours to choose", "pod a cpu=1900m selector=topology.kubernetes.io/zone=b", []int{0, 5}, true, []string{"b: a"}, nil},
		{"the emptiest first", "pod a-1..2 cpu=1900m", []int{3, 2}, true, []string{"b: a-1", "a: a-2"}, nil},
		{"not ours, as it comes", "pod a-1..2 cpu=1900m", []int{3, 2}, false, []string{"b: a-1", "a: a-2"}, nil},
		{"not ours, and not where it is needed", "pod a cpu=1900m selector=topology.kubernetes.io/zone=b", []int{0, 5}, false, nil, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "group web zones=a,b\n"+tc.pods)
			c := clusterOf(s)
			supply := fit.Supply{Name: "web", Have: tc.have, Limit: 9, Steered: tc.steered}
			for i := range s.Groups[0].NodeTemplates {
				supply.Template = append(supply.Template, c.TemplateOf(&s.Groups[0].NodeTemplates[i]))
			}
			var pods []fit.Tenant
			for _, p := range s.Pods {
				pods = append(pods, c.Tenant(p))
			}
			packing := c.Pack(pods, nil, 9, supply)
			var got, left []string
			for _, p := range packing.Places {
				got = append(got, p.Template().Zone+": "+names(p.Tenants()))
			}
			for _, t := range packing.Left {
				left = append(left, t.Pod.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("new nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPack(t *testing.T) {
	for _, tc := range []struct {
		name, world string
		limit       int
		want        []string // the pods of each new node
		left        []string
	}{
		{"the largest first", "pod s-1..3 cpu=400m\npod l-1..2 cpu=1200m", 9, []string{"l-1 s-1", "l-2 s-2", "s-3"}, nil},
		{"the older first where they are equal", "pod a cpu=1 age=1m\npod b cpu=1 age=2m", 1, []string{"b"}, []string{"a"}},
		{"greater priority first", "pod big cpu=1900m\npod vip cpu=100m priority=9", 1, []string{"vip"}, []string{"big"}},
		{"no more than the limit", "pod a-1..4 cpu=1900m", 2, []string{"a-1", "a-2"}, []string{"a-3", "a-4"}},
		{"not what fits no new node", "pod a cpu=9\npod b cpu=1", 9, []string{"b"}, []string{"a"}},
		{"a host port each", "pod a-1..2 hostport=80", 9, []string{"a-1", "a-2"}, nil},
		{"nothing", "", 9, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "group web\n"+tc.world)
			c := clusterOf(s)
			var pods []fit.Tenant
			for _, p := range s.Pods {
				pods = append(pods, c.Tenant(p))
			}
			looks := []*fit.NodeTemplate{c.TemplateOf(&s.Groups[0].NodeTemplates[0])}
			packing := c.Pack(c.Sorted(pods, looks), nil, 9, fit.Supply{Template: looks, Have: []int{0}, Limit: tc.limit})
			var got []string
			for _, p := range packing.Places {
				got = append(got, names(p.Tenants()))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("new nodes (-want +got):\n%s", diff)
			}
			var left []string
			for _, t := range packing.Left {
				left = append(left, t.Pod.Name)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func names(tenants []fit.Tenant) string {
	text := ""
	for _, t := range tenants {
		if text != "" {
			text += " "
		}
		text += t.Pod.Name
	}
	return text
}

// Whatever is done after a fork, going back undoes all of it, and nothing else:
// every question has its old answer again.
func TestRevertUndoesEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := "group web zones=a,b\nnode n-1..3\n"
		for i := range rapid.IntRange(1, 12).Draw(t, "pods") {
			text += fmt.Sprintf("pod p-%d cpu=%dm mem=%dMi %s\n", i, 100*rapid.IntRange(0, 12).Draw(t, "cpu"), 256*rapid.IntRange(0, 9).Draw(t, "mem"),
				rapid.SampledFrom([]string{"", "hostport=80", "selector=topology.kubernetes.io/zone=b", "gpu=1", "labels=app=x apart", "labels=app=x together=" + zone, "labels=app=x spread=" + zone}).Draw(t, "more"))
		}
		s, err := scenario.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c := clusterOf(s)
		var places []*fit.Place
		for i := range s.Nodes {
			places = append(places, c.Add(c.TemplateFrom(&s.Nodes[i], none)))
		}
		places = append(places, c.Open("new", c.TemplateOf(&s.Groups[0].NodeTemplates[0])))
		answers := func() []string {
			var all []string
			for _, p := range places {
				for _, pod := range s.Pods {
					all = append(all, c.Fits(c.Tenant(pod).Class, p).String())
				}
				seated := strings.Fields(names(p.Tenants()))
				slices.Sort(seated) // their order has no meaning
				all = append(all, strings.Join(seated, " "))
			}
			return all
		}
		var marks []fit.Mark
		var before [][]string
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				marks, before = append(marks, c.Fork()), append(before, answers())
			case 1:
				if len(marks) == 0 {
					continue
				}
				last := len(marks) - 1
				c.Revert(marks[last])
				if diff := cmp.Diff(before[last], answers()); diff != "" {
					t.Fatalf("going back changed answers (-before +after):\n%s", diff)
				}
				marks, before = marks[:last], before[:last]
			case 2:
				if p := rapid.SampledFrom(places).Draw(t, "place"); len(p.Tenants()) > 0 {
					c.Lift(rapid.SampledFrom(p.Tenants()).Draw(t, "tenant"), p)
				}
			default:
				c.Seat(c.Tenant(rapid.SampledFrom(s.Pods).Draw(t, "pod")), places)
			}
		}
	})
}

// A pod that asks for a node by its name does not fit a node that comes.
func TestNewNodesAreNotThoseThatPodsName(t *testing.T) {
	c := fit.NewRules().Cluster(fit.World{})
	looks := c.TemplateOf(&fleet.NodeTemplate{Zone: "a", Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}})
	place := c.Open("new", looks)
	for _, tc := range []struct {
		operator corev1.NodeSelectorOperator
		fits     bool
	}{{corev1.NodeSelectorOpIn, false}, {corev1.NodeSelectorOpNotIn, true}} {
		pod := &fleet.Pod{Name: "p", Spec: &corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: tc.operator, Values: []string{"n1"}}},
			}}},
		}}}}
		class := c.Tenant(pod).Class
		if got := len(c.Fits(class, place)) == 0; got != tc.fits {
			t.Errorf("%s n1: fits a new node: %t", tc.operator, got)
		}
		why, _ := c.FitsNew(class, []*fit.NodeTemplate{looks})
		if got := len(why) == 0; got != tc.fits || got != c.Takes(class, []*fit.NodeTemplate{looks}) {
			t.Errorf("%s n1: would fit a new node: %t", tc.operator, got)
		}
	}
}
