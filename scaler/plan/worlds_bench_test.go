package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// The clusters of the benchmarks. Each is the same at every run: what is random
// about it comes from a seed.

const gib, mib = 1 << 30, 1 << 20

// benchNow is when the clusters of the benchmarks are seen. Everything in them
// is an hour old.
var benchNow = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

var benchZones = []string{"eu-1a", "eu-1b", "eu-1c"}

// labelApp is on every generated pod whose rules select pods.
const labelApp = "app"

// city is a cluster that is being generated.
type city struct {
	fleet.Snapshot
	dice *rand.Rand
}

func newCity() *city {
	return &city{
		Snapshot: fleet.Snapshot{
			Now: benchNow, Kubernetes: "1.36", Namespaces: map[string]map[string]string{metav1.NamespaceDefault: nil},
		},
		dice: rand.New(rand.NewPCG(1, 2)),
	}
}

// machine is what the nodes of a group are.
type machine struct {
	kind     string
	milliCPU int64
	memory   int64
	labels   map[string]string
	taints   []corev1.Taint
}

// standardPods is how many pods a kubelet takes by default.
const standardPods = 110

func (m machine) allocatable() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(m.milliCPU, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(m.memory, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(standardPods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(80*gib, resource.BinarySI),
	}
}

func (m machine) labelsIn(zone string) map[string]string {
	labels := map[string]string{
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-1", corev1.LabelInstanceTypeStable: m.kind,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
	}
	for key, value := range m.labels {
		labels[key] = value
	}
	return labels
}

// group adds a group of these machines over all zones whose launches are steered
// to a zone.
func (c *city) group(name string, m machine, most int) {
	g := fleet.Group{
		Name: name, ARN: "arn:aws:autoscaling:eu-1:1:autoScalingGroup:1:autoScalingGroupName/" + name,
		Max: most, Zones: benchZones, Template: "lt-" + name + ":1", Synchronous: true,
	}
	for _, zone := range benchZones {
		g.NodeTemplates = append(g.NodeTemplates, fleet.NodeTemplate{
			Zone: zone, InstanceType: m.kind, Capacity: m.allocatable(), Allocatable: m.allocatable(), Labels: m.labelsIn(zone), Taints: m.taints,
		})
	}
	c.Groups = append(c.Groups, g)
}

// node adds a node that serves to the group of that index.
func (c *city) node(group int, m machine, zone string) *fleet.Node {
	g := &c.Groups[group]
	number := len(c.Nodes)
	id := fmt.Sprintf("i-%017x", number)
	g.Desired++
	g.Instances = append(g.Instances, fleet.Instance{ID: id, Zone: zone, Type: m.kind, State: fleet.InService, Template: g.Template})
	labels := m.labelsIn(zone)
	name := fmt.Sprintf("node-%d", number)
	labels[corev1.LabelHostname] = name
	c.Nodes = append(c.Nodes, fleet.Node{
		Name: name, UID: types.UID("n" + strconv.Itoa(number)), ProviderID: "aws:///" + zone + "/" + id,
		Created: benchNow.Add(-time.Hour), Ready: true, ReadySince: benchNow.Add(-time.Hour),
		Labels: labels, Taints: m.taints, Capacity: m.allocatable(), Allocatable: m.allocatable(),
	})
	return &c.Nodes[number]
}

// template is what pods are made from. As observe keeps them, pods of one
// template share its spec.
type template struct {
	labels map[string]string
	spec   *corev1.PodSpec
	owner  *metav1.OwnerReference
}

func pods(milliCPU, memory int64) template {
	return template{spec: &corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		}},
	}}}}
}

// labelled gives the pods a label.
func (t template) labelled(key, value string) template {
	labels := map[string]string{key: value}
	for k, v := range t.labels {
		labels[k] = v
	}
	t.labels = labels
	return t
}

// owned gives the pods a controller.
func (t template) owned(name string) template {
	yes := true
	t.owner = &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: &yes}
	return t
}

