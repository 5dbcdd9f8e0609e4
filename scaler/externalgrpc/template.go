package externalgrpc

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Bounds of a Node that a provider describes. Kubernetes' own are not reached by these.
const (
	mostTemplate  = 256 << 10 // bytes
	mostLabels    = 500
	mostTaints    = 100
	mostResources = 100
)

// mostOf is how much a machine may have of a resource; of others mostOther. More is no machine,
// and figures near the end of int64 overflow where pods are added up.
var (
	mostOf = map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU:              resource.MustParse("100k"),
		corev1.ResourceMemory:           resource.MustParse("1Pi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ei"),
		corev1.ResourcePods:             resource.MustParse("100k"),
	}
	mostOther = resource.MustParse("1Pi")
)

// described is the Node that a provider describes, as it came: by the name of its field since
// November 2025, or of before.
func described(r *protocol.NodeGroupTemplateNodeInfoResponse) []byte {
	if len(r.GetNodeBytes()) > 0 {
		return r.GetNodeBytes()
	}
	return r.GetNodeInfo()
}

// readTemplate reads a Node that a provider describes. It is refused as a whole where a part of it
// cannot be: pods must not be sent to a machine of which only some is understood.
func readTemplate(encoded []byte) (t fleet.NodeTemplate, node *corev1.Node, err error) {
	if len(encoded) == 0 {
		return fleet.NodeTemplate{}, nil, errors.New("it is empty")
	}
	if len(encoded) > mostTemplate {
		return fleet.NodeTemplate{}, nil, fmt.Errorf("it has %d bytes, more than %d", len(encoded), mostTemplate)
	}
	node = &corev1.Node{}
	if err := node.Unmarshal(encoded); err != nil {
		return fleet.NodeTemplate{}, nil, fmt.Errorf("it is no Node in protobuf: %s", clean(err.Error()))
	}
	allocatable := node.Status.Allocatable
	if len(allocatable) == 0 {
		allocatable = node.Status.Capacity
	}
	if err := errors.Join(checkRoom(allocatable), checkRoom(node.Status.Capacity), checkLabels(node.Labels), checkTaints(node.Spec.Taints)); err != nil {
		return fleet.NodeTemplate{}, nil, errors.New(clean(strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	if allocatable.Cpu().IsZero() || allocatable.Memory().IsZero() || allocatable.Pods().IsZero() {
		return fleet.NodeTemplate{}, nil, errors.New("it needs cpu, memory and pods in status.allocatable, or in status.capacity")
	}
	labels := maps.Clone(node.Labels)
	delete(labels, corev1.LabelHostname) // each node has its own
	taints := slices.Clone(node.Spec.Taints)
	for i := range taints {
		taints[i].TimeAdded = nil // that of a node that is not
	}
	slices.SortFunc(taints, func(a, b corev1.Taint) int { return cmp.Compare(a.ToString(), b.ToString()) })
	return fleet.NodeTemplate{
		Zone: labels[corev1.LabelTopologyZone], InstanceType: labels[corev1.LabelInstanceTypeStable],
		Capacity: node.Status.Capacity, Allocatable: allocatable, Labels: labels, Taints: taints,
	}, node, nil
}

// versionOf is another one where another node would come, and only there: some providers describe it
// with another name, and with conditions of that moment, each time. The price is not part of it yet.
func versionOf(t fleet.NodeTemplate) string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("a node template does not encode: %v", err)) // texts and quantities always do
	}
	sum := sha256.Sum256(text)
	return "provider:" + hex.EncodeToString(sum[:6])
}

func checkRoom(list corev1.ResourceList) error {
	if len(list) > mostResources {
		return fmt.Errorf("it has %d resources, more than %d", len(list), mostResources)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		most, known := mostOf[name]
		if !known {
			most = mostOther
		}
		if problems := validation.IsQualifiedName(string(name)); len(problems) > 0 {
			return fmt.Errorf("resource %q: %s", contract.Shorten(string(name), 80), problems[0])
		}
		if amount := list[name]; amount.Sign() < 0 || amount.Cmp(most) > 0 {
			return fmt.Errorf("it has %s of %s: want 0 to %s", contract.Shorten(amount.String(), 40), name, most.String())
		}
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > mostLabels {
		return fmt.Errorf("it has %d labels, more than %d", len(labels), mostLabels)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...); len(problems) > 0 {
			return fmt.Errorf("label %q: %s", contract.Shorten(key, 80), problems[0])
		}
	}
	return nil
}

func checkTaints(taints []corev1.Taint) error {
	if len(taints) > mostTaints {
		return fmt.Errorf("it has %d taints, more than %d", len(taints), mostTaints)
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	for _, t := range taints {
		if problems := append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...); len(problems) > 0 {
			return fmt.Errorf("taint %q: %s", contract.Shorten(t.Key, 80), problems[0])
		}
		if !slices.Contains(effects, t.Effect) {
			return fmt.Errorf("taint %s has the effect %q: want one of %v", t.Key, contract.Shorten(string(t.Effect), 40), effects)
		}
	}
	return nil
}

// mostPrice is what a machine may cost in an hour, in US dollars.
const mostPrice = 1e5

// readPrice is a price for an hour, or says why it is none.
func readPrice(price float64) (float64, error) {
	if math.IsNaN(price) || price < 0 || price > mostPrice {
		return 0, fmt.Errorf("%v dollars an hour: want 0 to %v", price, float64(mostPrice))
	}
	return price, nil
}
