package drainable

import (
	"time"

	"windlass.dev/windlass/pkg/fleet"
)

// Manner is how people want drains to be done, whoever does them: the agent, or the
// scaler in its place. Both programs have the flags named here.
type Manner struct {
	// Steps order the pods of a drain. Flag --drain-steps.
	Steps Steps
	// EvictDaemonSets asks for the eviction of DaemonSet pods that do not tolerate
	// the draining taint. Without it only those are evicted that ask for it. Flag
	// --evict-daemonset-pods.
	EvictDaemonSets bool
	// WaitForJobs waits for pods of Jobs to end by themselves. Flag --wait-for-jobs.
	WaitForJobs bool
	// KeepLocalStorage honours local storage as other words of a pod: pods with such
	// volumes stay where time allows, also where people ask for the drain. Scale-down does
	// not ask about it: whether it may be lost was judged as the node was chosen. Flag
	// --keep-local-storage.
	KeepLocalStorage bool
	// LoadBalancerWait is how long load balancers are given to leave the node out
	// before the first eviction. Flag --load-balancer-wait.
	LoadBalancerWait time.Duration
	// VolumeWait is how long an empty node waits for its volumes to be detached. Flag
	// --volume-detach-wait.
	VolumeWait time.Duration
	// KubeProxyTaint has kube-proxy tell load balancers that the node goes, while it
	// drains; see contract.KubeProxyTaint. Flag --kube-proxy-drain-taint.
	KubeProxyTaint bool
}

// DefaultManner is the one without flags.
func DefaultManner() Manner { return Manner{Steps: DefaultSteps(), VolumeWait: 2 * time.Minute} }

// Rules are those by which a drain asks about a pod. chosen says that it is for scale-down,
// late that its deadline has passed: nobody waits for pods of
// DaemonSets beyond it.
func (m Manner) Rules(p *fleet.Pod, chosen, late bool) Policy {
	rules := Policy{WaitForJobs: m.WaitForJobs, SkipLocalStorage: m.KeepLocalStorage && !chosen, DaemonSets: EvictAsking}
	switch {
	case IsDaemonSet(p) && late:
		rules.DaemonSets = LeaveDaemonSets
	case m.EvictDaemonSets:
		rules.DaemonSets = EvictAll
	}
	return rules
}
