package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// laws names every law of ARCHITECTURE.md that a plan breaks. Law 2 takes two
// plans, see repeats. Law 10 holds by construction: Complete has no other
// result than CONTINUE.
func laws(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	noteDecision(got)
	var broken []string
	for _, law := range []func(fleet.Snapshot, policy.Policy, plan.Plan) []string{
		law1Order, law3Bounds, law4Budgets, law5Hold, law6Places, law7Verdicts, law8Cordons, law9Drained, lawHooks, lawWake, lawSettled, lawLimits, lawOutage, lawRoom, lawGangs, lawPermits, lawCordons, lawAlone, lawHeadRoom, lawSwaps, lawPauses, lawAtOnce, lawZones, lawExcess,
		lawStrangers, law15Contested, law16Pending, lawForeseen, lawOthers, lawReturns, lawOutOfService, lawTakeOver, lawDetails, lawGrowing, lawOpposed,
	} {
		broken = append(broken, law(s, p, got)...)
	}
	return broken
}

// repeats: law 2, deciding again after acting repeats no action.
func repeats(before, after plan.Plan) []string {
	var broken []string
	for _, a := range after.Actions {
		if slices.ContainsFunc(before.Actions, func(b action.Action) bool { return b.String() == a.String() }) {
			broken = append(broken, fmt.Sprintf("law 2: %s was decided, done, and decided again", a))
		}
	}
	return broken
}

// Law 1: permuting the input changes nothing, and neither does deciding.
func law1Order(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	before := encoded(s)
	for seed := range uint64(2) {
		other := plan.Decide(shuffled(s, seed), p)
		if diff := cmp.Diff(got, other); diff != "" {
			broken = append(broken, fmt.Sprintf("law 1: another order gives another plan (-one +other):\n%s", diff))
		}
	}
	if after := encoded(s); before != after {
		broken = append(broken, "law 1: deciding changed the snapshot")
	}
	return broken
}

func encoded(s fleet.Snapshot) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func shuffled(s fleet.Snapshot, seed uint64) fleet.Snapshot {
	r := rand.New(rand.NewPCG(seed, seed))
	s.Groups, s.Nodes, s.Pods, s.Budgets, s.DaemonSets = mixed(r, s.Groups), mixed(r, s.Nodes), mixed(r, s.Pods), mixed(r, s.Budgets), mixed(r, s.DaemonSets)
	s.Autoscalers, s.NodePools, s.TerminationHandlers = mixed(r, s.Autoscalers), mixed(r, s.NodePools), mixed(r, s.TerminationHandlers)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.NodeTemplates, g.Instances, g.Hooks, g.Failures = mixed(r, g.NodeTemplates), mixed(r, g.Instances), mixed(r, g.Hooks), mixed(r, g.Failures)
	}
	return s
}

