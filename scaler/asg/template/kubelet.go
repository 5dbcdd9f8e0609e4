package template

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg/userdata"
)

// What the kubelet of an EKS optimized image makes of an instance. nodeadm of
// Amazon Linux 2023, bootstrap.sh of Amazon Linux 2 and Bottlerocket agree.
// https://github.com/awslabs/amazon-eks-ami, nodeadm/internal/kubelet
const (
	mebi = int64(1) << 20
	gibi = int64(1) << 30

	// Of memory, kubeReserved keeps 255 MiB and 11 MiB for each pod.
	reservedMemory       = 255
	reservedMemoryPerPod = 11
	// An EKS optimized image asks for a volume of 20 GiB where its launch template
	// sets none.
	defaultVolume = 20 * gibi
)

// The kubelet's words for what runs short.
// https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#eviction-signals
const (
	memoryAvailable = "memory.available"
	nodefsAvailable = "nodefs.available"
)

var imageEviction = map[string]string{memoryAvailable: "100Mi", nodefsAvailable: "10%"}

// imageReserved is kubeReserved as the image reckons it.
func imageReserved(cores, pods int64) map[string]string {
	return map[string]string{
		"cpu":               strconv.FormatInt(reservedCPU(cores), 10) + "m",
		"memory":            strconv.FormatInt(reservedMemory+reservedMemoryPerPod*pods, 10) + "Mi",
		"ephemeral-storage": "1Gi",
	}
}

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

// machine is an instance as a node: its type, and what its template makes of it.
type machine struct {
	typeInfo
	from launchTemplate
	// overhead is the share of the memory on paper that a node never reports.
	overhead float64
	// seen is the memory that such nodes were seen to report, nil if none was.
	seen *resource.Quantity
}

// resources are what the node reports, and what of it pods may have. An error names what user
// data sets in vain; the figures hold all the same.
func (m machine) resources() (capacity, usable corev1.ResourceList, err error) {
	settings := m.from.data
	pods, reserving, err := settings.Pods(userdata.Machine{Cores: m.cores, Interfaces: m.interfaces, Addresses: m.addresses, Nitro: m.nitro})
	memory := *resource.NewQuantity(int64(float64(m.memory)*(1-m.overhead)), resource.BinarySI)
	// A kubelet may report what it likes, and this is for other groups, too: at most half of
	// the machine can be missing.
	if m.seen != nil && m.seen.Value() > m.memory/2 && m.seen.Value() <= m.memory {
		memory = *m.seen
	}
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.cores, resource.DecimalSI),
		corev1.ResourceMemory:           memory,
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.storage(), resource.BinarySI),
	}
	for name, count := range m.devices {
		capacity[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	usable = capacity.DeepCopy()
	for _, kept := range []map[string]string{settings.KubeReserved.With(imageReserved(m.cores, reserving)), settings.SystemReserved.Of} {
		for name, text := range kept {
			take(usable, corev1.ResourceName(name), text, capacity)
		}
	}
	eviction := settings.EvictionHard.With(maps.Clone(imageEviction))
	take(usable, corev1.ResourceMemory, eviction[memoryAvailable], capacity)
	take(usable, corev1.ResourceEphemeralStorage, eviction[nodefsAvailable], capacity)
	return capacity, usable, err
}

// storage is the size of what pods share for files, in bytes: the volume, or the
// instance's own disks where its user data joins them.
func (m machine) storage() int64 {
	switch disks := m.from.data.LocalDisks; {
	case m.disks == 0:
	case disks == userdata.RAID0:
		return m.disks
	case disks == userdata.RAID10:
		return m.disks / 2 // each half mirrors the other
	}
	return m.from.storage()
}

// take subtracts an amount: a quantity, or a percentage of the capacity. Nothing is
// taken of what the node does not have, and nothing falls below zero.
func take(from corev1.ResourceList, name corev1.ResourceName, amount string, capacity corev1.ResourceList) {
	left, has := from[name]
	if !has || amount == "" {
		return
	}
	whole := capacity[name]
	kept := amountOf(amount, whole)
	if left.Cmp(kept) < 0 {
		kept = left
	}
	left.Sub(kept)
	from[name] = left
}

// amountOf reads what userdata found to be an amount. A threshold of 100 % counts
// as none.
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
func amountOf(text string, whole resource.Quantity) resource.Quantity {
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		q, err := fleet.ParseQuantity(text)
		if err != nil {
			return resource.Quantity{} // userdata let nothing of that kind through
		}
		return q
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil || share >= 100 {
		share = 0
	}
	return *resource.NewQuantity(int64(float64(whole.Value())*share/100), resource.BinarySI)
}
