package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// World is a snapshot that goes on: a small model of what Auto Scaling, the
// agents and the controllers do, exact enough to decide again after acting.
// Each method is one thing that happens; nothing happens by itself.
type World struct {
	fleet.Snapshot
	// launched numbers the instances that the model launches.
	launched int
	// born numbers the pods that owners create in place of others.
	born int
	// completed are the hooks that are done with, by instance.
	completed map[string][]string
	// came is how many instances each client token launched.
	came map[string]int
}

// NewWorld is empty, at ten in the morning.
func NewWorld() *World {
	return &World{Snapshot: fleet.Snapshot{Now: day.Add(10 * time.Hour)}, completed: map[string][]string{}, came: map[string]int{}}
}

func (w *World) group(name string) *fleet.Group {
	return find(w.Groups, func(g *fleet.Group) bool { return g.Name == name })
}

func (w *World) node(name string) *fleet.Node {
	return find(w.Nodes, func(n *fleet.Node) bool { return n.Name == name })
}

func (w *World) pod(key string) *fleet.Pod {
	namespace, name, _ := strings.Cut(key, "/")
	for _, p := range w.Pods {
		if p.Name == name && p.Namespace == namespace {
			return p
		}
	}
	return nil
}

func (w *World) instance(id string) *fleet.Instance {
	for g := range w.Groups {
		if i := find(w.Groups[g].Instances, func(i *fleet.Instance) bool { return i.ID == id }); i != nil {
			return i
		}
	}
	return nil
}

func (w *World) nodeOf(instance string) *fleet.Node {
	return find(w.Nodes, func(n *fleet.Node) bool { return n.InstanceID() == instance })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func (w *World) count() int {
	n := len(w.Pods) + len(w.Nodes) + len(w.Budgets) + len(w.Groups) + len(w.Buffers)
	for _, g := range w.Groups {
		n += len(g.Instances)
	}
	return n
}

func (w *World) dropNode(name string) {
	if n := w.node(name); n != nil {
		w.dropInstance(n.InstanceID())
	}
	w.Nodes = slices.DeleteFunc(w.Nodes, func(n fleet.Node) bool { return n.Name == name })
	w.Pods = slices.DeleteFunc(w.Pods, func(p *fleet.Pod) bool { return p.Node == name })
}

func (w *World) dropInstance(id string) {
	for g := range w.Groups {
		w.Groups[g].Instances = slices.DeleteFunc(w.Groups[g].Instances, func(i fleet.Instance) bool { return i.ID == id })
	}
}

// SetDesired is SetDesiredCapacity, called by somebody who has read from.
func (w *World) SetDesired(group string, from, to int) error {
	g := w.group(group)
	switch {
	case g == nil:
		return fmt.Errorf("group %s is not there", group)
	case g.Desired != from:
		return fmt.Errorf("group %s has %d desired, not %d", group, g.Desired, from)
	case to < g.Min || to > g.Max:
		return fmt.Errorf("group %s may have %d to %d, not %d", group, g.Min, g.Max, to)
	}
	g.Desired = to
	return nil
}

// LaunchIn is LaunchInstances: it adds to what the group wants and has. The same
// token launches once.
func (w *World) LaunchIn(group, zone, token string, count int) (came int, err error) {
	if came, known := w.came[token]; known {
		return came, nil
	}
	g := w.group(group)
	switch {
	case g == nil:
		return 0, fmt.Errorf("group %s is not there", group)
	case !slices.Contains(g.Zones, zone):
		return 0, fmt.Errorf("group %s is not in zone %s", group, zone)
	case g.Desired+count > g.Max:
		return 0, fmt.Errorf("group %s may have %d, not %d", group, g.Max, g.Desired+count)
	}
	g.Desired += count
	for range count {
		w.launch(g, zone)
	}
	w.came[token] = count
	return count, nil
}

// launch adds an instance without a node.
func (w *World) launch(g *fleet.Group, zone string) {
	w.launched++
	id := fmt.Sprintf("i-%s-new%d", g.Name, w.launched)
	g.Instances = append(g.Instances, fleet.Instance{ID: id, Zone: zone, Type: instanceType(g), State: fleet.Pending, Template: g.Template})
}

// Request writes a drain request and its taint on a node.
func (w *World) Request(node string, r contract.Request) {
	n := w.node(node)
	annotate(n, contract.AnnotationDrainRequest, r.String())
	n.Taints = contract.WithTaint(n.Taints, contract.DrainingTaint(r.Kind))
}

// Withdraw takes a drain request back, if it still is that one. The agent's
// undo is another thing.
func (w *World) Withdraw(node, id string) error {
	n := w.node(node)
	r, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	if err != nil || r.ID != id {
		return fmt.Errorf("the request %s does not stand on node %s", id, node)
	}
	if _, marked := n.Annotations[contract.AnnotationTerminating]; marked {
		return fmt.Errorf("node %s is past the point of no return", node)
	}
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, contract.AnnotationDrainRequest)
	return nil
}

