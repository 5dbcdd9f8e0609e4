package template

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// tagged is what a group's tags set for its new nodes, in the words of Cluster
// Autoscaler.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md#auto-discovery-setup
type tagged struct {
	labels    map[string]string
	taints    []corev1.Taint
	resources corev1.ResourceList
	options   fleet.ScaleDownOptions
	headroom  fleet.Headroom
	// nodegroup and cluster are set for a managed group of EKS.
	nodegroup, cluster string
	// faults has a sentence for each tag that sets nothing we understand.
	faults []string
}

// readTags never fails: a tag that is malformed is left out and named.
func readTags(tags []astypes.TagDescription) tagged {
	t := tagged{labels: map[string]string{}, resources: corev1.ResourceList{}}
	for _, tag := range tags {
		key, value := aws.ToString(tag.Key), aws.ToString(tag.Value)
		if err := t.read(key, value); err != nil {
			t.faults = append(t.faults, fmt.Sprintf("tag %s=%s is left out: %v", key, value, err))
		}
	}
	slices.Sort(t.faults)
	slices.SortFunc(t.taints, compareTaints)
	return t
}

func (t *tagged) read(key, value string) error {
	switch key {
	case contract.TagEKSNodegroup:
		t.nodegroup = value
		return nil
	case contract.TagEKSCluster:
		t.cluster = value
		return nil
	case contract.TagHeadroom:
		return t.headroom.Set(value)
	}
	if name, ok := strings.CutPrefix(key, contract.TagTemplateLabel); ok {
		return t.label(name, value)
	}
	if name, ok := strings.CutPrefix(key, contract.TagTemplateTaint); ok {
		return t.taint(name, value)
	}
	if name, ok := strings.CutPrefix(key, contract.TagTemplateResource); ok {
		return t.resource(name, value)
	}
	if name, ok := strings.CutPrefix(key, contract.TagTemplateOption); ok {
		return t.option(name, value)
	}
	return nil
}

func (t *tagged) label(name, value string) error {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return fmt.Errorf("%q is no label name: %s", name, wrong[0])
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("%q is no label value: %s", value, wrong[0])
	}
	t.labels[name] = value
	return nil
}

var taintEffects = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

// taint reads value:Effect; the value may be empty.
func (t *tagged) taint(name, text string) error {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return fmt.Errorf("%q is no taint key: %s", name, wrong[0])
	}
	value, effect, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains(taintEffects, corev1.TaintEffect(effect)) {
		return fmt.Errorf("want value:Effect, with one of the effects %v", taintEffects)
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("%q is no taint value: %s", value, wrong[0])
	}
	t.taints = append(t.taints, corev1.Taint{Key: name, Value: value, Effect: corev1.TaintEffect(effect)})
	return nil
}

// resource takes what kube-scheduler counts: standard resources, and those with a domain.
// https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources
func (t *tagged) resource(name, value string) error {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return fmt.Errorf("%q is no resource: %s", name, wrong[0])
	}
	standard := slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}, corev1.ResourceName(name))
	if !standard && !strings.Contains(name, "/") && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) && !strings.HasPrefix(name, corev1.ResourceAttachableVolumesPrefix) {
		return fmt.Errorf("%q is no resource: want cpu, memory, ephemeral-storage, pods, hugepages-2Mi or such, or a name with a domain such as nvidia.com/gpu", name)
	}
	quantity, err := fleet.ParseQuantity(value)
	if err != nil {
		return err
	}
	if quantity.Sign() < 0 {
		return fmt.Errorf("a resource cannot be negative")
	}
	t.resources[corev1.ResourceName(name)] = quantity
	return nil
}

func (t *tagged) option(name, value string) error {
	switch name {
	case "scaledownutilizationthreshold":
		return share(value, &t.options.UtilizationThreshold)
	case "scaledowngpuutilizationthreshold":
		return share(value, &t.options.GPUUtilizationThreshold)
	case "scaledownunneededtime":
		return duration(value, &t.options.UnneededTime)
	case "scaledownunreadytime":
		return duration(value, &t.options.UnreadyTime)
	case "ignoredaemonsetsutilization":
		ignore, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		t.options.IgnoreDaemonSets = &ignore
	}
	return nil
}

func share(text string, into **float64) error {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s <= 1) { // which NaN is not
		return fmt.Errorf("%q is no share between 0 and 1", text)
	}
	*into = &s
	return nil
}

func duration(text string, into **metav1.Duration) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no duration such as 10m", text)
	}
	*into = &metav1.Duration{Duration: d}
	return nil
}

func compareTaints(a, b corev1.Taint) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return strings.Compare(string(a.Effect), string(b.Effect))
}
