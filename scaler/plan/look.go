package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
)

// decision is a plan in the making: the snapshot in a fixed order with its
// parts joined, and what has been settled so far.
type decision struct {
	now    time.Time
	policy Policy
	// stopped says which other autoscaler is alive, so that nothing is done; others are
	// sentences about all programs that do what we do.
	stopped string
	others  []string
	given   fleet.State
	agents  map[string]bool
	// machines is what EC2 says of those that may be down; see fleet.Snapshot.
	machines map[string]fleet.Machine
	// outages are the times in which the API server was not heard, and back is when the
	// last of them ended; see fleet.Snapshot.
	outages []fleet.Outage
	back    time.Time
	// leads is since when this process leads; zero where that is not known.
	leads   time.Time
	daemons []fleet.DaemonSet
	owners  map[types.UID]fleet.Owner
	groups  []*group // by name
	nodes   []*node  // by name
	pods    []*fleet.Pod
	// stranded is a pod on a machine whose Node is gone; empty without one.
	stranded string

	fit     *fit.Cluster
	budgets *drainable.Budgets

	// homeless are a pod of each class for which there is neither a place nor a new node.
	homeless []fit.Tenant
	// utilizations are those that were asked for.
	utilizations map[*node]float64
	// coming are the nodes that will be there soon, as places for pods.
	coming []*fit.Place
	// holding are the ending pods that hold places; nil before unsucceeded has found them.
	holding map[*fleet.Pod]bool
	// zones tells how many nodes of each zone are Ready; see findZones.
	zones map[string]zoneHealth
	// turns counts the drains whose turn it is to be permitted.
	turns int
	// left are the waiting pods that found no place so far.
	left []fit.Tenant
	// headRooms are kept free beside all of them, and buffers in another way.
	headRooms []*headRoom
	buffers   []*buffer
	// weakly names a Node for each id that one bears otherwise than in its providerID, and
	// namelessNodes are those that may be any machine; nil before somebody asks.
	weakly        map[string]string
	namelessNodes []*node
	// unheard are the waiting pods that are not considered now, and why.
	unheard map[*fleet.Pod]string
	// ration divides the work for waiting pods, and unasked are those for which none was
	// left.
	ration  *fit.Ration
	unasked map[asking]bool
	// quotas bound buffers, by namespace and name.
	quotas []*fleet.Quota
	// beside are the pods that got a place that was there already, thanks to new nodes.
	beside []fit.Seat
	// gangs are the waiting pods that find places all together or not at all.
	gangs []gang
	// doubts are the groups that are not grown for a class of pods, and why.
	doubts map[distrusted]string
	// overdue are the live instances without a Node whose time to register is over.
	overdue map[string]overdue
	// strangers counts those of them that we did not ask for, and brake is why none of
	// these is ended; empty where one may be.
	strangers int
	brake     string
	// oldest is what oldestLeft has found; empty before.
	oldest string
	// cluster is the size of the whole, against its limits.
	cluster *cluster
	// priorities are the tiers of the expander of that name, nil where all groups
	// pass.
	priorities []tier
	// daemonsText is the canonical text of the DaemonSets, once somebody has asked.
	daemonsText string
	// foresees says that pods spread over zones that have no node yet; see expect.
	foresees bool

	// guards are the budgets as they were read. Of allowance a drain that the scaler
	// carries on takes what it uses now, while budgets counts what all drains will;
	// untouched is what guards allow. Both are nil before somebody asks. asking are the
	// budgets of which this plan evicts a pod.
	guards               []fleet.Budget
	allowance, untouched *drainable.Budgets
	asking               map[string]bool
	drains               []Drain

	actions     []Action
	podVerdicts []Verdict
	// disownedVerdicts are those of groups that other clusters own.
	disownedVerdicts []Verdict
	// asked are the labels that waiting pods ask for, nil before anybody wanted to
	// know.
	asked map[string]bool
	// outage says that too many nodes are unready for anything to grow or be retired; empty
	// otherwise.
	outage string
	// allocated counts the devices that claims hold.
	allocated map[devicePool]int64
	state     fleet.State
	clock     clock
}