// Permit lets the drain begin that waits on a node.
func (w *World) Permit(node, id string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	annotate(n, contract.AnnotationDrainPermit, id)
	delete(n.Annotations, contract.AnnotationDrainNotYet)
}

// PutOff tells a drain that waits on a node to wait on.
func (w *World) PutOff(node, id, why string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	annotate(n, contract.AnnotationDrainNotYet, contract.NotYet{ID: id, At: contract.At(w.Now), Why: why}.String())
}

// Release is the scaler taking an agent's cordon off, and the agent respecting that.
func (w *World) Release(node string) {
	n := w.node(node)
	n.Unschedulable = false
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, contract.AnnotationCordonedBy)
}

// TakeOver is the scaler taking off what a Cluster Autoscaler left.
func (w *World) TakeOver(node string, taints []corev1.Taint, uncordon bool) {
	n := w.node(node)
	*n = TakenOver(*n, taints, uncordon)
}

// TakenOver is a node without these taints and, if so, without its cordon.
func TakenOver(n fleet.Node, taints []corev1.Taint, uncordon bool) fleet.Node {
	for _, t := range taints {
		n.Taints = contract.WithoutTaint(n.Taints, t.Key)
	}
	if uncordon {
		n.Unschedulable = false
		n.Taints = contract.WithoutTaint(n.Taints, corev1.TaintNodeUnschedulable)
	}
	return n
}

// Report is the agent's word about its drain. While that waits for its permit, and the agent
// says for how long, the node is open.
func (w *World) Report(node string, r contract.Report) {
	n := w.node(node)
	annotate(n, contract.AnnotationDrainReport, r.String())
	if r.Kind != "" && r.PermitWait == 0 {
		n.Taints = contract.WithTaint(n.Taints, contract.DrainingTaint(r.Kind))
	}
}

// Advance lets time pass. Agents that are not known to be gone renew their open
// reports.
func (w *World) Advance(d time.Duration) {
	w.Now = w.Now.Add(d)
	for i := range w.Nodes {
		n := &w.Nodes[i]
		r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
		if ready, known := w.Agents[n.Name]; err != nil || !r.Phase.Open() || known && !ready {
			continue
		}
		r.Renewed = contract.At(w.Now)
		n.Annotations = maps.Clone(n.Annotations)
		annotate(n, contract.AnnotationDrainReport, r.String())
	}
}

// Undo is what an agent does when its drain was taken back.
func (w *World) Undo(node string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, contract.AnnotationDrainReport)
	delete(n.Annotations, contract.AnnotationDrainPermit)
	delete(n.Annotations, contract.AnnotationDrainNotYet)
	n.Taints = contract.WithoutKubeProxyTaint(contract.WithoutTaint(n.Taints, contract.TaintDraining))
	if _, ours := n.Annotations[contract.AnnotationCordonedBy]; ours {
		n.Unschedulable = false
		delete(n.Annotations, contract.AnnotationCordonedBy)
	}
	if _, ours := n.Annotations[contract.AnnotationExcluded]; ours {
		n.Labels = maps.Clone(n.Labels)
		delete(n.Labels, contract.LabelExcludeFromLoadBalancers)
		delete(n.Annotations, contract.AnnotationExcluded)
	}
}

