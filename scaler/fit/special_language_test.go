package fit_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Nodes and pods of the special cases are lines of words.
//
//	node   a1 zone=a rack=1 cpu=2 memory=1Gi pods=3 fpga=1 taint=dedicated disk=ssd nohost
//	pod    on=a1 in=red leaving app=web          a label where the word means nothing else
//	       cpu=1 init.cpu=1 sidecar.cpu=1 overhead.cpu=1 pod.cpu=1, likewise memory, fpga, hugepages
//	       port=80 port=UDP/80 port=TCP/127.0.0.1/80, likewise init.port, sidecar.port
//	       near=zone(app=web) apart=zone(app=web) with @red,blue or @{warm=yes} behind
//	       spread=zone/1(app=web) with ,min=3 ,affinity=Ignore ,taints=Honor ,keys=tier ,soft behind
//	       tolerates=dedicated zones=a,b
//
// A selector is written as kubectl takes it; none is -, and one that selects all
// is *.

var amounts = map[string]corev1.ResourceName{
	"cpu": corev1.ResourceCPU, "memory": corev1.ResourceMemory, "storage": corev1.ResourceEphemeralStorage,
	"pods": corev1.ResourcePods, "fpga": plugged, "hugepages": hugepages,
}

func lineNode(line string) *corev1.Node {
	words := strings.Fields(line)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: words[0], Labels: map[string]string{corev1.LabelHostname: words[0]}}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi")}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		amount, isAmount := amounts[key]
		switch {
		case isAmount:
			node.Status.Allocatable[amount] = resource.MustParse(value)
		case key == "taint":
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: value, Effect: corev1.TaintEffectNoSchedule})
		case key == "nohost":
			delete(node.Labels, corev1.LabelHostname)
		default:
			node.Labels[topology(key)] = value
		}
	}
	return node
}

func topology(word string) string {
	switch word {
	case "zone":
		return corev1.LabelTopologyZone
	case "host":
		return corev1.LabelHostname
	}
	return word
}

// linePod reads a pod; it has the containers main, init and sidecar.
func linePod(t *testing.T, name, line string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name, UID: types.UID(name), Labels: map[string]string{}}}
	main, first, sidecar := corev1.Container{Name: "main"}, corev1.Container{Name: "init"}, corev1.Container{Name: "sidecar", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		container := &main
		if rest, ok := strings.CutPrefix(key, "init."); ok {
			container, key = &first, rest
		} else if rest, ok := strings.CutPrefix(key, "sidecar."); ok {
			container, key = &sidecar, rest
		}
		if amount, ok := amounts[key]; ok {
			demand(&container.Resources, amount, value)
			continue
		}
		switch key {
		case "overhead.cpu", "overhead.memory":
			var overhead corev1.ResourceRequirements
			demand(&overhead, amounts[strings.TrimPrefix(key, "overhead.")], value)
			pod.Spec.Overhead = overhead.Requests
		case "pod.cpu", "pod.memory", "pod.hugepages":
			if pod.Spec.Resources == nil {
				pod.Spec.Resources = &corev1.ResourceRequirements{}
			}
			demand(pod.Spec.Resources, amounts[strings.TrimPrefix(key, "pod.")], value)
		case "port":
			container.Ports = append(container.Ports, linePort(t, value))
		case "on":
			pod.Spec.NodeName = value
		case "in":
			pod.Namespace = value
		case "leaving":
			pod.DeletionTimestamp = &metav1.Time{Time: dawn}
		case "near":
			a := pod.Spec.Affinity.PodAffinity
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, lineTerm(t, value))
		case "apart":
			a := pod.Spec.Affinity.PodAntiAffinity
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, lineTerm(t, value))
		case "spread":
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, lineSpread(t, value))
		case "tolerates":
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: value, Operator: corev1.TolerationOpExists})
		case "zones":
			pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(value, ",")}},
			}}}}
		case "selector":
			k, v, _ := strings.Cut(value, "=")
			pod.Spec.NodeSelector = map[string]string{topology(k): v}
		default:
			pod.Labels[key] = value
		}
	}
	pod.Spec.Containers = []corev1.Container{main}
	pod.Spec.InitContainers = []corev1.Container{first, sidecar}
	return pod
}

func demand(r *corev1.ResourceRequirements, name corev1.ResourceName, amount string) {
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[name] = resource.MustParse(amount)
}

func linePort(t *testing.T, text string) corev1.ContainerPort {
	t.Helper()
	parts := strings.Split(text, "/")
	n, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil {
		t.Fatalf("port %s: %v", text, err)
	}
	p := corev1.ContainerPort{ContainerPort: 1, HostPort: int32(n)}
	if len(parts) > 1 {
		p.Protocol = corev1.Protocol(parts[0])
	}
	if len(parts) > 2 {
		p.HostIP = parts[1]
	}
	return p
}

func lineTerm(t *testing.T, text string) corev1.PodAffinityTerm {
	t.Helper()
	key, rest, _ := strings.Cut(text, "(")
	selector, where, _ := strings.Cut(rest, ")")
	term := corev1.PodAffinityTerm{TopologyKey: topology(key), LabelSelector: lineSelector(t, selector)}
	where = strings.TrimPrefix(where, "@")
	if inner, ok := strings.CutPrefix(where, "{"); ok {
		term.NamespaceSelector = lineSelector(t, strings.TrimSuffix(inner, "}"))
	} else if where != "" {
		term.Namespaces = strings.Split(where, ",")
	}
	return term
}

func lineSelector(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	switch text {
	case "-":
		return nil
	case "*":
		return &metav1.LabelSelector{}
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		t.Fatalf("selector %s: %v", text, err)
	}
	return selector
}

func lineSpread(t *testing.T, text string) corev1.TopologySpreadConstraint {
	t.Helper()
	var c corev1.TopologySpreadConstraint
	head, rest, _ := strings.Cut(text, "(")
	selector, options, _ := strings.Cut(rest, ")")
	key, skew, _ := strings.Cut(head, "/")
	if _, err := fmt.Sscan(skew, &c.MaxSkew); err != nil {
		t.Fatalf("spread %s: %v", text, err)
	}
	c.TopologyKey, c.LabelSelector, c.WhenUnsatisfiable = topology(key), lineSelector(t, selector), corev1.DoNotSchedule
	for option := range strings.SplitSeq(strings.TrimPrefix(options, ","), ",") {
		name, value, _ := strings.Cut(option, "=")
		policy := corev1.NodeInclusionPolicy(value)
		switch name {
		case "min":
			c.MinDomains = new(int32)
			if _, err := fmt.Sscan(value, c.MinDomains); err != nil {
				t.Fatalf("spread %s: %v", text, err)
			}
		case "affinity":
			c.NodeAffinityPolicy = &policy
		case "taints":
			c.NodeTaintsPolicy = &policy
		case "keys":
			c.MatchLabelKeys = []string{value}
		case "soft":
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		case "":
		default:
			t.Fatalf("spread %s: what is %s?", text, option)
		}
	}
	return c
}
