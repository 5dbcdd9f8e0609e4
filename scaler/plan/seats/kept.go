package seats

import (
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
)

// keptNode is what was found out about a node, and what that holds for.
type keptNode struct {
	// template is that of the node as it is; see fit.Cluster.TemplateAgain.
	template *fit.NodeTemplate
	residents
}

// residents are the pods of a node that take room there. They are the same for as long as its roll is
// the same, the same pods are expendable, and the cluster knows the crew; but not where one of them
// is being deleted, as it takes no room of what is requested when its time is long over.
type residents struct {
	of              *cluster.Roll
	expendableBelow int32
	ends            bool
	crew            *fit.Crew
	// loads is what they request, apart for those that belong to the node in one way or another:
	// people may have these left out.
	loads [kindsOfLoad]Load
}

// kindsOfLoad are those of DaemonSets and those that are static, those that are both, and all others.
const (
	ofDaemonSets = 1 << iota
	ofMirrors
	kindsOfLoad
)

// nodesFor is memory for what is kept of so many nodes.
func (k *Cache) nodesFor(n int) []keptNode {
	k.nodes = append(k.nodes[:min(len(k.nodes), n)], make([]keptNode, max(0, n-len(k.nodes)))...)
	return k.nodes
}

// templateOf is the node as a place for pods. One that is upcoming is not what it is yet.
func (d *Seats) templateOf(n *cluster.Node, ignored func(corev1.Taint) bool) *fit.NodeTemplate {
	if n.Stage == cluster.Upcoming {
		looks := d.Fit.TemplateFrom(n.Expected(), ignored)
		looks.Await(n.ExpectedDevices())
		d.Fit.Reserve(looks, n.Pods)
		return looks
	}
	k := &d.kept[n.Number]
	k.template = d.Fit.TemplateAgain(k.template, n.Node, ignored)
	return k.template
}

// residentsOf are those of a node. Expendable ones take no room: kube-scheduler moves them aside for
// any other.
func (d *Seats) residentsOf(n *cluster.Node) *residents {
	r := &d.kept[n.Number].residents
	if r.of == n.Roll && r.expendableBelow == d.Policy.ExpendableBelow && !r.ends && d.Fit.Knows(r.crew) {
		return r
	}
	*r = residents{of: n.Roll, expendableBelow: d.Policy.ExpendableBelow}
	tenants := make([]fit.Tenant, 0, len(n.Pods))
	for i, p := range n.Pods {
		if p.Ended() || d.Expendable(p) {
			continue
		}
		t := d.Tenant(n, i)
		tenants = append(tenants, t)
		r.ends = r.ends || !p.Deleted.IsZero()
		if drainable.IsLongTerminating(p, d.Now) {
			continue
		}
		kind := kindOfLoad(p)
		r.loads[kind] = r.loads[kind].Plus(LoadOfPod(t))
	}
	r.crew = d.Fit.NewCrew(tenants)
	return r
}

func kindOfLoad(p *fleet.Pod) (kind int) {
	if drainable.IsDaemonSet(p) {
		kind |= ofDaemonSets
	}
	if drainable.IsMirror(p) {
		kind |= ofMirrors
	}
	return kind
}