// Cordon is the scaler closing a node whose agent is gone.
func (w *World) Cordon(node, id string, kind contract.Kind) {
	n := w.node(node)
	if !n.Unschedulable {
		n.Unschedulable = true
		n.Annotations = maps.Clone(n.Annotations)
		annotate(n, contract.AnnotationCordonedBy, contract.Cordon{By: contract.AppScaler, Notice: id, At: contract.At(w.Now)}.String())
	}
	if was, tainted := contract.Draining(n.Taints); !tainted || was.Strength() < kind.Strength() {
		n.Taints = contract.WithTaint(n.Taints, contract.DrainingTaint(kind))
	}
	if _, excluded := n.Labels[contract.LabelExcludeFromLoadBalancers]; !excluded {
		n.Labels, n.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
		n.Labels[contract.LabelExcludeFromLoadBalancers] = "true"
		annotate(n, contract.AnnotationExcluded, id)
	}
}

// TellKubeProxy is the scaler having kube-proxy say that a node goes.
func (w *World) TellKubeProxy(node string) {
	n := w.node(node)
	n.Taints = contract.WithKubeProxyTaint(n.Taints)
}

// Evict is the eviction API: a pod goes, and its owner creates another, if its budget
// allows that.
func (w *World) Evict(pod types.UID) error {
	p := w.podOf(pod)
	if p == nil {
		return nil // it is gone
	}
	v := drainable.Judge(drainable.Question{Pod: p, Now: w.Now, Budgets: drainable.NewBudgets(w.Budgets), Urgency: drainable.Pressing})
	if v.Outcome == drainable.Block {
		return fmt.Errorf("pod %s is not evicted: %s", p.Key(), v.Reason)
	}
	w.evict(p)
	return nil
}

