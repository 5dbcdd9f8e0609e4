package seats

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Closed is what keeps kube-scheduler off a node that is drained.
var Closed = []corev1.Taint{
	contract.DrainingTaint(contract.KindScaleDown),
	{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
}

// UnsettledPlaces are the places where nothing serves yet.
func (d *Seats) UnsettledPlaces() []*fit.Place {
	return slices.Concat(d.Upcoming, d.Staying(), d.AllFresh())
}

// mostOutsized is how many DaemonSets that do not fit are named: tenants make as many as they like.
const mostOutsized = 10

// settle makes places of the nodes where pods could be.
func (d *Seats) settle() {
	for _, g := range d.Groups {
		for i := range g.NodeTemplates {
			g.Templates = append(g.Templates, d.Fit.TemplateOf(&g.NodeTemplates[i]))
		}
		if len(g.Templates) > 0 {
			outsized := g.Templates[0].Outsized()
			named := outsized[:min(len(outsized), mostOutsized)]
			if more := len(outsized) - len(named); more > 0 {
				g.Note(verdict.Say("{count} more {count:DaemonSet has|DaemonSets have} no room there", verdict.Count(more)))
			}
			for _, x := range named {
				g.Note(verdict.Say("DaemonSet {daemonSet} has no room on its new nodes ({cause}): its pods stay pending there", verdict.DaemonSet(x.Namespace+"/"+x.Name), verdict.Cause(fmt.Sprint(x.Why))))
			}
		}
		g.Have = make([]int, len(g.Templates))
		for _, i := range g.Live {
			if len(g.Templates) > 0 {
				g.Have[g.ZoneOf(i.Zone)]++
			}
		}
	}
	for _, n := range d.Nodes {
		var ignored func(corev1.Taint) bool
		ignored, n.Open = d.Passing(n)
		n.Place = d.Fit.Add(d.templateOf(n, ignored))
		d.Fit.Furnish(n.Place, d.residentsOf(n).crew)
	}
	d.nominate()
}

// Tenant is the i-th pod of a node. To search for the pod itself costs more.
func (d *Seats) Tenant(n *cluster.Node, i int) fit.Tenant { return d.Fit.TenantAt(int(n.Rows[i])) }

// nominate seats the pods for which kube-scheduler is making room.
func (d *Seats) nominate() {
	for _, p := range d.Unbound.Pods {
		if p.Nominated() == "" || !p.Deleted.IsZero() || p.Ended() {
			continue
		}
		if n := d.Node(p.Nominated()); d.Promised(p) && n.Open {
			d.Fit.Put(d.Fit.Tenant(p), n.Place)
		}
	}
}

// Cache is what is found out about rules and classes of pods, and kept from evaluation to
// evaluation.
type Cache struct {
	rules *fit.Rules
	// imagined are the simulated pods that stand for headroom, by what is asked for.
	imagined map[string]*fleet.Pod
	// stocks are those that stand for buffers, by these.
	stocks map[string]*stock
	// nodes is what is kept of nodes, by their numbers.
	nodes []keptNode
}

// NewCache knows nothing yet.
func NewCache() *Cache { return &Cache{rules: fit.NewRules()} }

// imagine prepares the question which pods fit where: on nodes, and on those that there
// could be.
func (d *Seats) imagine(s fleet.Snapshot, k *Cache) {
	d.Buffers, d.quotas, d.kept = k.findBuffers(s, d.Policy.Bounds.Buffers), quotasOf(s), k.nodesFor(len(d.Nodes))
	d.Fit = k.rules.Cluster(fit.World{
		Kubernetes: s.Kubernetes, Mute: k.hush(d, s.Kubernetes), Pods: withSamples(d.Pods, d.Buffers), Namespaces: s.Namespaces, Storage: s.Storage, Devices: s.Devices, DaemonSets: hushDaemons(d.Daemons), Closing: Closed,
	})
	d.settle()
	k.findHeadrooms(d)
}

// Promised reports whether kube-scheduler makes room for the pod on a node that it may
// still come to.
func (d *Seats) Promised(p *fleet.Pod) bool {
	n := d.Node(p.Nominated())
	return n != nil && n.Stage != cluster.Draining && n.Stage != cluster.Terminating && (n.Stage != cluster.ScalingDown || n.Cancelled)
}

// InOrder is the order in which pods are placed: by priority, the largest
// first, measured against the largest nodes that there could be.
func (d *Seats) InOrder(pods []fit.Tenant) []fit.Tenant {
	var all []*fit.NodeTemplate
	for _, g := range d.Groups {
		all = append(all, g.Templates...)
	}
	return d.Fit.Sorted(pods, all)
}
