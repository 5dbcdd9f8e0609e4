package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// removalFresh is how far from now a Cluster Autoscaler's taint may say that it was
	// written: it drains for ten minutes at most by default, and its clock may be off. A
	// taint that it left behind when it was ended stops nothing for longer.
	removalFresh = 15 * time.Minute
)

// What people do about another autoscaler.
const (
	endClusterAutoscaler = "scale its Deployment to 0, or set --alongside-cluster-autoscaler if the two have no node group in common"
	endWindlass          = "remove one of the two"
	endRemovals          = "find its Deployment and scale that to 0; a taint that it left behind is taken off after 15 minutes, or by kubectl taint node NAME " + contract.TaintToBeDeleted + "-"
)

// meetOthers finds the programs of the cluster that do what we do. A live autoscaler
// stops us: two of them end each other's nodes. Everybody who may write in some namespace
// can renew a lease there, so that such a sign counts only where its holder may change
// Nodes, as an autoscaler must and a tenant may not; otherwise it is only reported, as is
// everything else here.
func (d *Cluster) meetOthers(s fleet.Snapshot) {
	var alive, advice verdict.Details
	var powerless []string
	stop := func(what verdict.Details, do string) {
		alive, advice = alive.Then(what), advice.Then(what.And(": "+do))
	}
	for _, a := range aliveOf(s.Autoscalers, d.Now) {
		d.Clock.At(a.AliveUntil())
		d.besideWindlass = d.besideWindlass || a.Kind == fleet.Windlass && !a.Powerless
		what := verdict.Say("{program} in namespace {namespace} ({sign})", verdict.Program(string(a.Kind)), verdict.Namespace(a.Namespace), verdict.Sign(a.String()))
		switch {
		case a.Powerless:
			powerless = append(powerless, a.String())
		case a.Younger:
			d.Others = append(d.Others, what.String()+" only plans, as the one installed later: "+endWindlass)
		case a.Kind == fleet.Windlass:
			d.beside = append(d.beside, a)
			stop(what, endWindlass)
		default:
			d.beside = append(d.beside, a)
			stop(what, endClusterAutoscaler)
		}
	}
	d.removing = d.beingRemoved()
	if nodes := Names(d.removing); len(nodes) > 0 {
		stop(verdict.Say("{program} has tainted {nodes:,3} with {taint}", verdict.Program(string(fleet.ClusterAutoscaler)), verdict.Nodes(nodes), verdict.Taint(contract.TaintToBeDeleted)), endRemovals)
	}
	switch {
	case len(alive) == 0:
	case d.Policy.Shadow:
		d.Others = append(d.Others, "another autoscaler is alive, which a shadow only watches: "+alive.String())
	case d.Policy.AlongsideClusterAutoscaler:
		d.Others = append(d.Others, "another autoscaler is alive beside Windlass, as --alongside-cluster-autoscaler allows: "+alive.String())
	default:
		d.Stopped = verdict.Say("another autoscaler is alive, so nothing is done: {why}", verdict.Why(advice))
		d.Others = append(d.Others, d.Stopped.String())
	}
	d.Others = slices.Concat(d.Others, handlerReports(s.TerminationHandlers), d.handlerMarks(), d.oddRemovals(), d.nodePoolReports(s.NodePools))
	if len(powerless) > 0 {
		d.Others = append(d.Others, fmt.Sprintf("not taken for another autoscaler's, because no pod that may be its holder may change Nodes: %s; delete it, or, if an autoscaler outside this cluster renews it, scale windlass-scaler to 0", verdict.SomeOf(powerless)))
	}
}

// aliveOf are those that were renewed of late, in a fixed order.
func aliveOf(all []fleet.Autoscaler, now time.Time) []fleet.Autoscaler {
	alive := slices.DeleteFunc(slices.Clone(all), func(a fleet.Autoscaler) bool { return !now.Before(a.AliveUntil()) })
	slices.SortFunc(alive, func(a, b fleet.Autoscaler) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), -cmp.Compare(a.Sign, b.Sign), cmp.Compare(a.Name, b.Name))
	})
	return alive
}

// beingRemoved are the nodes that a Cluster Autoscaler has tainted of late. Whoever
// writes taints of Nodes needs no other sign.
func (d *Cluster) beingRemoved() (nodes []*Node) {
	for _, n := range d.Nodes {
		if since, ok := contract.ToBeDeletedSince(n.Taints); ok && d.Now.Sub(since).Abs() < removalFresh {
			nodes = append(nodes, n)
			d.Clock.At(since.Add(removalFresh))
		}
	}
	return nodes
}

// handlerMarks lists the nodes with a label or taint of a Node Termination Handler.
func (d *Cluster) handlerMarks() []string {
	var names []string
	for _, n := range d.Nodes {
		if n.handled {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("marks of %s are on %s: it drains them, or has left them behind; remove it, then kubectl label node NAME %s-",
		contract.AppTerminationHandler, verdict.SomeOf(names), contract.LabelTerminationHandlerEvent)}
}

func handlerReports(handlers []fleet.TerminationHandler) (reports []string) {
	for _, h := range handlers {
		text := fmt.Sprintf("%s runs too (%s in namespace %s): both drain the same nodes; remove it", contract.AppTerminationHandler, h.Owner, h.Namespace)
		if h.Queue != "" {
			text += fmt.Sprintf(", and then its queue %s with the event rules and lifecycle hooks that feed it", h.Queue)
		}
		reports = append(reports, text)
	}
	slices.Sort(reports)
	return reports
}

// nodePoolReports lists the NodePools that take pods which groups are for.
func (d *Cluster) nodePoolReports(pools []fleet.NodePool) (reports []string) {
	for _, pool := range pools {
		var same []string
		for _, g := range d.Groups {
			if slices.ContainsFunc(g.NodeTemplates, func(s fleet.NodeTemplate) bool { return takesPodsOf(pool, s) }) {
				same = append(same, g.Name)
			}
		}
		if len(same) > 0 {
			reports = append(reports, fmt.Sprintf("Karpenter's NodePool %s takes pods that %s would take, so that both may launch for one pod: give the NodePool a taint that those pods do not tolerate", pool.Name, verdict.SomeOf(same)))
		}
	}
	slices.Sort(reports)
	return reports
}

// takesPodsOf reports whether pods made for nodes of a template would go to those of a NodePool,
// too: they tolerate its taints, for the template has the same, and none of its requirements
// contradicts a label by which people choose. Requirements themselves keep no pod off that asks for
// nothing.
func takesPodsOf(pool fleet.NodePool, shape fleet.NodeTemplate) bool {
	for _, t := range pool.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(shape.Taints, func(own corev1.Taint) bool { return own.MatchTaint(&t) && own.Value == t.Value }) {
			return false
		}
	}
	for _, r := range pool.Requirements {
		value, labelled := shape.Labels[r.Key]
		if !labelled || verdict.Placed(r.Key) {
			continue
		}
		listed := slices.Contains(r.Values, value)
		if r.Operator == corev1.NodeSelectorOpIn && !listed || r.Operator == corev1.NodeSelectorOpNotIn && listed || r.Operator == corev1.NodeSelectorOpDoesNotExist {
			return false
		}
	}
	return true
}
