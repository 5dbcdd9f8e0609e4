package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/act"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/externalgrpc"
	"windlass.dev/windlass/scaler/migrate"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/uninstall/remove"
)

// Values of --cloud-provider, as Cluster Autoscaler spells them.
const cloudAWS, cloudExternal = "aws", migrate.External

// cloud is where machines come from.
type cloud interface {
	// name is what health checks call it; where is its region or its address.
	name() string
	where() string
	// reader returns what reads its groups. changed is called after news, and may be nil.
	reader(s settings, logger *slog.Logger, changed func(expected bool)) groupReader
	// verbs changes its groups. o knows the cluster's Nodes; nil where there is no observer.
	verbs(o *observe.Observer) groupVerbs
	// endsAtOnce is act.Actor's EndsAtOnce.
	endsAtOnce() int
	// whyNone says why there may be no group at all.
	whyNone(s settings) string
}

// groupReader reads groups again and again; see the Readers of packages asg and externalgrpc.
type groupReader interface {
	observe.Groups
	Run(ctx context.Context)
	// Forget has it be as if nothing had been read: for who begins to lead.
	Forget()
	Read(ctx context.Context) error
	ReadFor(ctx context.Context, wait time.Duration)
	// Follow has Groups know what calls of ours have changed since the latest reading. It returns
	// after wait at the latest.
	Follow(ctx context.Context, wait time.Duration)
	Recheck(group string)
	// Nudge asks for a reading soon.
	Nudge()
	Reading() (age time.Duration, err error)
	Err() error
	// Fault says what of the reading is not as it should be beside the groups' own faults.
	Fault() string
	Machines(ids []string) (known map[string]fleet.Machine, fault string)
	Spot() asg.Spot
}

// groupVerbs changes groups, and leaves them as they were before Windlass.
type groupVerbs interface {
	act.Groups
	remove.Groups
}

// dialCloud prepares the connection to the cloud that the settings name. record, if not nil, is
// called for every call.
func dialCloud(ctx context.Context, s settings, record func(asg.Call)) (cloud, error) {
	if s.cloudProvider == cloudExternal {
		provider, err := externalgrpc.Dial(s.external, record)
		if err != nil {
			return nil, err
		}
		return externalCloud{provider}, nil
	}
	account, err := asg.Dial(ctx, record)
	if err != nil {
		return nil, err
	}
	return awsCloud{account}, nil
}

// awsCloud is EC2 Auto Scaling.
type awsCloud struct{ account *asg.Account }

func (c awsCloud) name() string  { return "aws" }
func (c awsCloud) where() string { return c.account.Region }

func (c awsCloud) reader(s settings, logger *slog.Logger, changed func(expected bool)) groupReader {
	return asg.NewReader(c.account, s.selection, s.assume, logger, changed)
}

func (c awsCloud) verbs(o *observe.Observer) groupVerbs {
	verbs := asg.NewVerbs(c.account)
	if o != nil {
		verbs.Arrived, verbs.Cluster = o.GroupsChanged, o.Cluster
	}
	return verbs
}

func (c awsCloud) endsAtOnce() int { return 0 }

func (c awsCloud) whyNone(s settings) string { return s.selection.WhyNone(c.account.Region) }

// externalCloud is a provider of one's own.
type externalCloud struct{ provider *externalgrpc.Provider }

func (c externalCloud) name() string  { return "provider" }
func (c externalCloud) where() string { return c.provider.Address }

func (c externalCloud) reader(s settings, logger *slog.Logger, changed func(expected bool)) groupReader {
	p := s.policy
	return c.provider.NewReader(externalgrpc.Defaults{
		UtilizationThreshold: p.UtilizationThreshold, GPUUtilizationThreshold: p.GPUUtilizationThreshold,
		UnneededTime: p.UnneededTime, UnreadyTime: p.UnreadyTime, MaxNodeProvisionTime: p.MaxNodeProvisionTime,
		IgnoreDaemonSets: p.IgnoreDaemonSets,
	}, logger, changed)
}

func (c externalCloud) verbs(o *observe.Observer) groupVerbs {
	verbs := c.provider.NewVerbs()
	if o != nil {
		verbs.Node = o.NodeOf
	}
	return verbs
}

// endsAtOnce: as each call for a group is made alone.
func (c externalCloud) endsAtOnce() int { return 8 }

func (c externalCloud) whyNone(settings) string {
	return fmt.Sprintf("the provider at %s names no groups", c.provider.Address)
}
