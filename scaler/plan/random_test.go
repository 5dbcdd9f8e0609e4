package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// TestLawsOnRandomFleets holds every law against random worlds in random
// states, also such as no sequence of events would lead to.
func TestLawsOnRandomFleets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, true))
		p := randomPolicy(t)
		first := plan.Decide(w.Snapshot, p)
		hold(t, w, p, first)
		catchUp(w, p)
		if err := carryOut(w, first); err != nil {
			t.Fatalf("%v\n%s", err, scenario.Format(w.Snapshot))
		}
		again := plan.Decide(w.Snapshot, p)
		hold(t, w, p, again)
		for _, broken := range slices.Concat(repeats(first, again), regrets(first, again)) {
			t.Errorf("%s\n%s\n%s", broken, render(first, []string{"node", "group"}), scenario.Format(w.Snapshot))
		}
	})
}

// catchUp makes true what answered launches promise and an older reading does not
// show.
func catchUp(w *scenario.World, p policy.Policy) {
	for i := range w.Groups {
		w.Groups[i].Desired, _ = promised(w.Snapshot, p, w.Groups[i])
	}
}

// TestRandomDays lets random worlds live: things happen, plans are carried out, and in the end,
// when nothing happens any more, the scaler settles with no pod waiting that a group could still
// take.
func TestRandomDays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := parsed(t, randomWorld(t, false))
		p := randomPolicy(t)
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			randomEvent(t, w)
			look(t, w, p)
		}
		comeToRest(t, w, p)
	})
}

// look decides, holds the laws against it, carries it out, and decides again: a scale-down that has
// just begun is not cancelled for nothing.
func look(t *rapid.T, w *scenario.World, p policy.Policy) plan.Plan {
	got := plan.Decide(w.Snapshot, p)
	hold(t, w, p, got)
	if err := carryOut(w, got); err != nil {
		t.Fatalf("%v\n%s", err, scenario.Format(w.Snapshot))
	}
	for _, broken := range regrets(got, plan.Decide(w.Snapshot, p)) {
		t.Errorf("%s\n%s\n%s", broken, render(got, []string{"node", "pod"}), scenario.Format(w.Snapshot))
	}
	return got
}

// comeToRest lets everything that is under way come to its end, for some hours: nodes
// whose drain fails are tried by turns, ever more seldom, until an hour is without.
func comeToRest(t *rapid.T, w *scenario.World, p policy.Policy) {
	const rounds, still, step = 400, 20, 3 * time.Minute
	var log []string
	quiet := 0
	for round := 0; round < rounds && quiet < still; round++ {
		w.Launch()
		w.Join()
		schedule(w)
		w.Drain()
		w.Refill()
		w.Expire()
		w.Reap()
		schedule(w)
		got := look(t, w, p)
		quiet++
		for _, a := range got.Actions {
			log = append(log, w.Now.Format(time.TimeOnly)+" "+a.String())
			quiet = 0
		}
		w.Now = w.Now.Add(step)
	}
	if quiet < still {
		t.Fatalf("after %d rounds the scaler is not at rest:\n%s\n%s", rounds, strings.Join(log[max(0, len(log)-40):], "\n"), scenario.Format(w.Snapshot))
	}
	for _, v := range plan.Decide(w.Snapshot, p).Verdicts {
		switch v.Reason {
		case verdict.PodFitsNode, verdict.PodFitsUpcoming, verdict.PodTriggersScaleUp, verdict.PodCancelsScaleDown, verdict.NodeUpcoming, verdict.NodeScalingDown, verdict.NodeTerminating, verdict.GroupScalingUp, verdict.GroupNodesUpcoming:
			t.Fatalf("at rest, and yet %s\n%s\n%s", v, strings.Join(log, "\n"), scenario.Format(w.Snapshot))
		}
	}
}

func hold(t *rapid.T, w *scenario.World, p policy.Policy, got plan.Plan) {
	for _, broken := range laws(w.Snapshot, p, got) {
		t.Errorf("%s\n%s\n%s", broken, render(got, nil), scenario.Format(w.Snapshot))
	}
}

