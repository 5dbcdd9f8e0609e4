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
	Groups  []*Group     // by name
	Nodes   []*Node      // by name
	Pods    []*fleet.Pod // in no order
	members *members
	// Unbound are the pods without a node, Speaking those with terms about others, and Ending those
	// that are being deleted.
	Unbound, Speaking, Ending *Roll
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
	DisownedVerdicts []*verdict.Verdict
	Unclaimed        []*Group
	// disowned are the groups that are not changed, by the ids of their instances.
	disowned map[string]disowned
	UID      types.UID
	// beside are other autoscalers that live, whether they stop us or are let act beside us, and
	// removing the nodes on which a fresh taint shows that one does.
	beside []fleet.Autoscaler
	// besideWindlass: another Windlass lives, be it that it only plans.
	besideWindlass bool
	removing       []*Node
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
func New(s fleet.Snapshot, p policy.Policy, register *Register) *Cluster {
	d := &Cluster{
		Now: s.Now, Policy: p, Given: s.State.NotAhead(s.Now), Agents: s.Agents, Machines: s.Machines, outages: s.Outages, Back: s.Back(), Leads: s.Leads,
		Daemons: slices.Clone(s.DaemonSets), Owners: s.Owners,
		Budgets: drainable.NewBudgets(s.Budgets), Guards: s.Budgets,
		UID: s.Cluster, OwnDrains: map[string]time.Time{}, disowned: map[string]disowned{},
		Clock:  clock{now: s.Now},
		Totals: &Totals{},
	}
	slices.SortFunc(d.Daemons, func(a, b fleet.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	register.update(s.Pods)
	d.Pods, d.Unbound, d.Speaking, d.Ending = s.Pods, register.unbound.Roll, register.speaking.Roll, register.ending.Roll
	d.Groups = d.ownGroups(s, groupsOf(s))
	d.Nodes = register.nodesOf(s, p)
	d.join(register)
	d.house(register)
	d.takeDevices(s.Devices)
	d.meetOthers(s)
	return d
}

// FindStages finds out how far each node is, and how well nodes, zones and groups are. It
// goes by the node templates as they are by then.
func (d *Cluster) FindStages() {
	for _, n := range d.Nodes {
		n.Stage = d.stageOf(n)
	}
	d.findZones()
	d.hearOwnDrains()
	d.Outage = d.massOutage()
	for _, g := range d.Groups {
		g.Totals, g.Ill = d.Totals, d.illness(g)
	}
}

// join gives every node its group and its instance.
func (d *Cluster) join(register *Register) {
	members := register.membersOf(d.Groups)
	d.members = members
	for _, n := range d.Nodes {
		m := members.of(n.InstanceID())
		if m == nil {
			continue
		}
		n.Group, n.Instance = m.group, m.instance
		if m.node == nil {
			m.node = n
		} else {
			n.sameInstance, m.node.sameInstance = m.node, n
		}
		if m.least == nil || m.least.Up() {
			m.least = n
		}
		if m.group.Nodes == nil {
			m.group.Nodes = make([]*Node, 0, len(m.group.Instances))
		}
		m.group.Nodes = append(m.group.Nodes, n)
	}
	for _, g := range d.Groups {
		for _, i := range g.Live {
			if m := members.of(i.ID); m.group != g || m.node == nil {
				g.Nodeless = append(g.Nodeless, i)
			}
		}
	}
}

// house gives every node its pods, and finds those that have none.
func (d *Cluster) house(register *Register) {
	housed := len(d.Unbound.Pods)
	for i, n := range d.Nodes {
		n.Roll = nobody
		if i+1 == len(d.Nodes) || d.Nodes[i+1].Name != n.Name {
			n.Roll = register.households[register.nodeHomes[i]].Roll
		}
		housed += len(n.Pods)
	}
	if housed < len(d.Pods) {
		d.findStranded(register)
	}
	for _, p := range register.restless.Pods {
		d.watch(p)
	}
	if d.Owners != nil {
		for _, p := range d.Pods {
			d.watch(p)
		}
	}
}

func (d *Cluster) findStranded(register *Register) {
	var first *fleet.Pod
	for name, number := range register.homes {
		if d.Node(name) != nil {
			continue
		}
		for _, p := range register.households[number].Pods {
			if drainable.Occupies(p, d.Now) && (first == nil || byName(p, first) < 0) {
				first = p
			}
		}
	}
	if first != nil {
		d.Stranded = first.Key()
	}
}

// watch asks for an evaluation when time alone changes what the rules say of a pod that is on a node.
func (d *Cluster) watch(p *fleet.Pod) {
	if p.Node == "" || !drainable.Occupies(p, d.Now) && d.Node(p.Node) == nil {
		return
	}
	if !p.Deleted.IsZero() {
		d.Clock.At(p.Deleted.Time().Add(drainable.Overtime))
	}
	if rules := d.Policy.Drainable; rules.SkipSystemPods && rules.SystemPodTimeout > 0 && p.Namespace == metav1.NamespaceSystem {
		d.Clock.At(p.Created.Time().Add(rules.SystemPodTimeout))
	}
	if d.Owners != nil {
		d.Clock.At(drainable.OwnerDue(p))
	}
}

// OtherAutoscalerActs reports whether another autoscaler acts on the same groups.
func (d *Cluster) OtherAutoscalerActs() bool {
	return d.Stopped != nil
}