// group is an Auto Scaling group with what belongs to it.
type group struct {
	*fleet.Group
	// looks are those of a new node, one for each zone.
	looks []*fit.Looks
	// looksThere are these and those of its nodes, once they were asked for.
	looksThere []*fit.Looks
	// have counts for each of these zones what is there and what comes.
	have  []int
	live  []*fleet.Instance
	nodes []*node
	// replaced counts live instances that Auto Scaling is about to terminate and to
	// replace; see hearOwnDrains.
	replaced int

	// pauses are those that run after failed launches, by zone; that of the whole
	// group has no zone. See pausedIn.
	pauses map[string]fleet.BackOff
	// lost are the instances that never became nodes that are Ready, as failures at
	// the moment at which they should have been; without a cause where nobody failed.
	lost map[string]fleet.Failure
	// unsteered is why the zones of its new nodes are not ours to choose, empty if
	// they are.
	unsteered string
	// unanswered says that a launch is under way, as far as anybody knows.
	unanswered bool
	// read is the desired capacity that was read. Desired has on top of it what
	// launches promise that the reading does not show, and which may come to nothing
	// or be gone again: whether the group may be smaller is asked of read alone.
	read int
	// silentSince is when a launch was asked for that has had no answer for too long to
	// count on it; zero without one.
	silentSince time.Time
	// promised are the zones of the nodes that were launched and do not show yet.
	promised []string
	// differs says where its nodes are not as their shape was.
	differs []string
	// kin are the groups that are like it; see kinOf.
	kin []*group
	// fresh are the nodes that the group shall grow by.
	fresh []*fit.Place
	// grows says that it does so in this look, and is not held back by its pace.
	grows bool
	// ended counts the instances that this plan ends, lowered those of them
	// that go with decrement.
	ended, lowered int
	// planned are its shapes before anything was learned from its nodes, and
	// definition a hash of them; see the method of that name.
	planned    []fleet.Shape
	definition string
	// stead is for which nodes it grows, in words; empty where pods wait.
	stead string
	// closed is why it is not grown for the class of pods at hand; empty if it may be.
	// doubted says that its verdict tells of such a class already.
	closed  string
	doubted bool
	// recognised says that a Node of one of its instances is here, or was.
	recognised bool
	// strangers are its instances that should long have become Nodes and that we did not
	// ask for; see recognise.
	strangers []*fleet.Instance
	// serves says that one is in service without a Node, for however long, that we did not
	// ask for.
	serves bool
	// replaces says that this plan ends an instance of it that Auto Scaling replaces.
	replaces bool
	// uneven says how its zones will differ that Auto Scaling would even out; empty if
	// it would not.
	uneven string
	// aside says that it is not grown now, as what is planned is for another group.
	aside bool
	// short says that there is less head-room than there shall be, which it could have.
	short bool
	// wanted says that a pod would fit the group, could it grow.
	wanted bool
	// cluster is the whole that it belongs to.
	cluster *cluster
	// ill is why no more nodes of it are wanted, as those that it has are not well.
	ill string
	// retained are its instances that were kept when a hook was abandoned.
	retained []string
	// notes are what people should know beside its verdict.
	notes []string
}

// node is a Kubernetes node with what belongs to it.
type node struct {
	*fleet.Node
	group    *group          // nil for a node of no group
	instance *fleet.Instance // nil likewise
	pods     []*fleet.Pod    // by namespace and name
	rows     []int32         // of the pods among all of them; see decision.tenant
	twin     *node           // another Node with the same providerID, if there is one
	slices   []*resourcev1.ResourceSlice

	request   contract.Request
	requested bool
	// unreadable is what is wrong with the request, if one stands there that
	// nobody understands.
	unreadable error
	report     contract.Report
	reported   bool
	// notYet is our last word to a drain that waits; zero without one.
	notYet contract.NotYet
	// noticed are the notices that the agent has written down, and garbled is what is
	// wrong with what it wrote.
	noticed contract.NoticedList
	garbled []string
	// mark is the request whose termination has begun; empty before.
	mark  string
	stage stage
	// awaits is the key of a taint for which something has yet to come up on the node;
	// empty without one.
	awaits string

	// place is the node with what is on it; open says that pods may be sent there.
	place *fit.Place
	open  bool
	// moved are its pods that were given a seat elsewhere, because it retires.
	moved []move
	// gone says that the node is on its way out by this plan or would be.
	gone bool
	// kept says that this plan takes its retirement back.
	kept bool
	// held says that its drain waits for a permit, and that it is not its turn; see
	// takeTurns.
	held bool
	// released says that this plan takes its cordon off; see limitCordons.
	released bool

	reason  Reason
	message string
}