func parsed(t *rapid.T, text string) *scenario.World {
	w := scenario.NewWorld()
	if err := w.Apply(text); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return w
}

func randomPolicy(t *rapid.T) policy.Policy {
	p := policy.DefaultPolicy()
	p.SuspendAZRebalance = rapid.Bool().Draw(t, "suspend rebalance")
	p.MaxDrainParallelism = rapid.IntRange(0, 3).Draw(t, "parallel")
	p.MaxScaleDownParallelism = rapid.IntRange(0, 3).Draw(t, "at once")
	p.IgnoreDaemonSets = rapid.Bool().Draw(t, "ignore daemonsets")
	p.UnneededTime = time.Duration(rapid.IntRange(0, 10).Draw(t, "unneeded")) * time.Minute
	p.DelayAfterAdd = time.Duration(rapid.IntRange(0, 10).Draw(t, "after add")) * time.Minute
	p.DelayAfterDelete = time.Duration(rapid.IntRange(0, 5).Draw(t, "after delete")) * time.Minute
	p.DelayAfterFailure = time.Duration(rapid.IntRange(0, 5).Draw(t, "after failure")) * time.Minute
	p.DelaysLocal = rapid.Bool().Draw(t, "delays local")
	p.ScaleDownUnready = rapid.Bool().Draw(t, "unready too")
	p.UnreadyTime = time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7, 20}).Draw(t, "unready")) * time.Minute
	p.MaxUnready = rapid.SampledFrom([]int{3, 3, 20}).Draw(t, "max unready") // with 20 zones alone keep them
	p.MaxRebalanceCordonedPercent = rapid.SampledFrom([]float64{0, 10, 50, 100}).Draw(t, "cordoned")
	p.OutOfService = rapid.Bool().Draw(t, "out of service")
	p.Expander = rapid.SampledFrom([]string{policy.LeastWaste, policy.LeastNodes, policy.MostPods, policy.Random, "priority,least-waste", "price,random", policy.DefaultPolicy().Expander}).Draw(t, "expander")
	p.BalanceSimilar = rapid.Bool().Draw(t, "balance")
	p.EnforceMinSize = rapid.Bool().Draw(t, "enforce min")
	p.Headroom = headRoom(rapid.SampledFrom([]string{"", "", "", "10%", "50%", "pods=1,cpu=3", "pods=3,cpu=600m,memory=1Gi"}).Draw(t, "head-room"))
	p.LaunchHooks = rapid.SampledFrom([][]string{nil, {"boot"}}).Draw(t, "launch hooks")
	p.FailedDrain = rapid.SampledFrom([]string{policy.GoFailed, policy.HoldFailed}).Draw(t, "failed drain")
	p.Consolidate = rapid.SampledFrom(policy.ConsolidateModes).Draw(t, "consolidate")
	p.NewPodDelay = rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "delay")
	p.MaxNodes = rapid.SampledFrom([]int{0, 0, 0, 4, 8}).Draw(t, "max nodes")
	p.Cores.Max = rapid.SampledFrom([]int64{320_000, 320_000, 10, 25}).Draw(t, "cores")
	p.Memory.Max = rapid.SampledFrom([]int64{6_400_000, 6_400_000, 40, 100}).Draw(t, "memory")
	return p
}

func headRoom(text string) fleet.Headroom {
	h, err := fleet.ParseHeadroom(text)
	if err != nil {
		panic(err)
	}
	return h
}

// text collects lines of a random scenario.
type text struct {
	*rapid.T
	lines []string
}

func (x *text) line(words ...string) {
	var said []string
	for _, w := range words {
		if w != "" {
			said = append(said, w)
		}
	}
	x.lines = append(x.lines, strings.Join(said, " "))
}

func (x *text) number(label string, from, to int) int {
	return rapid.IntRange(from, to).Draw(x.T, label)
}

// one chooses a word; an empty one is no word.
func (x *text) one(label string, words ...string) string {
	return rapid.SampledFrom(words).Draw(x.T, label)
}

