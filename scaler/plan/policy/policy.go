package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Policy is what people want of the scaler: its flags, in one value. Where a
// group says something else by its tags, the group wins.
type Policy struct {
	// AlongsideClusterAutoscaler acts even where another autoscaler is alive
	// in the cluster. Flag --alongside-cluster-autoscaler.
	AlongsideClusterAutoscaler bool

	// Shadow means that what is decided is not done: groups that are observed are decided of
	// like others, and another autoscaler stops nothing.
	Shadow bool

	// ExpendableBelow is the priority below which a pending pod triggers no scale-up.
	// Flag --expendable-pods-priority-cutoff.
	ExpendableBelow int32
	// Schedulers name the schedulers whose pending pods trigger scale-up. Others place pods by
	// rules that are not known here. Flag --scheduler-name.
	Schedulers []string
	// NewPodDelay is how old a pod has to be to trigger scale-up; a pod may say that it
	// is longer for itself. Flag --new-pod-scale-up-delay.
	NewPodDelay time.Duration
	// Expander names how one of several possible groups is chosen, or several ways
	// with commas between, each for what the one before it leaves open. Flag
	// --expander.
	Expander string
	// BalanceSimilar lets similar groups grow by turns, the smallest first.
	// Flag --balance-similar-node-groups.
	BalanceSimilar bool
	// BalancingIgnoredLabels are labels in which groups may differ and still be similar. Flag
	// --balancing-ignore-label.
	BalancingIgnoredLabels []string
	// MaxNodes is how many nodes there may be in the cluster, those of no group and
	// those that come included; 0 is no limit. Flag --max-nodes-total.
	MaxNodes int
	// Cores and Memory, in GiB, bound the cluster as a whole: it does not grow
	// beyond their maximum, nor is anything scaled down below their minimum. Flags
	// --cores-total and --memory-total.
	Cores, Memory Range
	// Headroom is kept free in the cluster. Flag --headroom.
	Headroom fleet.Headroom
	// BufferPods and BufferPodsPerNamespace are for how many pods all CapacityBuffers
	// together may keep room, and those of one namespace. Flags --max-capacity-buffer-pods
	// and --max-capacity-buffer-pods-per-namespace.
	BufferPods, BufferPodsPerNamespace int
	// EnforceMinSize grows groups that are smaller than their minimum. Flag
	// --enforce-node-group-min-size.
	EnforceMinSize bool
	// MaxNodeProvisionTime is how long an instance may take from its launch to
	// a registered node. Flag --max-node-provision-time.
	MaxNodeProvisionTime time.Duration
	// MaxNodeStartupTime is how long a node may take from its registration until it
	// is Ready, without the taints that stand while something starts on it. Flag
	// --max-node-startup-time.
	MaxNodeStartupTime time.Duration
	// StartupTaints are keys, and StartupTaintPrefixes beginnings of keys, of more taints that
	// stand while something starts on a node. A young node that has one is upcoming. Flags
	// --startup-taint and --startup-taint-prefix.
	StartupTaints, StartupTaintPrefixes []string
	// StatusTaints are keys of more taints that stand for a node's condition: no new node is
	// thought to have them. Flag --status-taint.
	StatusTaints []string
	// BackOff is the back-off of a group after a failed launch; it doubles with
	// each further failure up to MaxBackOff. Flags --initial-node-group-backoff-duration
	// and --max-node-group-backoff-duration.
	BackOff    time.Duration
	MaxBackOff time.Duration
	// BackOffReset is how long after a back-off without a failure the next one is
	// the first again. Flag --node-group-backoff-reset-timeout.
	BackOffReset time.Duration

	// TerminationHooks names the lifecycle hooks that are ours to complete, on
	// termination. Flag --termination-hook.
	TerminationHooks []string
	// LaunchHooks names those that are ours to complete on launch, when the node is
	// up. Flag --launch-hook.
	LaunchHooks []string
	// FailedDrain says what becomes of an instance in a hook of ours whose drain could
	// not be ended in its time: GoFailed or HoldFailed. Flag --failed-drain.
	FailedDrain string
	// TerminationDrainTime is how long a drain may take that answers a
	// termination by Auto Scaling, where a hook of ours holds the instance.
	// Flag --termination-drain-time.
	TerminationDrainTime time.Duration

	// ScaleDown scales down unneeded nodes. Flag --scale-down-enabled.
	ScaleDown bool
	// UtilizationThreshold is the share of its allocatable cpu and memory
	// below which a node may be unneeded. Flag --scale-down-utilization-threshold.
	UtilizationThreshold float64
	// GPUUtilizationThreshold takes its place on nodes with GPUs: of these alone it is
	// the share. Flag --scale-down-gpu-utilization-threshold.
	GPUUtilizationThreshold float64
	// UnneededTime is how long a node must be unneeded before it is scaled down.
	// Flag --scale-down-unneeded-time.
	UnneededTime time.Duration
	// DelayAfterAdd is how long a group that grew is not shrunk. Flag
	// --scale-down-delay-after-add.
	DelayAfterAdd time.Duration
	// DelayAfterDelete is how long a group that shrank is not shrunk further, and
	// DelayAfterFailure one in which a scale-down failed. Flags
	// --scale-down-delay-after-delete and --scale-down-delay-after-failure.
	DelayAfterDelete, DelayAfterFailure time.Duration
	// DelaysLocal lets each group wait for itself only; without it all wait for what
	// happened to any. Flag --scale-down-delay-type-local.
	DelaysLocal bool
	// ScaleDownUnready scales down nodes that are not Ready any more, UnreadyTime after they
	// were. Flags --scale-down-unready-enabled and --scale-down-unready-time.
	ScaleDownUnready bool
	UnreadyTime      time.Duration
	// IgnoreDaemonSets leaves pods of DaemonSets out of the utilization. Flag
	// --ignore-daemonsets-utilization.
	IgnoreDaemonSets bool
	// IgnoreMirrors leaves static pods out of it. Flag
	// --ignore-mirror-pods-utilization.
	IgnoreMirrors bool
	// ClaimGroups has this cluster's UID written on groups that have no owner, and has
	// nothing done with them before. Flag --claim-groups.
	ClaimGroups bool
	// SuspendAZRebalance has Auto Scaling's process of that name suspended for groups
	// whose zones get uneven by our choice. Flag --suspend-az-rebalance.
	SuspendAZRebalance bool
	// OutOfService has the taint node.kubernetes.io/out-of-service put on nodes with volumes
	// whose machines EC2 says are stopped or terminated. Flag --out-of-service-taint.
	OutOfService bool
	// MaxDrainParallelism is how many nodes that hold pods may be drained at once where
	// there is no hurry: scale-downs, and what waits for a permit; 0 means a tenth of
	// the nodes, at least two. Flag --max-drain-parallelism.
	MaxDrainParallelism int
	// MaxScaleDownParallelism is how many nodes may be scaled down at once, with pods or
	// without; 0 means ten, or twice as many as may be drained at once where that is more.
	// Of nodes that are not Ready it is a tenth, at least one. Flag
	// --max-scale-down-parallelism.
	MaxScaleDownParallelism int
	// MaxDrainTime is how long a drain for scale-down may take before it is given up,
	// and how long its node is not tried again after the first that was. Flag
	// --max-drain-time.
	MaxDrainTime time.Duration
	// MaxUnrecognisedPercent is the share of all live instances, in percent, that may be no
	// Nodes without our having asked for them, when one should long be. Where there are more
	// none of those that should is ended.
	MaxUnrecognisedPercent float64
	// MaxUnready and MaxUnreadyPercent bound how many nodes may be unready: with
	// more than both, nothing is scaled down and nothing grows, nor does a group with more of
	// its own. With more than that share of its own, and at least three, no unready node of
	// a zone is removed. Flags --ok-total-unready-count and
	// --max-total-unready-percentage.
	MaxUnready        int
	MaxUnreadyPercent float64
	// MaxRebalanceCordonedPercent bounds how many nodes of a group agents may keep
	// cordoned for rebalance recommendations, at least one unless it is 0; the others are
	// released. Flag --max-rebalance-cordoned-percentage.
	MaxRebalanceCordonedPercent float64
	// Consolidate says what pods are moved for, one of ConsolidateModes. Flag --consolidate.
	Consolidate string
	// DisruptionCost is what it costs to evict a pod, in dollars; 0 takes what its requests
	// cost in some hours. Flag --disruption-cost.
	DisruptionCost float64
	// Drainable are the rules that choose nodes by their pods.
	Drainable drainable.Policy
	// Bounds are what an evaluation may cost at most. They have no flags: a cluster that passes
	// them has pods that people should look at.
	Bounds Bounds
	// Manner is how the scaler drains where it does so in place of an agent: as the
	// agents do, if they have the same flags.
	Manner drainable.Manner
}

