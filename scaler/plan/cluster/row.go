package cluster

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
)

// Row is a node as it was read, with what follows from that alone. It is never changed, and the same
// one is in the next evaluation where nothing of the node has changed: whatever is kept about a node
// goes by its Row.
type Row struct {
	*fleet.Node
	*Words
	// Number is the row in the snapshot.
	Number int
	// id is that of its instance, zone its own, and weakly are those of others that it names; see fleet.Node.WeakIDs.
	id, zone string
	weakly   []string
	// milli and bytes are its capacity, or what pods may have of it where that is not known.
	milli, bytes int64
	// MilliCPU and Memory are what pods may have of it.
	MilliCPU, Memory int64
	// GPUs are the kinds of GPU that it reports, in order, and Accelerated says that a label promises some.
	GPUs        []corev1.ResourceName
	Accelerated bool
	// MemoryThere is how much memory it reports, be it for pods or not; 0 where it does not say.
	MemoryThere int64
	// handled: it bears a mark of a termination handler.
	handled bool
}

// mostCores and mostMemory, in bytes, are more than any machine has: the sums of a cluster's are
// numbers.
const mostCores, mostMemory = 1 << 20, 64 << 40

// NewRow finds out what follows from a node.
func NewRow(n fleet.Node, number int) *Row {
	r := &Row{Node: &n, Words: wordsOf(n.Annotations), Number: number, id: n.InstanceID(), zone: n.Zone(), weakly: slices.Collect(n.WeakIDs())}
	r.MilliCPU, r.Memory = n.Allocatable.Cpu().MilliValue(), n.Allocatable.Memory().Value()
	r.milli, r.bytes = r.MilliCPU, r.Memory
	if len(n.Capacity) > 0 {
		r.milli, r.bytes = n.Capacity.Cpu().MilliValue(), n.Capacity.Memory().Value()
	}
	r.milli, r.bytes = min(r.milli, mostCores*1000), min(r.bytes, mostMemory)
	memory := n.Capacity[corev1.ResourceMemory]
	r.MemoryThere = memory.Value()
	_, r.Accelerated = n.Labels[contract.LabelAccelerator]
	_, marked := n.Labels[contract.LabelTerminationHandlerEvent]
	r.handled = marked || slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, contract.TaintPrefixTerminationHandler) })
	for name, amount := range n.Allocatable {
		if IsGPU(name) && !amount.IsZero() {
			r.GPUs = append(r.GPUs, name)
		}
	}
	slices.SortFunc(r.GPUs, cmp.Compare)
	return r
}

// InstanceID is the id of the node's instance; see fleet.InstanceIDOf.
func (r *Row) InstanceID() string { return r.id }

// Zone is the node's availability zone.
func (r *Row) Zone() string { return r.zone }

// holds reports whether the row still says what was read. Snapshots share what has not changed, and
// never write to it: another map or list may have other contents, and the same has the same.
func (r *Row) holds(n *fleet.Node) bool {
	a, b := r.Node, n
	same := sameMap(a.Labels, b.Labels) && sameMap(a.Annotations, b.Annotations) && sameMap(a.Capacity, b.Capacity) && sameMap(a.Allocatable, b.Allocatable) &&
		sameList(a.Taints, b.Taints) && sameList(a.DeclaredFeatures, b.DeclaredFeatures)
	return same &&
		a.Name == b.Name && a.UID == b.UID && a.ProviderID == b.ProviderID && a.Created == b.Created && a.Unschedulable == b.Unschedulable &&
		a.Ready == b.Ready && a.ReadySince == b.ReadySince && a.BootID == b.BootID && a.Attached == b.Attached
}

func sameMap[K comparable, V any](a, b map[K]V) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

func sameList[E any](a, b []E) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// nodesOf are the nodes of a snapshot by name, in the rows that are known where these hold.
func (r *Register) nodesOf(s fleet.Snapshot, p policy.Policy) []*Node {
	others := len(r.nodeRows) != len(s.Nodes)
	r.nodeRows = r.nodeRows[:min(len(r.nodeRows), len(s.Nodes))]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if i < len(r.nodeRows) && r.nodeRows[i].holds(n) {
			continue
		}
		row := NewRow(*n, i)
		if i == len(r.nodeRows) {
			r.nodeRows = append(r.nodeRows, row)
			continue
		}
		others = others || r.nodeRows[i].Name != row.Name || r.nodeRows[i].UID != row.UID
		r.nodeRows[i] = row
	}
	if others || len(r.nodeHomes) < len(r.nodeRows) {
		r.sortNodes()
	}
	nodes := make([]*Node, len(r.nodeRows))
	r.nodes = slices.Grow(r.nodes[:0], len(nodes))[:len(nodes)]
	for i, row := range r.nodeOrder {
		r.nodes[i] = Node{Row: r.nodeRows[row], Awaits: p.StartupTaint(r.nodeRows[row].Taints)}
		nodes[i] = &r.nodes[i]
	}
	return nodes
}

// sortNodes finds the order of the nodes by name, and the numbers of their names.
func (r *Register) sortNodes() {
	r.nodeOrder = r.nodeOrder[:0]
	for i := range r.nodeRows {
		r.nodeOrder = append(r.nodeOrder, int32(i))
	}
	slices.SortFunc(r.nodeOrder, func(i, j int32) int {
		a, b := r.nodeRows[i], r.nodeRows[j]
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	r.nodeHomes = r.nodeHomes[:0]
	for _, row := range r.nodeOrder {
		r.nodeHomes = append(r.nodeHomes, r.homeOf(r.nodeRows[row].Name))
	}
}

// accelerators begin the names of what device plugins report on accelerated instances
// of EC2: GPUs, slices of them too, and AWS's own chips.
// https://docs.aws.amazon.com/eks/latest/userguide/device-management.html
var accelerators = []string{"nvidia.com/gpu", "nvidia.com/mig-", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi"}

func IsGPU(name corev1.ResourceName) bool {
	return slices.ContainsFunc(accelerators, func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
}