// likes selects the pods' own label.
func likes(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// apart keeps the pods away from those with the label, one in each domain.
func (t template) apart(selector *metav1.LabelSelector, domain string) template {
	t.spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: domain}},
	}}
	return t
}

// together keeps the pods in one domain with those that have the label.
func (t template) together(selector *metav1.LabelSelector, domain string) template {
	t.spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: domain}},
	}}
	return t
}

// evenly spreads the pods over domains.
func (t template) evenly(selector *metav1.LabelSelector, domain string) template {
	t.spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: domain, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}}
	return t
}

// wait adds a pod that kube-scheduler found no node for.
func (c *city) wait(t template) {
	p := c.pod(t)
	p.Phase, p.Scheduling, p.Judged = fleet.PodPending, fleet.Unschedulable, fleet.SecondOf(benchNow.Add(-time.Second))
	c.Pods = append(c.Pods, p)
}

// run adds a pod that runs on a node.
func (c *city) run(t template, on *fleet.Node) {
	p := c.pod(t)
	p.Node, p.Phase, p.Ready = on.Name, fleet.PodRunning, true
	c.Pods = append(c.Pods, p)
}

func (c *city) pod(t template) *fleet.Pod {
	name := "pod-" + strconv.Itoa(len(c.Pods))
	return &fleet.Pod{
		Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name), Created: fleet.SecondOf(benchNow.Add(-time.Hour)),
		Labels: t.labels, Owner: t.owner, Spec: t.spec,
	}
}

// homogeneous: pods without controllers, fifty to a node, and no node yet.
func homogeneous(pending int) *city {
	c := newCity()
	c.group("web", machine{kind: "m5.large", milliCPU: 5_000, memory: 50 * 100 * mib}, 2_000)
	one := pods(100, 100*mib)
	for range pending {
		c.wait(one)
	}
	return c
}

// heterogeneous: pods of many specs in a cluster that is well filled.
func heterogeneous() *city {
	const groups, nodes, running, specs, waiting = 20, 5_000, 50_000, 1_000, 10_000
	c := newCity()
	machines := someMachines(groups)
	for i := range machines {
		m := &machines[i]
		m.labels = map[string]string{"team": fmt.Sprintf("team-%d", i%5)}
		if i%10 == 9 {
			m.taints = []corev1.Taint{{Key: "dedicated", Value: m.labels["team"], Effect: corev1.TaintEffectNoSchedule}}
		}
		c.group(fmt.Sprintf("group-%02d", i), *m, 1_000)
	}
	// The pods that run take nine tenths of each node, in equal parts.
	fillers := make([]template, groups)
	for i, m := range machines {
		share := int64(running / nodes)
		fillers[i] = pods(m.milliCPU*9/10/share, m.memory*9/10/share).owned(fmt.Sprintf("filler-%d", i))
		fillers[i].spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	for i := range nodes {
		group := i % groups
		n := c.node(group, machines[group], benchZones[i/groups%len(benchZones)])
		for range running / nodes {
			c.run(fillers[group], n)
		}
	}
	for spec := range specs {
		t := c.someTemplate().owned(fmt.Sprintf("app-%d", spec))
		for range waiting / specs {
			c.wait(t)
		}
	}
	return c
}

// someMachines are that many of different sizes and proportions; beyond fifteen
// they repeat.
func someMachines(count int) []machine {
	list := make([]machine, count)
	for i := range list {
		cores := int64(4) << (i % 5)            // 4 to 64
		perCore := int64(2) << (i / 5 % 3)      // 2, 4 or 8 GiB
		family := string("cmr"[i/5%3]) + "6i.x" // as AWS names them
		list[i] = machine{kind: family + strconv.FormatInt(cores, 10), milliCPU: cores*1000 - 90, memory: cores*perCore*gib*93/100 - gib}
	}
	return list
}

// someTemplate asks for something that a few of the machines can give: of each
// ten, two for a zone, two for a team, one for a dedicated node, one for an
// instance type that it does not want.
func (c *city) someTemplate() template {
	t := pods(50*(1+c.dice.Int64N(50)), 64*mib*(1+c.dice.Int64N(100)))
	switch c.dice.IntN(10) {
	case 0, 1:
		t.spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: benchZones[c.dice.IntN(len(benchZones))]}
	case 2, 3:
		t.spec.NodeSelector = map[string]string{"team": fmt.Sprintf("team-%d", c.dice.IntN(4))}
	case 4:
		t.spec.NodeSelector = map[string]string{"team": "team-4"}
		t.spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "team-4", Effect: corev1.TaintEffectNoSchedule}}
	case 5:
		t.spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"c6i.x4", "m6i.x4"},
				}},
			}}},
		}}
	}
	return t
}

