package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Groups gives the latest reading of the Auto Scaling groups, when it was
// taken (zero before the first), and why a later one failed. Reader of package
// asg is one.
type Groups interface {
	Groups(seen map[string]resource.Quantity) ([]fleet.Group, time.Time, error)
	// Look asks for a reading soon if the latest one lacks an instance or, where that leaves, does not
	// say so.
	Look(instance string, leaves bool)
}

// Config is what to observe.
type Config struct {
	Client kubernetes.Interface
	// Custom reads CapacityBuffers and Karpenter's NodePools, where the API server serves
	// them; nil where they are not asked for.
	Custom dynamic.Interface
	// Metadata reads that of the statuses of Cluster Autoscalers; nil where it is not asked for.
	Metadata metadata.Interface
	Groups   Groups
	// Machines asks EC2 for instances and gives what it has answered, without waiting; see
	// fleet.Snapshot. Nil where EC2 is not asked.
	Machines func(ids []string) (known map[string]fleet.Machine, fault string)
	// OutOfService has Machines asked of all nodes whose machines may be down; without it only
	// of those that are marked so.
	OutOfService bool
	// GroupsFault says what of the groups' reading is not as it should be beside their own faults,
	// such as spot prices; may be nil.
	GroupsFault func() string
	// AutoscalerLeases are names of the leases of Cluster Autoscalers, beside their usual one.
	AutoscalerLeases []string
	// Namespace is our own, in which the agents run.
	Namespace string
	// Priorities asks for the ConfigMap of the expander of that name, in Namespace.
	Priorities bool
	// Owners asks for the controllers of pods, for how many replicas they want.
	Owners bool
	Logger *slog.Logger
	// Now is the time; nil for the node's own clock.
	Now func() time.Time
	// Report takes why nodes, pods, budgets or DaemonSets are not seen as they come, or nil where all of
	// them are, after each call for them; may be nil.
	Report func(error)
	// Trouble takes every failure of a call that watching consists of; may be nil.
	Trouble func(error)
}

// Observer watches a cluster. Its Snapshot makes no call: it is what the watches delivered so
// far.
type Observer struct {
	config           Config
	nudge            *nudger
	share            *sharer
	otherAutoscalers *autoscalerWatch
	pools            *nodePoolWatch
	server           *server
	wishes           *prioritiesWatch
	spare            *bufferWatch
	outage           outage
	// awaits: pods wait for what AWS answers.
	awaits atomic.Bool

	pods       *table[*corev1.Pod, fleet.Pod]
	nodes      *table[*corev1.Node, fleet.Node]
	budgets    *table[*policyv1.PodDisruptionBudget, fleet.Budget]
	daemonSets *table[*appsv1.DaemonSet, daemonSet]
	// samples are the pods that show what admission makes of DaemonSets.
	samples  samples
	others   *others
	owners   owners
	handlers handlers
	watches  []watched

	// version counts the changes that a Snapshot can show.
	version atomic.Uint64

	reporting sync.Mutex // one Report after the other, each as it is at that moment

	mu     sync.Mutex
	agents map[string]agent // by the pod's name
	ready  map[string]bool  // by the node's name; what agents add up to, nil if to be done again
	copied copied
	groups []fleet.Group // of the last Snapshot
	// machines are those of the last Snapshot, with their fault.
	machines machines
	// kept are the buffers and quotas of when all that they refer to had last been seen; known: it had.
	kept struct {
		known   bool
		buffers []fleet.Buffer
		quotas  []fleet.Quota
	}
}

type agent struct {
	node  string
	ready bool
}