func mixed[T any](r *rand.Rand, list []T) []T {
	out := slices.Clone(list)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// Beside another autoscaler nothing is done. What is only reported decides nothing: who may write
// in a namespace of his own stops no one else. But a Windlass that may only plan keeps the marks on nodes
// of no group, which may be its own.
func lawOthers(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	if got.Stopped && len(got.Actions)+len(got.Drains) > 0 {
		broken = append(broken, fmt.Sprintf("beside another autoscaler: %v %v", got.Actions, got.Drains))
	}
	s.Autoscalers = slices.DeleteFunc(slices.Clone(s.Autoscalers), func(a fleet.Autoscaler) bool { return a.Powerless || a.Younger })
	s.NodePools, s.TerminationHandlers = nil, nil
	without := plan.Decide(s, p)
	ours := func(actions []action.Action) []action.Action {
		return slices.DeleteFunc(slices.Clone(actions), func(a action.Action) bool {
			unmark, isUnmark := a.(action.Unmark)
			steer, isSteer := a.(action.Steer)
			return isUnmark && unmark.Group == "" || isSteer && steer.Group == ""
		})
	}
	if diff := cmp.Diff(ours(without.Actions), ours(got.Actions), cmpopts.EquateEmpty()) + cmp.Diff(without.Verdicts, got.Verdicts); diff != "" {
		broken = append(broken, fmt.Sprintf("what is only reported changes the plan (-without +with):\n%s", diff))
	}
	return broken
}

func liveOf(g fleet.Group) int {
	live := 0
	for _, i := range g.Instances {
		if i.Live() {
			live++
		}
	}
	return live
}

func allProtected(g fleet.Group) bool {
	return !slices.ContainsFunc(g.Instances, func(i fleet.Instance) bool { return i.Live() && !i.Protected })
}

// Law 3: desired stays within min and max, and not below the live instances; and what makes a group
// smaller leaves it its minimum of those.
func law3Bounds(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, g := range s.Groups {
		desired, known := promised(s, p, g)
		live, read := liveOf(g), g.Desired
		for _, a := range got.Actions {
			switch a := a.(type) {
			case action.Grow:
				if a.Group != g.Name || a.Again {
					continue
				}
				if !known || a.From != desired || a.To <= a.From || a.To < live || a.To > g.Max || a.To < g.Min {
					broken = append(broken, fmt.Sprintf("law 3: %s, with %d desired, %d live, %d to %d", a, desired, live, g.Min, g.Max))
				}
				read += a.To - desired
				desired = a.To
			case action.Lower:
				if a.Group != g.Name {
					continue
				}
				if !known || a.From != desired || a.To >= a.From || a.To < live || a.To < g.Min || !allProtected(g) {
					broken = append(broken, fmt.Sprintf("law 3: %s, with %d desired, %d live, at least %d", a, desired, live, g.Min))
				}
				desired = a.To
			case action.Terminate:
				if a.Group != g.Name {
					continue
				}
				live--
				if a.Decrement {
					desired, read = desired-1, read-1
				}
				if a.Decrement && (read < g.Min || read < live || live < g.Min) {
					broken = append(broken, fmt.Sprintf("law 3: %s leaves %d desired, %d live, at least %d", a, read, live, g.Min))
				}
			}
		}
	}
	return broken
}

// promised is what a group wants: as it was read or, where that reading may be older
// than the answer to a launch, as that launch leaves it. Those of one evaluation add up.
// While an answer is owed it is not known: it may be more.
func promised(s fleet.Snapshot, p policy.Policy, g fleet.Group) (desired int, known bool) {
	desired, known = g.Desired, true
	sums := map[time.Time]int{}
	for key, l := range s.State.Launches {
		name, zone, _ := fleet.ParseLaunchKey(key)
		age := s.Now.Sub(l.At)
		switch {
		case name != g.Name:
		case !l.Answered:
			known = known && age >= p.MaxNodeProvisionTime
		case !l.Shown && age < time.Minute && liveIn(g, zone) < l.Had+l.Came:
			sums[l.At] += l.Came
			desired = max(desired, l.Desired+sums[l.At])
		}
	}
	if !known {
		return g.Desired, false
	}
	return desired, true
}

func liveIn(g fleet.Group, zone string) int {
	n := 0
	for _, i := range g.Instances {
		if i.Live() && i.Zone == zone {
			n++
		}
	}
	return n
}

// lawSettled: no clock starts on a node in its first ten seconds, or in its
// first few where nodes are to go sooner than that.
func lawSettled(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		mark, ok := a.(action.Mark)
		if !ok {
			continue
		}
		unneeded := p.UnneededTime
		for _, g := range s.Groups {
			if g.Name == mark.Group && g.ScaleDown.UnneededTime != nil {
				unneeded = g.ScaleDown.UnneededTime.Duration
			}
		}
		for _, n := range s.Nodes {
			if age := s.Now.Sub(n.ReadySince); n.Name == mark.Node.Name && age < min(10*time.Second, unneeded) {
				broken = append(broken, fmt.Sprintf("%s, though it is Ready for %s only", mark, age))
			}
		}
	}
	return broken
}

// retired are the nodes that will be drained for scale-down once the plan is done and whose
// scale-down may still be cancelled: fresh by this plan, others by earlier ones.
func retired(s fleet.Snapshot, got plan.Plan) (fresh, all map[string]bool) {
	fresh, all = map[string]bool{}, map[string]bool{}
	for _, n := range s.Nodes {
		r, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
		report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
		late := n.Annotations[contract.AnnotationTerminating] != "" || leavingInstance(s, n.InstanceID()) ||
			report.Kind.Strength() > contract.KindScaleDown.Strength()
		if err == nil && r.By == contract.AppScaler && r.Kind == contract.KindScaleDown && !late {
			all[n.Name] = true
		}
	}
	for _, a := range got.Actions {
		switch a := a.(type) {
		case action.RequestDrain:
			if a.Kind == contract.KindScaleDown {
				fresh[a.Node.Name], all[a.Node.Name] = true, true
			}
		case action.CancelDrain:
			delete(all, a.Node.Name)
		}
	}
	return fresh, all
}

