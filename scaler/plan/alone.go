package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// A drain whose agent is gone or blind is carried on by the scaler alone: it cordons
// the node and evicts its pods by the rules that the agent has, until the agent speaks
// again. Two that drain the same node do no harm: each eviction is for one pod of one
// UID, and a budget that refuses is a fact to both.

const (
	// answersSoon is how long an agent may take to answer a request where Auto Scaling
	// terminates the instance, or where the agent is not Ready. With both nobody waits;
	// with neither there is no hurry.
	answersSoon = 10 * time.Second
	// missedWord is how old the last word of an agent may be whose pod is not Ready: a
	// live one would have spoken.
	missedWord = contract.ReportEvery + contract.ReportEvery/2
)

// alone says that the scaler drains the node by itself, as nobody there does.
func (d *decision) alone(n *node) bool {
	_, _, is := d.forsaken(n)
	return is
}

// forsaken is the drain of a node that no agent carries on: its id, and why that is
// thought.
func (d *decision) forsaken(n *node) (id, why string, is bool) {
	if n.kept || !n.drainsStill() || d.catchesUp() {
		return "", "", false
	}
	if !n.asked() {
		if !n.reported || len(n.report.Answers) == 0 {
			_, occupied := n.occupied(d.now)
			return n.mark, "its agent is not Ready", n.mark != "" && occupied && !d.agents[n.Name]
		}
		// The notice is the agent's, and so is how long it waits for its permit, while
		// it may get one.
		if n.asksPermit() && !d.tooLate(n) {
			return "", "", false
		}
		why, is = d.fellSilent(n)
		return n.report.Answers[0], why, is
	}
	if _, answered := n.answered(n.request.ID); answered {
		why, is = d.fellSilent(n)
		return n.request.ID, why, is
	}
	due := d.heard(n.request.At.Time).Add(d.answersWithin(n))
	if d.now.Before(due) {
		d.clock.at(due)
		return "", "", false
	}
	return n.request.ID, "its agent has not answered since " + clockTime(n.request.At.Time), true
}

// drainsStill says that the node is drained, and its instance not shut down yet.
func (n *node) drainsStill() bool {
	if n.instance == nil || !n.instance.Live() && !slices.Contains(holding, n.instance.State) {
		return false
	}
	return n.stage == retiring || n.stage == leaving || n.stage == terminating
}

// holding are the states of an instance that leaves and is not shut down yet.
var holding = []string{
	fleet.Terminating, fleet.TerminatingWait, fleet.WarmedPending, fleet.WarmedPendingWait, fleet.WarmedTerminating, fleet.WarmedTerminatingWait,
}

// asked says that the scaler has asked for the drain.
func (n *node) asked() bool { return n.requested && n.request.By == contract.AppScaler }

func (d *decision) answersWithin(n *node) time.Duration {
	ready, known := d.agents[n.Name]
	down := known && !ready
	switch {
	case n.request.Kind == contract.KindASG && down:
		return 0
	case n.request.Kind == contract.KindASG || down:
		return answersSoon
	}
	return contract.GoneAfter
}

// fellSilent says that the agent of a node has begun its drain and is gone. What it
// told last of a drain that has ended or failed is not renewed: where pods are there then,
// it is whether the agent is Ready that tells, or whether there is one.
func (d *decision) fellSilent(n *node) (why string, is bool) {
	ready, known := d.agents[n.Name]
	down := known && !ready
	if !n.report.Phase.Open() {
		_, occupied := n.occupied(d.now)
		if !occupied || !n.asked() && n.mark == "" {
			return "", false
		}
		end := d.heard(n.report.Renewed.Time).Add(contract.GoneAfter)
		if !known && d.now.Before(end) {
			d.clock.at(end)
			return "", false
		}
		return "its agent is not Ready", !ready
	}
	last := d.heard(n.report.Renewed.Time)
	end := last.Add(contract.GoneAfter)
	if n.waitsForPermit() && n.report.PermitWait > 0 && n.takesPods() && !d.tooLate(n) {
		end = last.Add(contract.WaitGoneAfter)
	} else if down {
		end = last.Add(missedWord)
	}
	if d.now.Before(end) {
		d.clock.at(end)
		return "", false
	}
	return "its agent has said nothing since " + clockTime(n.report.Renewed.Time), true
}

// heard is from when on somebody's silence counts whose last word is of that time. What
// was said while the API server was away, nobody has heard.
func (d *decision) heard(last time.Time) time.Time {
	if d.back.After(last) {
		return d.back
	}
	return last
}

// catchesUp says that the API server is away, or came back a moment ago: what is known
// may no more be what is so, and nobody is taken for gone.
func (d *decision) catchesUp() bool {
	until := d.back.Add(answersSoon)
	if d.back.IsZero() || !d.now.Before(until) {
		return false
	}
	d.clock.at(until)
	return true
}

// closed says that nothing new comes to the node.
func (n *node) closed() bool {
	_, tainted := contract.Draining(n.Taints)
	return tainted && n.Unschedulable
}

