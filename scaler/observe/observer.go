package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Groups gives the latest reading of the Auto Scaling groups, when it was
// taken (zero before the first), and why a later one failed. Reader of package
// asg is one.
type Groups interface {
	Groups(seen map[string]resource.Quantity) ([]fleet.Group, time.Time, error)
	// Nudge asks for a reading soon.
	Nudge()
}

// Config says what to observe.
type Config struct {
	Client kubernetes.Interface
	Groups Groups
	// Namespace is our own, in which the agents run.
	Namespace string
	Logger    *slog.Logger
	// Report hears of every call to the API server that watching consists of;
	// nil for nobody.
	Report func(error)
}

// Observer watches a cluster. Its Snapshot never asks anybody: it is what the
// watches told so far.
type Observer struct {
	config Config
	nudge  *nudger
	specs  *specs
	rival  *rivalWatch

	pods       *table[*corev1.Pod, fleet.Pod]
	nodes      *table[*corev1.Node, fleet.Node]
	budgets    *table[*policyv1.PodDisruptionBudget, fleet.Budget]
	daemonSets *table[*appsv1.DaemonSet, fleet.DaemonSet]

	mu     sync.Mutex
	agents map[string]agent // by the pod's name
	ready  map[string]bool  // by the node's name; what agents add up to, nil if to be done again
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
	o := &Observer{config: config, nudge: newNudger(), specs: newSpecs(), agents: map[string]agent{}}
	o.rival = &rivalWatch{
		leases: config.Client.CoordinationV1().Leases(contract.NamespaceClusterAutoscaler),
		logger: config.Logger, changed: func() { o.nudge.within(soon) },
	}

	o.pods = newTable(o.pod, podName, differ[fleet.Pod], o.podChanged)
	o.pods.slim = slimPod
	o.nodes = newTable(node, nodeName, differ[fleet.Node], o.nodeChanged)
	o.nodes.slim = slimNode
	o.nodes.versions = map[types.NamespacedName]string{}
	o.budgets = newTable(budget, budgetName, differ[fleet.Budget], func(_, _ *fleet.Budget) { o.nudge.within(later) })
	o.daemonSets = newTable(daemonSet, daemonSetName, differ[fleet.DaemonSet], func(_, _ *fleet.DaemonSet) { o.nudge.within(later) })
	return o
}

func podName(p *fleet.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}
func nodeName(n *fleet.Node) types.NamespacedName { return types.NamespacedName{Name: n.Name} }
func budgetName(b *fleet.Budget) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}
func daemonSetName(d *fleet.DaemonSet) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}

func differ[T any](was, is *T) bool { return !fleet.Equal(*was, *is) }

func (o *Observer) pod(p *corev1.Pod) *fleet.Pod {
	pod := fleet.PodFrom(p)
	pod.Spec = o.specs.share(pod.Spec)
	return &pod
}

func node(n *corev1.Node) *fleet.Node {
	node := fleet.NodeFrom(n)
	return &node
}

func budget(b *policyv1.PodDisruptionBudget) *fleet.Budget {
	budget := fleet.BudgetFrom(b)
	return &budget
}

func daemonSet(d *appsv1.DaemonSet) *fleet.DaemonSet {
	template := d.Spec.Template
	template.Annotations = only(template.Annotations, podAnnotations)
	slimSpec(&template.Spec)
	return &fleet.DaemonSet{Namespace: d.Namespace, Name: d.Name, Template: template}
}

// notEnded leaves out pods that hold nothing any more.
const notEnded = "status.phase!=Succeeded,status.phase!=Failed"

// Run watches until ctx ends.
func (o *Observer) Run(ctx context.Context) {
	c, report := o.config.Client, o.config.Report
	var watching sync.WaitGroup
	watching.Go(func() { follow(ctx, c, c.CoreV1().Pods(""), notEnded, o.pods, report) })
	watching.Go(func() { follow(ctx, c, c.CoreV1().Nodes(), "", o.nodes, report) })
	watching.Go(func() { follow(ctx, c, c.PolicyV1().PodDisruptionBudgets(""), "", o.budgets, report) })
	watching.Go(func() { follow(ctx, c, c.AppsV1().DaemonSets(""), "", o.daemonSets, report) })
	watching.Go(func() { o.rival.run(ctx) })
	watching.Wait()
}

// Changed tells that a new look may give a new answer.
func (o *Observer) Changed() <-chan struct{} { return o.nudge.c }

// GroupsChanged is for whoever reads the groups to call.
func (o *Observer) GroupsChanged() { o.nudge.within(soon) }

// ErrNotYet means that something has not been seen for the first time yet.
var ErrNotYet = errors.New("not everything was seen yet")

// Snapshot is what is known now. It fails with ErrNotYet, naming what is
// missing, before everything was seen once.
func (o *Observer) Snapshot(now time.Time, state fleet.State) (fleet.Snapshot, error) {
	for _, watch := range []struct {
		what   string
		synced bool
	}{
		{"nodes", o.nodes.hasSynced()}, {"pods", o.pods.hasSynced()},
		{"budgets", o.budgets.hasSynced()}, {"daemon sets", o.daemonSets.hasSynced()},
	} {
		if !watch.synced {
			return fleet.Snapshot{}, fmt.Errorf("%w: %s", ErrNotYet, watch.what)
		}
	}
	rival, asked := o.rival.latest()
	if !asked {
		return fleet.Snapshot{}, fmt.Errorf("%w: the lease of a Cluster Autoscaler", ErrNotYet)
	}
	groups, at, err := o.config.Groups.Groups(state.Seen)
	if at.IsZero() {
		return fleet.Snapshot{}, notYet("the Auto Scaling groups", err)
	}
	return fleet.Snapshot{
		Now:        now.UTC(),
		Groups:     groups,
		Nodes:      values(o.nodes.snapshot()),
		Pods:       o.pods.snapshot(),
		Budgets:    values(o.budgets.snapshot()),
		DaemonSets: values(o.daemonSets.snapshot()),
		Agents:     o.readyAgents(),
		Rival:      rival,
		State:      state,
	}, nil
}

// values are rows by value, as a snapshot has what there are few of.
func values[T any](rows []*T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = *row
	}
	return out
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
	for {
		reached, moved := o.nodes.reached(types.NamespacedName{Name: name}, version)
		if reached {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// podChanged nudges at once for a pod that waits, and later for everything
// else that happens to pods.
func (o *Observer) podChanged(was, is *fleet.Pod) {
	o.noteAgent(was, is)
	urgent := is != nil && is.Scheduling == fleet.Unschedulable && (was == nil || was.Scheduling != fleet.Unschedulable)
	if urgent {
		o.nudge.within(soon)
		return
	}
	o.nudge.within(later)
}

// nodeChanged nudges at once for what the agents and people write, and asks for
// a reading of the groups: a drain that ended is followed by calls to AWS.
func (o *Observer) nodeChanged(was, is *fleet.Node) {
	if was == nil || is == nil {
		o.config.Groups.Nudge()
		o.nudge.within(soon)
		return
	}
	if report := contract.AnnotationDrainReport; was.Annotations[report] != is.Annotations[report] && phaseOf(was) != phaseOf(is) {
		o.config.Groups.Nudge()
	}
	written := !maps.Equal(was.Annotations, is.Annotations) || was.Unschedulable != is.Unschedulable || was.Ready != is.Ready
	if written {
		o.nudge.within(soon)
		return
	}
	o.nudge.within(later)
}

func phaseOf(n *fleet.Node) contract.Phase {
	report, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		return ""
	}
	return report.Phase
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
