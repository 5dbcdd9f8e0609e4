package cluster

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// A Cluster Autoscaler that is ended in its work leaves taints on Nodes and the cordon that it sets
// beside the harder of them. Whoever takes its groups over takes these off: pods go to none of
// these nodes otherwise, and no one else will. Its next start would do the same.
//
// While one lives, what stands on the nodes of a group may be its own, unless its status, which it
// writes at each scan, names other groups and not this one.
//
// A taint is believed to be left behind only if its value is a time that is past for long: every
// other may be somebody else's, or that of one that lives and is not seen.

// Leftover is what a Cluster Autoscaler left on a node.
type Leftover struct {
	Taints []corev1.Taint
	// Cordon: it has cordoned the node, too.
	Cordon bool
}

// Leftover is what is taken off a node; nothing while an autoscaler lives that may manage its group, also one
// that is let act beside us, nor of a node that is drained or whose instance does not serve.
func (d *Cluster) Leftover(n *Node) (left Leftover) {
	if n.Group == nil || d.mayBeManaged(n.Group) || n.Instance == nil || n.Instance.Terminating() || !n.Instance.Live() || n.Mark != "" || n.Requested || n.Unreadable != nil {
		return left
	}
	_, reported := n.Annotations[contract.AnnotationDrainReport]
	if _, tainted := contract.Draining(n.Taints); tainted || reported {
		return left
	}
	for _, t := range n.Taints {
		switch since, is := leftBy(t); {
		case !is || since.Sub(d.Now) >= removalFresh:
		case d.Now.Sub(since) < removalFresh:
			d.Clock.At(since.Add(removalFresh))
		default:
			left.Taints = append(left.Taints, t)
			left.Cordon = left.Cordon || t.Key == contract.TaintToBeDeleted
		}
	}
	_, ours := n.Annotations[contract.AnnotationCordonedBy]
	left.Cordon = left.Cordon && n.Unschedulable && !ours
	return left
}

// mayBeManaged reports whether another autoscaler that lives may manage a group.
func (d *Cluster) mayBeManaged(g *Group) bool {
	if len(d.beside)+len(d.removing) == 0 {
		return false
	}
	if len(d.Stopped) > 0 {
		return true // nothing is done
	}
	leases, statuses := map[string]int{}, map[string]int{}
	var named []string
	for _, a := range d.beside {
		switch {
		case a.Kind != fleet.ClusterAutoscaler:
			return true
		case a.Sign == fleet.SignLease:
			leases[a.Namespace]++
		case len(a.Groups) == 0:
			return true // it does not say
		default:
			statuses[a.Namespace]++
			named = append(named, a.Groups...)
		}
	}
	for namespace, n := range leases {
		if n > 1 || statuses[namespace] == 0 {
			return true // of two, one status speaks for one alone
		}
	}
	if names(named, g) || len(named) == 0 {
		return true
	}
	// What one taints that manages other groups is theirs, or no group of ours.
	return slices.ContainsFunc(d.removing, func(n *Node) bool { return n.Group != nil && !names(named, n.Group) })
}

// names reports whether a group is among those that are named, alone, as a part of a path, or by its ARN.
func names(named []string, g *Group) bool {
	return slices.ContainsFunc(named, func(name string) bool {
		if strings.EqualFold(name, g.Name) || g.ARN != "" && strings.EqualFold(name, g.ARN) {
			return true
		}
		before := len(name) - len(g.Name) - 1
		return before >= 0 && strings.ContainsRune("/:", rune(name[before])) && strings.EqualFold(name[before+1:], g.Name)
	})
}

// leftBy reports whether a taint is as a Cluster Autoscaler writes it, and when that was.
func leftBy(t corev1.Taint) (since time.Time, is bool) {
	effect, known := map[string]corev1.TaintEffect{contract.TaintToBeDeleted: corev1.TaintEffectNoSchedule, contract.TaintDeletionCandidate: corev1.TaintEffectPreferNoSchedule}[t.Key]
	seconds, err := strconv.ParseInt(t.Value, 10, 64)
	since = time.Unix(seconds, 0).UTC()
	return since, known && err == nil && t.Effect == effect && contract.IsDate(since)
}

// leftover reports whether a taint goes with this plan.
func (d *Cluster) leftover(n *Node, t corev1.Taint) bool {
	left := d.Leftover(n)
	return slices.Contains(left.Taints, t) || left.Cordon && t.Key == corev1.TaintNodeUnschedulable
}

// oddRemovals reports the taints of Cluster Autoscaler's key that are neither Windlass's nor tell of a
// time that is past: they stay.
func (d *Cluster) oddRemovals() []string {
	var names []string
	for _, n := range d.Nodes {
		for _, t := range n.Taints {
			since, is := leftBy(t)
			if t.Key != contract.TaintToBeDeleted || contract.IsKubeProxyTaint(t) {
				continue
			}
			if !is || since.Sub(d.Now) >= removalFresh {
				names = append(names, n.Name)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"taint " + contract.TaintToBeDeleted + " of " + verdict.SomeOf(names) + " is not as Cluster Autoscaler writes it, and stays: find who set it, or kubectl taint node NAME " + contract.TaintToBeDeleted + "-"}
}