// emptiedAlone says that the scaler has drained the node by itself: its own look says
// that nothing is left, which is believed of a node that nothing comes to.
func (d *decision) emptiedAlone(n *node) bool {
	id, why, is := d.forsaken(n)
	return is && n.closed() && d.loneDrain(n, id, why).look(d.unspent()).phase() == contract.PhaseDrained
}

// unspent are the budgets as they were read.
func (d *decision) unspent() *drainable.Budgets {
	if d.untouched == nil {
		d.untouched = drainable.NewBudgets(d.guards)
	}
	return d.untouched
}

// drainAlone carries on the drains of nodes in those stages that no agent does. Those with
// the earliest deadline have the first claim on what budgets allow, and drains that others
// began before our own, which have none.
func (d *decision) drainAlone(stages ...stage) {
	if d.catchesUp() {
		d.keepWaits(stages)
		return
	}
	var drains []loneDrain
	for _, n := range d.in(stages...) {
		if id, why, is := d.forsaken(n); is {
			drains = append(drains, d.loneDrain(n, id, why))
		}
	}
	if len(drains) == 0 {
		return
	}
	if d.allowance == nil {
		d.allowance, d.asking = drainable.NewBudgets(d.guards), map[string]bool{}
	}
	slices.SortStableFunc(drains, func(a, b loneDrain) int {
		return cmp.Or(latestLast(a.deadline, b.deadline), cmp.Compare(a.node.Name, b.node.Name))
	})
	for _, x := range drains {
		x.goOn()
	}
}

// deadline is the earliest that is known of the node's drain, of which that report
// speaks; zero where there is none.
func (n *node) deadline(report contract.Report) time.Time {
	return firstKnown(n.request.Deadline.Time, report.Deadline.Time)
}

// firstKnown is the earlier of two moments that may be unknown; zero where both are.
func firstKnown(a, b time.Time) time.Time {
	if latestLast(a, b) > 0 {
		return b
	}
	return a
}

// loneDrain is a drain that the scaler carries on.
type loneDrain struct {
	*decision
	node     *node
	id, why  string
	kind     contract.Kind
	deadline time.Time
	// report is what an agent has told of this drain; zero where it has told nothing. One
	// of an older drain that is left on the node says nothing of this one.
	report contract.Report
}

// loneDrain of a node. One that is marked and on its way out goes like any other that
// Auto Scaling ends, whatever it was drained for.
func (d *decision) loneDrain(n *node, id, why string) loneDrain {
	report, _ := n.answered(id)
	x := loneDrain{decision: d, node: n, id: id, why: why, kind: n.drainingBy(report), deadline: n.deadline(report), report: report}
	x.heed(n.noticed)
	if p, leaves := d.passage(n.group, n.instance, n); leaves && p.way != &launching && n.mark != "" {
		x.deadline = d.deadline(p)
		if x.kind.Strength() < contract.KindASG.Strength() {
			x.kind = contract.KindASG
		}
	}
	return x
}

// heed the notices that the agent has left: the machine goes by them, whatever its drain
// is for. A deadline that it has outlived says nothing any more.
func (x *loneDrain) heed(notices contract.NoticedList) {
	for _, notice := range notices {
		if notice.Does != drains || !notice.Deadline.IsZero() && !x.toCome(notice.Deadline.Time) {
			continue
		}
		x.deadline = firstKnown(x.deadline, notice.Deadline.Time)
		if notice.Kind.Strength() > x.kind.Strength() {
			x.kind = notice.Kind
		}
	}
}

// drains is what contract.Noticed.Does says of a notice by which a node is drained.
const drains = "drain"

func (x loneDrain) goOn() {
	if x.node.gone || x.node.instance.Live() && (x.node.reason == NodeTerminating || x.node.stage == terminating) {
		return // it ends by this plan
	}
	if _, replaced := x.replaced(x.node); !x.shut() && replaced == "" {
		x.do(Cordon{Group: x.node.groupName(), Node: x.node.ref(), ID: x.id, Kind: x.kind, KubeProxy: x.policy.Manner.KubeProxyTaint, Why: x.why})
		return
	}
	t := x.look(x.allowance)
	x.remember(t)
	if t.pause == "" {
		for _, c := range t.due {
			x.ask(c, t.last)
		}
	}
	x.drains = append(x.drains, Drain{Node: x.node.ref(), ID: x.id, Phase: t.phase(), Pauses: t.left > 0 && t.pause != "", Message: fmt.Sprintf("%s, and the scaler drains it (%s)%s", x.why, x.kind, t.stand())})
}

// ask evicts a pod, one at a time of those that a budget guards: evictions of one
// budget are in each other's way, and each may change what it allows.
func (x loneDrain) ask(c lonePod, last int) {
	guards := x.allowance.Guarding(c.pod)
	if slices.ContainsFunc(guards, func(g string) bool { return x.asking[g] }) {
		return
	}
	for _, g := range guards {
		x.asking[g] = true
	}
	x.allowance.Take(c.pod)
	x.do(Evict{
		Group: x.node.groupName(), Node: x.node.ref(), Pod: PodRef{Namespace: c.pod.Namespace, Name: c.pod.Name, UID: c.pod.UID},
		Grace: x.grace(c.pod, last), Overrides: c.verdict.Overrides, Why: x.why,
	})
}

