package asg

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the kubelet of an EKS optimized image makes of an instance.
// https://github.com/awslabs/amazon-eks-ami, nodeadm/internal/kubelet
const (
	mebi = int64(1) << 20
	gibi = int64(1) << 30

	// A node reports less memory than its type has on paper: firmware and the
	// kernel keep some. Cluster Autoscaler and Karpenter assume 7.5 % until
	// they know better.
	// https://karpenter.sh/docs/reference/settings/ (vm-memory-overhead-percent)
	memoryOverhead = 0.075

	// Of memory, kubeReserved keeps 255 MiB and 11 MiB for each pod; the hard
	// eviction threshold keeps 100 MiB more.
	reservedMemory       = 255 * mebi
	reservedMemoryPerPod = 11 * mebi
	evictionMemory       = 100 * mebi

	// Of the root volume, the hard eviction threshold keeps a tenth and
	// kubeReserved 1 GiB.
	evictionStorageShare = 10
	reservedStorage      = 1 * gibi
	// An EKS optimized image asks for a root volume of 20 GiB where its launch
	// template says nothing.
	defaultVolume = 20 * gibi
)

// reservedCPU is kubeReserved's share in thousandths of a core: 6 % of the
// first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the others.
func reservedCPU(cores int64) int64 {
	// In hundredths of a thousandth, so that nothing is lost before the end.
	steps := []struct{ cores, share int64 }{{1, 6000}, {1, 1000}, {2, 500}}
	var total int64
	for _, step := range steps {
		n := min(cores, step.cores)
		total += n * step.share
		cores -= n
	}
	return (total + cores*250) / 100
}

// maxPods is how many pods find an IP address: each interface has one address
// for itself, and two pods use the host's.
// https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
func maxPods(interfaces, addresses int64) int64 {
	return interfaces*(addresses-1) + 2
}

// capacity is what the node reports as its own. seen is the memory that nodes
// of the type were seen to report, nil if none was.
func (t typeInfo) capacity(volume int64, seen *resource.Quantity) corev1.ResourceList {
	memory := *resource.NewQuantity(int64(float64(t.memory)*(1-memoryOverhead)), resource.BinarySI)
	if seen != nil {
		memory = *seen
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(t.cores, resource.DecimalSI),
		corev1.ResourceMemory:           memory,
		corev1.ResourcePods:             *resource.NewQuantity(t.maxPods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(volume, resource.BinarySI),
	}
	for name, count := range t.devices {
		list[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}

// allocatable is what of the capacity pods may have. The figures depend on the
// type's own cores and pods, and so does what the kubelet keeps.
func allocatable(capacity corev1.ResourceList) corev1.ResourceList {
	list := capacity.DeepCopy()
	cores, pods := capacity.Cpu().Value(), capacity.Pods().Value()
	list[corev1.ResourceCPU] = *resource.NewMilliQuantity(capacity.Cpu().MilliValue()-reservedCPU(cores), resource.DecimalSI)
	memory := capacity.Memory().Value() - reservedMemory - reservedMemoryPerPod*pods - evictionMemory
	list[corev1.ResourceMemory] = *resource.NewQuantity(max(0, memory), resource.BinarySI)
	storage := capacity.StorageEphemeral().Value()
	storage -= storage/evictionStorageShare + reservedStorage
	list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(max(0, storage), resource.BinarySI)
	return list
}
