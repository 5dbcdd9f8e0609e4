// Package drainflags binds the flags that say how drains are done. Agent and scaler
// both drain, so they have the same names, defaults and words.
package drainflags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/pkg/drainable"
)

// Register adds the flags, with what m says as their defaults.
func Register(flags *pflag.FlagSet, m *drainable.Manner) {
	flags.Var(stepsFlag{&m.Steps}, "drain-steps",
		"the order of a drain as PRIORITY:GRACE,...: pods of PRIORITY and above are evicted once those below have left, and GRACE before a deadline is kept for them")
	flags.BoolVar(&m.EvictDaemonSets, "evict-daemonset-pods", m.EvictDaemonSets, "evict pods of DaemonSets too, where they do not tolerate the draining taint")
	flags.BoolVar(&m.WaitForJobs, "wait-for-jobs", m.WaitForJobs, "let pods of Jobs end by themselves where the time allows that")
	flags.BoolVar(&m.KeepLocalStorage, "keep-local-storage", m.KeepLocalStorage,
		"let pods with a hostPath or emptyDir volume stay where the time allows that; this does not apply to scale-down, which has --skip-nodes-with-local-storage")
	flags.DurationVar(&m.LoadBalancerWait, "load-balancer-wait", m.LoadBalancerWait,
		"how long load balancers are given to deregister the node before the first eviction; a spot interruption does not wait")
	flags.DurationVar(&m.VolumeWait, "volume-detach-wait", m.VolumeWait,
		"how long an empty node waits for its volumes to be detached before it counts as drained; a spot interruption does not wait")
	flags.BoolVar(&m.KubeProxyTaint, "kube-proxy-drain-taint", m.KubeProxyTaint,
		"also put the taint ToBeDeletedByClusterAutoscaler on a node that drains: kube-proxy's /healthz fails then, and load balancers that probe it stop sending to the node; do not set it where a liveness probe of kube-proxy asks /healthz")
}

// Check says what is wrong with the durations. The other flags are checked as they are
// read.
func Check(m drainable.Manner) error {
	return errors.Join(notNegative("--load-balancer-wait", m.LoadBalancerWait), notNegative("--volume-detach-wait", m.VolumeWait))
}

func notNegative(flag string, d time.Duration) error {
	if d >= 0 {
		return nil
	}
	return fmt.Errorf("%s is %s: want a duration, or 0 not to wait", flag, d)
}

// stepsFlag is --drain-steps.
type stepsFlag struct{ steps *drainable.Steps }

func (f stepsFlag) Set(value string) error {
	steps, err := drainable.ParseSteps(value)
	if err == nil {
		*f.steps = steps
	}
	return err
}

func (f stepsFlag) String() string { return f.steps.String() }

// Type is the word for the value in the usage.
func (stepsFlag) Type() string { return "steps" }