// What becomes of an instance in a hook of ours whose drain has failed.
const (
	// GoFailed lets it go with the pods that are left, when its time is over.
	GoFailed = "go"
	// HoldFailed holds it as long as AWS allows.
	HoldFailed = "hold"
)

// What pods are moved for.
const (
	// ConsolidateOff: only nodes go from which no pod has to be moved.
	ConsolidateOff = "off"
	// ConsolidateUnneeded: nodes go that are little used and whose pods have places elsewhere.
	ConsolidateUnneeded = "unneeded"
	// ConsolidateReplace: some nodes go for a new one that costs less, too.
	ConsolidateReplace = "replace"
	// ConsolidateBalance: so they do where it saves more than it costs to move their pods, and
	// kube-scheduler fills the fullest nodes first.
	ConsolidateBalance = "balance"
)

// ConsolidateModes are all of them, from the one that moves the fewest pods.
var ConsolidateModes = []string{ConsolidateOff, ConsolidateUnneeded, ConsolidateReplace, ConsolidateBalance}

// DefaultPolicy has Cluster Autoscaler's defaults where it has the flag, but for a few, among them the
// expander: see docs/differences-from-cluster-autoscaler.md.
func DefaultPolicy() Policy {
	return Policy{
		ExpendableBelow:         -10,
		Schedulers:              []string{corev1.DefaultSchedulerName},
		Expander:                Price + "," + LeastWaste,
		Cores:                   Range{0, 320_000},
		Memory:                  Range{0, 6_400_000},
		BufferPods:              20_000,
		BufferPodsPerNamespace:  5_000,
		MaxNodeProvisionTime:    15 * time.Minute,
		MaxNodeStartupTime:      15 * time.Minute,
		BackOff:                 5 * time.Minute,
		MaxBackOff:              30 * time.Minute,
		BackOffReset:            3 * time.Hour,
		TerminationHooks:        []string{"windlass"},
		FailedDrain:             GoFailed,
		TerminationDrainTime:    10 * time.Minute,
		ScaleDown:               true,
		UtilizationThreshold:    0.5,
		GPUUtilizationThreshold: 0.5,
		UnneededTime:            10 * time.Minute,
		DelayAfterAdd:           10 * time.Minute,
		DelayAfterFailure:       3 * time.Minute,
		DelaysLocal:             true,
		ScaleDownUnready:        true,
		UnreadyTime:             20 * time.Minute,
		MaxDrainTime:            15 * time.Minute,
		MaxUnrecognisedPercent:  10,
		MaxUnready:              3,
		MaxUnreadyPercent:       45,

		MaxRebalanceCordonedPercent: 10,

		Consolidate: ConsolidateBalance,
		Drainable:   drainable.DefaultPolicy(),
		Manner:      drainable.DefaultManner(),
		Bounds:      DefaultBounds(),
	}
}

