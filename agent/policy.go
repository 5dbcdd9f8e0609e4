package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable/drainflags"
)

// registerPolicy registers how drains are done.
func (c *config) registerPolicy(flags *pflag.FlagSet) {
	p := &c.policy
	flags.Var(responseFlag{c, &c.noticePolicies}, "notice-policy",
		"what is done about a notice, as NOTICE=ignore, cordon, drain or drain@LEAD, such as rebalance=drain,maintenance=drain@1h; NOTICE is a cause such as instance-reboot, or a kind, which stands for all of its causes")
	flags.Var(responseFlag{c, &c.lastChances}, "last-chance",
		"what is done shortly before the deadline about pods that are kept, by a PodDisruptionBudget, a webhook that denies their eviction, or evictions that fail again and again, as NOTICE=leave or NOTICE=delete; delete needs a right that the agent does not have by default")
	flags.DurationVar(&p.LastChanceTime, "last-chance-time", p.LastChanceTime, "how long before the deadline --last-chance deletes pods; at most a quarter of the time from the start of the drain to the deadline")
	flags.BoolVar(&p.DryRun, "dry-run", p.DryRun, "do nothing, and say in the log and in the annotation "+contract.AnnotationDryRun+" of the Node what would be done")
	drainflags.Register(flags, &p.Manner)
	flags.DurationVar(&p.TerminationDrainTime, "termination-drain-time", p.TerminationDrainTime,
		"how much time a drain for a termination by Auto Scaling is assumed to have, until the scaler names its deadline")
	flags.DurationVar(&p.PermitWait, "permit-wait", p.PermitWait, "how long a drain without hurry waits for the scaler's permit before it starts without one; each time the scaler answers that it is not its turn, the wait starts anew; with less than 10s the scaler cannot answer in time")
	flags.DurationVar(&p.MaxPermitWait, "max-permit-wait", p.MaxPermitWait, "how long a drain without hurry waits for its permit in all, whatever the scaler answers; restarts of the agent do not reset it")
}

// responseFlag is --notice-policy or --last-chance. Both together make the
// responses, in whatever order they come. Given again, a flag takes the place of what
// was said of the same notices, as an overlay of the manifests expects that adds one.
type responseFlag struct {
	c    *config
	list *[]string
}

func (f responseFlag) Set(value string) error {
	said := strings.Split(value, ",")
	again := func(before string) bool {
		return slices.ContainsFunc(said, func(now string) bool { return wordOf(now) == wordOf(before) })
	}
	*f.list = append(slices.DeleteFunc(*f.list, again), said...)
	responses, err := notice.ParseResponses(f.c.noticePolicies, f.c.lastChances)
	if err == nil {
		f.c.policy.Responses = responses
	}
	return err
}

// wordOf is the notice that WORD=VALUE speaks of.
func wordOf(entry string) string {
	word, _, _ := strings.Cut(entry, "=")
	return strings.TrimSpace(word)
}

func (f responseFlag) String() string { return strings.Join(*f.list, ",") }

// Type is the word for the value in the usage.
func (responseFlag) Type() string { return "strings" }

// checkPolicy says what is wrong with the durations, all of it. The other flags
// are checked as they are read.
func (c *config) checkPolicy() error {
	p, errs := c.policy, []error{drainflags.Check(c.policy.Manner)}
	for _, f := range []struct {
		flag  string
		value time.Duration
		none  bool // 0 is a value: not at all
	}{
		{"--termination-drain-time", p.TerminationDrainTime, false},
		{"--last-chance-time", p.LastChanceTime, false},
		{"--permit-wait", p.PermitWait, true},
		{"--max-permit-wait", p.MaxPermitWait, true},
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
