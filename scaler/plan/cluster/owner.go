package cluster

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Two clusters that discover the same group by a tag that they share each take the other's
// nodes for instances that never joined. A group that has an owner is changed by that
// cluster alone. The others see it as any group that is not theirs: its nodes are in none of
// their groups, and all that is left of it is a verdict.

// ownGroups are the groups that may be changed: by this cluster, and not only observed. Those without an owner are, unless
// people want them claimed: then nothing is done with one before its tag was read.
func (d *Cluster) ownGroups(s fleet.Snapshot, groups []*Group) []*Group {
	return slices.DeleteFunc(groups, func(g *Group) bool {
		reason, details := d.whyDisowned(s, g)
		if reason == "" {
			return false
		}
		for i := range g.Instances {
			d.disowned[g.Instances[i].ID] = disowned{g.Name, reason}
		}
		d.DisownedVerdicts = append(d.DisownedVerdicts, &verdict.Verdict{Of: verdict.OfGroup, Name: g.Name, Group: g.Name, Reason: reason, Details: details})
		return true
	})
}

// disowned is a group that is not changed, and why.
type disowned struct {
	group  string
	reason verdict.Reason
}

// inNoGroup is said of all nodes of a cluster that its groups share with others.
var inNoGroup = verdict.Say("its instance is in no group of this scaler")

// SayWithoutGroup gives a verdict to a node that is in no group that may be changed.
func (d *Cluster) SayWithoutGroup(n *Node) {
	switch of := d.disowned[n.InstanceID()]; of.reason {
	case "":
		n.Say(verdict.NodeNotInAnyGroup, inNoGroup)
	case verdict.GroupObserved:
		n.Say(verdict.NodeObserved, verdict.Say("the tag {tag} has its group {group} observed: nothing is done with it", verdict.Tag(contract.TagMode), verdict.Group(of.group)))
	default:
		n.Say(verdict.NodeNotInAnyGroup, verdict.Say("its group {group} is not this cluster's to change: {why}", verdict.Group(of.group), verdict.Why(verdict.Say(string(of.reason)))))
	}
}

// GivenUp reports whether a node is in no group of ours, and its group is not being claimed: what the
// scaler has written on it holds no more. Beside another Windlass it may be that one's node and word.
func (d *Cluster) GivenUp(n *Node) bool {
	return !d.besideWindlass && n.Group == nil && d.disowned[n.InstanceID()].reason != verdict.GroupUnclaimed
}

// whyDisowned says why a group is not this cluster's to change; empty where it is.
func (d *Cluster) whyDisowned(s fleet.Snapshot, g *Group) (verdict.Reason, verdict.Details) {
	switch {
	case g.Observed && !d.Policy.Shadow:
		return verdict.GroupObserved, verdict.Say("its tag {tag} has it observed: nothing is done with it. For a pod that fits another group too, that one grows; other pods wait for whoever manages this group. windlass-scaler compare shows what would be done",
			verdict.Tag(contract.TagMode))
	case g.Owner == "" && (!d.Policy.ClaimGroups || g.External), g.Owner != "" && g.Owner == s.Cluster:
		return "", nil
	case s.Cluster == "":
		return verdict.GroupUnclaimed, verdict.Say("nothing is done with it before its tag {tag} ({value}) is known to name this cluster, whose UID is not known: the namespace {namespace} was not read",
			verdict.Tag(contract.TagOwner), verdict.Value(cmp.Or(string(g.Owner), "none")), verdict.Namespace(metav1.NamespaceSystem))
	case g.Owner == "":
		d.Unclaimed = append(d.Unclaimed, g)
		return verdict.GroupUnclaimed, verdict.Say("nothing is done with it before its tag {tag} names this cluster, {cluster}", verdict.Tag(contract.TagOwner), verdict.Cluster(string(s.Cluster)))
	}
	return verdict.GroupOwnedByAnother, verdict.Say("its tag {tag} names cluster {value}, and this is {cluster}: nothing is done with it. If it is this one's now, delete the tag",
		verdict.Tag(contract.TagOwner), verdict.Value(string(g.Owner)), verdict.Cluster(string(s.Cluster)))
}
