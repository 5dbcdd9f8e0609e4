package cluster

import (
	"cmp"
	"iter"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Closed reports whether nothing new comes to the node.
func (n *Node) Closed() bool {
	_, tainted := contract.Draining(n.Taints)
	return tainted && n.Unschedulable
}

// memoryPerCPU is how much memory costs as much as one cpu. Of one size, c5, m5
// and r5 differ in their memory alone, and their prices on demand rise by about a
// tenth of that of a cpu for each GiB.
// https://aws.amazon.com/ec2/pricing/on-demand/
const memoryPerCPU = 10 << 30

// Work is how much thousandths of a cpu and bytes of memory are together, in cpus or in the memory
// that costs as much. A pod that requests nothing still is a pod.
func Work(milli, bytes int64) float64 {
	return max(0.001, float64(milli)/1000+float64(bytes)/memoryPerCPU)
}

// WorkOf is what a pod of the class requests.
func WorkOf(c *fit.Class) float64 { return Work(c.CPUAndMemory()) }

// Node is a Kubernetes node with what belongs to it.
type Node struct {
	// Thousands of nodes are gone through for each question, so what most questions ask stands together.
	*Row
	*Roll                    // its pods
	Group    *Group          // nil for a node of no group
	Instance *fleet.Instance // nil likewise
	Stage    Stage
	Reason   verdict.Reason
	// Place is the node with what is on it; open says that pods may be sent there.
	Place *fit.Place
	Open  bool
	// Leaves: the node is being removed by this plan or would be.
	Leaves bool
	// Cancelled: this plan cancels its scale-down.
	Cancelled bool
	// Held: its drain waits for a permit, and it is not its turn; see drains.Drains.TakeTurns.
	Held bool
	// Released: this plan takes its cordon off; see scaleup.ScaleUp.LimitCordons.
	Released bool
	// Awaits is the key of a taint for which something has yet to come up on the node;
	// empty without one.
	Awaits       string
	sameInstance *Node // another Node with the same providerID, if there is one
	Slices       []*resourcev1.ResourceSlice
	Details      verdict.Details
	// Moved are its pods that were given a seat elsewhere, because it is scaled down.
	Moved []Move
	// ReturnsSince is since when it is in stage Returning.
	ReturnsSince time.Time
}

func (n *Node) Ref() action.NodeRef { return action.NodeRef{Name: n.Name, UID: n.UID} }

// Say settles the node's verdict; the first one stands.
func (n *Node) Say(reason verdict.Reason, details verdict.Details) {
	if n.Reason != "" {
		return
	}
	n.Reason, n.Details = reason, details
}

// InstanceZone is the zone of the node's instance, where its label does not say it yet.
func (n *Node) InstanceZone() string {
	if zone := n.Zone(); zone != "" || n.Instance == nil {
		return zone
	}
	return n.Instance.Zone
}

func (n *Node) GroupName() string {
	if n.Group == nil {
		return ""
	}
	return n.Group.Name
}

// Occupied names the first pod for which the node is not empty yet.
func (n *Node) Occupied(now time.Time) (by string, yes bool) {
	for _, p := range n.Pods {
		if drainable.Occupies(p, now) {
			return p.Key(), true
		}
	}
	return "", false
}

func (d *Cluster) Node(name string) *Node {
	i, ok := slices.BinarySearchFunc(d.Nodes, name, func(n *Node, name string) int { return cmp.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return d.Nodes[i]
}

// In are the nodes of some stages.
func (d *Cluster) In(stages ...Stage) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range d.Nodes {
			if slices.Contains(stages, n.Stage) && !yield(n) {
				return
			}
		}
	}
}

// Any reports whether a node of some stages is so.
func (d *Cluster) Any(so func(*Node) bool, stages ...Stage) bool {
	for n := range d.In(stages...) {
		if so(n) {
			return true
		}
	}
	return false
}

// bornUnready is how long after its creation a node's Ready condition may have
// changed last for a node that never was Ready: the kubelet registers first and
// reports then.
const bornUnready = time.Minute

// NeverUp reports whether a node has never been fit for use. Without persisted state of it, it was
// Ready once if that has changed since it registered, or before by the kubelet's clock.
func (n *Node) NeverUp(remembered bool) bool {
	if n.Mark != "" || n.Up() {
		return false
	}
	return remembered || !n.Ready && (n.ReadySince.IsZero() || n.ReadySince.Sub(n.Created).Abs() < bornUnready)
}

// Up reports whether a node is Ready and nothing has yet to start on it.
func (n *Node) Up() bool { return n.Ready && n.Awaits == "" }

// LatestLast orders deadlines; none is the latest.
func LatestLast(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		return map[bool]int{true: 1, false: -1}[a.IsZero()]
	}
	return a.Compare(b)
}

// With --notice-policy=rebalance=cordon agents close nodes of which EC2 says that their spot
// capacity is at a higher risk. A recommendation has no deadline and is never withdrawn, so without
// a bound a whole group is closed in time: its pods are pending, or a node is launched for every
// one that was closed. So few nodes of a group stay closed, and none where a pod is pending that
// would get no node otherwise.
//
// The scaler releases a node by undoing the cordon alone. The agent takes that for the last word
// about this recommendation, as if people had given it, and persists it on the Node.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html

// Recommendation is the cordon of a node that its agent has closed for a rebalance
// recommendation and for nothing else; ok is false where it is not so.
func (n *Node) Recommendation() (cordon contract.Cordon, ok bool) {
	if n.Stage != Cordoned || n.Requested || n.Unreadable != nil {
		return contract.Cordon{}, false
	}
	if _, told := n.Annotations[contract.AnnotationDrainReport]; told { // also one that cannot be parsed
		return contract.Cordon{}, false
	}
	return n.closedForRecommendation()
}