// Law 4: what this plan scales down, with all that is being drained already, costs no budget
// more than it allows, or all that it costs is of one node.
func law4Budgets(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	fresh, all := retired(s, got)
	var broken []string
	for _, b := range s.Budgets {
		cost, new := int32(0), int32(0)
		nodes := map[string]bool{}
		for _, p := range s.Pods {
			if !b.Matches(*p) || !p.Ready || !drainable.MustBePlacedAgain(p) || p.Node == "" || p.Annotations[contract.AnnotationSafeToEvict] == "on-completion" {
				continue
			}
			if all[p.Node] {
				cost++
				nodes[p.Node] = true
			}
			if fresh[p.Node] {
				new++
			}
		}
		if new > 0 && cost > b.Allowed && (b.Allowed < 1 || len(nodes) > 1) {
			broken = append(broken, fmt.Sprintf("law 4: budget %s allows %d, and what is retired costs %d on %d nodes", b.Key(), b.Allowed, cost, len(nodes)))
		}
	}
	return broken
}

// Law 5: nothing on hold and no node with a blocking pod is scaled down. An expendable pod
// blocks only if its drain would not evict it.
func law5Hold(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	fresh, _ := retired(s, got)
	var broken []string
	for _, n := range s.Nodes {
		if !fresh[n.Name] {
			continue
		}
		if by, held := contract.Held(n.Annotations); held {
			broken = append(broken, fmt.Sprintf("law 5: %s is retired though %s holds it", n.Name, by))
		}
		for _, pod := range s.Pods {
			rules := p.Drainable
			if pod.Priority() < p.ExpendableBelow {
				rules = drainable.Policy{}
			}
			v := drainable.Judge(drainable.Question{Pod: pod, Now: s.Now, Budgets: drainable.NewBudgets(s.Budgets), Owners: s.Owners, Policy: rules})
			if pod.Node == n.Name && v.Outcome == drainable.Block {
				broken = append(broken, fmt.Sprintf("law 5: %s is retired though pod %s blocks (%s)", n.Name, pod.Key(), v.Rule))
			}
		}
	}
	return broken
}

// lawPauses: while a group is not to be made smaller nothing of it is scaled down, and no clock
// that runs there is stopped for that.
func lawPauses(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	paused := map[string]bool{}
	for _, g := range s.Groups {
		paused[g.Name] = g.Refresh != nil || g.Replacement != nil && g.Replacement.Ended.IsZero() || liveOf(g) > g.Desired && !allProtected(g)
	}
	var broken []string
	for _, a := range got.Actions {
		if retire, ok := a.(action.RequestDrain); ok && retire.Kind == contract.KindScaleDown && paused[retire.Group] {
			broken = append(broken, fmt.Sprintf("%s, though its group is not to be made smaller now", retire))
		}
		if unmark, ok := a.(action.Unmark); ok && strings.Contains(unmark.Why, "not made smaller meanwhile") {
			broken = append(broken, fmt.Sprintf("%s, which is no reason", unmark))
		}
	}
	return broken
}

