package standin

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/cluster"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// A drain whose agent is unresponsive is carried on by the scaler alone: it cordons the node and
// evicts its pods by the rules that the agent has, until the agent reports again. Two that drain
// the same node do no harm: each eviction is for one pod of one UID, and a budget that refuses is a
// fact to both.

const (
	// answersSoon is how long an agent may take to answer a request where Auto Scaling terminates
	// the instance, or where the agent is not Ready. With both there is no wait; with neither there
	// is no hurry.
	answersSoon = 10 * time.Second
	// missedWord is how old the last report of an agent may be whose pod is not Ready: a live one
	// would have renewed it, or will within half a minute where the API server has no time: that two
	// drain a node until then does no harm.
	missedWord = contract.ReportEvery + contract.ReportEvery/2
)

// Acts reports whether the scaler drains the node by itself, as no agent does.
func (d *StandIn) Acts(n *cluster.Node) bool {
	_, _, is := d.Unresponsive(n)
	return is
}

// Unresponsive is the drain of a node that no agent carries on: its id, and why that is
// thought.
func (d *StandIn) Unresponsive(n *cluster.Node) (id string, why verdict.Details, is bool) {
	if n.Cancelled || !drainsStill(n) || d.CatchesUp() {
		return "", nil, false
	}
	if !asked(n) {
		if !n.Reported || len(n.Report.Answers) == 0 {
			_, occupied := n.Occupied(d.Now)
			return n.Mark, agentUnready, n.Mark != "" && occupied && !d.Agents[n.Name]
		}
		// The notice is the agent's, and so is how long it waits for its permit, while
		// it may get one.
		if n.AsksPermit() && !d.TooLate(n) {
			return "", nil, false
		}
		why, is = d.fellSilent(n)
		return n.Report.Answers[0], why, is
	}
	if _, answered := n.Answered(n.Request.ID); answered {
		why, is = d.fellSilent(n)
		return n.Request.ID, why, is
	}
	due := d.Heard(n.Request.At.Time).Add(d.answersWithin(n))
	if d.Now.Before(due) {
		d.Clock.At(due)
		return "", nil, false
	}
	return n.Request.ID, verdict.Say("its agent has not answered since {since}", verdict.Since(n.Request.At.Time)), true
}

var agentUnready = verdict.Say("its agent is not Ready")

// drainsStill reports whether the node is drained, and its instance not shut down yet.
func drainsStill(n *cluster.Node) bool {
	if n.Instance == nil || !n.Instance.Live() && !slices.Contains(holding, n.Instance.State) {
		return false
	}
	return n.Stage == cluster.ScalingDown || n.Stage == cluster.Draining || n.Stage == cluster.Terminating
}

// holding are the states of an instance that is being terminated and not shut down yet.
var holding = []string{
	fleet.Terminating, fleet.TerminatingWait, fleet.WarmedPending, fleet.WarmedPendingWait, fleet.WarmedTerminating, fleet.WarmedTerminatingWait,
}

// asked reports whether the scaler has asked for the drain.
func asked(n *cluster.Node) bool { return n.Requested && n.Request.By == contract.AppScaler }

func (d *StandIn) answersWithin(n *cluster.Node) time.Duration {
	ready, known := d.Agents[n.Name]
	down := known && !ready
	switch {
	case n.Request.Kind == contract.KindASG && down:
		return 0
	case n.Request.Kind == contract.KindASG || down:
		return answersSoon
	}
	return contract.UnresponsiveAfter
}

// fellSilent says that the agent of a node has begun its drain and is unresponsive. Its last report
// of a drain that has ended or failed is not renewed: where pods are there then, it counts whether
// the agent is Ready, or whether there is one.
func (d *StandIn) fellSilent(n *cluster.Node) (why verdict.Details, is bool) {
	ready, known := d.Agents[n.Name]
	down := known && !ready
	if !n.Report.Phase.Open() {
		_, occupied := n.Occupied(d.Now)
		if !occupied || !asked(n) && n.Mark == "" {
			return nil, false
		}
		end := d.Heard(n.Report.Renewed.Time).Add(contract.UnresponsiveAfter)
		if !known && d.Now.Before(end) {
			d.Clock.At(end)
			return nil, false
		}
		return agentUnready, !ready
	}
	last := d.Heard(n.Report.Renewed.Time)
	end := last.Add(contract.UnresponsiveAfter)
	switch {
	case n.WaitsForPermit() && n.Report.PermitWait > 0 && n.TakesPods() && !d.TooLate(n):
		end = last.Add(contract.WaitGoneAfter)
	case down:
		end = last.Add(missedWord)
	case ready && n.Report.Crowded:
		end = last.Add(contract.CrowdedUnresponsiveAfter)
	}
	if d.Now.Before(end) {
		d.Clock.At(end)
		return nil, false
	}
	return verdict.Say("its agent has not reported since {since}", verdict.Since(n.Report.Renewed.Time)), true
}

