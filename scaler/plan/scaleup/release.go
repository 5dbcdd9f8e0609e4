package scaleup

import (
	"slices"

	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// LimitCordons releases nodes of groups in which more are closed for rebalance
// recommendations than may be: those that were closed last.
func (d *ScaleUp) LimitCordons() {
	for _, g := range d.Groups {
		closed := cluster.Recommended(g.Nodes)
		most := int(d.Policy.MaxRebalanceCordonedPercent * float64(len(g.Live)) / 100)
		if d.Policy.MaxRebalanceCordonedPercent > 0 {
			most = max(1, most)
		}
		for _, n := range closed[min(most, len(closed)):] {
			d.release(n, verdict.Say("at most {max} {max:node|nodes} of group {group} may be cordoned for rebalance recommendations", verdict.Max(most), verdict.Group(g.Name)))
		}
	}
}

func (d *ScaleUp) release(n *cluster.Node, why verdict.Details) {
	cordon, _ := n.Recommendation()
	n.Open, n.Released = true, true
	d.Do(action.Release{Group: n.GroupName(), Node: n.Ref(), ID: cordon.Notice, Why: why.String()})
	n.Say(verdict.NodeCordonReleased, verdict.Say("its cordon for a rebalance recommendation is taken off: {why}", verdict.Why(why)))
}

// releaseFor gives pending pods, for which there is no node and none is upcoming, a seat on nodes
// that are closed for rebalance recommendations, and releases those. It returns the others.
func (d *ScaleUp) releaseFor(pods []fit.Tenant) (left []fit.Tenant) {
	nodes := cluster.Recommended(d.Nodes)
	if len(nodes) == 0 {
		return pods
	}
	closed := make([]*fit.Place, len(nodes))
	for i, n := range nodes {
		closed[i] = n.Place
	}
	row := d.Fit.NewRow(closed)
	for _, t := range pods {
		var place *fit.Place
		if cluster.WantsNode(t.Pod) && d.Ration.Ask(t.Pod.Namespace) {
			place = row.Seat(t)
		}
		if place == nil {
			left = append(left, t)
			continue
		}
		n := nodes[slices.Index(closed, place)]
		if !n.Released {
			d.release(n, verdict.Say("pod {pod} is pending, and no group can grow for it", verdict.Pod(t.Pod.Key())))
		}
		d.SayPod(t, verdict.PodFitsNode, "", verdict.Say("node {node} has room for it, and takes pods again", verdict.Node(n.Name)))
	}
	return left
}
