package asg

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"windlass.dev/windlass/pkg/fleet"
)

const (
	// machinesEvery is how often EC2 is asked of machines that may be down.
	machinesEvery = 15 * time.Second
	// machinesKept is how long its answer counts.
	machinesKept = time.Minute
	// machinesAtOnce is how many values a filter takes, mostMachines of how many is asked.
	machinesAtOnce, mostMachines = 200, 2000
	// launchedByTag is written by Auto Scaling, and its prefix by AWS alone.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
	launchedByTag = "aws:autoscaling:groupName"
)

// machineBook is what EC2 reports of the instances that were asked for last.
type machineBook struct {
	ec2    computing
	logger *slog.Logger

	mu     sync.Mutex
	wanted []string
	known  map[string]fleet.Machine
	at     time.Time // of what is known
	next   time.Time // when to ask again
	fault  string
}

// Machines is what EC2 has reported within a minute of instances, by id, and what keeps it
// from
// reporting more. One of which EC2 knows nothing is missing. From here on EC2 is asked of these;
// it never is by this call. The result is shared: do not change it.
func (r *Reader) Machines(ids []string) (known map[string]fleet.Machine, fault string) {
	news, known, fault := r.states.want(ids, r.now())
	if news {
		r.Nudge()
	}
	return known, fault
}

func (b *machineBook) want(ids []string, now time.Time) (news bool, known map[string]fleet.Machine, fault string) {
	slices.Sort(ids)
	ids = ids[:min(len(ids), mostMachines)]
	b.mu.Lock()
	defer b.mu.Unlock()
	news = slices.ContainsFunc(ids, func(id string) bool { _, known := slices.BinarySearch(b.wanted, id); return !known })
	b.wanted = ids
	if news {
		b.next = time.Time{}
	}
	if len(ids) == 0 {
		b.known, b.fault = nil, ""
	}
	if now.Sub(b.at) >= machinesKept {
		return news, nil, b.fault
	}
	return news, b.known, b.fault
}

// wants reports whether EC2 is to be asked again and again.
func (b *machineBook) wants() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.wanted) > 0
}

// read asks EC2 if it is time. It reports whether there is another answer than before.
func (b *machineBook) read(ctx context.Context, now time.Time) (changed bool) {
	b.mu.Lock()
	wanted, due := b.wanted, len(b.wanted) > 0 && !now.Before(b.next)
	b.mu.Unlock()
	if !due {
		return false
	}
	known, err := map[string]fleet.Machine{}, error(nil)
	for ids := range slices.Chunk(wanted, machinesAtOnce) {
		var some map[string]fleet.Machine
		some, err = machinesOf(ctx, b.ec2, &ec2.DescribeInstancesInput{
			// By a filter: an id that EC2 does not know would fail the whole call.
			Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: ids}},
		})
		if err != nil {
			break
		}
		maps.Copy(known, some)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(b.wanted, wanted) { // else somebody has asked of more meanwhile
		b.next = now.Add(machinesEvery)
	}
	fault := ""
	if err != nil {
		fault = fmt.Sprintf("whether machines of nodes that are not Ready are down is not known: %v", err)
	}
	if fault != b.fault && fault != "" {
		b.logger.Warn("instances not read", "err", err)
	}
	changed = fault != b.fault
	b.fault = fault
	if err == nil {
		changed = changed || !maps.Equal(known, b.known) || now.Sub(b.at) >= machinesKept
		b.known, b.at = known, now
	}
	return changed
}

// machinesOf reads all pages.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
func machinesOf(ctx context.Context, client computing, in *ec2.DescribeInstancesInput) (map[string]fleet.Machine, error) {
	found := map[string]fleet.Machine{}
	for {
		out, err := client.DescribeInstances(ctx, in)
		if err != nil {
			return nil, explain("ec2:DescribeInstances", err)
		}
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				found[aws.ToString(i.InstanceId)] = newMachine(i)
			}
		}
		if aws.ToString(out.NextToken) == "" {
			return found, nil
		}
		in.NextToken = out.NextToken
	}
}

func newMachine(i ec2types.Instance) fleet.Machine {
	m := fleet.Machine{Hibernates: i.HibernationOptions != nil && aws.ToBool(i.HibernationOptions.Configured)}
	if i.State != nil {
		m.State = string(i.State.Name)
	}
	for _, t := range i.Tags {
		if aws.ToString(t.Key) == launchedByTag {
			m.Group = aws.ToString(t.Value)
		}
	}
	return m
}

// Down fails with ErrChanged unless EC2 answers at this moment that the instance is switched
// off for certain. One that EC2 does not know may run: in another account, or region.
func (v *Verbs) Down(ctx context.Context, instance string) error {
	found, err := machinesOf(ctx, v.compute, &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: []string{instance}}},
	})
	if err != nil {
		return err
	}
	switch m, known := found[instance]; {
	case !known:
		return fmt.Errorf("%w: EC2 does not know %s", ErrChanged, instance)
	case m.State == string(ec2types.InstanceStateNameStopped) && m.Hibernates:
		return fmt.Errorf("%w: %s may be hibernated, with its volumes mounted", ErrChanged, instance)
	case !m.Down():
		return fmt.Errorf("%w: %s is %s", ErrChanged, instance, m.State)
	}
	return nil
}
