package cluster

import (
	"slices"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Imaginary reports whether the pod is one for which headroom is kept: the API server gives
// real ones a UID.
func Imaginary(p *fleet.Pod) bool { return p.UID == "" }

// Called names a pod for people, or the headroom that it stands for.
func Called(p *fleet.Pod) verdict.Details {
	if Imaginary(p) {
		return verdict.Say("{headroom}", verdict.HeadRoom(p.Name))
	}
	return verdict.Say("pod {pod}", verdict.Pod(p.Key()))
}

func (d *Cluster) Expendable(p *fleet.Pod) bool { return p.Priority() < d.Policy.ExpendableBelow }

func Places(nodes []*Node) []*fit.Place {
	list := make([]*fit.Place, 0, len(nodes))
	for _, n := range nodes {
		if n.Open {
			list = append(list, n.Place)
		}
	}
	return list
}

// PlacesIn are those of the nodes of some stages.
func (d *Cluster) PlacesIn(stages ...Stage) []*fit.Place {
	count := 0
	for range d.In(stages...) {
		count++
	}
	list := make([]*fit.Place, 0, count)
	for n := range d.In(stages...) {
		if n.Open {
			list = append(list, n.Place)
		}
	}
	return list
}

// Move is a pod that was given a seat at another node.
type Move struct {
	Pod fit.Tenant
	To  *fit.Place
}

// Refs names the pods of tenants.
func Refs(tenants []fit.Tenant) []action.PodRef {
	list := make([]action.PodRef, len(tenants))
	for i, t := range tenants {
		list[i] = action.PodRef{Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.Pod.UID}
	}
	return list
}

// TriggersNoScaleUp reports whether a pod without a node triggers no scale-up as it is now.
func (d *Cluster) TriggersNoScaleUp(p *fleet.Pod) bool {
	return !drainable.MustBePlacedAgain(p) || p.Scheduling == fleet.Gated || !d.Scheduled(p) || d.Expendable(p)
}

// Scheduled reports whether a scheduler places the pod for which groups are scaled up.
func (d *Cluster) Scheduled(p *fleet.Pod) bool {
	if p.Spec == nil || p.Spec.SchedulerName == "" {
		return true // the API server fills in the default
	}
	return slices.Contains(d.Policy.Schedulers, p.Spec.SchedulerName)
}

// WantsNode reports whether the pod is without a node and in need of one. Pods of
// DaemonSets are made for a node that is there already, and those that stand for
// headroom are none.
func WantsNode(p *fleet.Pod) bool {
	return p.Node == "" && !Imaginary(p) && drainable.MustBePlacedAgain(p)
}
