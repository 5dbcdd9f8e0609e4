package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/pkg/drainable"
)

// Policy is what people want of the scaler: its flags, in one value. Where a
// group says something else by its tags, the group wins.
type Policy struct {
	// AlongsideClusterAutoscaler acts even where a Cluster Autoscaler is alive
	// in the cluster. Flag --alongside-cluster-autoscaler.
	AlongsideClusterAutoscaler bool

	// ExpendableBelow is the priority below which a waiting pod brings no node.
	// Flag --expendable-pods-priority-cutoff.
	ExpendableBelow int32
	// Expander names how one of several possible groups is chosen. Flag
	// --expander; so far least-waste only.
	Expander string
	// MaxNodeProvisionTime is how long an instance may take from its launch to
	// a registered node. Flag --max-node-provision-time.
	MaxNodeProvisionTime time.Duration
	// MaxNodeStartupTime is how long a node may take from its registration until it
	// is Ready, without the taints that stand while something starts on it. Flag
	// --max-node-startup-time.
	MaxNodeStartupTime time.Duration
	// BackOff is the pause of a group after a failed launch; it doubles with
	// each further failure up to MaxBackOff. Flags --initial-node-group-backoff-duration
	// and --max-node-group-backoff-duration.
	BackOff    time.Duration
	MaxBackOff time.Duration
	// BackOffReset is how long after a pause without a failure the next one is
	// the first again. Flag --node-group-backoff-reset-timeout.
	BackOffReset time.Duration

	// TerminationHooks names the lifecycle hooks that are ours to complete, on
	// termination. Flag --termination-hook.
	TerminationHooks []string
	// TerminationDrainTime is how long a drain may take that answers a
	// termination by Auto Scaling, where a hook of ours holds the instance.
	// Flag --termination-drain-time.
	TerminationDrainTime time.Duration

	// ScaleDown retires nodes that nobody needs. Flag --scale-down-enabled.
	ScaleDown bool
	// UtilizationThreshold is the share of its allocatable cpu and memory
	// below which a node may be unneeded. Flag --scale-down-utilization-threshold.
	UtilizationThreshold float64
	// UnneededTime is how long a node must be unneeded before it is retired.
	// Flag --scale-down-unneeded-time.
	UnneededTime time.Duration
	// DelayAfterAdd is how long a group that grew is not shrunk. Flag
	// --scale-down-delay-after-add.
	DelayAfterAdd time.Duration
	// IgnoreDaemonSets leaves pods of DaemonSets out of the utilization. Flag
	// --ignore-daemonsets-utilization.
	IgnoreDaemonSets bool
	// MaxDrainParallelism is how many nodes that hold pods may be drained at
	// once for scale-down; 0 means a tenth of the nodes, at least two. Flag
	// --max-drain-parallelism.
	MaxDrainParallelism int
	// MaxDrainTime is how long a drain for scale-down may take before it is
	// given up. Flag --max-drain-time.
	MaxDrainTime time.Duration
	// MaxUnready and MaxUnreadyPercent bound how many nodes may be unready: with
	// more than both, nothing is retired. Flags --ok-total-unready-count and
	// --max-total-unready-percentage.
	MaxUnready        int
	MaxUnreadyPercent float64
	// Drainable are the rules that choose nodes by their pods.
	Drainable drainable.Policy
}

// DefaultPolicy has Cluster Autoscaler's defaults where it has the flag.
func DefaultPolicy() Policy {
	return Policy{
		ExpendableBelow:      -10,
		Expander:             LeastWaste,
		MaxNodeProvisionTime: 15 * time.Minute,
		MaxNodeStartupTime:   15 * time.Minute,
		BackOff:              5 * time.Minute,
		MaxBackOff:           30 * time.Minute,
		BackOffReset:         3 * time.Hour,
		TerminationHooks:     []string{"windlass"},
		TerminationDrainTime: 10 * time.Minute,
		ScaleDown:            true,
		UtilizationThreshold: 0.5,
		UnneededTime:         10 * time.Minute,
		DelayAfterAdd:        10 * time.Minute,
		MaxDrainTime:         15 * time.Minute,
		MaxUnready:           3,
		MaxUnreadyPercent:    45,
		Drainable:            drainable.DefaultPolicy(),
	}
}

// LeastWaste chooses the group whose new nodes keep the least of their cpu and
// memory free.
const LeastWaste = "least-waste"

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
	wrong.notNegative("--scale-down-unneeded-time", p.UnneededTime)
	wrong.notNegative("--scale-down-delay-after-add", p.DelayAfterAdd)
	if p.MaxBackOff < p.BackOff {
		wrong.add("--max-node-group-backoff-duration is %s, less than the initial %s", p.MaxBackOff, p.BackOff)
	}
	if p.Expander != LeastWaste {
		wrong.add("--expander is %q: want %s", p.Expander, LeastWaste)
	}
	if p.UtilizationThreshold < 0 || p.UtilizationThreshold > 1 {
		wrong.add("--scale-down-utilization-threshold is %v: want a share between 0 and 1", p.UtilizationThreshold)
	}
	if p.MaxDrainParallelism < 0 {
		wrong.add("--max-drain-parallelism is %d: want at least 0", p.MaxDrainParallelism)
	}
	if p.MaxUnready < 0 {
		wrong.add("--ok-total-unready-count is %d: want at least 0", p.MaxUnready)
	}
	if p.MaxUnreadyPercent < 0 || p.MaxUnreadyPercent > 100 {
		wrong.add("--max-total-unready-percentage is %v: want 0 to 100", p.MaxUnreadyPercent)
	}
	if slices.Contains(p.TerminationHooks, "") {
		wrong.add("--termination-hook names a hook without a name")
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

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(f, "\n"))
}
