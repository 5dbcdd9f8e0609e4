package cluster

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Cluster is what one evaluation knows: the snapshot in a fixed order with its parts joined, and
// when an answer that it gave will change by time alone.
type Cluster struct {
	Now    time.Time
	Policy policy.Policy
	// Stopped says which other autoscaler is alive, so that nothing is done; Others are
	// sentences about all programs that do what we do.
	Stopped verdict.Details
	Others  []string
	Given   fleet.State
	Agents  map[string]bool
	// Machines is what EC2 says of those that may be down; see fleet.Snapshot.
	Machines map[string]fleet.Machine
	// outages are the times in which the API server did not answer, and Back is when the last of
	// them ended; see fleet.Snapshot.
	outages []fleet.Outage
	Back    time.Time
	// Leads is since when this process leads; zero where that is not known.
	Leads   time.Time
	Daemons []fleet.DaemonSet
	Owners  map[types.UID]fleet.Owner
	Groups  []*Group // by name
	Nodes   []*Node  // by name
	Pods    []*fleet.Pod
	// Unbound are the rows of the pods without a node, Speaking of those with terms about others, and
	// Ending of those that are being deleted.
	Unbound, Speaking, Ending []int32
	// Stranded is a pod on a machine whose Node is deleted; empty without one.
	Stranded string
	Budgets  *drainable.Budgets
	// holding are the ending pods that hold places; nil before Unsucceeded has found them.
	holding map[*fleet.Pod]bool
	// zones counts the nodes of each zone that were up, and those that are not Ready.
	zones map[string]policy.ZoneHealth
	// weakly names a Node for each id that one bears otherwise than in its providerID, and
	// namelessNodes are those that may be any machine; nil before the first question.
	weakly        map[string]string
	namelessNodes []*Node
	// Totals are the size of the whole, against its limits.
	Totals *Totals
	// Guards are the budgets as they were read, and Budgets what all drains leave of them.
	Guards []fleet.Budget
	// DisownedVerdicts are those of groups that other clusters own, and Unclaimed the groups
	// that are to bear this cluster's UID first.
	DisownedVerdicts []verdict.Verdict
	Unclaimed        []*Group
	// disowned are the groups that are not changed, by the ids of their instances.
	disowned map[string]disowned
	UID      types.UID
	// beside are other autoscalers that live, whether they stop us or are let act beside us, and
	// removing the nodes on which a fresh taint shows that one does.
	beside   []fleet.Autoscaler
	removing []*Node
	// OwnDrains is since when nodes drain of their own accord; see fleet.State.
	OwnDrains map[string]time.Time
	// Outage: too many nodes are unready for anything to grow or be scaled down; empty
	// otherwise.
	Outage verdict.Details
	// Allocated counts the devices that claims hold.
	Allocated map[DevicePool]int64
	Clock     clock
}