// apartOnHosts: apps of as many pods as there will be nodes, each with one pod on
// a node at the most, and ten pods fill a node.
func apartOnHosts(apps, each int) *city {
	c := newCity()
	c.group("web", machine{kind: "m6i.large", milliCPU: int64(apps) * 200, memory: int64(apps) * 256 * mib}, each+1)
	for app := range apps {
		name := "app-" + strconv.Itoa(app)
		t := pods(200, 256*mib).labelled(labelApp, name).owned(name).apart(likes(labelApp, name), corev1.LabelHostname)
		for range each {
			c.wait(t)
		}
	}
	return c
}

// apartInZones: apps of three pods, each with one pod in a zone at the most, and
// ten pods fill a node.
func apartInZones(apps int) *city {
	const toANode = 10
	c := newCity()
	c.group("web", machine{kind: "m6i.large", milliCPU: toANode * 200, memory: toANode * 256 * mib}, apps)
	for app := range apps {
		name := "app-" + strconv.Itoa(app)
		t := pods(200, 256*mib).labelled(labelApp, name).owned(name).apart(likes(labelApp, name), corev1.LabelTopologyZone)
		for range benchZones {
			c.wait(t)
		}
	}
	return c
}

// Labels of the mix of fifths. As in the benchmark that it is taken from, plain
// and spread pods share one label, so that all of them count for the spread.
const (
	labelMix      = "my-label"
	labelAffinity = "my-affinity"
	nginx         = "nginx"
)

// fifths: a fifth each of plain pods, pods spread over zones, pods spread over
// hosts, pods that want to be in one zone with their like, and pods that all keep
// away from each other's host. Requests and labels are drawn from the values that
// Karpenter's BenchmarkScheduling draws from.
// https://github.com/kubernetes-sigs/karpenter/blob/main/pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go
func fifths(pending int) *city {
	const groups = 40
	c := newCity()
	for i, m := range someMachines(groups) {
		c.group(fmt.Sprintf("group-%02d", i), m, 1_000)
	}
	shared := map[string]template{}
	mixed := func(kind, key string, make func(template, *metav1.LabelSelector) template) {
		for range pending / 5 {
			cpu, memory := draw(c, 100, 250, 500, 1000, 1500), draw(c, 100, 256, 512, 1024, 2048, 4096)
			value := draw(c, "a", "b", "c", "d", "e", "f", "g")
			if key == labelApp {
				value = nginx
			}
			name := fmt.Sprint(kind, value, cpu, memory)
			if _, known := shared[name]; !known {
				shared[name] = make(pods(int64(cpu), int64(memory)*mib).labelled(key, value), likes(key, value))
			}
			c.wait(shared[name])
		}
	}
	mixed("plain", labelMix, func(t template, _ *metav1.LabelSelector) template { return t })
	mixed("zones", labelMix, func(t template, s *metav1.LabelSelector) template { return t.evenly(s, corev1.LabelTopologyZone) })
	mixed("hosts", labelMix, func(t template, s *metav1.LabelSelector) template { return t.evenly(s, corev1.LabelHostname) })
	mixed("together", labelAffinity, func(t template, s *metav1.LabelSelector) template {
		return t.together(s, corev1.LabelTopologyZone)
	})
	mixed("apart", labelApp, func(t template, s *metav1.LabelSelector) template { return t.apart(s, corev1.LabelHostname) })
	return c
}

// draw takes one of these values.
func draw[V any](c *city, values ...V) V { return values[c.dice.IntN(len(values))] }
