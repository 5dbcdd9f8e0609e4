package cluster

import (
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Nameless is the first Node whose providerID does not say which machine it is; empty
// without one.
func (d *Cluster) Nameless() string {
	if i := slices.IndexFunc(d.Nodes, (*Node).nameless); i >= 0 {
		return d.Nodes[i].Name
	}
	return ""
}

// namelessSchemes are those of providerIDs that name the Node and not its machine: those of
// the cloud controllers that k3s and RKE2 run by default.
// https://docs.k3s.io/networking/networking-services#deploying-an-external-cloud-controller-manager
var namelessSchemes = []string{"k3s://", "rke2://"}

// nameless reports whether the Node's machine may be any.
func (n *Node) nameless() bool {
	return n.ProviderID == "" || slices.ContainsFunc(namelessSchemes, func(s string) bool { return strings.HasPrefix(n.ProviderID, s) })
}

// Resembles names a Node that may be the instance although its providerID does not say so:
// one that names it in another way, or one that names no machine and is not known to be
// elsewhere. Such a Node never stands for the instance. It only keeps it from being ended.
// asked is when the instance was asked for; zero if it was not.
func (d *Cluster) Resembles(i *fleet.Instance, asked time.Time) string {
	if d.weakly == nil {
		d.indexWeakly()
	}
	if name, so := d.weakly[i.ID]; so {
		return name
	}
	for _, n := range d.namelessNodes {
		if n.NamesOther(i.ID) {
			continue // an external provider that calls its machines by these names knows them
		}
		if zone := n.Zone(); zone != "" && i.Zone != "" && zone != i.Zone {
			continue
		}
		if !asked.IsZero() && n.Created.Before(asked.Truncate(time.Second)) {
			continue // it was there before the instance was asked for
		}
		return n.Name
	}
	return ""
}

// Contested says which Node may be the machine of an instance beside the one that is known to be; n
// is nil without one. As long as that is so the instance is not ended, and no drain of it begins.
// People have to say which is right.
func (d *Cluster) Contested(i *fleet.Instance, n *Node) verdict.Details {
	if n != nil && n.sameInstance != nil {
		return verdict.Say("Node {node} has the same providerID; delete the one that is not there", verdict.Node(n.sameInstance.Name))
	}
	if i == nil {
		return nil
	}
	if d.weakly == nil {
		d.indexWeakly()
	}
	other, so := d.weakly[i.ID]
	if !so {
		return nil
	}
	return verdict.Say("Node {node} bears the instance id {instance} too, though not as providerID; correct that Node, or delete it", verdict.Node(other), verdict.Instance(i.ID))
}

// indexWeakly finds the Nodes that may be machines that their providerID does not name. Where
// hundreds of instances never join, all of them are asked about thousands of Nodes.
func (d *Cluster) indexWeakly() {
	d.weakly = map[string]string{}
	for _, n := range d.Nodes {
		for _, id := range n.weakly {
			if _, known := d.weakly[id]; !known {
				d.weakly[strings.Clone(id)] = n.Name
			}
		}
		if n.nameless() {
			d.namelessNodes = append(d.namelessNodes, n)
		}
	}
}
