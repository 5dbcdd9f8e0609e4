package asg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"windlass.dev/windlass/pkg/fleet"
)

// describing is an EC2 that describes instances, one a page.
type describing struct {
	computing
	instances []ec2types.Instance
	err       error
	asked     int
}

func (d *describing) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	d.asked++
	if d.err != nil {
		return nil, d.err
	}
	page := 0
	if in.NextToken != nil {
		if _, err := fmt.Sscan(*in.NextToken, &page); err != nil {
			return nil, err
		}
	}
	var found []ec2types.Instance
	for _, i := range d.instances {
		if slices.Contains(in.Filters[0].Values, *i.InstanceId) {
			found = append(found, i)
		}
	}
	out := &ec2.DescribeInstancesOutput{}
	if page < len(found) {
		out.Reservations = []ec2types.Reservation{{Instances: found[page : page+1]}}
	}
	if page+1 < len(found) {
		out.NextToken = new(fmt.Sprint(page + 1))
	}
	return out, nil
}

func instance(id string, state ec2types.InstanceStateName, group string) ec2types.Instance {
	i := ec2types.Instance{InstanceId: &id, State: &ec2types.InstanceState{Name: state}}
	if group != "" {
		i.Tags = []ec2types.Tag{{Key: new("Name"), Value: new("x")}, {Key: new(launchedByTag), Value: &group}}
	}
	return i
}

// Nothing but stopped without hibernation, and terminated, is down. What EC2 does not know,
// or does not report, may run.
func TestDown(t *testing.T) {
	sleeping := instance("i-1", ec2types.InstanceStateNameStopped, "web")
	sleeping.HibernationOptions = &ec2types.HibernationOptions{Configured: new(true)}
	awake := instance("i-1", ec2types.InstanceStateNameTerminated, "web")
	awake.HibernationOptions = sleeping.HibernationOptions
	for name, tc := range map[string]struct {
		ec2  describing
		want error
	}{
		"stopped":             {describing{instances: []ec2types.Instance{instance("i-1", "stopped", "")}}, nil},
		"terminated":          {describing{instances: []ec2types.Instance{instance("i-1", "terminated", "")}}, nil},
		"it could hibernate":  {describing{instances: []ec2types.Instance{awake}}, nil},
		"hibernated":          {describing{instances: []ec2types.Instance{sleeping}}, ErrChanged},
		"running":             {describing{instances: []ec2types.Instance{instance("i-1", "running", "")}}, ErrChanged},
		"pending":             {describing{instances: []ec2types.Instance{instance("i-1", "pending", "")}}, ErrChanged},
		"stopping":            {describing{instances: []ec2types.Instance{instance("i-1", "stopping", "")}}, ErrChanged},
		"shutting down":       {describing{instances: []ec2types.Instance{instance("i-1", "shutting-down", "")}}, ErrChanged},
		"without a state":     {describing{instances: []ec2types.Instance{{InstanceId: new("i-1")}}}, ErrChanged},
		"not known any more":  {describing{}, ErrChanged},
		"another one is":      {describing{instances: []ec2types.Instance{instance("i-2", "stopped", "")}}, ErrChanged},
		"EC2 does not answer": {describing{err: errors.New("i/o timeout")}, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Verbs{compute: &tc.ec2}).Down(t.Context(), "i-1")
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

// EC2 is asked of what was asked for last, at a pace; what it answered counts for a minute.
func TestMachines(t *testing.T) {
	api := &describing{instances: []ec2types.Instance{instance("i-1", "stopped", "web"), instance("i-2", "running", ""), instance("i-3", "terminated", "web")}}
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &machineBook{ec2: api, logger: slog.New(slog.DiscardHandler)}
	want := func(what string, news bool, known map[string]fleet.Machine, fault string, ids ...string) {
		t.Helper()
		gotNews, gotKnown, gotFault := b.want(ids, now)
		if diff := cmp.Diff(known, gotKnown); diff != "" || gotNews != news || !strings.Contains(gotFault, fault) || fault == "" && gotFault != "" {
			t.Errorf("%s: news %v, fault %q, (-want +got):\n%s", what, gotNews, gotFault, diff)
		}
	}
	read := func(changed bool, asked int) {
		t.Helper()
		before := api.asked
		if got := b.read(t.Context(), now); got != changed || api.asked-before != asked {
			t.Errorf("asked EC2 %d times, changed %v; want %d, %v", api.asked-before, got, asked, changed)
		}
	}
	read(false, 0)
	want("at first", true, nil, "", "i-2", "i-1", "i-9")
	read(true, 2) // two pages
	machines := map[string]fleet.Machine{"i-1": {State: "stopped", Group: "web"}, "i-2": {State: "running"}}
	want("one is unknown", false, machines, "", "i-1", "i-2", "i-9")
	read(false, 0) // it was a moment ago
	now = now.Add(machinesEvery)
	read(false, 2)
	api.instances[0].State.Name = "pending"
	now = now.Add(machinesEvery)
	read(true, 2)
	machines["i-1"] = fleet.Machine{State: "pending", Group: "web"}
	want("it starts", false, machines, "", "i-1", "i-2", "i-9")

	api.err = errors.New("i/o timeout")
	now = now.Add(machinesEvery)
	read(true, 1)
	want("EC2 is away", false, machines, "i/o timeout", "i-1", "i-2")
	now = now.Add(machinesKept)
	read(false, 1)
	want("for long", false, nil, "i/o timeout", "i-1", "i-2")
	api.err = nil
	now = now.Add(machinesEvery)
	read(true, 2)
	want("it is back", false, machines, "", "i-1", "i-2")
	want("another one", true, machines, "", "i-3")
	read(true, 1) // at once
	want("now of that", false, map[string]fleet.Machine{"i-3": {State: "terminated", Group: "web"}}, "", "i-3")
	want("none", false, nil, "")
	now = now.Add(machinesKept)
	read(false, 0)
}

// EC2 takes two hundred ids in a filter: of more it is asked in several calls.
func TestMachinesAreBounded(t *testing.T) {
	api := &describing{}
	b := &machineBook{ec2: api, logger: slog.New(slog.DiscardHandler)}
	var ids []string
	for i := range 2 * mostMachines {
		ids = append(ids, fmt.Sprintf("i-%04d", i))
	}
	now := time.Now()
	b.want(ids[:450], now)
	if b.read(t.Context(), now); api.asked != 3 {
		t.Errorf("450 machines took %d calls", api.asked)
	}
	b.want(ids, now)
	if len(b.wanted) != mostMachines {
		t.Errorf("asked of %d", len(b.wanted))
	}
}