// Law 6: all pods of all scaled-down nodes have places on nodes that serve, at
// once. Pods of nodes that others take may stay there or have such a place too. The
// judge searches every assignment, where few enough. A place that an evicted pod was
// promised stays its own while that pod ends, see heldPlace.
func law6Places(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	fresh, all := retired(s, got)
	if len(fresh) == 0 {
		return nil
	}
	cluster, held := clusterOf(s), heldPlace(s, p, fresh, all)
	var movers, wanderers []mover
	var places []*fit.Place
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place := cluster.Add(cluster.TemplateFrom(n, nothing))
		_, draining := contract.Draining(n.Taints)
		taken := !all[n.Name] && (draining || leavingInstance(s, n.InstanceID()))
		for _, pod := range s.Pods {
			if pod.Node != n.Name || pod.Ended() || pod.Priority() < p.ExpendableBelow {
				continue
			}
			t := cluster.Tenant(pod)
			waits := drainable.Judge(drainable.Question{Pod: pod, Now: s.Now}).Outcome == drainable.Wait
			moves := drainable.MustBePlacedAgain(pod) && !waits
			switch {
			case moves && all[n.Name]:
				movers = append(movers, mover{t, nil})
			case moves && taken:
				wanderers = append(wanderers, mover{t, place})
			case pod == held:
			default:
				cluster.Put(t, place)
			}
		}
		if n.Ready && !n.Unschedulable && !draining && !all[n.Name] && !taken {
			places = append(places, place)
		}
	}
	if held != nil && len(wanderers) == 0 {
		movers = append(movers, mover{cluster.Tenant(held), nil})
	}
	steps := 100_000
	if !assignable(cluster, slices.Concat(wanderers, movers), places, &steps) {
		return []string{fmt.Sprintf("law 6: the pods of the retired nodes have no places: %v", got.Actions)}
	}
	return nil
}

// heldPlace is a pod of a StatefulSet that ends on a node that was scaled down before, if no
// other pod leaves such a node and a node had room for it before this plan. It is to be
// created again when it has ended, and its place is not for the pods of others.
func heldPlace(s fleet.Snapshot, p policy.Policy, fresh, all map[string]bool) *fleet.Pod {
	cluster := clusterOf(s)
	var held []mover
	var places []*fit.Place
	for i := range s.Nodes {
		n := &s.Nodes[i]
		place := cluster.Add(cluster.TemplateFrom(n, nothing))
		before := all[n.Name] && !fresh[n.Name]
		for _, pod := range s.Pods {
			if pod.Nominated() != "" {
				return nil // who knows whose room that is
			}
			if pod.Node != n.Name || pod.Ended() || pod.Priority() < p.ExpendableBelow {
				continue
			}
			t := cluster.Tenant(pod)
			switch {
			case before && drainable.MustBePlacedAgain(pod):
				return nil
			case before && !pod.Deleted.IsZero() && pod.Owner != nil && pod.Owner.Kind == "StatefulSet":
				held = append(held, mover{t, nil})
			default:
				cluster.Put(t, place)
			}
		}
		if _, draining := contract.Draining(n.Taints); n.Ready && !n.Unschedulable && !draining && !leavingInstance(s, n.InstanceID()) {
			places = append(places, place)
		}
	}
	if steps := 1000; len(held) != 1 || !assignable(cluster, held, places, &steps) {
		return nil
	}
	return held[0].Pod
}

// mover is a pod that needs another place, or, with a home, may stay there.
type mover struct {
	fit.Tenant
	home *fit.Place
}

func nothing(corev1.Taint) bool { return false }

func leavingInstance(s fleet.Snapshot, id string) bool {
	for _, g := range s.Groups {
		for _, i := range g.Instances {
			if i.ID == id && i.Terminating() {
				return true
			}
		}
	}
	return false
}

// assignable searches all assignments; when it is tired it gives the benefit of
// the doubt.
func assignable(c *fit.Cluster, movers []mover, places []*fit.Place, steps *int) bool {
	if len(movers) == 0 {
		return true
	}
	first, rest := movers[0], movers[1:]
	if first.home != nil {
		start := c.Fork()
		c.Put(first.Tenant, first.home)
		if assignable(c, rest, places, steps) {
			return true
		}
		c.Revert(start)
	}
	for _, p := range places {
		if *steps--; *steps < 0 {
			return true
		}
		start := c.Fork()
		if c.TrySeat(first.Tenant, p) && assignable(c, rest, places, steps) {
			return true
		}
		c.Revert(start)
	}
	return false
}