// AsksForPriorities reports whether the expander goes by the snapshot's Priorities.
func (p Policy) AsksForPriorities() bool { return slices.Contains(p.Expanders(), Priority) }

// AsksForOwners reports whether the rules about pods go by the snapshot's Owners.
func (p Policy) AsksForOwners() bool { return p.Drainable.MinReplicas > 0 }

// Validate says everything that is wrong with a policy, one sentence a line.
func (p Policy) Validate() error {
	var wrong faults
	wrong.positive("--max-node-provision-time", p.MaxNodeProvisionTime)
	wrong.positive("--max-node-startup-time", p.MaxNodeStartupTime)
	wrong.positive("--initial-node-group-backoff-duration", p.BackOff)
	wrong.positive("--max-node-group-backoff-duration", p.MaxBackOff)
	wrong.positive("--node-group-backoff-reset-timeout", p.BackOffReset)
	wrong.positive("--termination-drain-time", p.TerminationDrainTime)
	wrong.positive("--max-drain-time", p.MaxDrainTime)
	if p.Drainable.MinReplicas < 0 {
		wrong.add("--min-replica-count is %d: want at least 0", p.Drainable.MinReplicas)
	}
	wrong.notNegative("--scale-down-unneeded-time", p.UnneededTime)
	wrong.notNegative("--scale-down-unready-time", p.UnreadyTime)
	wrong.notNegative("--scale-down-delay-after-add", p.DelayAfterAdd)
	wrong.notNegative("--scale-down-delay-after-delete", p.DelayAfterDelete)
	wrong.notNegative("--scale-down-delay-after-failure", p.DelayAfterFailure)
	if p.MaxBackOff < p.BackOff {
		wrong.add("--max-node-group-backoff-duration is %s, less than the initial %s", p.MaxBackOff, p.BackOff)
	}
	for _, name := range p.Expanders() {
		if !slices.Contains(expanderNames, name) {
			wrong.add("--expander names %q: want some of %s", name, strings.Join(expanderNames, ", "))
		}
	}
	wrong.notNegative("--new-pod-scale-up-delay", p.NewPodDelay)
	if p.MaxNodes < 0 {
		wrong.add("--max-nodes-total is %d: want at least 0", p.MaxNodes)
	}
	if p.BufferPods < 0 || p.BufferPodsPerNamespace < 0 {
		wrong.add("--max-capacity-buffer-pods is %d, and %d per namespace: want at least 0", p.BufferPods, p.BufferPodsPerNamespace)
	}
	if len(p.Schedulers) == 0 || slices.Contains(p.Schedulers, "") {
		wrong.add("--scheduler-name names no scheduler")
	}
	wrong.share("--scale-down-utilization-threshold", p.UtilizationThreshold)
	wrong.share("--scale-down-gpu-utilization-threshold", p.GPUUtilizationThreshold)
	if p.MaxDrainParallelism < 0 {
		wrong.add("--max-drain-parallelism is %d: want at least 0", p.MaxDrainParallelism)
	}
	if u := p.MaxUnrecognisedPercent; !(u >= 0 && u <= 100) {
		wrong.add("--max-unrecognised-share is %v: want 0 to 100", u)
	}
	if p.MaxScaleDownParallelism < 0 {
		wrong.add("--max-scale-down-parallelism is %d: want at least 0", p.MaxScaleDownParallelism)
	}
	if p.MaxUnready < 0 {
		wrong.add("--ok-total-unready-count is %d: want at least 0", p.MaxUnready)
	}
	if u := p.MaxUnreadyPercent; !(u >= 0 && u <= 100) {
		wrong.add("--max-total-unready-percentage is %v: want 0 to 100", p.MaxUnreadyPercent)
	}
	if c := p.MaxRebalanceCordonedPercent; !(c >= 0 && c <= 100) {
		wrong.add("--max-rebalance-cordoned-percentage is %v: want 0 to 100", c)
	}
	wrong.named("--balancing-ignore-label", "a label", p.BalancingIgnoredLabels)
	wrong.named("--startup-taint", "a taint", p.StartupTaints)
	wrong.named("--startup-taint-prefix", "a taint", p.StartupTaintPrefixes)
	wrong.named("--status-taint", "a taint", p.StatusTaints)
	if slices.Contains(p.TerminationHooks, "") {
		wrong.add("--termination-hook names a hook without a name")
	}
	if slices.Contains(p.LaunchHooks, "") {
		wrong.add("--launch-hook names a hook without a name")
	}
	if p.FailedDrain != GoFailed && p.FailedDrain != HoldFailed {
		wrong.add("--failed-drain is %q: want %s or %s", p.FailedDrain, GoFailed, HoldFailed)
	}
	if !slices.Contains(ConsolidateModes, p.Consolidate) {
		wrong.add("--consolidate is %q: want one of %s", p.Consolidate, strings.Join(ConsolidateModes, ", "))
	}
	if !(p.DisruptionCost >= 0 && p.DisruptionCost <= contract.MostDisruptionCost) { // which NaN is not
		wrong.add("--disruption-cost is %v: want dollars, from 0 to %d", p.DisruptionCost, contract.MostDisruptionCost)
	}
	return wrong.err()
}

// faults collects sentences.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f *faults) positive(flag string, d time.Duration) {
	if d <= 0 {
		f.add("%s is %s: want more than 0", flag, d)
	}
}

func (f *faults) notNegative(flag string, d time.Duration) {
	if d < 0 {
		f.add("%s is %s: want at least 0", flag, d)
	}
}

func (f *faults) share(flag string, s float64) {
	if !(s >= 0 && s <= 1) { // which NaN is not
		f.add("%s is %v: want a share between 0 and 1", flag, s)
	}
}

// named checks that none of a flag's words is empty: an empty prefix would be that of every taint.
func (f *faults) named(flag, of string, words []string) {
	if slices.Contains(words, "") {
		f.add("%s is empty: want the key of %s", flag, of)
	}
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(f, "\n"))
}