// closedForRecommendation says so of a node that may be drained for something else as well:
// when that is over the node is as closed as before.
func (n *Node) closedForRecommendation() (cordon contract.Cordon, ok bool) {
	value, marked := n.Annotations[contract.AnnotationCordonedBy]
	if !marked {
		return contract.Cordon{}, false
	}
	cordon, err := contract.ParseCordon(value)
	noted, known := n.Noticed.Find(cordon.Notice)
	return cordon, err == nil && cordon.By == contract.AppAgent && known && noted.Kind == contract.KindRebalance && noted.Does == cordons
}

// cordons is what contract.Noticed.Does says of a notice for which a node is only closed.
const cordons = "cordon"

// Recommended lists those of nodes that are closed for a rebalance recommendation, the
// first that was closed first.
func Recommended(nodes []*Node) []*Node {
	var list []*Node
	for _, n := range nodes {
		if _, is := n.Recommendation(); is && !n.Released {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *Node) int {
		x, _ := a.Recommendation()
		y, _ := b.Recommendation()
		return cmp.Or(x.At.Compare(y.At.Time), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Names lists those of nodes.
func Names(nodes []*Node) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = n.Name
	}
	return list
}

// typicalPrice is what a cpu costs in an hour, or the memory that costs as much, in
// dollars: that of m5 on demand in us-east-1.
// https://aws.amazon.com/ec2/pricing/on-demand/
const typicalPrice = 0.034

// PriceOf is what the requests of a pod of the class cost in an hour, in dollars.
func PriceOf(c *fit.Class) float64 { return typicalPrice * WorkOf(c) }

// Worth is what the node costs in an hour, in dollars. Where the price of its group is
// not known, its size stands for it.
func (n *Node) Worth() float64 {
	if price := n.Group.Price(); price > 0 {
		return price
	}
	return n.TypicalPrice()
}

// TypicalPrice is what a node of its size costs in an hour, in dollars.
func (n *Node) TypicalPrice() float64 { return typicalPrice * n.Work() }

// Work is what the node has, in cpus and in the memory that costs as much.
func (n *Node) Work() float64 { return Work(n.size()) }

// WhyNotOurs says why to end the node's instance would not make a group of ours
// smaller.
func (n *Node) WhyNotOurs() verdict.Details {
	if n.Instance == nil {
		return verdict.Say("its instance is in no group of this scaler any more")
	}
	return verdict.Say("its instance is {state} and does not count in group {group}", verdict.State(n.Instance.State), verdict.Group(n.Group.Name))
}

// Ending reports whether a pod of the node is in its grace period: its drain is not stuck.
func (n *Node) Ending(now time.Time) bool {
	return slices.ContainsFunc(n.Pods, func(p *fleet.Pod) bool { return !p.Deleted.IsZero() && drainable.Occupies(p, now) })
}

// Outlasts reports whether the grace period of a pod is longer than a drain waits for it that began
// then, and since when it does: a tenant may ask for a year. A pod that was asked to leave with
// another grace period than its own counts from the beginning of the drain.
func (d *Cluster) Outlasts(p *fleet.Pod, begun time.Time) (since time.Time, yes bool) {
	if p.Deleted.IsZero() || !drainable.Occupies(p, d.Now) {
		return time.Time{}, false
	}
	since = begun
	if asked := drainable.AskedAt(p); !asked.After(d.Now) {
		since = Later(since, asked)
	}
	return since, p.Deleted.Time().After(since.Add(d.Policy.MaxDrainTime))
}

// InItsGracePeriod says why a node waits for a pod that Outlasts its drain.
func InItsGracePeriod(p *fleet.Pod) verdict.Details {
	return verdict.Say("pod {pod} is in its grace period until {until}", verdict.Pod(p.Key()), verdict.Until(p.Deleted.Time()))
}

// CompareBool puts what is false first.
func CompareBool(a, b bool) int {
	if a == b {
		return 0
	}
	return map[bool]int{false: -1, true: 1}[a]
}

// Marked is since when the node is unneeded. A mark that does not parse is none, and neither
// is one dated ahead, by another clock: its own would not run before that.
func (d *Cluster) Marked(n *Node) (since time.Time, ok bool) {
	since, ok, err := contract.Unneeded(n.Taints)
	if err != nil || since.After(d.Now) {
		return time.Time{}, false
	}
	return since, ok
}

// Settled is when the node's clock may start at the earliest.
func (n *Node) Settled(p policy.Policy) time.Time {
	return n.ReadySince.Add(min(SettleTime, n.Group.UnneededTime(p)))
}

// A node that was up and is not Ready any more counts its own time, from when it was Ready last:
// that need not be persisted. If it is unneeded by the rules that hold for others, it is scaled
// down like them. Where the kubelet is unresponsive no agent answers the request, and the scaler
// drains the node alone: its pods are asked to leave, so that their owners create others, and are
// waited for no longer than their grace period and a bit. Where its group may not have fewer nodes,
// its instance is ended all the same, and Auto Scaling replaces it; but not while launches of the
// group fail.

// UnreadySince is since when the node is not Ready.
func (n *Node) UnreadySince() time.Time {
	if n.ReadySince.IsZero() {
		return n.Created // its kubelet has never reported
	}
	return n.ReadySince
}

func (n *Node) WhyUnready() verdict.Details {
	return verdict.Say("it is not Ready since {since}", verdict.Since(n.UnreadySince()))
}
