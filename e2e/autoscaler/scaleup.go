package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// growth is a group that shall grow, for which pods.
type growth struct {
	group *group
	by    int
	pods  []*corev1.Pod
}

// decide is which group grows: the first by name that takes any of the pods for which neither nodes nor
// upcoming nodes have room. One grows in an iteration. why has the reason for each pod for which none can.
func (a *autoscaler) decide(s sight) (g growth, why map[*corev1.Pod]string) {
	var nodes []*node
	for _, n := range copies(s.nodes) {
		if n.ready() && !n.goes() {
			nodes = append(nodes, n)
		}
	}
	for i := range s.groups {
		nodes = append(nodes, s.upcoming(&s.groups[i])...)
	}
	unplaced := place(s.pending, nodes)
	why = map[*corev1.Pod]string{}
	for i := range s.groups {
		t, room := s.groups[i].template(s.nodes), s.groups[i].max-s.groups[i].desired
		if t == nil {
			continue
		}
		fits := slices.DeleteFunc(slices.Clone(unplaced), func(p *corev1.Pod) bool { return !t.takes(p) })
		failed, resting := a.backedOff[s.groups[i].name]
		switch {
		case len(fits) == 0:
			continue
		case resting && s.now.Before(failed.until):
			note(why, fits, "in backoff after failed scale-up")
			continue
		case room <= 0:
			note(why, fits, "max node group size reached")
			continue
		}
		g = growth{group: &s.groups[i]}
		for ; len(fits) > 0 && g.by < room; g.by++ {
			left := place(fits, copies([]*node{t}))
			if len(left) == len(fits) {
				break
			}
			fits = left
		}
		g.pods = slices.DeleteFunc(unplaced, func(p *corev1.Pod) bool { return !t.takes(p) || slices.Contains(fits, p) })
		return g, nil
	}
	for _, p := range unplaced {
		if why[p] == "" {
			why[p] = "node(s) didn't match Pod's node affinity/selector"
		}
	}
	return growth{}, why
}

func note(why map[*corev1.Pod]string, pods []*corev1.Pod, text string) {
	for _, p := range pods {
		why[p] = text
	}
}

// upcoming are nodes of a group that are not Ready yet, as many as it has too few.
func (s sight) upcoming(g *group) (all []*node) {
	serving := 0
	for _, n := range s.nodes {
		if n.group == g && n.ready() {
			serving++
		}
	}
	t := g.template(s.nodes)
	for ; t != nil && serving < g.desired; serving++ {
		all = append(all, copies([]*node{t})...)
	}
	return all
}

// scaleUp grows a group for pending pods, and reports whether it has.
func (a *autoscaler) scaleUp(ctx context.Context, s sight) (bool, error) {
	g, why := a.decide(s)
	for p, text := range why {
		if a.once(contract.EventNotTriggerScaleUp+string(p.UID), s.now) {
			a.events.Eventf(p, corev1.EventTypeNormal, contract.EventNotTriggerScaleUp, "pod didn't trigger scale-up: 1 %s", text)
		}
	}
	if g.group == nil {
		return false, nil
	}
	from, to := g.group.desired, g.group.desired+g.by
	a.record(corev1.EventTypeNormal, contract.EventScaledUpGroup, "Scale-up: setting group %s size to %d instead of %d (max: %d)", g.group.name, to, from, g.group.max)
	_, err := a.groupsAPI.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: &g.group.name, DesiredCapacity: aws.Int32(int32(to)), HonorCooldown: aws.Bool(false),
	})
	if err != nil {
		a.record(corev1.EventTypeWarning, contract.EventFailedToScaleUpGroup, "Scale-up failed for group %s: %v", g.group.name, err)
		a.backedOff[g.group.name] = failure{s.now, s.now.Add(a.backOff), err.Error()}
		return false, nil
	}
	a.grown = s.now
	g.group.desired = to
	a.record(corev1.EventTypeNormal, contract.EventScaledUpGroup, "Scale-up: group %s size set to %d instead of %d (max: %d)", g.group.name, to, from, g.group.max)
	var names []string
	for _, p := range g.pods {
		names = append(names, p.Namespace+"/"+p.Name)
		a.events.Eventf(p, corev1.EventTypeNormal, contract.EventTriggeredScaleUp, "pod triggered scale-up: [{%s %d->%d (max: %d)}]", g.group.name, from, to, g.group.max)
	}
	a.log.Info("scale-up", "group", g.group.name, "from", from, "to", to, "pods", strings.Join(names, ","))
	return true, nil
}

// record writes an Event about its status, which is where it tells of groups.
func (a *autoscaler) record(kind, reason, format string, words ...any) {
	a.events.Event(a.statusReference(), kind, reason, fmt.Sprintf(format, words...))
}