// note keeps a sentence for the group's verdict, once.
func (g *group) note(text string) {
	if !slices.Contains(g.notes, text) {
		g.notes = append(g.notes, text)
	}
}

func (n *node) ref() NodeRef { return NodeRef{Name: n.Name, UID: n.UID} }

// say settles the node's verdict; the first one stands.
func (n *node) say(reason Reason, message string) {
	if n.reason != "" {
		return
	}
	n.reason, n.message = reason, message
}

func (n *node) groupName() string {
	if n.group == nil {
		return ""
	}
	return n.group.Name
}

// occupied names the first pod for which the node is not empty yet.
func (n *node) occupied(now time.Time) (by string, yes bool) {
	for _, p := range n.pods {
		if drainable.Occupies(p, now) {
			return p.Key(), true
		}
	}
	return "", false
}

// newCluster brings a snapshot into order and joins what belongs together. The snapshot is
// not changed. Stages come later, see findStages.
func newCluster(s fleet.Snapshot, p Policy, order *podOrder) *decision {
	d := &decision{
		now: s.Now, policy: p, given: s.State, agents: s.Agents, machines: s.Machines, outages: s.Outages, back: s.Back(), leads: s.Leads,
		daemons: slices.Clone(s.DaemonSets), owners: s.Owners,
		budgets: drainable.NewBudgets(s.Budgets), guards: s.Budgets,
		state:   copyState(s.State),
		clock:   clock{now: s.Now},
		cluster: &cluster{},
	}
	slices.SortFunc(d.daemons, func(a, b fleet.DaemonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	d.pods = order.of(s.Pods)
	d.groups = d.ownGroups(s, groupsOf(s))
	d.nodes = nodesOf(s, p)
	d.join()
	d.takeDevices(s.Devices)
	d.meetOthers(s)
	return d
}

// findStages finds out how far each node is, and how well nodes, zones and groups are. It
// goes by the node templates as they are by then.
func (d *decision) findStages() {
	for _, n := range d.nodes {
		n.read()
		n.stage = d.stageOf(n)
	}
	d.findZones()
	d.hearOwnDrains()
	d.outage = d.massOutage()
	for _, g := range d.groups {
		g.cluster, g.ill = d.cluster, d.illness(g)
	}
}

func groupsOf(s fleet.Snapshot) []*group {
	groups := make([]*group, len(s.Groups))
	for i := range s.Groups {
		groups[i] = &group{Group: sortedGroup(s.Groups[i]), read: s.Groups[i].Desired, lost: map[string]fleet.Failure{}, pauses: map[string]fleet.BackOff{}}
	}
	slices.SortFunc(groups, func(a, b *group) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// sortedGroup is a copy whose lists have an order.
func sortedGroup(g fleet.Group) *fleet.Group {
	g.Shapes = slices.Clone(g.Shapes)
	slices.SortFunc(g.Shapes, func(a, b fleet.Shape) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.InstanceType, b.InstanceType))
	})
	g.Instances = slices.Clone(g.Instances)
	slices.SortFunc(g.Instances, func(a, b fleet.Instance) int { return cmp.Compare(a.ID, b.ID) })
	g.Hooks = slices.Clone(g.Hooks)
	slices.SortFunc(g.Hooks, func(a, b fleet.Hook) int { return cmp.Compare(a.Name, b.Name) })
	g.Failures = slices.Clone(g.Failures)
	slices.SortFunc(g.Failures, func(a, b fleet.Failure) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Text, b.Text))
	})
	g.Faults = slices.Sorted(slices.Values(g.Faults))
	return &g
}

