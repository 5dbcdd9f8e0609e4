package cluster

import (
	"cmp"
	"fmt"
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

// ownGroups are the groups that this cluster may change. Those without an owner are, unless
// people want them claimed: then nothing is done with one before its tag was read.
func (d *Cluster) ownGroups(s fleet.Snapshot, groups []*Group) []*Group {
	return slices.DeleteFunc(groups, func(g *Group) bool {
		reason, message := d.disowned(s, g)
		if reason == "" {
			return false
		}
		d.DisownedVerdicts = append(d.DisownedVerdicts, verdict.Verdict{Of: verdict.OfGroup, Name: g.Name, Group: g.Name, Reason: reason, Message: message})
		return true
	})
}

// disowned says why a group is not this cluster's to change; empty where it is.
func (d *Cluster) disowned(s fleet.Snapshot, g *Group) (verdict.Reason, string) {
	switch {
	case g.Owner == "" && !d.Policy.ClaimGroups, g.Owner != "" && g.Owner == s.Cluster:
		return "", ""
	case s.Cluster == "":
		return verdict.GroupUnclaimed, fmt.Sprintf("nothing is done with it before its tag %s (%s) is known to name this cluster, whose UID is not known: the namespace %s was not read", contract.TagOwner, cmp.Or(string(g.Owner), "none"), metav1.NamespaceSystem)
	case g.Owner == "":
		d.Unclaimed = append(d.Unclaimed, g)
		return verdict.GroupUnclaimed, fmt.Sprintf("nothing is done with it before its tag %s names this cluster, %s", contract.TagOwner, s.Cluster)
	}
	return verdict.GroupOwnedByAnother, fmt.Sprintf("its tag %s names cluster %s, and this is %s: nothing is done with it. If it is this one's now, delete the tag", contract.TagOwner, g.Owner, s.Cluster)
}