// lonePod is a pod that may be evicted.
type lonePod struct {
	pod     *fleet.Pod
	turn    drainable.Turn
	verdict drainable.Verdict
}

// loneTally is how the pods of a node stand.
type loneTally struct {
	// due are those whose turn it is.
	due []lonePod
	// left counts the pods that must still go, moving those of them that are leaving or
	// may. last is the greatest step of one.
	left, moving, last int
	// blockedBy names what keeps the others.
	blockedBy []string
	// pause is what is waited for before any pod is asked to leave, or after the last
	// one has left, in words; empty without.
	pause string
}

// look judges every pod of the node, with what budgets allow.
func (x loneDrain) look(budgets *drainable.Budgets) loneTally {
	var t loneTally
	var all []lonePod
	held := sets.Set[drainable.Turn]{}
	blocked := map[string]bool{}
	returns := x.returns()
	for _, p := range x.node.pods {
		c := x.judge(p, budgets)
		if c.verdict.Outcome == drainable.Skip {
			continue
		}
		t.left++
		t.last = max(t.last, c.turn.Step())
		switch {
		case c.verdict.Outcome == drainable.Block:
			blocked[cmp.Or(c.verdict.Budget, "pod "+p.Key())] = true
			continue
		case !p.Deleted.IsZero():
			t.moving++
		case x.leftAlone(p, returns):
			blocked[drainable.MakerOf(p)+" ("+returns.Why(p)+")"] = true
			continue
		case c.verdict.Outcome == drainable.Leave:
			t.moving++
			all = append(all, c)
		}
		held.Insert(c.turn)
	}
	t.blockedBy = slices.Sorted(maps.Keys(blocked))
	asked := map[string]bool{}
	for _, c := range all {
		turn := !c.turn.Waits(held) || x.near(x.steps().Reserve(c.turn.Step()))
		if maker := returns.Alone(c.pod); turn && (maker == "" || !asked[maker] && x.showedSuccessor(c.pod, returns)) {
			t.due, asked[maker] = append(t.due, c), true
		}
	}
	t.pause = x.pause(t)
	return t
}

// judge a pod by the agent's rules. Those of DaemonSets count until the deadline.
func (x loneDrain) judge(p *fleet.Pod, budgets *drainable.Budgets) lonePod {
	late := !x.deadline.IsZero() && !x.toCome(x.deadline)
	rules := x.policy.Manner.Rules(p, x.chosen(), late)
	return lonePod{pod: p, turn: x.steps().TurnOf(p), verdict: drainable.Judge(drainable.Question{
		Pod: p, Now: x.now, Budgets: budgets, Policy: rules, Urgency: x.urgency(),
	})}
}

// chosen says that the node was chosen for scale-down, or is past the point of no return.
func (x loneDrain) chosen() bool {
	return x.kind == contract.KindScaleDown || x.node.request.Kind == contract.KindScaleDown || x.node.mark != ""
}

func (x loneDrain) steps() drainable.Steps { return x.policy.Manner.Steps }

func (t loneTally) phase() contract.Phase {
	switch {
	case t.left == 0 && t.pause == "":
		return contract.PhaseDrained
	case t.left == 0:
		return contract.PhaseDraining
	case t.pause != "":
		return contract.PhaseWaiting
	case t.moving > 0:
		return contract.PhaseDraining
	case len(t.blockedBy) > 0:
		return contract.PhaseBlocked
	}
	return contract.PhaseWaiting
}

// stand is how far the drain is, in words without figures that tick.
func (t loneTally) stand() string {
	switch {
	case t.pause != "":
		return "; " + t.pause
	case t.left == 0:
		return "; no pod is left"
	case len(t.blockedBy) > 0:
		return "; blocked by " + listed(t.blockedBy)
	}
	return ""
}

func (x loneDrain) urgency() drainable.Urgency {
	return x.urgencyOf(x.kind, x.node.drainBegan(x.report), x.deadline)
}

func (x loneDrain) near(left time.Duration) bool { return x.nears(x.deadline, left) }

// grace is nil where the pod's own period ends before the deadline, and where none is
// to come. Otherwise it is what is left, but for what later steps need.
func (x loneDrain) grace(p *fleet.Pod, last int) *int64 {
	if !x.toCome(x.deadline) {
		return nil
	}
	return x.steps().Grace(p, last, x.deadline.Sub(x.now))
}

// carriedOn is how far the drain is that the scaler carries on, for a verdict; empty
// where it does not.
func (d *decision) carriedOn(n *node) string {
	id, why, is := d.forsaken(n)
	if !is {
		return ""
	}
	return fmt.Sprintf("; %s, and the scaler drains it%s", why, d.loneDrain(n, id, why).look(d.unspent()).stand())
}
