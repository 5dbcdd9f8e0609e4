package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
)

// group is one that is its to scale.
type group struct {
	name              string
	min, max, desired int
	instances         []instance
	tags              map[string]string
	kind              string // the instance type
	zone              string
}

// instance is one of a group, and whether it leaves.
type instance struct {
	id      string
	leaving bool
}

// readGroups are those that are named and those with all the tags, by name.
func (a *autoscaler) readGroups(ctx context.Context) ([]group, error) {
	var groups []group
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(a.groupsAPI, &autoscaling.DescribeAutoScalingGroupsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describing the groups: %w", err)
		}
		for _, described := range page.AutoScalingGroups {
			g := groupOf(described)
			if !selects(a.selection, &g) {
				continue
			}
			if g.kind == "" {
				if g.kind, err = a.typeOf(ctx, described); err != nil {
					return nil, err
				}
			}
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.name, b.name) })
	return groups, nil
}

func groupOf(described astypes.AutoScalingGroup) group {
	g := group{
		name: aws.ToString(described.AutoScalingGroupName), tags: map[string]string{},
		min: int(aws.ToInt32(described.MinSize)), max: int(aws.ToInt32(described.MaxSize)), desired: int(aws.ToInt32(described.DesiredCapacity)),
	}
	for _, t := range described.Tags {
		g.tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	for _, i := range described.Instances {
		leaving := strings.HasPrefix(string(i.LifecycleState), "Terminat")
		g.instances = append(g.instances, instance{aws.ToString(i.InstanceId), leaving})
		g.kind = aws.ToString(i.InstanceType)
	}
	if m := described.MixedInstancesPolicy; m != nil && len(m.LaunchTemplate.Overrides) > 0 {
		g.kind = aws.ToString(m.LaunchTemplate.Overrides[0].InstanceType) // of all of them
	}
	if len(described.AvailabilityZones) > 0 {
		g.zone = described.AvailabilityZones[0]
	}
	return g
}

// selects reports whether a group is named, and sets the bounds that the flag gives it, or has all tags.
func selects(s asg.Selection, g *group) bool {
	for _, n := range s.Named {
		if n.Name == g.name {
			g.min, g.max = n.Min, n.Max
			return true
		}
	}
	for _, t := range s.Tags {
		if value, has := g.tags[t.Key]; !has || !t.Any && value != t.Value {
			return false
		}
	}
	return len(s.Tags) > 0
}

// typeOf is the instance type of a group's launch template.
func (a *autoscaler) typeOf(ctx context.Context, described astypes.AutoScalingGroup) (string, error) {
	t := described.LaunchTemplate
	if m := described.MixedInstancesPolicy; m != nil {
		t = m.LaunchTemplate.LaunchTemplateSpecification
	}
	if t == nil {
		return "", nil
	}
	id, version := aws.ToString(t.LaunchTemplateId), aws.ToString(t.Version)
	if version == "" {
		version = "$Default"
	}
	if kind, known := a.types[id+" "+version]; known {
		return kind, nil
	}
	answer, err := a.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &id, Versions: []string{version}})
	if err != nil {
		return "", fmt.Errorf("describing launch template %s: %w", id, err)
	}
	for _, v := range answer.LaunchTemplateVersions {
		a.types[id+" "+version] = string(v.LaunchTemplateData.InstanceType)
	}
	return a.types[id+" "+version], nil
}

// podsOfTemplate is how many pods a node is believed to take before there is one.
const podsOfTemplate = 110

// template is a node of the group: a Ready one of its nodes without its pods but those of DaemonSets, or
// what the instance type and the tags say. Its allocatable is its capacity then, as Cluster Autoscaler has it.
func (g *group) template(nodes []*node) *node {
	for _, n := range nodes {
		if n.group == nil || n.group.name != g.name || !n.ready() || n.goes() {
			continue
		}
		t := &node{Node: n.DeepCopy(), group: g}
		t.Name = "template-node-for-" + g.name
		t.Spec.Unschedulable = false
		t.Spec.Taints = slices.DeleteFunc(t.Spec.Taints, func(taint corev1.Taint) bool { return transient(taint.Key) })
		for _, p := range n.pods {
			if ofDaemonSet(p) {
				t.pods = append(t.pods, p)
			}
		}
		return t
	}
	kind, known := catalog.Lookup(g.kind)
	if !known {
		return nil
	}
	t := &node{group: g, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "template-node-for-" + g.name, Labels: map[string]string{
		corev1.LabelInstanceTypeStable: kind.Name, corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: g.zone,
	}}}}
	t.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(kind.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(kind.MemoryMiB)<<20, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(podsOfTemplate, resource.DecimalSI),
	}
	for key, value := range g.tags {
		if label, is := strings.CutPrefix(key, contract.TagTemplateLabel); is {
			t.Labels[label] = value
		}
		if taint, is := strings.CutPrefix(key, contract.TagTemplateTaint); is {
			value, effect, _ := strings.Cut(value, ":")
			t.Spec.Taints = append(t.Spec.Taints, corev1.Taint{Key: taint, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	return t
}

// transient reports whether a taint is of a node, and not of its group.
func transient(key string) bool {
	return key == contract.TaintToBeDeleted || key == contract.TaintDeletionCandidate || strings.HasPrefix(key, "node.kubernetes.io/")
}