func (w *World) podOf(uid types.UID) *fleet.Pod {
	for _, p := range w.Pods {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// Suspend is SuspendProcesses for one of them.
func (w *World) Suspend(group, process string) {
	g := w.group(group)
	g.Suspended = append(slices.Clone(g.Suspended), process)
}

// Claim writes on a group whose it is.
func (w *World) Claim(group string, owner types.UID) { w.group(group).Owner = owner }

// Spare takes the terminating mark and the request off a node.
func (w *World) Spare(node string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, contract.AnnotationTerminating)
	delete(n.Annotations, contract.AnnotationDrainRequest)
}

// SetOutOfService puts the taint on a node whose instance is down.
func (w *World) SetOutOfService(node, instance string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	annotate(n, contract.AnnotationOutOfService, instance)
	n.Taints = contract.WithTaint(n.Taints, contract.OutOfServiceTaint())
}

// SetInService takes it off.
func (w *World) SetInService(node string) {
	n := w.node(node)
	n.Annotations = maps.Clone(n.Annotations)
	delete(n.Annotations, contract.AnnotationOutOfService)
	n.Taints = contract.WithoutTaint(n.Taints, contract.OutOfServiceTaint().Key)
}

// SetUnneeded puts the unneeded taint on a node; the zero time takes it off.
func (w *World) SetUnneeded(node string, since time.Time) {
	n := w.node(node)
	if since.IsZero() {
		n.Taints = contract.WithoutTaint(n.Taints, contract.TaintUnneeded)
		return
	}
	n.Taints = contract.WithTaint(n.Taints, contract.UnneededTaint(since))
}

// SetFillTurn says by taints when kube-scheduler fills a node.
func (w *World) SetFillTurn(node string, turn contract.FillTurn) {
	n := w.node(node)
	n.Taints = contract.WithFillTurn(n.Taints, turn)
}

// Terminate is TerminateInstanceInAutoScalingGroup, with the terminating mark
// before it where there is a node. If a pod there must be placed again, the mark
// goes and nothing else happens.
func (w *World) Terminate(instance, id string, decrement bool) error {
	for i := range w.Groups {
		g := &w.Groups[i]
		member := find(g.Instances, func(m *fleet.Instance) bool { return m.ID == instance })
		if member == nil {
			continue
		}
		if decrement && g.Desired <= g.Min {
			return fmt.Errorf("group %s is at its minimum of %d", g.Name, g.Min)
		}
		if n := w.nodeOf(instance); n != nil {
			if w.busy(n.Name) {
				n.Annotations = maps.Clone(n.Annotations)
				delete(n.Annotations, contract.AnnotationTerminating)
				return nil
			}
			annotate(n, contract.AnnotationTerminating, id)
		}
		if decrement {
			g.Desired--
		}
		w.leave(g, member)
		return nil
	}
	return fmt.Errorf("instance %s is not there", instance)
}

// busy reports whether a pod of the node must be placed again.
func (w *World) busy(node string) bool {
	return slices.ContainsFunc(w.Pods, func(p *fleet.Pod) bool { return p.Node == node && drainable.MustBePlacedAgain(p) })
}

// leave begins a termination: it waits where the group has a hook for it.
func (w *World) leave(g *fleet.Group, i *fleet.Instance) {
	i.State = fleet.TerminatingProceed
	i.TerminatingSince = w.Now
	for _, h := range g.Hooks {
		if h.Transition == fleet.OnTerminate {
			i.State = fleet.TerminatingWait
		}
	}
}

// TakeAway is Auto Scaling terminating an instance of its own accord: it waits
// where the group has a hook for it, and another will be owed.
func (w *World) TakeAway(instance string) {
	for i := range w.Groups {
		g := &w.Groups[i]
		if m := find(g.Instances, func(m *fleet.Instance) bool { return m.ID == instance }); m != nil && m.Live() {
			w.leave(g, m)
		}
	}
}

// Refill is the disruption controller when every replica runs again: each budget
// allows one disruption again, unless it never did.
func (w *World) Refill() {
	for i := range w.Budgets {
		if b := &w.Budgets[i]; b.Allowed == 0 && b.Healthy > b.Desired && w.running(b) {
			b.Allowed = 1
		}
	}
}

// running reports whether no pod of the budget waits.
func (w *World) running(b *fleet.Budget) bool {
	return !slices.ContainsFunc(w.Pods, func(p *fleet.Pod) bool { return b.Matches(*p) && p.Node == "" })
}

// Reap lets every instance that proceeds to its end come to it, with its node
// and what is on that.
func (w *World) Reap() {
	var ended []string
	for _, g := range w.Groups {
		for _, i := range g.Instances {
			if i.State == fleet.TerminatingProceed || i.State == fleet.Terminated {
				ended = append(ended, i.ID)
			}
		}
	}
	for _, id := range ended {
		if n := w.nodeOf(id); n != nil {
			w.respawn(n.Name)
			w.dropNode(n.Name)
		}
		w.dropInstance(id)
	}
}

// respawn lets the owners of a node's pods create others in their place.
func (w *World) respawn(node string) {
	for _, p := range slices.Clone(w.Pods) {
		if p.Node == node && drainable.MustBePlacedAgain(p) && p.Owner != nil {
			w.recreate(p)
		}
	}
}

// recreate adds the pod that its owner creates in place of one that is gone.
func (w *World) recreate(gone *fleet.Pod) {
	w.born++
	p := *gone
	stem, _, _ := strings.Cut(p.Name, "+")
	p.Name = fmt.Sprintf("%s+%d", stem, w.born)
	p.UID = types.UID("uid-" + p.Key())
	p.Created, p.Judged = fleet.SecondOf(w.Now), fleet.SecondOf(w.Now)
	p.Node, p.Phase, p.Ready, p.Scheduling, p.Deleted = "", fleet.PodPending, false, fleet.Unschedulable, 0
	p.Nominate("")
	w.Pods = append(w.Pods, &p)
}

// Launch gives each group the instances that it is owed, in the zone where it has fewest;
// they have no node yet.
func (w *World) Launch() {
	for i := range w.Groups {
		g := &w.Groups[i]
		live := map[string]int{}
		sum := 0
		for _, m := range g.Instances {
			if m.Live() {
				live[m.Zone]++
				sum++
			}
		}
		for ; sum < g.Desired && len(g.Zones) > 0 && !slices.Contains(g.Suspended, "Launch"); sum++ {
			zone := slices.MinFunc(g.Zones, func(a, b string) int { return cmp.Compare(live[a], live[b]) })
			live[zone]++
			w.launch(g, zone)
		}
	}
}

// Join gives every instance without a node a Ready one; it is InService then, unless a
// launch hook holds it.
func (w *World) Join() {
	for i := range w.Groups {
		g := &w.Groups[i]
		for j := range g.Instances {
			m := &g.Instances[j]
			name := strings.TrimPrefix(m.ID, "i-")
			if !m.Live() || w.nodeOf(m.ID) != nil || w.node(name) != nil {
				continue
			}
			m.State = fleet.InService
			if len(heldBy(g, fleet.PendingWait)) > 0 {
				m.State, m.TerminatingSince = fleet.PendingWait, time.Time{}
			}
			n, err := w.newNode(name, g.Name)
			if err != nil {
				panic(err) // the group is the one at hand
			}
			n.Created, n.ReadySince = w.Now, w.Now
			w.Nodes = append(w.Nodes, n)
		}
	}
}

// Drain lets the agent of every node with a drain request do what it can: pods
// leave where their budgets allow it and are created again elsewhere, and the
// agent reports; where a request is gone it undoes.
func (w *World) Drain() {
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if ready, known := w.Agents[n.Name]; known && !ready || !n.Ready {
			continue
		}
		r, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
		if err != nil {
			if rep, bad := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); bad != nil || rep.Kind == contract.KindScaleDown {
				w.Undo(n.Name)
			}
			continue
		}
		w.drain(n.Name, r)
	}
}

