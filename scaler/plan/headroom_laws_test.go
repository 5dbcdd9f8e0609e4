package plan_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// lawHeadRoom: when what is scaled down is removed, all headroom is there still, wherever the pods
// that move land: so nothing has to come back for it.
func lawHeadRoom(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	fresh, all := retired(s, got)
	if len(fresh) == 0 {
		return nil
	}
	var broken []string
	for seed := range uint64(3) {
		after := landed(s, p, got, all, rand.New(rand.NewPCG(seed, 7)))
		check := func(group string, h fleet.Headroom) {
			if !concerned(s, p, fresh, group, h) {
				return
			}
			if wanted, room := after.wanted(group, h), after.room(group, h); room < wanted {
				broken = append(broken, fmt.Sprintf("head-room %s of %q: %d wanted, %d there, when %v are gone", h, group, wanted, room, got.Actions))
			}
		}
		check("", p.Headroom)
		for _, g := range s.Groups {
			check(g.Name, g.Headroom)
		}
		for _, homeless := range after.withoutSeat(touched(s, p, fresh)) {
			broken = append(broken, fmt.Sprintf("%s: a pod of it has no room when %v are gone", homeless, got.Actions))
		}
	}
	return broken
}

// concerned reports whether one of the nodes has room of a headroom, or pods that may take
// some of it where they land.
func concerned(s fleet.Snapshot, p policy.Policy, fresh map[string]bool, group string, h fleet.Headroom) bool {
	before := newAftermath(s)
	movers := before.add(s, p, fresh)
	return movers && group == "" || before.room(group, h) > 0
}

// add takes in some nodes with their pods, and says whether one of these moves when its
// node goes.
func (a aftermath) add(s fleet.Snapshot, p policy.Policy, names map[string]bool) (movers bool) {
	groups := groupsOf(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !names[n.Name] {
			continue
		}
		place := a.cluster.Add(a.cluster.TemplateFrom(n, nothing))
		if n.Ready && !n.Unschedulable {
			a.open[place] = groups[n.InstanceID()]
		}
		for _, pod := range s.Pods {
			if pod.Node == n.Name && !pod.Ended() {
				a.cluster.Put(a.cluster.Tenant(pod), place)
				movers = movers || moves(s, p, pod)
			}
		}
	}
	return movers
}

// groupsOf are the groups of instances, by name.
func groupsOf(s fleet.Snapshot) map[string]string {
	groups := map[string]string{}
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			groups[i.ID] = g.Name
		}
	}
	return groups
}

// moves reports whether a place is sought for the pod when its node goes: not for one that is
// expendable.
func moves(s fleet.Snapshot, p policy.Policy, pod *fleet.Pod) bool {
	return drainable.MustBePlacedAgain(pod) && !staysToItsEnd(s, pod) && pod.Priority() >= p.ExpendableBelow
}

// staysToItsEnd reports whether the pod is left where it is until it is done.
func staysToItsEnd(s fleet.Snapshot, p *fleet.Pod) bool {
	return drainable.Judge(drainable.Question{Pod: p, Now: s.Now}).Outcome == drainable.Wait
}

// touched are the pods of buffers that the nodes have room for, or whose room pods that
// move may take. Who else is where must make no difference to them: of the others it is
// only known that they would have room if pods landed as was thought.
func touched(s fleet.Snapshot, p policy.Policy, fresh map[string]bool) []*fleet.Pod {
	var list []*fleet.Pod
	for _, b := range s.Buffers {
		wanted, spec, ok := imagined(b)
		if !ok {
			continue
		}
		pod := &fleet.Pod{Namespace: b.Namespace, Name: "buffer " + b.Key(), Labels: b.Pods.Template.Labels, Spec: spec}
		before := newAftermath(s)
		if !before.cluster.Unrelated(before.cluster.Tenant(pod).Class) || !before.concerns(s, p, fresh, pod) {
			continue
		}
		for range wanted {
			one := *pod
			list = append(list, &one)
		}
	}
	return list
}

// imagined is how many pods a random buffer is for, and what they ask for.
func imagined(b fleet.Buffer) (wanted int, spec *corev1.PodSpec, ok bool) {
	if b.Pods == nil || !b.Active() || b.Replicas != nil && *b.Replicas < 0 {
		return 0, nil, false
	}
	spec = &b.Pods.Template.Spec
	each := spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	switch {
	case b.Percentage != nil:
		wanted = int(math.Ceil(float64(*b.Percentage) * float64(*b.Pods.Replicas) / 100))
	case b.Replicas != nil:
		wanted = int(*b.Replicas)
	default:
		wanted = int(b.Limits.Cpu().MilliValue() / each)
	}
	return wanted, spec, wanted > 0
}

// concerns reports whether one of the nodes has room for such a pod, or pods that must move.
func (a aftermath) concerns(s fleet.Snapshot, p policy.Policy, fresh map[string]bool, like *fleet.Pod) bool {
	class := a.cluster.Tenant(like).Class
	if a.add(s, p, fresh) {
		return true
	}
	for place := range a.open {
		if len(a.cluster.Fits(class, place)) == 0 {
			return true
		}
	}
	return false
}