// New returns an Observer that sees nothing before Run.
func New(config Config) *Observer {
	if config.Report == nil {
		config.Report = func(error) {}
	}
	if config.Trouble == nil {
		config.Trouble = func(error) {}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	o := &Observer{config: config, outage: outage{now: config.Now}, nudge: newNudger(), share: newSharer(), agents: map[string]agent{}}
	o.otherAutoscalers = newAutoscalerWatch(o)
	o.pods = newTable(o.pod, podName, differ[fleet.Pod], o.podChanged)
	o.pods.slim = slimPod
	o.nodes = newTable(o.node, nodeName, differ[fleet.Node], o.nodeChanged)
	o.nodes.slim = slimNode
	o.nodes.versions = map[types.NamespacedName]string{}
	o.budgets = newTable(budget, budgetName, differ[fleet.Budget], func(_, _ *fleet.Budget) { o.news(later) })
	o.daemonSets = newTable(newDaemonSet, daemonSetName, differ[daemonSet], func(_, _ *daemonSet) { o.news(later) })
	o.others = newOthers(func() { o.news(later) })
	o.server = &server{
		api: config.Client.Discovery(), broke: make(chan struct{}, 1), changed: func() { o.news(later) },
		watchDevices: o.watchDevices, forgetDevices: o.others.forgetDevices,
		refused: o.refusal("ask for the server's version", "the newest rules of kube-scheduler that are known are followed, and no devices are seen"),
	}
	if config.Priorities {
		o.wishes = &prioritiesWatch{
			maps: config.Client.CoreV1().ConfigMaps(config.Namespace), report: o.report, changed: func() { o.news(later) },
			refused: o.refusal("get configmap "+contract.ConfigMapPriorities, "no group is preferred"),
		}
	}
	if config.Custom != nil {
		o.spare = newBufferWatch(o, config.Custom)
		o.pools = &nodePoolWatch{
			api: config.Custom.Resource(NodePoolResource), report: o.report, changed: func() { o.news(later) },
			refused: o.refusal("list nodepools of karpenter.sh", "it is not reported which pods Karpenter takes, too"),
		}
	}
	o.watches = append(o.allWatches(), o.otherAutoscalers.watches(append([]string{contract.LeaseClusterAutoscaler}, config.AutoscalerLeases...))...)
	if config.Owners {
		o.owners = newOwners(func() { o.news(later) })
		o.watches = append(o.watches, o.owners.watches(o)...)
	}
	return o
}

// news counts a change and nudges.
func (o *Observer) news(within time.Duration) {
	o.version.Add(1)
	o.nudge.within(within)
}

func podName(p *fleet.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
func nodeName(n *fleet.Node) types.NamespacedName { return types.NamespacedName{Name: n.Name} }
func budgetName(b *fleet.Budget) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

func differ[T any](was, is *T) bool { return !fleet.Equal(*was, *is) }

func (o *Observer) pod(p *corev1.Pod) *fleet.Pod {
	pod := fleet.PodFrom(p)
	both := pod.Name + string(pod.UID) // one piece of memory is smaller than two
	pod.Name, pod.UID = both[:len(pod.Name)], types.UID(both[len(pod.Name):])
	if resized := allocated(p); resized != nil {
		pod.Allocate(resized)
	}
	o.share.pod(&pod)
	return &pod
}

func (o *Observer) node(n *corev1.Node) *fleet.Node {
	node := fleet.NodeFrom(n)
	o.share.node(&node)
	return &node
}

func budget(b *policyv1.PodDisruptionBudget) *fleet.Budget {
	budget := fleet.BudgetFrom(b)
	return &budget
}

// Run watches until ctx ends.
func (o *Observer) Run(ctx context.Context) {
	var watching sync.WaitGroup
	for _, w := range o.watches {
		if !w.devices {
			watching.Go(func() { w.run(ctx) })
		}
	}
	watching.Go(func() { o.server.run(ctx) })
	watching.Go(func() { o.otherAutoscalers.run(ctx) })
	watching.Go(func() { o.pools.run(ctx) })
	watching.Go(func() { o.wishes.run(ctx) })
	watching.Go(func() { o.spare.run(ctx) })
	watching.Wait()
}

// watchDevices watches what only some servers serve, until ctx ends.
func (o *Observer) watchDevices(ctx context.Context) {
	var watching sync.WaitGroup
	for _, w := range o.watches {
		if w.devices {
			watching.Go(func() { w.run(ctx) })
		}
	}
	watching.Wait()
}

// Changed signals that a new evaluation may give a new answer.
func (o *Observer) Changed() <-chan struct{} { return o.nudge.c }

// Rest takes how long an evaluation was: the next one that is not urgent comes as much later as keeps
// these from taking more than a tenth of a core, and a fiftieth where only pods come and go, as long as
// that is no more than two seconds.
func (o *Observer) Rest(evaluation time.Duration) { o.nudge.rest(evaluation) }

// GroupsChanged is for whoever reads the groups to call, and whoever changes them. What was expected
// is what AWS confirms of our own calls: the decision to make them counted on it, so that nothing waits
// for it but pods for which the group is to grow on, see Awaits.
func (o *Observer) GroupsChanged(expected bool) {
	if expected && !o.awaits.Load() {
		o.nudge.within(later)
		return
	}
	o.nudge.within(soon)
}

// Awaits tells whether pods wait for what AWS answers.
func (o *Observer) Awaits(answer bool) { o.awaits.Store(answer) }

// EventsCame is for whoever logs what others report to call. No decision goes by it.
func (o *Observer) EventsCame() { o.nudge.within(seldom) }

// ErrNotYet means that something has not been seen for the first time yet.
var ErrNotYet = errors.New("not everything was seen yet")

// Snapshot is what is known now. Its version is another one whenever anything of
// it but Now and State may be; what did not change is shared with the snapshots
// before and must not be written to. It fails with ErrNotYet, naming what is
// missing, before everything was seen once.
func (o *Observer) Snapshot(now time.Time, state fleet.State) (s fleet.Snapshot, version uint64, err error) {
	faults, err := o.seen()
	if err != nil {
		return fleet.Snapshot{}, 0, err
	}
	groups, at, err := o.config.Groups.Groups(state.Seen)
	if at.IsZero() {
		return fleet.Snapshot{}, 0, notYet("the Auto Scaling groups", err)
	}
	o.noteGroups(groups)
	down := o.askMachines()
	version = o.version.Load() // first: what comes now counts as unseen
	autoscalers, _ := o.otherAutoscalers.latest()
	kubernetes, _ := o.server.latest()
	priorities, _ := o.wishes.latest()
	nodes, budgets, daemonSets := o.copies()
	buffers, quotas := o.keepSpare()
	if down.fault != "" {
		faults = append(faults, down.fault)
	}
	if o.config.GroupsFault != nil {
		if fault := o.config.GroupsFault(); fault != "" {
			faults = append(faults, fault)
		}
	}
	return fleet.Snapshot{
		Now:        now.UTC(),
		Groups:     groups,
		Nodes:      nodes,
		Pods:       o.pods.snapshot(),
		Budgets:    budgets,
		DaemonSets: daemonSets,
		Owners:     o.owners.latest(),
		Buffers:    buffers,
		Quotas:     quotas,
		Kubernetes: kubernetes,
		Namespaces: o.namespaces(),
		Cluster:    o.Cluster(),
		Storage:    o.others.storage(),
		Devices:    o.others.devices(),
		Faults:     faults,
		Outages:    o.outage.latest(now),
		Agents:     o.readyAgents(),

		Autoscalers:         autoscalers,
		NodePools:           o.pools.latest(),
		TerminationHandlers: o.handlers.latest(),

		Machines:   down.known,
		Priorities: priorities,
		State:      state,
	}, version, nil
}

// seen fails where something has not been seen yet that may be any moment. It
// returns a sentence for everything that cannot be seen.
func (o *Observer) seen() (faults []string, err error) {
	for _, w := range o.watches {
		if fault := w.refused.fault(); fault != "" {
			faults = append(faults, fault)
		} else if !w.synced() && (!w.devices || o.server.servesDevices()) {
			return nil, fmt.Errorf("%w: %s", ErrNotYet, w.what)
		}
	}
	if _, known := o.otherAutoscalers.latest(); !known {
		return nil, fmt.Errorf("%w: whether other autoscalers are alive", ErrNotYet)
	}
	if _, asked := o.server.latest(); !asked {
		return nil, fmt.Errorf("%w: the server's version", ErrNotYet)
	}
	if _, known := o.wishes.latest(); !known {
		return nil, fmt.Errorf("%w: config map %s", ErrNotYet, contract.ConfigMapPriorities)
	}
	switch awaited := o.spare.awaits(); {
	case awaited != "" && !o.keptAny():
		return nil, fmt.Errorf("%w: %s", ErrNotYet, awaited)
	case awaited != "":
		faults = append(faults, "capacity buffers are as they were: not seen yet are "+awaited)
	}
	for _, fault := range append(o.spare.faults(), o.outage.fault(o.outage.now()), o.server.refused.fault(), o.wishes.fault(), o.pools.fault(), o.otherAutoscalers.refused.fault()) {
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	return faults, nil
}

// keepSpare keeps the buffers and their quotas for snapshots, where all that they refer to was seen. Until
// then what was kept before stands, if anything was: whoever makes a buffer would halt everything else.
func (o *Observer) keepSpare() ([]fleet.Buffer, []fleet.Quota) {
	complete := o.spare.awaits() == ""
	o.mu.Lock()
	defer o.mu.Unlock()
	if complete {
		o.kept.known, o.kept.buffers, o.kept.quotas = true, o.spare.latest(), o.spare.latestQuotas()
	}
	return o.kept.buffers, o.kept.quotas
}

func (o *Observer) keptAny() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept.known
}

// noteGroups counts a reading with something new.
func (o *Observer) noteGroups(groups []fleet.Group) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !sameRows(o.groups, groups) && !slices.EqualFunc(o.groups, groups, sameGroup) {
		o.groups = groups
		o.version.Add(1)
	}
}

// sameGroup compares the many instances the quick way: they hold nothing but
// plain values.
func sameGroup(a, b fleet.Group) bool {
	if !slices.Equal(a.Instances, b.Instances) {
		return false
	}
	a.Instances, b.Instances = nil, nil
	return fleet.Equal(a, b)
}

// copied are rows by value, as a snapshot has what there are few of, and the
// rows that they were made of.
type copied struct {
	nodes      values[fleet.Node]
	budgets    values[fleet.Budget]
	namespaces []*corev1.Namespace
	labels     map[string]map[string]string // by namespace
}

func (o *Observer) copies() ([]fleet.Node, []fleet.Budget, []fleet.DaemonSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.copied.nodes.of(o.nodes.snapshot()), o.copied.budgets.of(o.budgets.snapshot()), o.samples.admitted(o.daemonSets.snapshot(), o.pods.snapshot)
}

// namespaces are the labels of each, made anew when one has changed.
func (o *Observer) namespaces() map[string]map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	rows := o.others.namespaces.snapshot()
	if o.copied.labels == nil || !sameRows(o.copied.namespaces, rows) {
		o.copied.namespaces, o.copied.labels = rows, make(map[string]map[string]string, len(rows))
		for _, n := range rows {
			o.copied.labels[n.Name] = n.Labels
		}
	}
	return o.copied.labels
}