// Law 7: one verdict for every pending pod, node and group, and for nothing else. The nearest place
// of a pod that a node stays for is not one that is removed.
func law7Verdicts(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	want := map[string]int{}
	for _, p := range s.Pods {
		if p.Node == "" && drainable.MustBePlacedAgain(p) {
			want["pod "+p.Key()]++
		}
	}
	for _, n := range s.Nodes {
		want["node "+n.Name]++
	}
	for _, g := range s.Groups {
		want["group "+g.Name]++
	}
	var broken []string
	have := map[string]int{}
	for _, v := range got.Verdicts {
		have[string(v.Of)+" "+v.Name]++
		if v.Reason == "" || v.Message() == "" {
			broken = append(broken, fmt.Sprintf("law 7: the verdict on %s %s says nothing: %s", v.Of, v.Name, v))
		}
		for _, d := range v.Details {
			nearest, says := d.Param("place").(string)
			if v.Reason != verdict.NodeNoPlace || !says {
				continue
			}
			if d.Param("lack") == "" || nearest == v.Name {
				broken = append(broken, fmt.Sprintf("law 7: no reason why the nearest node does not do: %s", v))
			}
			for _, o := range got.Verdicts {
				if o.Of == verdict.OfNode && o.Name == nearest && (o.Reason == verdict.NodeUnneeded || o.Reason == verdict.NodeScalingDown) {
					broken = append(broken, fmt.Sprintf("law 7: the nearest node goes itself: %s, %s", v, o))
				}
			}
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		broken = append(broken, fmt.Sprintf("law 7: verdicts (-want +got):\n%s", diff))
	}
	return broken
}

// Law 8: a human's cordon is never undone. Only cancelling a request opens a node, so only requests
// of ours are cancelled, and of other drains only what is over.
func law8Cordons(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		keep, ok := a.(action.CancelDrain)
		if !ok {
			continue
		}
		n := nodeNamed(s, keep.Node.Name)
		value, asked := n.Annotations[contract.AnnotationDrainRequest]
		if keep.ID == "" {
			kind, draining := contract.Draining(n.Taints)
			report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
			withdrawn := func(k contract.Kind) bool {
				return k == "" || k == contract.KindScaleDown || k == contract.KindRequest || k == contract.KindASG && cameBack(s, n, keep.Ended)
			}
			left := slices.ContainsFunc(n.Taints, contract.IsKubeProxyTaint) && !n.Unschedulable
			if asked || !keep.AgentGone || !draining && report.Kind == "" && !left || !withdrawn(kind) || !withdrawn(report.Kind) ||
				s.Agents[n.Name] && s.Now.Sub(s.State.Returning[n.Name]) < p.MaxDrainTime {
				broken = append(broken, fmt.Sprintf("law 8: %s undoes a drain that goes on, or that its agent undoes", keep))
			}
			continue
		}
		r, err := contract.ParseRequest(value)
		if keep.AgentGone && r.Kind == contract.KindASG && !cameBack(s, n, keep.Ended) {
			broken = append(broken, fmt.Sprintf("law 8: %s undoes a drain that goes on", keep))
		}
		if i := instanceNamed(s, n.InstanceID()); r.Kind == contract.KindASG && (!i.Live() || i.State == fleet.InService && keep.Instance != i.ID) {
			broken = append(broken, fmt.Sprintf("law 8: %s, and its instance is %q and not read again", keep, i.State))
		}
		if err != nil || r.ID != keep.ID || r.By != contract.AppScaler || n.Annotations[contract.AnnotationTerminating] != "" {
			broken = append(broken, fmt.Sprintf("law 8: %s takes back what is not ours, or too late", keep))
		}
	}
	return broken
}

// cameBack reports whether a node's instance is in service, or soon will be, and was out of it by
// the persisted state, and whether all that is written on the node of its drain is of those ids.
func cameBack(s fleet.Snapshot, n fleet.Node, ended []string) bool {
	i := instanceNamed(s, n.InstanceID())
	_, pooled := s.State.Unjoined[i.ID]
	_, returning := s.State.Returning[n.Name]
	report, _ := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
	cordon, _ := contract.ParseCordon(n.Annotations[contract.AnnotationCordonedBy])
	foreign := slices.ContainsFunc(append(report.Answers, cordon.Notice), func(id string) bool { return id != "" && !slices.Contains(ended, id) })
	return i.ID != "" && i.Live() && (pooled || returning || toldOfWay(n)) && len(ended) > 0 && !foreign
}

// toldOfWay reports whether a request of the scaler's on the node names a way out of service that
// its instance was on.
func toldOfWay(n fleet.Node) bool {
	r, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest])
	return err == nil && r.By == contract.AppScaler && slices.Contains([]string{contract.WarmID(n.InstanceID()), contract.TerminateID(n.InstanceID())}, r.ID)
}