// Emptied reports whether the scaler has drained the node by itself: its own check finds that
// nothing is left, which is believed of a node that nothing comes to.
func (d *StandIn) Emptied(n *cluster.Node) bool {
	id, why, is := d.Unresponsive(n)
	return is && n.Closed() && d.LoneDrain(n, id, why).Remedy(d.Unspent()).Phase() == contract.PhaseDrained
}

// Unspent are the budgets as they were read.
func (d *StandIn) Unspent() *drainable.Budgets {
	if d.untouched == nil {
		d.untouched = drainable.NewBudgets(d.Guards)
	}
	return d.untouched
}

// Drain carries on the drains of nodes in those stages that no agent does. Those with
// the earliest deadline have the first claim on what budgets allow, and drains that others
// began before our own, which have none.
func (d *StandIn) Drain(stages ...cluster.Stage) {
	if d.CatchesUp() {
		d.keepWaits(stages)
		return
	}
	var drains []loneDrain
	for n := range d.In(stages...) {
		id, why, is := d.Unresponsive(n)
		if is {
			drains = append(drains, d.LoneDrain(n, id, why))
		} else if calls := d.Given.StandIns[n.Name].LastCalls; len(calls) > 0 && drainsStill(n) {
			d.State.StandIns[n.Name] = fleet.LoneDrain{LastCalls: calls} // its agent may be unresponsive again
		}
	}
	if len(drains) == 0 {
		return
	}
	if d.allowance == nil {
		d.allowance, d.asking = drainable.NewBudgets(d.Guards), map[string]bool{}
	}
	slices.SortStableFunc(drains, func(a, b loneDrain) int {
		return cmp.Or(cluster.LatestLast(a.deadline, b.deadline), cmp.Compare(a.node.Name, b.node.Name))
	})
	for _, x := range drains {
		x.goOn()
	}
}

// KnownDeadline is the earliest that is known of the node's drain, of which that report
// speaks; zero where there is none.
func KnownDeadline(n *cluster.Node, report contract.Report) time.Time {
	return cluster.FirstKnown(n.Request.Deadline.Time, report.Deadline.Time)
}

// loneDrain is a drain that the scaler carries on.
type loneDrain struct {
	*StandIn
	node     *cluster.Node
	id       string
	why      verdict.Details
	kind     contract.Kind
	deadline time.Time
	// report is what an agent has reported of this drain; zero where it has reported nothing. A
	// report of an older drain that is left on the node does not count.
	report contract.Report
}

// LoneDrain of a node. One that is marked and being terminated is treated like any other that Auto
// Scaling ends, whatever it was drained for.
func (d *StandIn) LoneDrain(n *cluster.Node, id string, why verdict.Details) loneDrain {
	report, _ := n.Answered(id)
	x := loneDrain{StandIn: d, node: n, id: id, why: why, kind: n.DrainingBy(report), deadline: KnownDeadline(n, report), report: report}
	x.heed(n.Noticed)
	if p, leaves := d.Passage(n.Group, n.Instance, n); leaves && p.Way != &cluster.Launching && n.Mark != "" {
		x.deadline = d.Deadline(p)
		if x.kind.Strength() < contract.KindASG.Strength() {
			x.kind = contract.KindASG
		}
	}
	return x
}

// heed the notices that the agent has left: the machine is taken by them, whatever its drain is
// for. A deadline that it has outlived no longer counts.
func (x *loneDrain) heed(notices contract.NoticedList) {
	for _, notice := range notices {
		if notice.Does != drains || !notice.Deadline.IsZero() && !x.ToCome(notice.Deadline.Time) {
			continue
		}
		x.deadline = cluster.FirstKnown(x.deadline, notice.Deadline.Time)
		if notice.Kind.Strength() > x.kind.Strength() {
			x.kind = notice.Kind
		}
	}
}

// drains is what contract.Noticed.Does says of a notice by which a node is drained.
const drains = "drain"

func (x loneDrain) goOn() {
	if x.node.Leaves || x.node.Instance.Live() && (x.node.Reason == verdict.NodeTerminating || x.node.Stage == cluster.Terminating) {
		return // it ends by this plan
	}
	if _, ends := x.EndsEarly(x.node); !x.shut() && ends == nil {
		x.Do(action.Cordon{Group: x.node.GroupName(), Node: x.node.Ref(), ID: x.id, Kind: x.kind, KubeProxy: x.Policy.Manner.KubeProxyTaint, Why: x.why.String()})
		return
	}
	t := x.Remedy(x.allowance)
	x.remember(t)
	if t.Pause == nil {
		for _, c := range t.due {
			x.ask(c, t)
		}
	}
	message := x.why.And(", and the scaler drains it ({notice})", verdict.Notice(string(x.kind))).Then(t.stand()).String()
	x.Carried = append(x.Carried, action.Drain{Node: x.node.Ref(), ID: x.id, Phase: t.Phase(), Pauses: t.Left > 0 && t.Pause != nil, Message: message})
}