// Cluster is the UID of the namespace kube-system; empty where it has not been read.
func (o *Observer) Cluster() types.UID {
	for _, n := range o.others.namespaces.snapshot() {
		if n.Name == metav1.NamespaceSystem {
			return n.UID
		}
	}
	return ""
}

// NodeOf is the Node of an instance, if there is one.
func (o *Observer) NodeOf(instance string) (fleet.Node, bool) {
	for _, n := range o.nodes.snapshot() {
		if n.InstanceID() == instance {
			return *n, true
		}
	}
	return fleet.Node{}, false
}

// sameRows knows rows by where they are: nothing is written to what was
// handed out.
func sameRows[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// values copies rows once for each state of their table.
type values[T any] struct {
	rows []*T
	list []T
}

func (v *values[T]) of(rows []*T) []T {
	if sameRows(v.rows, rows) {
		return v.list
	}
	v.rows, v.list = rows, make([]T, len(rows))
	for i, row := range rows {
		v.list[i] = *row
	}
	return v.list
}

func notYet(what string, err error) error {
	if err == nil {
		return fmt.Errorf("%w: %s", ErrNotYet, what)
	}
	return fmt.Errorf("%w: %s: %w", ErrNotYet, what, err)
}

// AwaitNode waits until the watch has seen a node at a version or later, so
// that the next Snapshot knows what was written. It gives up when ctx ends.
func (o *Observer) AwaitNode(ctx context.Context, name, version string) {
	o.nodes.await(ctx, types.NamespacedName{Name: name}, version)
}

// AwaitBuffer waits until the watch has seen a CapacityBuffer at a version or later, or
// until ctx ends.
func (o *Observer) AwaitBuffer(ctx context.Context, namespace, name, version string) {
	if o.spare != nil {
		o.spare.buffers.await(ctx, types.NamespacedName{Namespace: namespace, Name: name}, version)
	}
}

// podChanged nudges at once for a pod that waits, or may have come to wait while the watch was away, and
// later for everything else that happens to pods.
func (o *Observer) podChanged(was, is *fleet.Pod) {
	o.noteAgent(was, is)
	o.handlers.note(o.pods.snapshot, was, is)
	o.samples.note(o.pods.snapshot, was, is)
	listed := was == nil && is == nil
	urgent := listed || is != nil && is.Scheduling == fleet.Unschedulable && (was == nil || was.Scheduling != fleet.Unschedulable)
	if urgent {
		o.news(soon)
		return
	}
	o.version.Add(1)
	o.nudge.churn()
}

// nodeChanged nudges at once for what the agents and people write, and has the groups read where a
// node knows more of its instance than we do: it is new, or its agent drains it and we did not ask for that.
func (o *Observer) nodeChanged(was, is *fleet.Node) {
	if was == nil || is == nil {
		if is != nil {
			o.config.Groups.Look(is.InstanceID(), false)
		} else if was != nil {
			o.config.Groups.Look(was.InstanceID(), true)
		}
		o.news(soon)
		return
	}
	if onlyRenewed(was, is) {
		o.version.Add(1)
		return
	}
	if report := contract.AnnotationDrainReport; was.Annotations[report] != is.Annotations[report] {
		if before, now := reportOf(was), reportOf(is); (before.Phase != now.Phase || before.Kind != now.Kind) && now.Kind != contract.KindScaleDown {
			o.config.Groups.Look(is.InstanceID(), true)
		}
	}
	written := !maps.Equal(was.Annotations, is.Annotations) || was.Unschedulable != is.Unschedulable || was.Ready != is.Ready
	if written {
		o.news(soon)
		return
	}
	o.news(later)
}

// onlyRenewed reports whether nothing of a node is new but that its agent still lives and
// that the scaler has asked it to wait on. Of a thousand nodes that wait there are twenty
// such changes a second, and a plan states itself when it wants to know.
func onlyRenewed(was, is *fleet.Node) bool {
	return fleet.Equal(unrenewed(was), unrenewed(is))
}

// unrenewed is a node without what is renewed of it.
func unrenewed(n *fleet.Node) fleet.Node {
	out := *n
	out.Annotations = maps.Clone(n.Annotations)
	delete(out.Annotations, contract.AnnotationDrainNotYet)
	if report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); err == nil {
		report.Renewed = contract.Time{}
		out.Annotations[contract.AnnotationDrainReport] = report.String()
	}
	return out
}

