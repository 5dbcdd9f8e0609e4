package world

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/pkg/contract"
)

// Annotations that steer kwok; e2e/controlplane/stages.yaml explains them.
const (
	annotationFake    = "kwok.x-k8s.io/node"
	annotationReadyAt = "node-ready.stage.kwok.x-k8s.io/at"
)

// kubeletVersion is what the simulated kubelets say that they are.
const kubeletVersion = "v1.36.3-eks-0000000"

// never is the Ready time of a node that shall not turn Ready.
var never = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// nodeOf is what the Node of an instance is made of.
type nodeOf struct {
	instance cloud.Instance
	group    cloud.Group // the zero group if the instance is of none
	region   string
	diskGiB  int
	readyAt  time.Time
}

// node returns the Node as the kubelet of an EKS image registers it, with what
// the AWS cloud controller adds within the same second: the provider id and the
// labels of type, zone and region. It is NotReady until readyAt.
func (m nodeOf) node() (*corev1.Node, error) {
	t, ok := catalog.Lookup(m.instance.Type)
	if !ok {
		return nil, fmt.Errorf("unknown instance type %q", m.instance.Type)
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   m.instance.PrivateDNSName,
			Labels: m.labels(t),
			Annotations: map[string]string{
				annotationFake:    "fake",
				annotationReadyAt: m.readyAt.UTC().Format(time.RFC3339Nano),
			},
		},
		Spec: corev1.NodeSpec{ProviderID: m.instance.ProviderID(), Taints: m.taints()},
		Status: corev1.NodeStatus{
			Conditions: notReady("KubeletNotReady", "container runtime network not ready: cni plugin not initialized"),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.instance.PrivateIP},
				{Type: corev1.NodeInternalDNS, Address: m.instance.PrivateDNSName},
				{Type: corev1.NodeHostName, Address: m.instance.PrivateDNSName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				BootID:                  m.instance.BootID,
				MachineID:               "ec2" + strings.TrimPrefix(m.instance.ID, "i-"),
				SystemUUID:              "ec2" + strings.TrimPrefix(m.instance.ID, "i-"),
				OperatingSystem:         "linux",
				Architecture:            architecture(t.Arch),
				OSImage:                 "Amazon Linux 2023 (simulated)",
				KernelVersion:           "6.12.0-simulated.amzn2023",
				ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion:          kubeletVersion,
			},
		},
	}
	n.Status.Capacity = m.capacity(t)
	n.Status.Allocatable = allocatable(n.Status.Capacity)
	return n, nil
}

func notReady(reason, message string) []corev1.NodeCondition {
	return []corev1.NodeCondition{readiness(corev1.ConditionFalse, reason, message)}
}

// readiness is what we say of a node, beside kwok. The heartbeat is older than any of kwok's: the
// controller of nodes takes a condition with the heartbeat that it knows for the one that it knows,
// and heartbeats have whole seconds. A node that turned Ready within its first second was NotReady
// to it for minutes, and so were pods of which it heard late: it says so on them, and nobody here
// takes that back.
func readiness(status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
	now := time.Now()
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, Message: message,
		LastHeartbeatTime: metav1.NewTime(now.Add(-time.Hour)), LastTransitionTime: metav1.NewTime(now),
	}
}

func architecture(a catalog.Arch) string {
	if a == catalog.ARM {
		return "arm64"
	}
	return "amd64"
}

// labels: the well-known ones, those of EKS managed node groups, and those that
// the group's node-template tags promise.
func (m nodeOf) labels(t catalog.Type) map[string]string {
	arch := architecture(t.Arch)
	labels := map[string]string{
		corev1.LabelHostname:                m.instance.PrivateDNSName,
		corev1.LabelArchStable:              arch,
		corev1.LabelOSStable:                "linux",
		"beta.kubernetes.io/arch":           arch,
		"beta.kubernetes.io/os":             "linux",
		corev1.LabelInstanceTypeStable:      t.Name,
		corev1.LabelInstanceType:            t.Name,
		corev1.LabelTopologyRegion:          m.region,
		corev1.LabelTopologyZone:            m.instance.Zone,
		corev1.LabelFailureDomainBetaRegion: m.region,
		corev1.LabelFailureDomainBetaZone:   m.instance.Zone,
		"topology.k8s.aws/zone-id":          m.instance.ZoneID,
	}
	if eks := m.group.EKS; eks != nil {
		labels["eks.amazonaws.com/nodegroup"] = eks.Name
		labels["eks.amazonaws.com/nodegroup-image"] = m.instance.Image
		labels["eks.amazonaws.com/capacityType"] = "ON_DEMAND"
		if m.instance.Spot {
			labels["eks.amazonaws.com/capacityType"] = "SPOT"
		}
		if m.instance.LaunchTemplateID != "" {
			labels["eks.amazonaws.com/sourceLaunchTemplateId"] = m.instance.LaunchTemplateID
			labels["eks.amazonaws.com/sourceLaunchTemplateVersion"] = fmt.Sprint(m.instance.LaunchTemplateVersion)
		}
		for key, value := range eks.Labels {
			labels[key] = value
		}
	}
	for tag, value := range m.group.Tags {
		if key, found := strings.CutPrefix(tag, contract.TagTemplateLabel); found {
			labels[key] = value
		}
	}
	return labels
}