// withoutSeat seats pods beside all others, the largest first, and names those that find
// no seat.
func (a aftermath) withoutSeat(pods []*fleet.Pod) []string {
	start := a.cluster.Fork()
	defer a.cluster.Revert(start)
	places := make([]*fit.Place, 0, len(a.open))
	for place := range a.open {
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b *fit.Place) int { return cmp.Compare(a.Name, b.Name) })
	var tenants []fit.Tenant
	for _, p := range pods {
		tenants = append(tenants, a.cluster.Tenant(p))
	}
	var looks []*fit.NodeTemplate
	for _, p := range places {
		looks = append(looks, p.Template())
	}
	var homeless []string
	for _, t := range a.cluster.Sorted(tenants, looks) {
		if a.cluster.Seat(t, places) == nil {
			homeless = append(homeless, t.Pod.Name)
		}
	}
	return homeless
}

// aftermath is a cluster when scaled-down nodes are gone and their pods have landed.
type aftermath struct {
	cluster  *fit.Cluster
	open     map[*fit.Place]string // the group of each
	requests map[string]*[2]float64
	// tolerations are those of a group's headroom.
	tolerations map[string][]corev1.Toleration
}

func newAftermath(s fleet.Snapshot) aftermath {
	a := aftermath{clusterOf(s), map[*fit.Place]string{}, map[string]*[2]float64{}, map[string][]corev1.Toleration{}}
	for _, g := range s.Groups {
		for _, shape := range g.NodeTemplates {
			for _, taint := range shape.Taints {
				a.tolerations[g.Name] = append(a.tolerations[g.Name], corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists})
			}
		}
	}
	return a
}

// opened is the node without what this plan takes off it: what a Cluster Autoscaler left that is gone,
// and a cordon for a rebalance recommendation.
func opened(n *fleet.Node, got plan.Plan) *fleet.Node {
	for a := range action.Only[action.Release](got.Actions) {
		if a.Node.Name == n.Name {
			clean := scenario.TakenOver(*n, nil, true)
			return &clean
		}
	}
	for a := range action.Only[action.TakeOver](got.Actions) {
		if a.Node.Name == n.Name {
			clean := scenario.TakenOver(*n, a.Taints, a.Uncordon)
			return &clean
		}
	}
	return n
}

// drainIsOver reports whether the pods of a draining node stay: its drain was cancelled, and what
// it left on the node is still being undone, or this plan cancels it. What scaler or people asked
// for is over with the request; that an instance is in service again is the plan's own word.
func drainIsOver(n *fleet.Node, got plan.Plan) bool {
	if slices.ContainsFunc(got.Verdicts, func(v *verdict.Verdict) bool {
		return v.Of == verdict.OfNode && v.Name == n.Name && v.Reason == verdict.NodeScaleDownCancelled
	}) {
		return true
	}
	kind, _ := contract.Draining(n.Taints)
	report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	_, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	byRequest := max(kind.Strength(), report.Kind.Strength()) <= contract.KindScaleDown.Strength()
	return err != nil && byRequest && n.Annotations[contract.AnnotationTerminating] == ""
}

// landed lets every pod that has to move land at some place that takes it, and those that
// wait and for which there is a place.
func landed(s fleet.Snapshot, p policy.Policy, got plan.Plan, gone map[string]bool, dice *rand.Rand) aftermath {
	a, groupOf := newAftermath(s), groupsOf(s)
	placed := map[types.UID]bool{}
	for _, v := range got.Verdicts {
		switch v.Reason {
		case verdict.PodFitsNode, verdict.PodFitsUpcoming, verdict.PodTriggersScaleUp, verdict.PodCancelsScaleDown:
			placed[types.UID(v.UID)] = true
		}
	}
	var places []*fit.Place
	var movers []*fleet.Pod
	for i := range s.Nodes {
		n := opened(&s.Nodes[i], got)
		place := a.cluster.Add(a.cluster.TemplateFrom(n, nothing))
		_, draining := contract.Draining(n.Taints)
		leaves := gone[n.Name] || draining && !drainIsOver(n, got) || leavingInstance(s, n.InstanceID())
		var stay []*fleet.Pod
		for _, pod := range s.Pods {
			switch {
			case pod.Node != n.Name || pod.Ended() || pod.Priority() < p.ExpendableBelow:
			case leaves && !staysToItsEnd(s, pod) && drainable.MustBePlacedAgain(pod):
				if pod.Owner != nil { // no owner makes another in the place of one without
					movers = append(movers, pod)
				}
			default:
				a.cluster.Put(a.cluster.Tenant(pod), place)
				stay = append(stay, pod)
			}
		}
		a.count(groupOf[n.InstanceID()], n.Allocatable, stay...)
		if n.Ready && !n.Unschedulable && !leaves && !draining {
			places = append(places, place)
			a.open[place] = groupOf[n.InstanceID()]
		}
	}
	for _, pod := range s.Pods {
		if pod.Node == "" && placed[pod.UID] {
			movers = append(movers, pod)
		}
	}
	dice.Shuffle(len(movers), func(i, j int) { movers[i], movers[j] = movers[j], movers[i] })
	for _, pod := range movers {
		dice.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		to := a.cluster.Seat(a.cluster.Tenant(pod), places)
		a.count(a.open[to], nil, pod)
	}
	return a
}