// reportOf is the report of a node's agent; one that is not understood is none.
func reportOf(n *fleet.Node) contract.Report {
	report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		return contract.Report{}
	}
	return report
}

// noteAgent keeps the list of agents. After a Replace (was and is are nil) it
// is made anew from all pods.
func (o *Observer) noteAgent(was, is *fleet.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if was == nil && is == nil {
		clear(o.agents)
		for _, p := range o.pods.snapshot() {
			o.setAgent(p)
		}
		o.ready = nil
		return
	}
	if was != nil && o.isAgent(was) {
		delete(o.agents, was.Name)
		o.ready = nil
	}
	if is != nil {
		o.setAgent(is)
	}
}

func (o *Observer) isAgent(p *fleet.Pod) bool {
	return p.Namespace == o.config.Namespace && p.Labels[contract.LabelAppName] == contract.AppAgent
}

func (o *Observer) setAgent(p *fleet.Pod) {
	if o.isAgent(p) && p.Node != "" {
		o.agents[p.Name], o.ready = agent{node: p.Node, ready: p.Ready && p.Deleted.IsZero()}, nil
	}
}

// readyAgents adds the agents up by node: one that is Ready is enough.
func (o *Observer) readyAgents() map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ready == nil {
		o.ready = map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(o.agents)) {
			a := o.agents[name]
			o.ready[a.node] = o.ready[a.node] || a.ready
		}
	}
	return o.ready
}
