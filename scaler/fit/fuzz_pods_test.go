package fit_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Small pools, so that what pods ask for and what there is collide.
var (
	namespaces = []string{"red", "green", "blue"}
	zones      = []string{"a", "b", "c"}
	topologies = []string{corev1.LabelTopologyZone, corev1.LabelHostname, "rack"}
)

const (
	hugepages = corev1.ResourceName("hugepages-2Mi")
	plugged   = corev1.ResourceName("example.com/fpga") // by a device plugin
	served    = corev1.ResourceName("example.com/gpu")  // by a DeviceClass, or by a plugin
)

// template is what pods of one owner have in common.
type template struct {
	namespace string
	labels    map[string]string
	spec      corev1.PodSpec
}

func (g *generator) template() template {
	t := template{namespace: one(g.dice, namespaces...), labels: g.podLabels()}
	t.spec.Containers = times(g.between(1, 2), func(i int) corev1.Container {
		return corev1.Container{Name: fmt.Sprint("c", i), Resources: g.resources()}
	})
	if g.chance(20) {
		t.spec.InitContainers = times(g.between(1, 2), g.initContainer)
	}
	if g.with(resources) && g.chance(10) {
		t.spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	}
	if g.with(podLevel) && g.minor >= 34 && g.chance(10) {
		t.spec.Resources = ptr.To(g.resources())
		for name := range t.spec.Resources.Requests {
			if name == plugged || name == served { // not at the level of pods
				delete(t.spec.Resources.Requests, name)
			}
		}
	}
	if g.with(nodeTerms) && g.chance(20) {
		t.spec.NodeSelector = map[string]string{"disk": one(g.dice, "ssd", "hdd")}
	}
	if g.chance(40) {
		t.spec.Affinity = g.affinity()
	}
	if g.with(taints) {
		t.spec.Tolerations = times(g.between(0, 2), g.toleration)
	}
	if g.with(spread) && g.chance(25) {
		t.spec.TopologySpreadConstraints = times(g.between(1, 2), g.constraint)
	}
	if g.with(declared) && g.chance(8) {
		t.spec.HostNetwork, t.spec.HostUsers = true, ptr.To(g.chance(30))
	}
	return t
}

func (g *generator) podLabels() map[string]string {
	labels := map[string]string{"app": one(g.dice, "web", "db")}
	if g.chance(50) {
		labels["tier"] = one(g.dice, "front", "back")
	}
	return labels
}

func (g *generator) resources() corev1.ResourceRequirements {
	requests := corev1.ResourceList{}
	if g.chance(70) {
		requests[corev1.ResourceCPU] = resource.MustParse(one(g.dice, "0", "250m", "500m", "1", "1500m"))
	}
	if g.chance(60) {
		requests[corev1.ResourceMemory] = resource.MustParse(one(g.dice, "0", "512Mi", "1Gi", "1500M"))
	}
	if g.chance(10) {
		requests[corev1.ResourceEphemeralStorage] = resource.MustParse(one(g.dice, "1Gi", "6Gi"))
	}
	if g.with(resources) && g.chance(8) {
		requests[hugepages] = resource.MustParse(one(g.dice, "2Mi", "4Mi"))
	}
	if g.with(resources) && g.chance(8) {
		requests[plugged] = resource.MustParse(one(g.dice, "0", "1", "2"))
	}
	if g.with(devices) && g.chance(5) {
		requests[served] = resource.MustParse(one(g.dice, "1", "2"))
	}
	return corev1.ResourceRequirements{Requests: requests}
}

func (g *generator) initContainer(i int) corev1.Container {
	c := corev1.Container{Name: fmt.Sprint("i", i), Resources: g.resources()}
	if g.chance(50) {
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	c.Ports = g.ports()
	return c
}

func (g *generator) ports() []corev1.ContainerPort {
	if !g.with(ports) || g.chance(75) {
		return nil
	}
	return times(g.between(1, 2), func(int) corev1.ContainerPort {
		return corev1.ContainerPort{
			ContainerPort: 80, HostPort: one[int32](g.dice, 0, 80, 81),
			Protocol: one(g.dice, "", corev1.ProtocolTCP, corev1.ProtocolUDP),
			HostIP:   one(g.dice, "", "0.0.0.0", "127.0.0.1", "10.0.0.1"),
		}
	})
}

func (g *generator) toleration(int) corev1.Toleration {
	t := corev1.Toleration{
		Key: one(g.dice, "", "dedicated", "spot", corev1.TaintNodeUnschedulable), Value: one(g.dice, "", "x", "y"),
		Operator: one(g.dice, "", corev1.TolerationOpEqual, corev1.TolerationOpExists),
		Effect:   one(g.dice, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
	}
	if t.Key == "" || t.Operator == corev1.TolerationOpExists {
		t.Operator, t.Value = corev1.TolerationOpExists, ""
	}
	return t
}

func (g *generator) affinity() *corev1.Affinity {
	a := &corev1.Affinity{}
	if g.with(nodeTerms) && g.chance(40) {
		a.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: times(g.between(1, 2), g.nodeTerm)},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}},
			}}},
		}
	}
	if !g.with(podTerms) {
		return a
	}
	if g.chance(40) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: times(g.between(1, 2), g.podTerm)}
	}
	if g.chance(50) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: times(g.between(1, 2), g.podTerm)}
	}
	if g.chance(10) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: g.podTerm(0)}}}
	}
	return a
}