// count what pods request, everywhere and in the group where they are: of those of one node no more
// than it has.
func (a aftermath) count(group string, most corev1.ResourceList, pods ...*fleet.Pod) {
	var cpu, memory float64
	for _, p := range pods {
		if drainable.BelongsToNode(p) || p.Ended() || !p.Deleted.IsZero() {
			continue
		}
		asks := p.Spec.Containers[0].Resources.Requests
		cpu, memory = cpu+asks.Cpu().AsApproximateFloat64(), memory+asks.Memory().AsApproximateFloat64()
	}
	if most != nil {
		cpu, memory = min(cpu, most.Cpu().AsApproximateFloat64()), min(memory, most.Memory().AsApproximateFloat64())
	}
	where := []string{""}
	if group != "" {
		where = append(where, group)
	}
	for _, g := range where {
		if a.requests[g] == nil {
			a.requests[g] = &[2]float64{}
		}
		a.requests[g][0] += cpu
		a.requests[g][1] += memory
	}
}

func (a aftermath) wanted(group string, h fleet.Headroom) int {
	asked := a.requests[group]
	if h.Percent == 0 || asked == nil {
		return h.Pods
	}
	pieces := max(asked[0]/fleet.HeadroomPiece.Cpu().AsApproximateFloat64(), asked[1]/fleet.HeadroomPiece.Memory().AsApproximateFloat64())
	return int(math.Ceil(h.Percent/100*pieces - 1e-9))
}

// room counts by filling all that is free.
func (a aftermath) room(group string, h fleet.Headroom) int {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: h.Piece()}}}}
	if group != "" {
		spec.Tolerations = a.tolerations[group]
	}
	start := a.cluster.Fork()
	defer a.cluster.Revert(start)
	n := 0
	for place, of := range a.open {
		for (group == "" || group == of) && n < 1000 && a.cluster.TrySeat(a.cluster.Tenant(&fleet.Pod{Name: "room", Spec: spec}), place) {
			n++
		}
	}
	return n
}

// TestHeadRoomNeverFlaps: in clusters with many small pods and headroom the scaler settles, though
// kube-scheduler puts the pods that move where it likes.
func TestHeadRoomNeverFlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &text{T: t}
		nodes := x.number("nodes", 1, 6)
		x.line("group web", fmt.Sprintf("desired=%d max=12 type=m5.xlarge", nodes), x.one("headroom", "", "", "headroom=25%", "headroom=pods=2,cpu=900m"))
		for n := range nodes {
			x.line("node", fmt.Sprintf("web-%d", n), "group=web")
		}
		for i := range x.number("pods", 0, 25) {
			x.line("pod", fmt.Sprintf("app%d-%d", i%3, i), fmt.Sprintf("on=web-%d cpu=%dm mem=%dMi", x.number("on", 0, nodes-1), x.number("cpu", 1, 8)*50, x.number("mem", 1, 8)*64))
		}
		for b := range x.number("buffers", 0, 3) {
			x.line("buffer", fmt.Sprintf("buffer%d", b), fmt.Sprintf("replicas=%d cpu=%dm mem=%dMi", x.number("replicas", 1, 4), x.number("cpu", 1, 20)*100, x.number("mem", 1, 8)*256))
		}
		w := parsed(t, joined(x.lines))
		p := policy.DefaultPolicy()
		p.TerminationHooks = nil
		p.Headroom = headRoom(x.one("head-room", "20%", "100%", "pods=3,cpu=1100m", "pods=5,cpu=400m,memory=2Gi", "pods=1,cpu=3500m"))
		dice := rand.New(rand.NewPCG(uint64(x.number("seed", 0, 1<<30)), 1))
		rest(t, w, p, dice)
	})
}

func joined(lines []string) string {
	out := ""
	for _, l := range lines {
		out += l + "\n"
	}
	return out
}

// rest lets a world live for hours and counts how often nodes come after the first went.
func rest(t *rapid.T, w *scenario.World, p policy.Policy, dice *rand.Rand) {
	went := false
	for range 100 {
		w.Launch()
		w.Join()
		scatter(w, dice)
		w.Drain()
		w.Reap()
		scatter(w, dice)
		for _, a := range look(t, w, p).Actions {
			switch a.(type) {
			case action.RequestDrain:
				went = true
			case action.Grow:
				if went {
					t.Fatalf("%s, after nodes went\n%s", a, scenario.Format(w.Snapshot))
				}
			}
		}
		w.Advance(3 * 60 * 1e9)
	}
}

// scatter is a kube-scheduler that binds pods to any node that takes them.
func scatter(w *scenario.World, dice *rand.Rand) {
	dice.Shuffle(len(w.Nodes), func(i, j int) { w.Nodes[i], w.Nodes[j] = w.Nodes[j], w.Nodes[i] })
	schedule(w)
}
