package plan

import (
	"cmp"
	"fmt"
	"slices"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/fit"
)

// With --notice-policy=rebalance=cordon agents close nodes of which EC2 says that their
// spot capacity is at a higher risk. A recommendation has no deadline and is never taken
// back, so without a bound a whole group is closed in time: its pods wait, or a node is
// launched for every one that was closed. So few nodes of a group stay closed, and none
// where a pod waits that would get no node otherwise.
//
// The scaler releases a node by undoing the cordon alone. The agent takes that for the last
// word about this recommendation, as if people had said it, and remembers it on the Node.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html

// recommendation is the cordon of a node that its agent has closed for a rebalance
// recommendation and for nothing else; ok is false where it is not so.
func (n *node) recommendation() (cordon contract.Cordon, ok bool) {
	asked := n.requested || n.unreadable != nil
	_, told := n.Annotations[contract.AnnotationDrainReport] // also one that nobody can read
	if n.stage != cordoned || asked || told {
		return contract.Cordon{}, false
	}
	return n.closedForRecommendation()
}

// closedForRecommendation says so of a node that may be drained for something else as well:
// when that is over the node is as closed as before.
func (n *node) closedForRecommendation() (cordon contract.Cordon, ok bool) {
	value, marked := n.Annotations[contract.AnnotationCordonedBy]
	if !marked {
		return contract.Cordon{}, false
	}
	cordon, err := contract.ParseCordon(value)
	noted, known := n.noticed.Find(cordon.Notice)
	return cordon, err == nil && cordon.By == contract.AppAgent && known && noted.Kind == contract.KindRebalance && noted.Does == cordons
}

// cordons is what contract.Noticed.Does says of a notice for which a node is only closed.
const cordons = "cordon"

// limitCordons releases nodes of groups in which more are closed for rebalance
// recommendations than may be: those that were closed last.
func (d *decision) limitCordons() {
	for _, g := range d.groups {
		closed := recommended(g.nodes)
		most := int(d.policy.MaxRebalanceCordonedPercent * float64(len(g.live)) / 100)
		if d.policy.MaxRebalanceCordonedPercent > 0 {
			most = max(1, most)
		}
		for _, n := range closed[min(most, len(closed)):] {
			d.release(n, fmt.Sprintf("at most %s of group %s may be cordoned for rebalance recommendations", counted(most, "node"), g.Name))
		}
	}
}

// recommended lists those of nodes that are closed for a rebalance recommendation, the
// first that was closed first.
func recommended(nodes []*node) []*node {
	list := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool {
		_, is := n.recommendation()
		return !is || n.released
	})
	slices.SortStableFunc(list, func(a, b *node) int {
		x, _ := a.recommendation()
		y, _ := b.recommendation()
		return cmp.Or(x.At.Compare(y.At.Time), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (d *decision) release(n *node, why string) {
	cordon, _ := n.recommendation()
	n.open, n.released = true, true
	d.do(Release{Group: n.groupName(), Node: n.ref(), ID: cordon.Notice, Why: why})
	n.say(NodeReleased, "its cordon for a rebalance recommendation is taken off: "+why)
}

// releaseFor gives waiting pods, for which there is no node and none comes, a seat on nodes
// that are closed for rebalance recommendations, and releases those. It returns the others.
func (d *decision) releaseFor(pods []fit.Tenant) (left []fit.Tenant) {
	nodes := slices.DeleteFunc(recommended(d.nodes), func(n *node) bool { return !n.Ready })
	if len(nodes) == 0 {
		return pods
	}
	closed := make([]*fit.Place, len(nodes))
	for i, n := range nodes {
		closed[i] = n.place
	}
	row := d.fit.NewRow(closed)
	for _, t := range pods {
		var place *fit.Place
		if wantsNode(t.Pod) && d.ration.Ask(t.Pod.Namespace) {
			place = row.Seat(t)
		}
		if place == nil {
			left = append(left, t)
			continue
		}
		n := nodes[slices.Index(closed, place)]
		if !n.released {
			d.release(n, fmt.Sprintf("pod %s waits, and no group can grow for it", t.Pod.Key()))
		}
		d.sayPod(t, PodFitsFree, "", fmt.Sprintf("node %s has room for it, and takes pods again", n.Name))
	}
	return left
}