// rarely is a word in one of ten cases.
func (x *text) rarely(word string) string {
	if x.number(word, 0, 9) < 9 {
		return ""
	}
	return word
}

// randomWorld describes a cluster; a wild one is in any state at all.
func randomWorld(t *rapid.T, wild bool) string {
	x := &text{T: t}
	groups := x.number("groups", 1, 3)
	nodes, perGroup := 0, map[int]int{}
	for g := range groups {
		n := x.number("nodes of a group", 0, 4)
		perGroup[g] = n
		low := x.number("min", 0, 2)
		desired := max(n, low)
		if wild {
			desired = x.number("desired", low, 6)
		}
		x.line("group", fmt.Sprintf("g%d", g), fmt.Sprintf("min=%d max=%d desired=%d", low, max(desired, n)+x.number("spare", 0, 3), desired),
			x.one("zones", "", "zones=b", "zones=a,b", "zones=a,b,c"), x.one("steered", "", "steered"), x.one("price", "", "price=0.1", "price=0.2", "price=0.5"), x.one("type", "", "type=m5.xlarge", "type=c5.xlarge", "type=r5.large"),
			x.one("hook", "", "hook=windlass", "hook=windlass hook=other", "hook=other", "hook=windlass/5m/8h/ABANDON", "hook=windlass launchhook=boot", "launchhook=boot hook=other launchhook=theirs"),
			x.one("steered", "", "steered"), x.rarely("taints=dedicated=x:NoSchedule"), x.rarely("labels=disk=ssd"), x.rarely("unneeded=1m"), x.rarely("headroom=20%"), x.rarely("headroom=pods=2,cpu=700m"))
		if wild {
			x.lines[len(x.lines)-1] += " " + strings.Join([]string{x.rarely("suspended=Launch"), x.rarely("unhooked"), x.rarely("shapeless"), x.rarely("failed=09:59:00/NoCapacity"), x.rarely("refreshed"), x.rarely("replaced=AZRebalance")}, " ")
			if at := x.one("launched", "", "", "at=09:59:40", "at=09:50:00", "at=09:00:00"); at != "" {
				x.line("launch", fmt.Sprintf("g%d:a", g), fmt.Sprintf("token=%d", g), at, fmt.Sprintf("desired=%d had=%d", desired, n), x.one("came", "", "came=0", "came=1", "came=1 shown"))
			}
		}
	}
	for g := range groups {
		protected := x.one("protected", "", "protected")
		for range perGroup[g] {
			nodes++
			x.line("node", fmt.Sprintf("n%d", nodes), fmt.Sprintf("group=g%d", g), protected, x.one("zone", "", "zone=a"), x.rarely("cordoned"), x.one("recommended", "", "", "", "", "recommended=09:30:00"), x.rarely("hold"), x.rarely("unneeded=09:45:00"))
			if left := x.one("left behind", "", "", "", "", "", "", contract.TaintToBeDeleted+"=1735722000:NoSchedule", contract.TaintToBeDeleted+"=soon:NoSchedule", contract.TaintDeletionCandidate+"=1735722000:PreferNoSchedule"); left != "" {
				x.lines[len(x.lines)-1] += " taints=" + left
			}
			if wild {
				x.wildNode(fmt.Sprintf("n%d", nodes))
				x.machine(fmt.Sprintf("n%d", nodes))
			} else if x.rarely("agent gone") != "" {
				x.line("agent", fmt.Sprintf("n%d", nodes), "gone")
			}
		}
	}
	if wild {
		x.lines = append(x.lines, x.rarely("node stranger"), x.rarely("rival kube-system/cluster-autoscaler"), x.rarely("rival kube-system/cluster-autoscaler-status status groups=g1,other"), x.rarely("grown g0 at=09:58:00"))
		for i := range x.number("instances", 0, 2) {
			x.line("instance", fmt.Sprintf("i-%d", i), "group=g0", x.one("state", "state=Pending", "state=InService", "state=Terminating:Wait", "state=Standby", "state=Warmed:Stopped"))
		}
	}
	if wild && x.number("cut off", 0, 4) == 0 {
		for n := range nodes {
			x.line("node", fmt.Sprintf("n%d", n+1), x.one("hears", "notready", "notready", ""))
		}
	}
	if wild && nodes > 0 && x.rarely("contested") != "" {
		of := fmt.Sprintf("i-n%d", x.number("whose id", 1, nodes))
		x.line("node", x.one("bears it", "n1", "bearer"), x.one("how", "annotate="+contract.AnnotationCSINodeID+"="+of, "provider=aws:///a/"+of))
	}
	if wild && x.number("swap", 0, 3) == 0 {
		x.swap(nodes, groups)
	}
	if tiers := x.one("priorities", "", "", `"{10: [g0], 20: [g1]}"`, `"{ten: [g0]}"`); tiers != "" {
		x.line("priorities", tiers)
	}
	if x.rarely("daemonset") != "" {
		x.line("daemonset proxy cpu=100m tolerates=*")
	}
	for a := range x.number("apps", 0, 6) {
		x.app(fmt.Sprintf("app%d", a), nodes, wild)
	}
	for b := range x.number("buffers", 0, 2) * x.number("any buffers", 0, 1) {
		x.buffer(fmt.Sprintf("buffer%d", b))
	}
	if wild {
		x.lines = append(x.lines, x.rarely("rival tenant/cluster-autoscaler powerless"), x.rarely("rival other/windlass-scaler windlass younger"),
			x.rarely("nodepool default"), x.rarely("handler ops/nth queue=https://q"), x.rarely("node tainted taints=ToBeDeletedByClusterAutoscaler=1735725300:NoSchedule"))
	}
	return strings.Join(x.lines, "\n")
}

