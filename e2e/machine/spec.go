package machine

import (
	"net/netip"
	"time"
)

// Spec is a machine at one boot. A reboot is PowerOff and PowerOn with another BootID.
type Spec struct {
	// ID names the machine, such as an instance id; Name its Node and itself.
	ID, Name string
	IP       netip.Addr
	// BootID is what the machine's kernel calls this boot: a UUID.
	BootID     string
	ProviderID string
	// VCPUs are what its kubelet counts as its processors, of which the host has to have as
	// many. All machines run on all of the host's.
	VCPUs int
	// MemoryMiB is what the machine says that it has.
	MemoryMiB int
	// MaxPods is how many pods its kubelet takes, by which it also reserves memory.
	MaxPods int
	Labels  map[string]string
	// Taints are given as key=value:Effect.
	Taints []string
	// IMDS is where its metadata service is, as in Uplink.
	IMDS  netip.AddrPort
	Fault Fault
}

// Fault is what is wrong with a machine.
type Fault int

// Faults. The zero value is none.
const (
	// NeverJoins is a machine that boots, whose kubelet does not start.
	NeverJoins Fault = iota + 1
	// NeverReady is one whose kubelet finds no configuration of the network of pods.
	NeverReady
)

// Usage is what a pod uses, of which the kernel keeps account in its cgroup. Sizes
// are in bytes.
type Usage struct {
	// MemoryBytes is all memory, its page cache too; WorkingSet what of it the kernel
	// could not drop at once, by which the kubelet evicts; RSS what is its own.
	MemoryBytes, WorkingSet, RSS int64
	// CPU is what it has used of processors since it began.
	CPU time.Duration
}

// uplink is the machine's place in the network.
func (s Spec) uplink(pods netip.Prefix, pid int) Uplink {
	return Uplink{ID: s.ID, IP: s.IP, PodCIDR: pods, IMDS: s.IMDS, PID: pid}
}

// podCIDR are the addresses of the pods of machine number n, out of the range that EKS
// clusters take for pods when the VPC's own is short, carrier-grade NAT's (RFC 6598).
func podCIDR(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, byte(n), 0}), 24)
}

// allPods holds the podCIDR of every machine.
var allPods = netip.MustParsePrefix("100.64.0.0/16")

// mostMachines is how many machines there can be at once: podCIDR counts to 255.
const mostMachines = 255