// lawReturns: a request that names a way out of service does not outlast it.
func lawReturns(s fleet.Snapshot, _ policy.Policy, got plan.Plan) []string {
	if got.Stopped {
		return nil
	}
	var broken []string
	for _, n := range s.Nodes {
		_, marked := n.Annotations[contract.AnnotationTerminating]
		if marked || !instanceNamed(s, n.InstanceID()).Live() || !toldOfWay(n) {
			continue
		}
		if !slices.ContainsFunc(got.Actions, func(a action.Action) bool { k, ok := a.(action.CancelDrain); return ok && k.Node.Name == n.Name }) {
			broken = append(broken, fmt.Sprintf("returns: %s is in service again, and its request stays", n.Name))
		}
	}
	return broken
}

func nodeNamed(s fleet.Snapshot, name string) fleet.Node {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return fleet.Node{}
}

// Law 9: an instance with a node is only terminated when its drain has ended, by the word of its
// agent or, where that is unresponsive, by the reading of an empty node, or when its termination
// has begun, or when it never served, and never with a pod on it.
func law9Drained(s fleet.Snapshot, policy policy.Policy, got plan.Plan) []string {
	var broken []string
	for _, a := range got.Actions {
		end, ok := a.(action.Terminate)
		if !ok {
			continue
		}
		if end.Node.Name == "" {
			if slices.ContainsFunc(s.Nodes, func(n fleet.Node) bool { return n.InstanceID() == end.Instance }) {
				broken = append(broken, fmt.Sprintf("law 9: %s, and it has a node", end))
			}
			continue
		}
		n := nodeNamed(s, end.Node.Name)
		if n.Annotations[contract.AnnotationTerminating] == end.ID {
			continue
		}
		if strings.HasPrefix(end.ID, "never-ready:") {
			broken = append(broken, neverServed(s, policy, n, end)...)
			continue
		}
		r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport])
		if drained := err == nil && r.AnswersTo(end.ID) && r.Phase == contract.PhaseDrained; !drained && !emptied(s, n) {
			broken = append(broken, fmt.Sprintf("law 9: %s, and its drain has not ended", end))
		}
		for _, p := range s.Pods {
			if p.Node == n.Name && drainable.Occupies(p, s.Now) {
				broken = append(broken, fmt.Sprintf("law 9: %s, and pod %s is there", end, p.Key()))
			}
		}
	}
	return broken
}

// neverServed is the exception to law 9: a node that did not come up in its time
// has had no pod that a drain could move.
func neverServed(s fleet.Snapshot, p policy.Policy, n fleet.Node, end action.Terminate) []string {
	var broken []string
	_, held := contract.Held(n.Annotations)
	starting := slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return contract.Startup(t) || strings.HasPrefix(t.Key, "node.") })
	if held || n.Ready && !starting || s.Now.Sub(n.Created) < p.MaxNodeStartupTime {
		broken = append(broken, fmt.Sprintf("law 9: %s, and it may still come up, or did", end))
	}
	for _, pod := range s.Pods {
		if pod.Node == n.Name && drainable.Occupies(pod, s.Now) {
			broken = append(broken, fmt.Sprintf("law 9: %s, and pod %s is there", end, pod.Key()))
		}
	}
	return broken
}

// Where there is nothing to do, there is nothing to do until Wake, and no verdict changes: no clock
// runs out unseen and no text ticks. Where another autoscaler stops everything there may be much to
// do, which the verdicts report.
func lawWake(s fleet.Snapshot, p policy.Policy, got plan.Plan) []string {
	if len(got.Actions) > 0 || got.Stopped {
		return nil
	}
	s.State = got.State
	later := got.Wake.Add(-time.Millisecond)
	if got.Wake.IsZero() {
		later = s.Now.Add(40 * time.Minute)
	}
	s.Now = later
	then := plan.Decide(s, p)
	var broken []string
	if len(then.Actions) > 0 {
		broken = append(broken, fmt.Sprintf("wake: by %s there is %v to do, and nobody asked to look again before %v", later, then.Actions, got.Wake))
	}
	if diff := cmp.Diff(got.Verdicts, then.Verdicts); diff != "" {
		broken = append(broken, fmt.Sprintf("wake: by %s verdicts change, and nobody asked to look again before %v (-now +then):\n%s", later, got.Wake, diff))
	}
	return broken
}