// buffer is a CapacityBuffer, or now and then one that is misconfigured.
func (x *text) buffer(name string) {
	x.line("buffer", name, x.one("buffer of", "replicas=2 cpu=600m", "replicas=1 cpu=1500m mem=1Gi", "replicas=3 cpu=300m mem=2Gi tolerates=dedicated", "limits=cpu=2 cpu=900m",
		"scalable=Deployment/app0 has=6 percentage=30 cpu=400m", "replicas=2 cpu=200m labels=app=app0 apart", "replicas=2 cpu=200m spread=topology.kubernetes.io/zone",
		"replicas=0", "replicas=1 missing", "replicas=-1", "replicas=9 strategy=example.com/cold"))
}

// replacement is one that was found, or is under way, or was given up.
func (x *text) swap(nodes, groups int) {
	group := fmt.Sprintf("g%d", x.number("to", 0, groups-1))
	of := fmt.Sprintf("of=i-n%d,i-n%d", x.number("one", 1, nodes+1), x.number("another", 1, nodes+1))
	x.line("swap", group, of, "zone=a found=09:40:00", x.one("swap launched", "", "launched=09:50:00 until=10:35:00", "launched=09:59:30 until=10:44:30", "launched=09:10:00 until=09:55:00"))
	x.line(x.rarely("swappause " + group + " until=10:20:00 count=2"))
}