func (w *World) drain(node string, r contract.Request) {
	report := contract.Report{Answers: []string{r.ID}, Kind: r.Kind, Phase: contract.PhaseDrained, Since: contract.At(w.Now), Renewed: contract.At(w.Now)}
	if old, err := contract.ParseReport(w.node(node).Annotations[contract.AnnotationDrainReport]); err == nil && old.AnswersTo(r.ID) {
		report.Since = old.Since
	}
	budgets := drainable.NewBudgets(w.Budgets)
	for _, p := range slices.Clone(w.Pods) {
		if p.Node != node || !drainable.MustBePlacedAgain(p) {
			continue
		}
		v := drainable.Judge(drainable.Question{Pod: p, Now: w.Now, Budgets: budgets, Urgency: drainable.UrgencyOf(r.Kind, r.Deadline.Time)})
		if v.Outcome != drainable.Leave {
			report.Phase = contract.PhaseBlocked
			report.Left++
			if v.Budget != "" && !slices.Contains(report.BlockedBy, v.Budget) {
				report.BlockedBy = append(report.BlockedBy, v.Budget)
			}
			continue
		}
		w.evict(p)
		budgets.Take(p)
	}
	w.Report(node, report)
}

// evict is the eviction API's yes: the pod goes, its budgets have one less, its
// owner creates another.
func (w *World) evict(p *fleet.Pod) {
	for i := range w.Budgets {
		if b := &w.Budgets[i]; b.Matches(*p) && b.Allowed > 0 {
			b.Allowed--
		}
	}
	if n := w.node(p.Node); n != nil && !n.Ready {
		p.Deleted = fleet.SecondOf(w.Now.Add(drainable.GraceOf(p))) // nobody ends it there
	} else {
		w.Pods = slices.DeleteFunc(w.Pods, func(q *fleet.Pod) bool { return q.UID == p.UID })
	}
	if p.Owner != nil && !drainable.IsDaemonSet(p) {
		w.recreate(p)
	}
}
