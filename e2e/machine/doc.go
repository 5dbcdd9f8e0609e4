// Package machine makes real machines on the one that it runs on: each a tree of
// processes in namespaces of its own, with a containerd, a kubelet and a kube-proxy,
// on a network whose router is the test itself.
//
// A world of such machines runs whole inside one network and one mount namespace,
// which Enter makes by running the program again. There the world is the VPC's router:
// it has an address of its own, every machine hangs on it by a pair of virtual
// Ethernet devices, and what machines ask of 169.254.169.254 it hands to the fake
// metadata service of that machine. When the last process in there has died, the
// kernel takes devices, routes, rules and mounts with it.
package machine

import (
	"errors"
	"net/netip"
)

// ErrAsked says that this process was asked to end, and with it what Enter ran. Whoever
// gets it should end.
var ErrAsked = errors.New("asked to end")

// Address is where a world of machines is reached from its machines and their pods:
// its control plane and its AWS listen there.
var Address = netip.AddrFrom4([4]byte{172, 31, 255, 1})

// Metadata is the address of the instance metadata service.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
var Metadata = netip.AddrFrom4([4]byte{169, 254, 169, 254})

// Uplink is what the world must know of a machine to connect it.
type Uplink struct {
	// ID is the machine's, such as an instance id; it names the world's end of the
	// cable, by its last letters.
	ID string
	// IP is the machine's own address.
	IP netip.Addr
	// PodCIDR are the addresses of its pods, which are routed and not translated.
	PodCIDR netip.Prefix
	// IMDS is where the world answers for this machine's metadata service. The zero
	// value leaves the machine without one.
	IMDS netip.AddrPort
	// PID is a process in the machine's network namespace, as the world counts.
	PID int
}