func nodesOf(s fleet.Snapshot, p Policy) []*node {
	nodes := make([]*node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[i] = &node{Node: &s.Nodes[i], awaits: p.startupTaint(s.Nodes[i].Taints)}
	}
	slices.SortFunc(nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return nodes
}

// join tells every node its group, its instance and its pods.
func (d *decision) join() {
	type member struct {
		group    *group
		instance *fleet.Instance
		node     *node
	}
	members := map[string]*member{}
	for _, g := range d.groups {
		for i := range g.Instances {
			instance := &g.Instances[i]
			members[instance.ID] = &member{group: g, instance: instance}
			if instance.Live() {
				g.live = append(g.live, instance)
			}
		}
	}
	byName := map[string]*node{}
	for _, n := range d.nodes {
		byName[n.Name] = n
		if m, ok := members[n.InstanceID()]; ok {
			n.group, n.instance = m.group, m.instance
			if m.node == nil {
				m.node = n
			} else {
				n.twin, m.node.twin = m.node, n
			}
			m.group.nodes = append(m.group.nodes, n)
		}
	}
	average := len(d.pods) / max(1, len(d.nodes))
	for row, p := range d.pods {
		switch n, ok := byName[p.Node]; {
		case p.Node == "":
		case ok:
			if n.pods == nil {
				n.pods, n.rows = make([]*fleet.Pod, 0, average), make([]int32, 0, average)
			}
			n.pods, n.rows = append(n.pods, p), append(n.rows, int32(row))
			d.watch(p)
		case drainable.Occupies(p, d.now):
			d.stranded = cmp.Or(d.stranded, p.Key())
			d.watch(p)
		}
	}
}

// watch asks for a look when time alone changes what the rules say of a pod.
func (d *decision) watch(p *fleet.Pod) {
	if !p.Deleted.IsZero() {
		d.clock.at(p.Deleted.Add(drainable.Overtime))
	}
	if rules := d.policy.Drainable; rules.SkipSystemPods && rules.SystemPodTimeout > 0 && p.Namespace == metav1.NamespaceSystem {
		d.clock.at(p.Created.Add(rules.SystemPodTimeout))
	}
	if d.owners != nil {
		d.clock.at(drainable.OwnerDue(p))
	}
}

// settle makes places of the nodes where pods could be.
func (d *decision) settle() {
	for _, g := range d.groups {
		for i := range g.Shapes {
			g.looks = append(g.looks, d.fit.LooksLike(&g.Shapes[i]))
		}
		if len(g.looks) > 0 {
			for _, x := range g.looks[0].Outsized() {
				g.note(fmt.Sprintf("DaemonSet %s/%s has no room on its new nodes (%s): its pods stay pending there", x.Namespace, x.Name, x.Why))
			}
		}
		g.have = make([]int, len(g.looks))
		for _, i := range g.live {
			if len(g.looks) > 0 {
				g.have[g.zoneOf(i.Zone)]++
			}
		}
	}
	for _, n := range d.nodes {
		var ignored func(corev1.Taint) bool
		ignored, n.open = d.passing(n)
		looks := d.fit.LooksOf(n.expected(), ignored)
		if n.stage == coming {
			looks.Await(n.expectedDevices())
			d.fit.Reserve(looks, n.pods)
		}
		n.place = d.fit.Add(looks)
		d.furnish(n)
	}
	d.nominate()
}

// furnish seats the pods that are on the node. Expendable ones take no room:
// kube-scheduler moves them aside for any other.
func (d *decision) furnish(n *node) {
	tenants := make([]fit.Tenant, 0, len(n.pods))
	for i, p := range n.pods {
		if !p.Ended() && !d.expendable(p) {
			tenants = append(tenants, d.tenant(n, i))
		}
	}
	d.fit.Furnish(n.place, tenants)
}

// tenant is the i-th pod of a node. To look for the pod itself costs more.
func (d *decision) tenant(n *node, i int) fit.Tenant { return d.fit.TenantAt(int(n.rows[i])) }

// nominate seats the pods for which kube-scheduler is making room.
func (d *decision) nominate() {
	for _, p := range d.pods {
		if p.Node != "" || p.Nominated == "" || !p.Deleted.IsZero() || p.Ended() {
			continue
		}
		if n := d.node(p.Nominated); d.promised(p) && n.open {
			d.fit.Put(d.fit.Tenant(p), n.place)
		}
	}
}

func (d *decision) node(name string) *node {
	i, ok := slices.BinarySearchFunc(d.nodes, name, func(n *node, name string) int { return cmp.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return d.nodes[i]
}

// in lists the nodes of some stages.
func (d *decision) in(stages ...stage) []*node {
	var list []*node
	for _, n := range d.nodes {
		if slices.Contains(stages, n.stage) {
			list = append(list, n)
		}
	}
	return list
}

func (d *decision) expendable(p *fleet.Pod) bool { return p.Priority() < d.policy.ExpendableBelow }

func (d *decision) do(a Action) { d.actions = append(d.actions, a) }

// read takes what scaler, agent and people wrote on the node. A value that does
// not parse counts as absent: the agent tells people of a bad request, and a
// report that nobody can read answers nothing. The node's verdict tells of those.
func (n *node) read() {
	if value, ok := n.Annotations[contract.AnnotationDrainRequest]; ok {
		r, err := contract.ParseRequest(value)
		n.request, n.requested, n.unreadable = r, err == nil, err
	}
	if value, ok := n.Annotations[contract.AnnotationDrainReport]; ok {
		r, err := contract.ParseReport(value)
		n.report, n.reported = r, err == nil
		n.garble(err)
	}
	if value, told := n.Annotations[contract.AnnotationDrainNotYet]; told {
		n.notYet, _ = contract.ParseNotYet(value) // one that nobody can read is none
	}
	noticed, err := contract.ParseNoticed(n.Annotations[contract.AnnotationNotices])
	n.noticed = noticed
	n.garble(err)
	n.mark = n.Annotations[contract.AnnotationTerminating]
}

// answered is the report, if it is about that request or notice.
func (n *node) answered(id string) (contract.Report, bool) {
	if !n.reported || !n.report.AnswersTo(id) {
		return contract.Report{}, false
	}
	return n.report, true
}

// garble notes that what an agent wrote on the node cannot be read.
func (n *node) garble(err error) {
	if err != nil {
		n.garbled = append(n.garbled, err.Error())
	}
}

// draining is why the node drains, in the strongest word that is known.
func (n *node) draining() contract.Kind { return n.drainingBy(n.report) }

// drainingBy is the same where that report is what is known of the agent.
func (n *node) drainingBy(report contract.Report) contract.Kind {
	taint, _ := contract.Draining(n.Taints)
	kind := taint
	for _, k := range []contract.Kind{n.request.Kind, report.Kind} {
		if k.Strength() > kind.Strength() {
			kind = k
		}
	}
	return kind
}

func copyState(s fleet.State) fleet.State {
	return fleet.State{
		Heartbeats: copied(s.Heartbeats), Completed: copied(s.Completed), Pooling: map[string]time.Time{}, Outlived: map[string]time.Time{}, Alone: map[string]fleet.LoneDrain{}, BackOffs: copied(s.BackOffs), GrownAt: copied(s.GrownAt),
		ShrunkAt: copied(s.ShrunkAt), FailedAt: copied(s.FailedAt),
		Bursts:  copied(s.Bursts),
		GiveUps: copied(s.GiveUps), Unjoined: copied(s.Unjoined), Deserted: map[string]time.Time{}, Awaited: copied(s.Awaited), Promises: copied(s.Promises), Disputed: map[string]time.Time{}, Returning: copied(s.Returning), Launches: copied(s.Launches), Unsteered: copied(s.Unsteered), Suspending: copied(s.Suspending), Seen: copied(s.Seen), Lessons: copied(s.Lessons),
		Swap: s.Swap, SwapPauses: copied(s.SwapPauses), Recognition: copyRecognition(s.Recognition),
		OwnDrains: map[string]time.Time{},
	}
}

// compact leaves no empty maps, so that a state that says nothing new is equal
// to the one that was read.
func compact(s fleet.State) fleet.State {
	return fleet.State{
		Heartbeats: filled(s.Heartbeats), Completed: filled(s.Completed), Pooling: filled(s.Pooling), Outlived: filled(s.Outlived), Alone: filled(s.Alone), BackOffs: filled(s.BackOffs), GrownAt: filled(s.GrownAt),
		ShrunkAt: filled(s.ShrunkAt), FailedAt: filled(s.FailedAt),
		Bursts:  filled(s.Bursts),
		GiveUps: filled(s.GiveUps), Unjoined: filled(s.Unjoined), Deserted: filled(s.Deserted), Awaited: filled(s.Awaited), Promises: filled(s.Promises), Disputed: filled(s.Disputed), Returning: filled(s.Returning), Launches: filled(s.Launches), Unsteered: filled(s.Unsteered), Suspending: filled(s.Suspending), Seen: filled(s.Seen), Lessons: filled(s.Lessons),
		Swap: s.Swap, SwapPauses: filled(s.SwapPauses), Recognition: compactRecognition(s.Recognition),
		OwnDrains: filled(s.OwnDrains),
	}
}

func filled[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func copied[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

// clock finds the earliest of the moments at which something falls due.
type clock struct{ now, next time.Time }

// at asks for a look at t; moments that have passed ask for none.
func (c *clock) at(t time.Time) {
	if !t.After(c.now) {
		return
	}
	if c.next.IsZero() || t.Before(c.next) {
		c.next = t
	}
}

// clockTime prints a moment in verdicts.
func clockTime(t time.Time) string { return t.UTC().Format(time.TimeOnly) }
