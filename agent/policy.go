package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/drainable"
)

// registerPolicy registers how drains are done.
func (c *config) registerPolicy(flags *pflag.FlagSet) {
	p := &c.policy
	flags.Var(responseFlag{c, &c.noticePolicies}, "notice-policy",
		"what is done about a notice, as NOTICE=ignore, cordon, drain or drain@LEAD, such as rebalance=drain,maintenance=drain@1h; NOTICE is a cause such as instance-reboot, or a kind, which stands for all of its causes")
	flags.Var(responseFlag{c, &c.lastChances}, "last-chance",
		"what becomes of pods that a budget still keeps shortly before the instance goes, as NOTICE=leave or NOTICE=delete; to delete takes a right that the agent does not have by default")
	flags.DurationVar(&p.LastChanceTime, "last-chance-time", p.LastChanceTime, "how long before the deadline such pods are deleted, and at most a quarter of the whole time")
	flags.Var(stepsFlag{&p.Steps}, "drain-steps",
		"the order of a drain as PRIORITY:GRACE,...: pods of a priority and above leave when those below are gone, and that much time before a deadline is kept for them")
	flags.BoolVar(&p.EvictDaemonSets, "evict-daemonset-pods", p.EvictDaemonSets, "evict pods of DaemonSets too, where they do not tolerate the draining taint")
	flags.BoolVar(&p.Pods.WaitForJobs, "wait-for-jobs", p.Pods.WaitForJobs, "let pods of Jobs end by themselves where the time allows that")
	flags.BoolVar(&p.KeepLocalStorage, "keep-local-storage", p.KeepLocalStorage,
		"let pods with a hostPath or emptyDir volume stay where the time allows that; not where the drain was asked for by a person or by the scaler")
	flags.DurationVar(&p.TerminationDrainTime, "termination-drain-time", p.TerminationDrainTime,
		"how long a termination by Auto Scaling is taken to leave, until the scaler names its deadline")
	flags.DurationVar(&p.PermitWait, "permit-wait", p.PermitWait, "how long a drain without hurry waits for the scaler's permit")
	flags.DurationVar(&p.LoadBalancerWait, "load-balancer-wait", p.LoadBalancerWait,
		"how long load balancers are given to leave the node out before the first eviction; not on a spot interruption")
	flags.DurationVar(&p.VolumeWait, "volume-detach-wait", p.VolumeWait,
		"how long an empty node waits for its volumes to be detached before it is reported as drained; not on a spot interruption")
}

// responseFlag is --notice-policy or --last-chance. Both together make the
// responses, in whatever order they come.
type responseFlag struct {
	c    *config
	list *[]string
}

func (f responseFlag) Set(value string) error {
	*f.list = append(*f.list, strings.Split(value, ",")...)
	responses, err := notice.ParseResponses(f.c.noticePolicies, f.c.lastChances)
	if err == nil {
		f.c.policy.Responses = responses
	}
	return err
}

func (f responseFlag) String() string { return strings.Join(*f.list, ",") }

// Type is the word for the value in the usage.
func (responseFlag) Type() string { return "strings" }

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

// checkPolicy says what is wrong with the durations, all of it. The other flags
// are checked as they are read.
func (c *config) checkPolicy() error {
	p, errs := c.policy, []error(nil)
	for _, f := range []struct {
		flag  string
		value time.Duration
		none  bool // 0 is a value: not at all
	}{
		{"--termination-drain-time", p.TerminationDrainTime, false},
		{"--last-chance-time", p.LastChanceTime, false},
		{"--permit-wait", p.PermitWait, true},
		{"--load-balancer-wait", p.LoadBalancerWait, true},
		{"--volume-detach-wait", p.VolumeWait, true},
	} {
		switch {
		case f.none && f.value < 0:
			errs = append(errs, fmt.Errorf("%s is %s: want a duration, or 0 not to wait", f.flag, f.value))
		case !f.none && f.value <= 0:
			errs = append(errs, fmt.Errorf("%s is %s: want a positive duration", f.flag, f.value))
		}
	}
	return errors.Join(errs...)
}