// New brings a snapshot into order and joins what belongs together. The snapshot is
// not changed. Stages come later, see FindStages.
func New(s fleet.Snapshot, p policy.Policy, order *PodOrder) *Cluster {
	d := &Cluster{
		Now: s.Now, Policy: p, Given: s.State, Agents: s.Agents, Machines: s.Machines, outages: s.Outages, Back: s.Back(), Leads: s.Leads,
		Daemons: slices.Clone(s.DaemonSets), Owners: s.Owners,
		Budgets: drainable.NewBudgets(s.Budgets), Guards: s.Budgets,
		UID: s.Cluster, OwnDrains: map[string]time.Time{}, disowned: map[string]disowned{},
		Clock:  clock{now: s.Now},
		Totals: &Totals{},
	}
	slices.SortFunc(d.Daemons, func(a, b fleet.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	d.Pods = order.of(s.Pods)
	d.Groups = d.ownGroups(s, groupsOf(s))
	d.Nodes = nodesOf(s, p)
	d.join(order)
	d.takeDevices(s.Devices)
	d.meetOthers(s)
	return d
}

// FindStages finds out how far each node is, and how well nodes, zones and groups are. It
// goes by the node templates as they are by then.
func (d *Cluster) FindStages() {
	for _, n := range d.Nodes {
		n.read()
		n.Stage = d.stageOf(n)
	}
	d.findZones()
	d.hearOwnDrains()
	d.Outage = d.massOutage()
	for _, g := range d.Groups {
		g.Totals, g.Ill = d.Totals, d.illness(g)
	}
}

// join gives every node its group, its instance and its pods.
func (d *Cluster) join(order *PodOrder) {
	type member struct {
		group    *Group
		instance *fleet.Instance
		node     *Node
	}
	members := map[string]*member{}
	for _, g := range d.Groups {
		for i := range g.Instances {
			instance := &g.Instances[i]
			members[instance.ID] = &member{group: g, instance: instance}
			if instance.Live() {
				g.Live = append(g.Live, instance)
			}
		}
	}
	for _, n := range d.Nodes {
		if m, ok := members[n.InstanceID()]; ok {
			n.Group, n.Instance = m.group, m.instance
			if m.node == nil {
				m.node = n
			} else {
				n.sameInstance, m.node.sameInstance = m.node, n
			}
			m.group.Nodes = append(m.group.Nodes, n)
		}
	}
	for _, g := range d.Groups {
		for _, i := range g.Live {
			if m := members[i.ID]; m.group != g || m.node == nil {
				g.nodeless = append(g.nodeless, i)
			}
		}
	}
	d.house(order)
}

// house gives every node its pods, and finds those that have none.
func (d *Cluster) house(order *PodOrder) {
	homes := make([]*Node, len(order.homes)) // by their numbers
	for _, n := range d.Nodes {
		if number, known := order.homes[n.Name]; known {
			homes[number] = n
		}
	}
	counts := make([]int32, len(homes))
	for row := range d.Pods {
		if home := order.traitsOf(row).home; home != nowhere {
			counts[home]++
		}
	}
	pods, rows := make([]*fleet.Pod, len(d.Pods)), make([]int32, len(d.Pods))
	for number, n := range homes {
		if count := counts[number]; n != nil && count > 0 {
			n.Pods, pods = pods[:0:count], pods[count:]
			n.Rows, rows = rows[:0:count], rows[count:]
		}
	}
	for row, p := range d.Pods {
		traits := order.traitsOf(row)
		if traits.ending {
			d.Ending = append(d.Ending, int32(row))
		}
		if traits.speaks {
			d.Speaking = append(d.Speaking, int32(row))
		}
		if traits.home == nowhere {
			d.Unbound = append(d.Unbound, int32(row))
			continue
		}
		n := homes[traits.home]
		switch {
		case n != nil:
			n.Pods, n.Rows = append(n.Pods, p), append(n.Rows, int32(row))
		case drainable.Occupies(p, d.Now):
			d.Stranded = cmp.Or(d.Stranded, p.Key())
		default:
			continue
		}
		if traits.restless || d.Owners != nil {
			d.watch(p)
		}
	}
}

// restless reports whether by some policy watch has something to ask for, the pod's owner aside.
func restless(p *fleet.Pod) bool {
	return !p.Deleted.IsZero() || p.Namespace == metav1.NamespaceSystem
}

// watch asks for an evaluation when time alone changes what the rules say of a pod.
func (d *Cluster) watch(p *fleet.Pod) {
	if !p.Deleted.IsZero() {
		d.Clock.At(p.Deleted.Add(drainable.Overtime))
	}
	if rules := d.Policy.Drainable; rules.SkipSystemPods && rules.SystemPodTimeout > 0 && p.Namespace == metav1.NamespaceSystem {
		d.Clock.At(p.Created.Add(rules.SystemPodTimeout))
	}
	if d.Owners != nil {
		d.Clock.At(drainable.OwnerDue(p))
	}
}

// OtherAutoscalerActs reports whether another autoscaler acts on the same groups.
func (d *Cluster) OtherAutoscalerActs() bool {
	return d.Stopped != nil
}