// ask evicts a pod, one at a time of those that a budget guards: evictions of one
// budget are in each other's way, and each may change what it allows.
func (x loneDrain) ask(c drainable.Candidate, t loneTally) {
	guards := x.allowance.Guarding(c.Pod)
	if slices.ContainsFunc(guards, func(g string) bool { return x.asking[g] }) || !x.noteEviction(c.Pod, t.drain.Returns) {
		return
	}
	for _, g := range guards {
		x.asking[g] = true
	}
	x.allowance.Take(c.Pod)
	x.Do(action.Evict{
		Group: x.node.GroupName(), Node: x.node.Ref(), Pod: action.PodRef{Namespace: c.Pod.Namespace, Name: c.Pod.Name, UID: c.Pod.UID},
		Grace: t.drain.Grace(c.Pod, t.Last), Overrides: c.Verdict.Overrides, Why: x.why.String(),
	})
}

// loneTally is how the pods of a node stand.
type loneTally struct {
	drainable.Tally
	// drain is what it was found by.
	drain drainable.Drain
	// due are those that are asked to leave now.
	due []drainable.Candidate
	// Pause is what is waited for before any pod is asked to leave, or after the last
	// one has left; nil without.
	Pause verdict.Details
}

// Remedy judges every pod of the node, with what budgets allow.
func (x loneDrain) Remedy(budgets *drainable.Budgets) loneTally {
	d := x.going(budgets)
	t := loneTally{drain: d, Tally: d.Tally(x.node.Pods)}
	asked := map[string]bool{}
	for _, c := range t.Due {
		maker := d.Returns.Alone(c.Pod)
		if maker == "" || !asked[maker] && !d.AwaitsSuccessor(c.Pod) {
			t.due, asked[maker] = append(t.due, c), true
		}
	}
	t.Pause = x.pause(t)
	return t
}

// going is what the drain goes by as far as its pods go.
func (x loneDrain) going(budgets *drainable.Budgets) drainable.Drain {
	toCome := x.toCome()
	return drainable.Drain{
		Manner: x.Policy.Manner, Now: x.Now, Urgency: x.urgency(), Chosen: x.chosen(), Late: toCome.IsZero() && !x.deadline.IsZero(),
		Deadline: toCome, Budgets: budgets, Returns: x.returns(), Again: x.Clock.At,
	}
}

// toCome is the deadline, zero where it has passed.
func (x loneDrain) toCome() time.Time {
	if !x.ToCome(x.deadline) {
		return time.Time{}
	}
	return x.deadline
}

// blockedBy names what keeps pods that cannot leave.
func (t loneTally) blockedBy() []string {
	blocked := sets.Set[string]{}
	for _, c := range t.Blocked {
		blocked.Insert(cmp.Or(c.Verdict.Budget, "pod "+c.Pod.Key()))
	}
	for _, p := range t.Returned {
		blocked.Insert(drainable.MakerOf(p) + " (" + t.drain.Returns.Why(p) + ")")
	}
	return sets.List(blocked)
}

// chosen reports whether the node was chosen for scale-down, or is past the point of no return.
func (x loneDrain) chosen() bool {
	return x.kind == contract.KindScaleDown || x.node.Request.Kind == contract.KindScaleDown || x.node.Mark != ""
}

// Phase of the drain.
func (t loneTally) Phase() contract.Phase { return t.Tally.Phase(t.Pause != nil) }

// stand is how far the drain is, in words without figures that tick.
func (t loneTally) stand() verdict.Details {
	switch {
	case t.Pause != nil:
		return t.Pause
	case t.Left == 0:
		return verdict.Say("no pod is left")
	case len(t.Blocked)+len(t.Returned) > 0:
		return verdict.Say("blocked by {blockers}", verdict.Blockers(t.blockedBy()))
	}
	return nil
}

func (x loneDrain) urgency() drainable.Urgency {
	return x.UrgencyOf(x.kind, x.node.DrainBegan(x.report, x.deadline), x.deadline)
}

// CarriedOn is how far the drain is that the scaler carries on, for a verdict; nil
// where it does not.
func (d *StandIn) CarriedOn(n *cluster.Node) verdict.Details {
	id, why, is := d.Unresponsive(n)
	if !is {
		return nil
	}
	return why.And(", and the scaler drains it").Then(d.LoneDrain(n, id, why).Remedy(d.Unspent()).stand())
}