func (g *generator) nodeTerm(int) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	if g.chance(80) {
		term.MatchExpressions = times(g.between(1, 2), g.nodeExpression)
	}
	if g.chance(25) {
		term.MatchFields = []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: one(g.dice, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
			Values: []string{one(g.dice, "n0", "n1", "n2")},
		}}
	}
	return term
}

func (g *generator) nodeExpression(int) corev1.NodeSelectorRequirement {
	switch g.IntN(4) {
	case 0:
		return corev1.NodeSelectorRequirement{Key: "cores", Operator: one(g.dice, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{one(g.dice, "4", "8")}}
	case 1:
		return corev1.NodeSelectorRequirement{Key: one(g.dice, "disk", "rack"), Operator: one(g.dice, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)}
	case 2:
		return corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: one(g.dice, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{"n0", "n1"}}
	}
	return corev1.NodeSelectorRequirement{
		Key: corev1.LabelTopologyZone, Operator: one(g.dice, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn),
		Values: zones[:g.between(1, 2)],
	}
}

func (g *generator) podTerm(int) corev1.PodAffinityTerm {
	term := corev1.PodAffinityTerm{TopologyKey: one(g.dice, topologies...), LabelSelector: g.labelSelector()}
	if g.chance(30) {
		term.Namespaces = some(g.dice, namespaces...)
	}
	if g.chance(25) {
		term.NamespaceSelector = one(g.dice, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"warm": "yes"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "warm", Operator: metav1.LabelSelectorOpDoesNotExist}}})
	}
	return term
}

func (g *generator) labelSelector() *metav1.LabelSelector {
	switch g.IntN(8) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: one(g.dice, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: one(g.dice, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn), Values: []string{"web"}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": one(g.dice, "web", "db")}}
}

func (g *generator) constraint(int) corev1.TopologySpreadConstraint {
	c := corev1.TopologySpreadConstraint{
		MaxSkew: int32(g.between(1, 2)), TopologyKey: one(g.dice, topologies...),
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.labelSelector(),
		NodeAffinityPolicy: one(g.dice, nil, ptr.To(corev1.NodeInclusionPolicyHonor), ptr.To(corev1.NodeInclusionPolicyIgnore)),
		NodeTaintsPolicy:   one(g.dice, nil, ptr.To(corev1.NodeInclusionPolicyHonor), ptr.To(corev1.NodeInclusionPolicyIgnore)),
	}
	if g.chance(30) {
		c.MinDomains = ptr.To(int32(g.between(1, 4)))
	}
	if g.chance(20) && c.LabelSelector != nil {
		c.MatchLabelKeys = []string{one(g.dice, "tier", "app", "none")}
	}
	if g.chance(15) {
		c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
	}
	return c
}

// pod makes the next pod of a template.
func (g *generator) pod(t template) *corev1.Pod {
	g.made++
	name := fmt.Sprint("p", g.made)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name, UID: types.UID(name), Labels: t.labels},
		Spec:       *t.spec.DeepCopy(),
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	g.ownClaims(pod)
	return pod
}

// settle puts a pod on a node, where it runs, ends, or is being deleted or resized.
func (g *generator) settle(pod *corev1.Pod, node string) {
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	g.use(pod)
	switch {
	case g.chance(5):
		pod.Status.Phase = one(g.dice, corev1.PodSucceeded, corev1.PodFailed)
	case g.chance(12):
		pod.DeletionTimestamp = &metav1.Time{Time: dawn}
	case g.with(resize) && g.chance(15):
		g.resize(pod)
	}
}

// resize has a change of a pod's resources under way: the node has not got as far as the
// spec, or reports that it never will.
func (g *generator) resize(pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name}
		if g.chance(80) {
			status.AllocatedResources = g.cpuAndMemory()
		}
		if g.chance(80) {
			status.Resources = &corev1.ResourceRequirements{Requests: g.cpuAndMemory()}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	if g.chance(50) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: one(g.dice, corev1.PodReasonInfeasible, corev1.PodReasonDeferred),
		})
	}
}

func (g *generator) cpuAndMemory() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(one(g.dice, "250m", "1", "2")),
		corev1.ResourceMemory: resource.MustParse(one(g.dice, "512Mi", "2Gi")),
	}
}
