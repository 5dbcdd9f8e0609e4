package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/plan/launch"
	"windlass.dev/windlass/scaler/plan/policy"
)

// TestScenarios plays the files of testdata/scenarios; -rewrite writes down what comes
// out. Their commands:
//
//	world             a world, in the lines of pkg/scenario; where it says nothing
//	                  of hooks, none of ours is expected
//	change            further lines
//	policy k=v …      changes to the policy byThreshold, see policyWords
//	decide [of=…]     decides, holds the plan against the laws, and prints it; of
//	                  chooses whose verdicts are printed: pod, node, group, none
//	act               carries the last plan out and decides again: no action may
//	                  come twice
//	happen …          lets the world do one thing after another: launch, join,
//	                  schedule, drain, reap
//	advance 5m        lets time pass
//	show              prints the world
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		p := &player{World: scenario.NewWorld(), policy: byThreshold()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := p.play(t, d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// player is a world under a policy.
type player struct {
	*scenario.World
	policy policy.Policy
	last   plan.Plan
}

// byThreshold is the default policy, but that a node is scaled down where it is little used, whatever
// that saves: each scenario is about one rule, and the rules of the bill are on in their own.
func byThreshold() policy.Policy {
	p := policy.DefaultPolicy()
	p.Consolidate = policy.ConsolidateUnneeded
	return p
}

func (p *player) play(t *testing.T, d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "world":
		p.World, p.policy = scenario.NewWorld(), byThreshold()
		if !strings.Contains(d.Input, "hook") {
			p.policy.TerminationHooks = nil
		}
		return "", p.Apply(d.Input)
	case "change":
		return "", p.Apply(d.Input)
	case "policy":
		return "", p.setPolicy(d.CmdArgs)
	case "decide":
		return p.decide(t, d), nil
	case "act":
		return p.act(t)
	case "happen":
		return "", p.happen(d.CmdArgs)
	case "advance":
		step, err := time.ParseDuration(d.CmdArgs[0].Key)
		p.Advance(step)
		return "", err
	case "show":
		return scenario.Format(p.Snapshot), nil
	}
	return "", fmt.Errorf("unknown command %s", d.Cmd)
}

var policyWords = map[string]func(*policy.Policy, string) error{
	"alongside":           func(p *policy.Policy, _ string) error { p.AlongsideClusterAutoscaler = true; return nil },
	"no-scale-down":       func(p *policy.Policy, _ string) error { p.ScaleDown = false; return nil },
	"ignore-daemonsets":   func(p *policy.Policy, _ string) error { p.IgnoreDaemonSets = true; return nil },
	"delay-after-delete":  func(p *policy.Policy, v string) (err error) { p.DelayAfterDelete, err = time.ParseDuration(v); return },
	"delay-after-failure": func(p *policy.Policy, v string) (err error) { p.DelayAfterFailure, err = time.ParseDuration(v); return },
	"delays-global":       func(p *policy.Policy, _ string) error { p.DelaysLocal = false; return nil },
	"no-unready":          func(p *policy.Policy, _ string) error { p.ScaleDownUnready = false; return nil },
	"unready-time":        func(p *policy.Policy, v string) (err error) { p.UnreadyTime, err = time.ParseDuration(v); return },
	"min-replicas":        func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.Drainable.MinReplicas); return },
	"custom-controllers":  func(p *policy.Policy, _ string) error { p.Drainable.SkipCustomControllers = false; return nil },
	"system-pods":         func(p *policy.Policy, _ string) error { p.Drainable.SkipSystemPods = false; return nil },
	"local-storage":       func(p *policy.Policy, _ string) error { p.Drainable.SkipLocalStorage = false; return nil },
	"max-unready":         func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.MaxUnready); return },
	"ignore-mirrors":      func(p *policy.Policy, _ string) error { p.IgnoreMirrors = true; return nil },
	"gpu-threshold": func(p *policy.Policy, v string) (err error) {
		_, err = fmt.Sscan(v, &p.GPUUtilizationThreshold)
		return
	},
	"unneeded-time":        func(p *policy.Policy, v string) (err error) { p.UnneededTime, err = time.ParseDuration(v); return },
	"delay-after-add":      func(p *policy.Policy, v string) (err error) { p.DelayAfterAdd, err = time.ParseDuration(v); return },
	"suspend-az-rebalance": func(p *policy.Policy, _ string) error { p.SuspendAZRebalance = true; return nil },
	"max-drain-time":       func(p *policy.Policy, v string) (err error) { p.MaxDrainTime, err = time.ParseDuration(v); return },
	"max-unready-percent":  func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.MaxUnreadyPercent); return },
	"max-scale-down-parallelism": func(p *policy.Policy, v string) (err error) {
		_, err = fmt.Sscan(v, &p.MaxScaleDownParallelism)
		return
	},
	"max-unrecognised": func(p *policy.Policy, v string) (err error) {
		_, err = fmt.Sscan(v, &p.MaxUnrecognisedPercent)
		return
	},
	"max-rebalance-cordoned": func(p *policy.Policy, v string) (err error) {
		_, err = fmt.Sscan(v, &p.MaxRebalanceCordonedPercent)
		return
	},
	"pod-terms":             func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.Bounds.PodTerms); return },
	"growth-steps":          func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.Bounds.Growth); return },
	"explained":             func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.Bounds.Explained); return },
	"buffers":               func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.Bounds.Buffers); return },
	"buffer-pods":           func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.BufferPods); return },
	"out-of-service":        func(p *policy.Policy, _ string) error { p.OutOfService = true; return nil },
	"shadow":                func(p *policy.Policy, _ string) error { p.Shadow = true; return nil },
	"claim-groups":          func(p *policy.Policy, _ string) error { p.ClaimGroups = true; return nil },
	"max-drain-parallelism": func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.MaxDrainParallelism); return },
	"termination-drain-time": func(p *policy.Policy, v string) (err error) {
		p.TerminationDrainTime, err = time.ParseDuration(v)
		return
	},
	"termination-hook": func(p *policy.Policy, v string) error {
		p.TerminationHooks = slices.DeleteFunc(strings.Split(v, ","), func(name string) bool { return name == "" })
		return nil
	},
	"launch-hook":    func(p *policy.Policy, v string) error { p.LaunchHooks = strings.Split(v, ","); return nil },
	"failed-drain":   func(p *policy.Policy, v string) error { p.FailedDrain = v; return nil },
	"expander":       func(p *policy.Policy, v string) error { p.Expander = v; return nil },
	"balance":        func(p *policy.Policy, _ string) error { p.BalanceSimilar = true; return nil },
	"ignore-label":   func(p *policy.Policy, v string) error { p.BalancingIgnoredLabels = []string{v}; return nil },
	"new-pod-delay":  func(p *policy.Policy, v string) (err error) { p.NewPodDelay, err = time.ParseDuration(v); return },
	"scheduler-name": func(p *policy.Policy, v string) error { p.Schedulers = strings.Split(v, ","); return nil },
	"max-nodes":      func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.MaxNodes); return },
	"cores":          func(p *policy.Policy, v string) error { return p.Cores.Set(v) },
	"memory":         func(p *policy.Policy, v string) error { return p.Memory.Set(v) },
	"drain-steps": func(p *policy.Policy, v string) (err error) {
		p.Manner.Steps, err = drainable.ParseSteps(v)
		return
	},
	"evict-daemonset-pods": func(p *policy.Policy, _ string) error { p.Manner.EvictDaemonSets = true; return nil },
	"wait-for-jobs":        func(p *policy.Policy, _ string) error { p.Manner.WaitForJobs = true; return nil },
	"keep-local-storage":   func(p *policy.Policy, _ string) error { p.Manner.KeepLocalStorage = true; return nil },
	"load-balancer-wait": func(p *policy.Policy, v string) (err error) {
		p.Manner.LoadBalancerWait, err = time.ParseDuration(v)
		return
	},
	"volume-detach-wait": func(p *policy.Policy, v string) (err error) {
		p.Manner.VolumeWait, err = time.ParseDuration(v)
		return
	},
	"startup-taint":   func(p *policy.Policy, v string) error { p.StartupTaints = []string{v}; return nil },
	"startup-prefix":  func(p *policy.Policy, v string) error { p.StartupTaintPrefixes = []string{v}; return nil },
	"status-taint":    func(p *policy.Policy, v string) error { p.StatusTaints = []string{v}; return nil },
	"headroom":        func(p *policy.Policy, v string) error { return p.Headroom.Set(v) },
	"enforce-min":     func(p *policy.Policy, _ string) error { p.EnforceMinSize = true; return nil },
	"consolidate":     func(p *policy.Policy, v string) error { p.Consolidate = v; return nil },
	"disruption-cost": func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.DisruptionCost); return },
	"kube-proxy":      func(p *policy.Policy, _ string) error { p.Manner.KubeProxyTaint = true; return nil },
	"threshold":       func(p *policy.Policy, v string) (err error) { _, err = fmt.Sscan(v, &p.UtilizationThreshold); return },
}

