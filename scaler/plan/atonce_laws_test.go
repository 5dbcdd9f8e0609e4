package plan_test

import (
	"fmt"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// lawAtOnce: with those that go already, no more nodes without pods are scaled down than may be at
// once, and of those that are not Ready a tenth of that, at least one. A node counts until it is
// removed, or Auto Scaling has begun to end its instance a minute ago, or to put it elsewhere.
func lawAtOnce(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	fresh, all := retired(s, got)
	empty, emptyNow, unready, unreadyNow := 0, 0, 0, 0
	for _, n := range s.Nodes {
		i := instanceNamed(s, n.InstanceID())
		ends := contract.IsScaleDown(n.Annotations[contract.AnnotationTerminating]) && !outlived(s, n)
		begun := i.TerminatingSince
		if since, elsewhere := got.State.Outlived[i.ID]; elsewhere {
			begun = since
		}
		if i.ID == "" || !ends && !all[n.Name] || !i.Live() && s.Now.Sub(begun) >= time.Minute {
			continue
		}
		now := 0
		if fresh[n.Name] {
			now = 1
		}
		if !occupied(s, n.Name) {
			empty, emptyNow = empty+1, emptyNow+now
		}
		if !n.Ready {
			unready, unreadyNow = unready+1, unreadyNow+now
		}
	}
	drains := p.MaxDrainParallelism
	if drains == 0 {
		drains = max(2, len(s.Nodes)/10)
	}
	most := p.MaxScaleDownParallelism
	if most == 0 {
		most = max(10, 2*drains)
	}
	var broken []string
	if emptyNow > 0 && empty > most {
		broken = append(broken, fmt.Sprintf("at once: with %d of this plan %d nodes without pods are scaled down, of at most %d", emptyNow, empty, most))
	}
	if most = max(1, most/10); unreadyNow > 0 && unready > most {
		broken = append(broken, fmt.Sprintf("at once: with %d of this plan %d nodes that are not Ready are scaled down, of at most %d", unreadyNow, unready, most))
	}
	return broken
}

// lawZones: where most of a zone is not Ready, no node of it that is not Ready is scaled down,
// nor ended but on its agent's word, or where it was never up, or its end has begun.
func lawZones(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	silent := silentZones(s, p, got)
	for _, a := range got.Actions {
		var name string
		switch a := a.(type) {
		case action.RequestDrain:
			if a.Kind == contract.KindScaleDown {
				name = a.Node.Name
			}
		case action.Terminate:
			n := nodeNamed(s, a.Node.Name)
			report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
			told := report.AnswersTo(a.ID) && report.Phase == contract.PhaseDrained
			if !told && n.Annotations[contract.AnnotationTerminating] == "" && a.ID != "never-ready:"+a.Instance {
				name = a.Node.Name
			}
		}
		n := nodeNamed(s, name)
		if zone := instanceNamed(s, n.InstanceID()).Zone; name != "" && !n.Ready && silent[zone] {
			broken = append(broken, fmt.Sprintf("zones: %s, and zone %s may be cut off", a, zone))
		}
	}
	return broken
}

// comingUp are the nodes that a plan takes for such as are not up yet.
func comingUp(got plan.Plan) map[string]bool {
	coming := map[string]bool{}
	for _, v := range got.Verdicts {
		if v.Of == verdict.OfNode && (v.Reason == verdict.NodeUpcoming || v.Reason == verdict.NodeInWarmPool) {
			coming[v.Name] = true
		}
	}
	return coming
}

// outlived reports whether a node's instance comes into service again after its termination.
func outlived(s fleet.Snapshot, n fleet.Node) bool {
	_, is := s.State.Outlived[n.InstanceID()]
	return is
}

// silentZones are those of whose nodes at least three, and more than a share, are not
// Ready, or all and at least two: whether or not those are counted that may yet come up, as
// they are young, or their instance is or has yet to come into service.
func silentZones(s fleet.Snapshot, p policy.Policy, got plan.Plan) map[string]bool {
	type health struct{ unready, all int }
	young := comingUp(got)
	silent := map[string]bool{}
	for round, skips := range []func(fleet.Node) bool{
		func(n fleet.Node) bool { return young[n.Name] || !n.Ready && outlived(s, n) },
		func(n fleet.Node) bool {
			pending := instanceNamed(s, n.InstanceID()).State != fleet.InService
			begun := n.Created
			switch at, waits := s.State.Unjoined[n.InstanceID()]; {
			case waits && at.IsZero(): // it comes out of its warm pool
				begun = s.Now
			case at.After(begun):
				begun = at
			}
			return !n.Ready && (pending || s.Now.Sub(begun) < p.MaxNodeStartupTime)
		},
	} {
		zones := map[string]health{}
		for _, n := range s.Nodes {
			i := instanceNamed(s, n.InstanceID())
			if i.ID == "" || !i.Live() || skips(n) {
				continue
			}
			z := zones[i.Zone]
			z.all++
			if !n.Ready {
				z.unready++
			}
			zones[i.Zone] = z
		}
		for zone, z := range zones {
			most := z.unready >= 3 && float64(z.unready)*100 > p.MaxUnreadyPercent*float64(z.all)
			is := z.unready >= 2 && (z.unready == z.all || most)
			silent[zone] = is && (round == 0 || silent[zone])
		}
		for zone := range silent {
			silent[zone] = silent[zone] && zones[zone].all > 0
		}
	}
	return silent
}