func (m nodeOf) taints() []corev1.Taint {
	var taints []corev1.Taint
	if m.group.EKS != nil {
		for _, t := range m.group.EKS.Taints {
			taint := corev1.Taint{Key: t.Key, Effect: effects[t.Effect]}
			if t.Value != nil {
				taint.Value = *t.Value
			}
			taints = append(taints, taint)
		}
	}
	for tag, spec := range m.group.Tags {
		key, found := strings.CutPrefix(tag, contract.TagTemplateTaint)
		if !found {
			continue
		}
		value, effect, found := strings.Cut(spec, ":")
		if !found {
			continue // a malformed tag describes nothing; the node does not have it
		}
		taints = append(taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return taints
}

// effects translates taint effects as the EKS API spells them.
var effects = map[string]corev1.TaintEffect{
	"NO_SCHEDULE":        corev1.TaintEffectNoSchedule,
	"NO_EXECUTE":         corev1.TaintEffectNoExecute,
	"PREFER_NO_SCHEDULE": corev1.TaintEffectPreferNoSchedule,
}

func (m nodeOf) capacity(t catalog.Type) corev1.ResourceList {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(t.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(m.instance.MemoryMiB)<<20, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(maxPods(t), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(int64(m.diskGiB)<<30-diskOverhead, resource.BinarySI),
		"hugepages-1Gi":                 resource.MustParse("0"),
		"hugepages-2Mi":                 resource.MustParse("0"),
	}
	if t.GPUs.Count > 0 && strings.EqualFold(t.GPUs.Manufacturer, "nvidia") {
		capacity["nvidia.com/gpu"] = *resource.NewQuantity(int64(t.GPUs.Count), resource.DecimalSI)
	}
	return capacity
}

// diskOverhead is what the partition table and the empty file system take of a
// root volume.
const diskOverhead = 12 << 20

// maxPods is how many pods the VPC CNI can give an address on a node: each
// network interface keeps one address for itself, and two pods use the host's.
// https://github.com/aws/amazon-vpc-cni-k8s/blob/master/misc/eni-max-pods.txt
func maxPods(t catalog.Type) int64 {
	return int64(t.MaxENIs)*(int64(t.IPv4PerENI)-1) + 2
}

// allocatable is what kube-reserved and the hard eviction thresholds of an EKS
// image leave of the capacity. They reserve 255 MiB and 11 MiB per pod of
// memory, a falling share of the cores, 1 GiB of disk; 100 MiB of memory and
// 10 % of the disk are the eviction thresholds.
// https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
func allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	left := capacity.DeepCopy()
	pods := capacity.Pods().Value()
	take(left, corev1.ResourceMemory, resource.NewQuantity((255+11*pods+100)<<20, resource.BinarySI))
	take(left, corev1.ResourceCPU, resource.NewMilliQuantity(reservedMilliCPU(capacity.Cpu().Value()), resource.DecimalSI))
	disk := capacity.StorageEphemeral().Value()
	take(left, corev1.ResourceEphemeralStorage, resource.NewQuantity(disk/10+1<<30, resource.BinarySI))
	return left
}

func take(from corev1.ResourceList, name corev1.ResourceName, amount *resource.Quantity) {
	q := from[name]
	q.Sub(*amount)
	if q.Sign() < 0 {
		q = resource.Quantity{Format: q.Format}
	}
	from[name] = q
}

// reservedMilliCPU: 6 % of the first core, 1 % of the second, half a percent of
// the next two, a quarter of a percent of each further one.
func reservedMilliCPU(cores int64) int64 {
	shares := []int64{600, 100, 50, 50} // hundredths of a millicore per 10 millicores
	var reserved int64
	for core := range cores {
		if core < int64(len(shares)) {
			reserved += shares[core]
			continue
		}
		reserved += 25
	}
	return reserved / 10
}

// systemNode returns one of the fixed nodes of no group, which carry what must
// not make a group grow. It is big, tainted and Ready at once.
func systemNode(i int, region, zone string) *corev1.Node {
	name := fmt.Sprintf("ip-10-255-0-%d.%s.compute.internal", i+10, region)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{annotationFake: "fake"},
			Labels: map[string]string{
				corev1.LabelHostname:       name,
				corev1.LabelArchStable:     "amd64",
				corev1.LabelOSStable:       "linux",
				corev1.LabelTopologyRegion: region,
				corev1.LabelTopologyZone:   zone,
				labelSystem:                "true",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("aws:///%s/i-%017d", zone, i+1), Taints: []corev1.Taint{{Key: "CriticalAddonsOnly", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: notReady("KubeletNotReady", "starting"),
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.255.0.%d", i+10)}, {Type: corev1.NodeHostName, Address: name}},
			NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: kubeletVersion},
		},
	}
}

// labelSystem marks the fixed nodes.
const labelSystem = "e2e/system"
