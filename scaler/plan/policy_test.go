package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/scaler/plan/policy"
)

func TestDefaultPolicyIsValid(t *testing.T) {
	if err := policy.DefaultPolicy().Validate(); err != nil {
		t.Error(err)
	}
}

// All that is wrong is said at once, each with its flag.
func TestValidate(t *testing.T) {
	p := policy.DefaultPolicy()
	p.MaxNodeProvisionTime = 0
	p.BackOff = time.Hour
	p.UnneededTime = -time.Second
	p.Expander = "least-waste,cheapest"
	p.NewPodDelay, p.MaxNodes, p.Schedulers = -time.Second, -1, nil
	p.UtilizationThreshold = 50
	p.MaxDrainParallelism = -1
	p.MaxScaleDownParallelism = -1
	p.MaxUnreadyPercent = 101
	p.TerminationHooks = []string{"windlass", ""}
	p.Consolidate = "delete"
	const want = `--max-node-provision-time is 0s: want more than 0
--scale-down-unneeded-time is -1s: want at least 0
--max-node-group-backoff-duration is 30m0s, less than the initial 1h0m0s
--expander names "cheapest": want some of least-nodes, least-waste, most-pods, price, priority, random
--new-pod-scale-up-delay is -1s: want at least 0
--max-nodes-total is -1: want at least 0
--scheduler-name names no scheduler
--scale-down-utilization-threshold is 50: want a share between 0 and 1
--max-drain-parallelism is -1: want at least 0
--max-scale-down-parallelism is -1: want at least 0
--max-total-unready-percentage is 101: want 0 to 100
--termination-hook names a hook without a name
--consolidate is "delete": want one of off, unneeded, replace, balance`
	err := p.Validate()
	if err == nil {
		t.Fatal("a policy with twelve faults is called valid")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Owners and priorities are read from the cluster only where a flag asks for them: each read
// takes a right and time.
func TestAsksFor(t *testing.T) {
	p := policy.DefaultPolicy()
	if p.AsksForOwners() || p.AsksForPriorities() {
		t.Errorf("the default policy asks for owners: %v, for priorities: %v", p.AsksForOwners(), p.AsksForPriorities())
	}
	p.Drainable.MinReplicas, p.Expander = 1, "priority,least-waste"
	if !p.AsksForOwners() || !p.AsksForPriorities() {
		t.Errorf("with flags it asks for owners: %v, for priorities: %v", p.AsksForOwners(), p.AsksForPriorities())
	}
}
