package cas

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

const (
	// mostGroups is how many groups a status names. Each takes about 1 KiB, and an
	// object of the API holds 1 MiB.
	mostGroups = 500
	// mostText is the most of a message of AWS, as in Cluster Autoscaler.
	mostText = 500
)

// Of is the status of a cluster as an evaluation has found it. Last is the status before,
// which has since when something is so.
func Of(s fleet.Snapshot, p plan.Plan, policy policy.Policy, last Status) Status {
	nodes, groups := map[string]verdict.Verdict{}, map[string]verdict.Verdict{}
	for _, v := range p.Verdicts {
		switch v.Of {
		case verdict.OfNode:
			nodes[v.Name] = *v
		case verdict.OfGroup:
			groups[v.Name] = *v
		}
	}
	d := drawing{
		now: s.Now.UTC().Truncate(time.Second), policy: policy, verdicts: groups,
		backOffs: p.State.BackOffs, census: countNodes(s, nodes, policy),
	}
	out := Status{AutoscalerStatus: Running, ClusterWide: d.clusterWide(last.ClusterWide)}
	before := map[string]NodeGroup{}
	for _, g := range last.NodeGroups {
		before[g.Name] = g
	}
	byName := slices.SortedFunc(slices.Values(s.Groups), func(a, b fleet.Group) int { return cmp.Compare(a.Name, b.Name) })
	for _, g := range byName[:min(mostGroups, len(byName))] {
		out.NodeGroups = append(out.NodeGroups, d.group(g, before[g.Name]))
	}
	if more := len(byName) - mostGroups; more > 0 {
		out.Message = fmt.Sprintf("%d more groups have no room here", more)
	}
	return out
}

// drawing is what a status is made of.
type drawing struct {
	census
	now      time.Time
	policy   policy.Policy
	verdicts map[string]verdict.Verdict // of groups
	backOffs map[string]fleet.BackOff
}

func (d *drawing) clusterWide(last ClusterWide) ClusterWide {
	up, unneeded := NoActivity, 0
	for name, v := range d.verdicts {
		if grows(v.Reason) {
			up = InProgress
		}
		unneeded += d.unneeded[name]
	}
	return ClusterWide{
		Health:    ClusterHealth{Condition: d.condition(d.health(d.all), last.Health.Condition), NodeCounts: d.all},
		ScaleUp:   d.condition(up, last.ScaleUp),
		ScaleDown: d.scaleDown(unneeded, last.ScaleDown),
	}
}

func (d *drawing) group(g fleet.Group, last NodeGroup) NodeGroup {
	counts := *d.groups[g.Name]
	health := d.health(counts)
	up, backoff := d.scaleUp(g, health)
	return NodeGroup{
		Name: g.Name,
		Health: GroupHealth{
			Condition: d.condition(health, last.Health.Condition), NodeCounts: counts,
			CloudProviderTarget: g.Desired, MinSize: g.Min, MaxSize: g.Max,
		},
		ScaleUp:   ScaleUp{Condition: d.condition(up, last.ScaleUp.Condition), BackoffInfo: backoff},
		ScaleDown: d.scaleDown(d.unneeded[g.Name], last.ScaleDown),
	}
}

// condition is so since now, unless it was so before.
func (d *drawing) condition(status string, last Condition) Condition {
	now := metav1.NewTime(d.now)
	c := Condition{Status: status, LastProbeTime: now, LastTransitionTime: now}
	if last.Status == status && !last.LastTransitionTime.IsZero() {
		c.LastTransitionTime = last.LastTransitionTime
	}
	return c
}

// health goes by the bounds that stop scale-down, too.
func (d *drawing) health(n NodeCounts) string {
	ill, all := n.Registered.Unready.Total, n.Registered.Total-n.Registered.Suspended
	if ill > d.policy.MaxUnready && float64(ill)*100 > d.policy.MaxUnreadyPercent*float64(all) {
		return Unhealthy
	}
	return Healthy
}

func (d *drawing) scaleDown(unneeded int, last ScaleDown) ScaleDown {
	status := NoCandidates
	if unneeded > 0 {
		status = CandidatesPresent
	}
	return ScaleDown{Condition: d.condition(status, last.Condition), Candidates: unneeded}
}

// grows reports whether nodes of a group are asked for or upcoming.
func grows(reason verdict.Reason) bool {
	return reason == verdict.GroupScalingUp || reason == verdict.GroupNodesUpcoming
}

func (d *drawing) scaleUp(g fleet.Group, health string) (string, BackoffInfo) {
	reason := d.verdicts[g.Name].Reason
	switch {
	case grows(reason):
		return InProgress, BackoffInfo{}
	case health == Unhealthy:
		return Unhealthy, BackoffInfo{}
	case reason == verdict.GroupBackOff:
		return Backoff, d.backoff(g)
	}
	return NoActivity, BackoffInfo{}
}

// backoff is the back-off of a group that lasts the longest, with AWS's own words where
// they are known.
func (d *drawing) backoff(g fleet.Group) BackoffInfo {
	var longest fleet.BackOff
	var key string
	for _, k := range slices.Sorted(maps.Keys(d.backOffs)) {
		group, _, _ := fleet.ParseBackOffKey(k)
		if b := d.backOffs[k]; group == g.Name && d.now.Before(b.Until) && b.Until.After(longest.Until) {
			key, longest = k, b
		}
	}
	if key == "" {
		return BackoffInfo{}
	}
	info := BackoffInfo{ErrorCode: longest.Cause, ErrorMessage: launch.BackOff(key, longest)}
	for _, f := range g.Failures { // the newest first
		if f.Cause == longest.Cause && f.Text != "" {
			info.ErrorMessage = f.Text
			break
		}
	}
	info.ErrorMessage = contract.Shorten(info.ErrorMessage, mostText)
	return info
}