// wildNode puts a node into any state.
func (x *text) wildNode(name string) {
	x.line("node", name, x.rarely("notready"), x.one("age", "", "", "", "age=1m"),
		x.rarely("taints=node.kubernetes.io/not-ready:NoSchedule"),
		x.one("state", "", "", "", "", "", "state=Terminating", "state=Terminating:Wait", "state=Terminating:Proceed", "state=Terminating:Retained", "state=Standby",
			"state=Pending:Wait", "state=Warmed:Pending", "state=Warmed:Pending:Wait", "state=Warmed:Stopped", "state=Warmed:Terminating:Wait"))
	asked := x.one("request", "", "", "", "", "kind=scale-down at=09:50:00", "kind=scale-down at=09:59:00", "kind=asg deadline=10:05:00", "kind=asg id=asg-warm:i-"+name, "kind=request by=ann")
	if asked != "" {
		x.line("request", name, asked)
	}
	phase := x.one("phase", "", "", "phase=Draining", "phase=Drained", "phase=Blocked blocked=default/app0", "phase=Failed message=no", "phase=Waiting")
	if phase != "" {
		x.line("report", name, phase, x.one("since", "since=09:59:30", "since=09:40:00"), x.one("renewed", "", "", "renewed=09:59:00", "renewed=09:58:50 crowded", "renewed=09:59:10 crowded"), x.one("kind", "", "", "kind=spot", "kind=rebalance", "kind=maintenance"),
			x.one("wants", "", "", "wants=it", "wants=it patience=5m"), x.one("report deadline", "", "", "", "deadline=10:01:00", "deadline=10:30:00"))
		if x.rarely("permit") != "" {
			x.line("permit", name, "id=it")
		}
		if at := x.one("not yet", "", "", "at=09:59:00", "at=09:50:00", "at=12:00:00"); at != "" {
			x.line("notyet", name, "id=it", at)
		}
	}
	if agent := x.one("agent", "", "ready", "gone"); agent != "" {
		x.line("agent", name, agent)
	}
	if asked == "" && x.rarely("returning") != "" {
		x.line("node", name, "taints="+contract.TaintDraining+"=scale-down:NoSchedule")
		if raw := x.rarely(`"raw=what is this"`); raw != "" {
			x.line("request", name, raw)
		}
		x.line("returning", name, x.one("returning since", "at=09:40:00", "at=09:59:00", "at=09:59:45"))
	}
	if asked == "" && phase == "" && x.rarely("pooled") != "" {
		x.line("unjoined", "i-"+name, "pooled")
		x.line("node", name, "cordoned", "taints="+contract.TaintDraining+"=asg:NoSchedule", "annotate="+contract.AnnotationCordonedBy+"="+x.one("cordon", "{}", `{"notice":"asg-warm:i-`+name+`"}`, `{"notice":"rebalance:1"}`))
		if answers := x.one("answers", "", "asg-warm:i-"+name, "scale-down:i-"+name+":1,asg-warm:i-"+name, "asg-terminate:i-"+name, "asg-warm:i-"+name+",rebalance:1"); answers != "" {
			x.line("report", name, "kind=asg", x.one("phase", "phase=Drained", "phase=Draining"), "answers="+answers)
		}
		if x.number("seen", 0, 1) == 0 {
			x.line("returning", name, "at=09:50:00")
		}
	}
	if asked != "" {
		if m := x.rarely("mark"); m != "" {
			x.line(m, name)
			if x.number("outlived", 0, 1) == 0 {
				x.line("outlived", "i-"+name, "at=09:50:00")
			}
		}
	}
}

// app is some equal pods, on nodes or waiting. Only wild ones are expendable: the model's scheduler
// preempts no pod.
func (x *text) app(name string, nodes int, wild bool) {
	words := []string{
		fmt.Sprintf("cpu=%dm", 100*x.number("cpu", 1, 20)), fmt.Sprintf("mem=%dMi", 256*x.number("mem", 1, 8)),
		x.rarely("selector=disk=ssd"), x.rarely("selector=topology.kubernetes.io/zone=a"), x.rarely("tolerates=dedicated"), x.rarely("tolerates=*"),
		x.rarely("safe=false"), x.rarely("safe=true"), x.rarely("safe=on-completion"), x.rarely("local"), x.rarely("priority=100"),
		x.rarely("hostport=80"), x.rarely("spread=topology.kubernetes.io/zone"), x.rarely("apart"), x.rarely("apart=topology.kubernetes.io/zone"),
		x.one("gang", "", "", "", "gang="+name), x.rarely("scheduler=volcano"),
	}
	if wild {
		words = append(words, x.rarely("priority=-20"), x.rarely("naked"), x.rarely("owner=DaemonSet/proxy"), x.rarely("unready"), x.rarely("ends=10:00:20"), x.rarely("succeeded"))
	}
	for i := range x.number("pods", 1, 4) {
		where := "waiting"
		if n := x.number("node", 0, nodes); n > 0 {
			where = fmt.Sprintf("on=n%d", n)
		}
		if wild && where == "waiting" {
			where = x.one("waits", "waiting", "waiting judged=09:58:00", "unjudged", "gated", "waiting nominated=n1")
		}
		x.line(append([]string{"pod", fmt.Sprintf("%s-%d", name, i), where}, words...)...)
	}
	if x.number("guarded", 0, 2) == 0 {
		x.line("pdb", name, fmt.Sprintf("allowed=%d", x.number("allowed", 0, 2)))
	}
}