func (p *player) setPolicy(args []datadriven.CmdArg) error {
	for _, a := range args {
		set, ok := policyWords[a.Key]
		if !ok {
			return fmt.Errorf("unknown word %s: want one of %v", a.Key, slices.Sorted(maps.Keys(policyWords)))
		}
		if err := set(&p.policy, strings.Join(a.Vals, ",")); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return p.policy.Validate()
}

func (p *player) decide(t *testing.T, d *datadriven.TestData) string {
	p.last = plan.Decide(p.Snapshot, p.policy)
	for _, broken := range laws(p.Snapshot, p.policy, p.last) {
		t.Errorf("%s: %s", d.Pos, broken)
	}
	of := []string{"pod", "node", "group"}
	for _, a := range d.CmdArgs {
		of = a.Vals
	}
	return render(p.last, of)
}

// act carries the plan out and decides again.
func (p *player) act(t *testing.T) (string, error) {
	if err := carryOut(p.World, p.last); err != nil {
		return "", err
	}
	again := plan.Decide(p.Snapshot, p.policy)
	for _, broken := range laws(p.Snapshot, p.policy, again) {
		t.Error(broken)
	}
	for _, broken := range slices.Concat(repeats(p.last, again), regrets(p.last, again)) {
		t.Error(broken)
	}
	p.last = again
	return render(again, nil), nil
}

// carryOut does to the world what the actions ask for.
func carryOut(w *scenario.World, p plan.Plan) error {
	w.State = p.State
	for _, a := range p.Actions {
		if err := carry(w, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func carry(w *scenario.World, a action.Action) error {
	switch a := a.(type) {
	case action.Grow:
		if a.Token == "" {
			return w.SetDesired(a.Group, a.From, a.To)
		}
		came, err := w.LaunchIn(a.Group, a.Zone, a.Token, a.Count)
		answer := launch.Answer{Seen: true, Came: came}
		if err != nil {
			answer.Unsteered = err.Error()
		}
		w.State = launch.Hear(policy.DefaultPolicy(), w.State, w.Groups, a, answer, w.Now)
		return nil
	case action.Lower:
		return w.SetDesired(a.Group, a.From, a.To)
	case action.RequestDrain:
		w.Request(a.Node.Name, a.Request(w.Now))
		return nil
	case action.CancelDrain:
		if a.ID != "" {
			if err := w.Withdraw(a.Node.Name, a.ID); err != nil {
				return err
			}
		}
		if a.AgentGone {
			w.Undo(a.Node.Name)
		}
		return nil
	case action.Cordon:
		w.Cordon(a.Node.Name, a.ID, a.Kind)
		if a.KubeProxy {
			w.TellKubeProxy(a.Node.Name)
		}
		return nil
	case action.Evict:
		return w.Evict(a.Pod.UID)
	case action.Permit:
		w.Permit(a.Node.Name, a.ID)
		return nil
	case action.NotYet:
		w.PutOff(a.Node.Name, a.ID, a.Why)
		return nil
	case action.Release:
		w.Release(a.Node.Name)
		return nil
	case action.Mark:
		w.SetUnneeded(a.Node.Name, a.Since)
		return nil
	case action.Unmark:
		w.SetUnneeded(a.Node.Name, time.Time{})
		return nil
	case action.Steer:
		w.SetFillTurn(a.Node.Name, a.Fill)
		return nil
	case action.Terminate:
		return w.Terminate(a.Instance, a.ID, a.Decrement)
	case action.ClearTerminationMark:
		w.Spare(a.Node.Name)
		return nil
	case action.OutOfService:
		w.SetOutOfService(a.Node.Name, a.Instance)
		return nil
	case action.TakeOver:
		w.TakeOver(a.Node.Name, a.Taints, a.Uncordon)
		return nil
	case action.InServiceAgain:
		w.SetInService(a.Node.Name)
		return nil
	case action.Complete:
		return w.Complete(a.Group, a.Instance, a.Hook)
	case action.Suspend:
		w.Suspend(a.Group, a.Process)
		return nil
	case action.Claim:
		w.Claim(a.Group, a.Owner)
		return nil
	case action.UpdateBuffer:
		return w.InformBuffer(a.Buffer.Namespace, a.Buffer.Name, a.Status)
	case action.Heartbeat:
		return nil
	}
	return fmt.Errorf("the model does not know %T", a)
}

func (p *player) happen(args []datadriven.CmdArg) error {
	for _, a := range args {
		switch a.Key {
		case "launch":
			p.Launch()
		case "join":
			p.Join()
		case "schedule":
			schedule(p.World)
		case "drain":
			p.Drain()
		case "reap":
			p.Reap()
		default:
			return fmt.Errorf("nothing called %s happens in this world", a.Key)
		}
	}
	return nil
}

func clusterOf(s fleet.Snapshot) *fit.Cluster {
	return fit.NewRules().Cluster(fit.World{
		Kubernetes: s.Kubernetes, Pods: s.Pods, Namespaces: s.Namespaces, Storage: s.Storage, Devices: s.Devices, DaemonSets: s.DaemonSets,
	})
}

// schedule is kube-scheduler: it binds every pod that fits a Ready node, and
// says of the others that they are unschedulable.
func schedule(w *scenario.World) {
	cluster := clusterOf(w.Snapshot)
	var places []*fit.Place
	for i := range w.Nodes {
		n := &w.Nodes[i]
		place := cluster.Add(cluster.TemplateFrom(n, nothing))
		for _, p := range w.Pods {
			if p.Node == n.Name && !p.Ended() {
				cluster.Put(cluster.Tenant(p), place)
			}
		}
		if n.Ready {
			places = append(places, place)
		}
	}
	for _, p := range w.Pods {
		if p.Node != "" || p.Scheduling == fleet.Gated || !drainable.MustBePlacedAgain(p) {
			continue
		}
		place := cluster.Seat(cluster.Tenant(p), places)
		if place == nil {
			p.Scheduling, p.Judged = fleet.Unschedulable, fleet.SecondOf(w.Now)
			continue
		}
		p.Node, p.Scheduling, p.Phase, p.Ready = place.Name, fleet.Unjudged, fleet.PodRunning, true
		p.Nominate("")
	}
}

// render prints a plan: its actions, verdicts of those kinds, and what brings the next evaluation.
func render(p plan.Plan, of []string) string {
	var out strings.Builder
	for _, a := range p.Actions {
		fmt.Fprintf(&out, "%s\n", a)
	}
	if len(p.Actions) == 0 {
		out.WriteString("nothing to do\n")
	}
	for _, other := range p.Others {
		fmt.Fprintf(&out, "  other: %s\n", other)
	}
	for _, v := range p.Verdicts {
		if slices.Contains(of, string(v.Of)) {
			fmt.Fprintf(&out, "  %s\n", v)
		}
	}
	if p.AwaitsAnswer {
		out.WriteString("pods wait for the answer of a launch\n")
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(&out, "wake %s\n", p.Wake.UTC().Format("15:04:05.999"))
	}
	return out.String()
}
