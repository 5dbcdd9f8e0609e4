package fit_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/oracle"
)

// dawn is when everything in a random world happened.
var dawn = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

// feature is a part of kube-scheduler's rules that random worlds make use of.
type feature uint

const (
	resources feature = 1 << iota
	ports
	nodeTerms
	taints
	podTerms
	spread
	volumes
	devices
	resize
	podLevel
	declared
)

// generator makes a random world of a Kubernetes version, 1.minor.
type generator struct {
	dice
	minor    int
	features feature
	made     int // pods
	oracle.World
}

func (g *generator) with(f feature) bool { return g.features&f != 0 }

// world is a random cluster, with what may come.
type world struct {
	oracle.World
	shapes []fleet.NodeTemplate
}

// newWorld makes the world of a seed.
func newWorld(seed uint64, minor int, features feature) world {
	g := &generator{dice: newDice(seed), minor: minor, features: features}
	g.Namespaces = map[string]map[string]string{"red": {"warm": "yes"}, "green": {}, "blue": nil}
	g.Nodes = times(g.between(1, 6), g.node)
	if g.with(volumes) {
		g.storage()
	}
	if g.with(devices) {
		g.hardware()
	}
	for range g.between(2, 7) {
		t := g.template()
		for i := range t.spec.Containers {
			t.spec.Containers[i].Ports = g.ports()
		}
		g.mount(&t)
		for range g.between(1, 4) {
			pod := g.pod(t)
			if g.chance(50) {
				g.settle(pod, one(g.dice, g.Nodes...).Name)
			}
			g.Pods = append(g.Pods, pod)
		}
	}
	return world{g.World, times(g.between(1, 2), g.shape)}
}

func (g *generator) node(i int) *corev1.Node {
	name := fmt.Sprint("n", i)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: g.nodeLabels()},
		Status:     corev1.NodeStatus{Allocatable: g.allocatable()},
	}
	if g.chance(95) {
		node.Labels[corev1.LabelHostname] = name
	}
	if g.with(taints) {
		node.Spec.Taints = g.taints()
		if g.chance(10) {
			node.Spec.Unschedulable = true
			if g.chance(50) {
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	if g.with(declared) {
		node.Status.DeclaredFeatures = some(g.dice, "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
	}
	return node
}

func (g *generator) nodeLabels() map[string]string {
	labels := map[string]string{}
	if g.chance(92) {
		labels[corev1.LabelTopologyZone] = one(g.dice, zones...)
	}
	if g.chance(60) {
		labels["rack"] = one(g.dice, "1", "2")
	}
	if g.chance(60) {
		labels["disk"] = one(g.dice, "ssd", "hdd")
	}
	if g.chance(60) {
		labels["cores"] = one(g.dice, "4", "8", "16", "many")
	}
	return labels
}

func (g *generator) allocatable() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(one(g.dice, "1930m", "2", "4")),
		corev1.ResourceMemory:           resource.MustParse(one(g.dice, "2Gi", "4Gi", "3900000000")),
		corev1.ResourcePods:             resource.MustParse(one(g.dice, "3", "5", "110")),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
	}
	if g.with(resources) && g.chance(25) {
		list[hugepages] = resource.MustParse("4Mi")
	}
	if g.with(resources) && g.chance(25) {
		list[plugged] = resource.MustParse(one(g.dice, "0", "1", "3"))
	}
	if g.with(devices) && g.chance(15) {
		list[served] = resource.MustParse(one(g.dice, "0", "1"))
	}
	return list
}

func (g *generator) taints() []corev1.Taint {
	return times(max(0, g.between(-2, 2)), func(int) corev1.Taint {
		return corev1.Taint{
			Key: one(g.dice, "dedicated", "spot"), Value: one(g.dice, "", "x", "y"),
			Effect: one(g.dice, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		}
	})
}

// shape is the template of an upcoming node.
func (g *generator) shape(int) fleet.NodeTemplate {
	s := fleet.NodeTemplate{Zone: one(g.dice, zones...), Allocatable: g.allocatable(), Labels: g.nodeLabels()}
	if g.with(taints) {
		s.Taints = g.taints()
	}
	if g.with(declared) {
		s.DeclaredFeatures = some(g.dice, "UserNamespacesHostNetworkSupport")
	}
	if g.with(volumes) && g.chance(60) {
		s.Drivers = []storagev1.CSINodeDriver{{Name: csiDriver, NodeID: "template", Allocatable: &storagev1.VolumeNodeResources{Count: g.limit()}}}
	}
	if g.with(devices) && g.chance(60) {
		s.Slices = append(s.Slices, g.slice("template"))
	}
	return s
}

// nodeOf is the node that comes of a node template.
func nodeOf(s fleet.NodeTemplate, name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for k, v := range s.Labels {
		node.Labels[k] = v
	}
	node.Labels[corev1.LabelTopologyZone] = s.Zone
	node.Labels[corev1.LabelHostname] = name
	node.Spec.Taints = s.Taints
	node.Status.Allocatable = s.Allocatable
	node.Status.DeclaredFeatures = s.DeclaredFeatures
	return node
}