// randomEvent is one thing that happens in a world.
func randomEvent(t *rapid.T, w *scenario.World) {
	x := &text{T: t}
	switch x.number("event", 0, 16) {
	case 0, 1:
		w.Advance(time.Duration(x.number("minutes", 1, 12)) * time.Minute)
	case 2:
		x.app(fmt.Sprintf("new%d", len(w.Pods)), 0, false)
	case 3:
		for i := 0; i < len(w.Pods); i++ {
			if x.number("scaled down", 0, 2) == 0 {
				x.line("gone", "pod/"+w.Pods[i].Key())
			}
		}
	case 4:
		if i := x.instance(w); i != nil {
			w.TakeAway(i.ID)
		}
	case 5:
		w.Drain()
		w.Refill()
	case 6:
		w.Launch()
		w.Join()
	case 7:
		w.Launch()
	case 8:
		schedule(w)
	case 9:
		w.Reap()
	case 10: // a kubelet falls silent, or speaks again
		if len(w.Nodes) > 0 {
			n := w.Nodes[x.number("kubelet", 0, len(w.Nodes)-1)]
			x.line("node", n.Name, map[bool]string{true: "notready", false: "ready"}[n.Ready])
		}
	case 11: // machines of others turn up
		for i := range x.number("strangers", 1, 3) {
			x.line("instance", fmt.Sprintf("i-stranger-%d-%d", w.Now.Unix(), i), "group=g0", x.one("stranger", "", "state=Pending"))
			w.Groups[0].Desired++
		}
	case 12:
		w.Leads = w.Now
	case 13:
		w.Outages = append(w.Outages, fleet.Outage{From: w.Now, Until: w.Now.Add(time.Duration(x.number("outage", 1, 30)) * time.Minute)})
		w.Advance(w.Outages[len(w.Outages)-1].Until.Sub(w.Now))
	case 14: // people delete a Node under its kubelet, which may register anew, by its name alone
		if len(w.Nodes) > 0 {
			i := x.number("node", 0, len(w.Nodes)-1)
			name := w.Nodes[i].Name
			w.Nodes = slices.Delete(slices.Clone(w.Nodes), i, i+1)
			if x.number("registers", 0, 1) == 1 {
				x.line("node", name)
			}
		}
	case 15: // a zone is cut off, or back again
		zone, state := x.one("which zone", "a", "b"), x.one("which way", "notready", "ready")
		for _, n := range w.Nodes {
			if i := instanceNamed(w.Snapshot, n.InstanceID()); i.Zone == zone {
				x.line("node", n.Name, state)
			}
		}
	case 16: // people lower a group's desired capacity by hand
		g := &w.Groups[x.number("lowered", 0, len(w.Groups)-1)]
		if g.Desired > g.Min {
			g.Desired = x.number("to", g.Min, g.Desired)
		}
	}
	if err := w.Apply(strings.Join(x.lines, "\n")); err != nil {
		t.Fatal(err)
	}
}

func (x *text) instance(w *scenario.World) *fleet.Instance {
	var live []*fleet.Instance
	for g := range w.Groups {
		for i := range w.Groups[g].Instances {
			if m := &w.Groups[g].Instances[i]; m.Live() {
				live = append(live, m)
			}
		}
	}
	if len(live) == 0 {
		return nil
	}
	return live[x.number("instance", 0, len(live)-1)]
}
