package template

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
)

// typeInfo has the figures of an instance type.
type typeInfo struct {
	name   string
	arch   string // as Kubernetes spells it: amd64, arm64
	cores  int64
	memory int64 // bytes on paper
	disks  int64 // bytes of its own disks together
	nitro  bool
	// interfaces of the default network card, which alone serves pods, and IPv4
	// addresses of each.
	interfaces, addresses int64
	// devices are extended resources that the usual device plugins announce.
	devices map[corev1.ResourceName]int64
}

// Extended resources of accelerators, by maker.
const (
	resourceNvidia = "nvidia.com/gpu"
	resourceAMD    = "amd.com/gpu"
	resourceNeuron = "aws.amazon.com/neuron"
	resourceCores  = "aws.amazon.com/neuroncore"
	resourceHabana = "habana.ai/gaudi"
)

// typeBook looks instance types up once: their figures never change.
type typeBook struct {
	aws Describer

	mu    sync.Mutex
	known map[string]typeInfo
}

// typesAtOnce is the most that EC2 describes in one call.
const typesAtOnce = 100

// get returns the figures of all names, in their order. The error names a type that EC2 does
// not know.
func (b *typeBook) get(ctx context.Context, names []string) ([]typeInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for chunk := range slices.Chunk(b.unknown(names), typesAtOnce) {
		if err := b.fetch(ctx, chunk); err != nil {
			return nil, err
		}
	}
	infos := make([]typeInfo, 0, len(names))
	for _, name := range names {
		info, ok := b.known[name]
		if !ok {
			return nil, fmt.Errorf("instance type %s: %w", name, errMissing)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (b *typeBook) unknown(names []string) []string {
	var out []string
	for _, name := range names {
		if _, ok := b.known[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (b *typeBook) fetch(ctx context.Context, names []string) error {
	described, err := b.aws.InstanceTypes(ctx, names)
	if err != nil {
		return err
	}
	for _, t := range described {
		b.known[string(t.InstanceType)] = newTypeInfo(t)
	}
	return nil
}

func newTypeInfo(t ec2types.InstanceTypeInfo) typeInfo {
	info := typeInfo{name: string(t.InstanceType), arch: "amd64", devices: map[corev1.ResourceName]int64{}}
	if t.ProcessorInfo != nil && slices.Contains(t.ProcessorInfo.SupportedArchitectures, ec2types.ArchitectureTypeArm64) {
		info.arch = "arm64"
	}
	if t.VCpuInfo != nil {
		info.cores = int64(aws.ToInt32(t.VCpuInfo.DefaultVCpus))
	}
	if t.MemoryInfo != nil {
		info.memory = aws.ToInt64(t.MemoryInfo.SizeInMiB) * mebi
	}
	if n := t.NetworkInfo; n != nil {
		info.interfaces, info.addresses = interfaces(n), int64(aws.ToInt32(n.Ipv4AddressesPerInterface))
	}
	if s := t.InstanceStorageInfo; s != nil {
		info.disks = aws.ToInt64(s.TotalSizeInGB) * giga
	}
	info.nitro = t.Hypervisor == ec2types.InstanceTypeHypervisorNitro || aws.ToBool(t.BareMetal)
	if t.GpuInfo != nil {
		for _, gpu := range t.GpuInfo.Gpus {
			info.addDevice(gpuResource(aws.ToString(gpu.Manufacturer)), aws.ToInt32(gpu.Count))
		}
	}
	if t.NeuronInfo != nil {
		for _, neuron := range t.NeuronInfo.NeuronDevices {
			info.addDevice(resourceNeuron, aws.ToInt32(neuron.Count))
			if neuron.CoreInfo != nil {
				info.addDevice(resourceCores, aws.ToInt32(neuron.Count)*aws.ToInt32(neuron.CoreInfo.Count))
			}
		}
	}
	return info
}

// giga is EC2's unit of disks.
const giga = int64(1_000_000_000)

// interfaces of the default network card: the VPC CNI puts pods on no other.
// https://github.com/aws/amazon-vpc-cni-k8s/blob/master/misc/eni-max-pods.txt
func interfaces(n *ec2types.NetworkInfo) int64 {
	for _, card := range n.NetworkCards {
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) {
			return int64(aws.ToInt32(card.MaximumNetworkInterfaces))
		}
	}
	return int64(aws.ToInt32(n.MaximumNetworkInterfaces))
}

func gpuResource(maker string) corev1.ResourceName {
	switch strings.ToUpper(maker) {
	case "NVIDIA":
		return resourceNvidia
	case "AMD":
		return resourceAMD
	case "HABANA":
		return resourceHabana
	}
	return ""
}

func (t *typeInfo) addDevice(name corev1.ResourceName, count int32) {
	if name != "" && count > 0 {
		t.devices[name] += int64(count)
	}
}
