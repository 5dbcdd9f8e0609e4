package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Verbs are the calls that change something. The provider knows no tokens: to increase a size twice
// adds twice. So each reads first whether the group is as expected, and stops with asg.ErrChanged
// if not; and where a call had no answer, nothing more is asked of its group before its effect
// shows, or has had settle to show. None is ever repeated in here.
type Verbs struct {
	// Node is the Node of an instance, if there is one: providers may know their machines by its
	// name or its labels. Nil where that is not known.
	Node func(instance string) (fleet.Node, bool)

	provider *Provider
	now      func() time.Time

	mu sync.Mutex
	// unheard are the calls without an answer, and turns whose turn it is, by group.
	unheard map[string]unheard
	turns   map[string]*sync.Mutex
}

// unheard is a call of which it is not known whether it had its effect.
type unheard struct {
	at    time.Time
	size  int  // the target size of before
	grows bool // it makes that larger, else smaller
}

// settle is how long the effect of a call without an answer may take to show.
const settle = time.Minute

// NewVerbs returns the verbs of a provider.
func (p *Provider) NewVerbs() *Verbs {
	return &Verbs{provider: p, now: time.Now, unheard: map[string]unheard{}, turns: map[string]*sync.Mutex{}}
}

// state is a group as it is this moment.
type state struct {
	least, most int
	target      int
	instances   map[string]*protocol.Instance // by our ids
	// live counts those that are not ending, told those that are, as the provider was told, and do
	// not show it yet: whether the target size does is not known.
	live, told int
}

// read reads a group that is to be changed.
func (v *Verbs) read(ctx context.Context, group string) (state, error) {
	p, id := v.provider, idOf(group)
	now := state{instances: map[string]*protocol.Instance{}}
	var all *protocol.NodeGroupsResponse
	var size *protocol.NodeGroupTargetSizeResponse
	var nodes []*protocol.Instance
	var reading errgroup.Group // at once, as a provider may take a good part of the action's time for each
	reading.Go(func() (err error) {
		all, err = ask(ctx, p, "NodeGroups", p.client.NodeGroups, &protocol.NodeGroupsRequest{})
		return err
	})
	reading.Go(func() (err error) {
		size, err = ask(ctx, p, "NodeGroupTargetSize", p.client.NodeGroupTargetSize, &protocol.NodeGroupTargetSizeRequest{Id: id})
		return err
	})
	reading.Go(func() (err error) {
		nodes, err = p.instances(ctx, id)
		return err
	})
	failed := reading.Wait()
	if all == nil {
		return state{}, failed
	}
	n := slices.IndexFunc(all.GetNodeGroups(), func(g *protocol.NodeGroup) bool { return g.GetId() == id })
	if n < 0 {
		return state{}, fmt.Errorf("%w: its provider names no group %s any more", asg.ErrChanged, group)
	}
	if failed != nil {
		return state{}, failed
	}
	now.least, now.most = int(all.NodeGroups[n].GetMinSize()), int(all.NodeGroups[n].GetMaxSize())
	now.target = int(size.GetTargetSize())
	for _, i := range nodes {
		instance := fleet.InstanceIDOf(i.GetId())
		if now.instances[instance] != nil {
			return state{}, fmt.Errorf("%w: its provider names instance %s of %s twice", asg.ErrChanged, clean(i.GetId()), group)
		}
		now.instances[instance] = i
		switch {
		case i.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceDeleting:
		case v.told(instance):
			now.told++
		default:
			now.live++
		}
	}
	if now.target < now.live {
		return state{}, fmt.Errorf("%w: %s has target size %d, and %d instances that are not ending", asg.ErrChanged, group, now.target, now.live)
	}
	return now, v.heard(group, now.target)
}

// told reports whether the provider was told to end an instance.
func (v *Verbs) told(instance string) bool {
	return !v.provider.ended.since(instance, v.now()).IsZero()
}

// heard fails while it is not known what became of the last call.
func (v *Verbs) heard(group string, target int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, open := v.unheard[group]
	if !open {
		return nil
	}
	// The other way it has moved by something else, such as an end before that shows late.
	moved := last.grows && target > last.size || !last.grows && target < last.size
	if !moved && v.now().Sub(last.at) < settle {
		return fmt.Errorf("%w: the last call for %s had no answer, and what it did does not show yet", asg.ErrBusy, group)
	}
	delete(v.unheard, group)
	return nil
}

// change makes the call that changes a group. It has its own time: what was sent is not hung up on
// when the action's time is over.
func change[In, Out any](ctx context.Context, v *Verbs, group string, now state, name string, call func(context.Context, In, ...grpc.CallOption) (Out, error), in In) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: no time is left for %s: the provider's answers took too long", asg.ErrBusy, name)
	}
	_, err := ask(context.WithoutCancel(ctx), v.provider, name, call, in)
	if asg.Unheard(err) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.unheard[group] = unheard{at: v.now(), size: now.target, grows: name == "NodeGroupIncreaseSize"}
	}
	return err
}

// alone keeps others from changing a group between what is read of it and what is done.
func (v *Verbs) alone(group string) (release func()) {
	v.mu.Lock()
	turn := v.turns[group]
	if turn == nil {
		turn = &sync.Mutex{}
		v.turns[group] = turn
	}
	v.mu.Unlock()
	turn.Lock()
	return turn.Unlock
}

// SetDesired raises a group's target size from from to to, if it still is from.
func (v *Verbs) SetDesired(ctx context.Context, group string, from, to int) error {
	defer v.alone(group)()
	now, err := v.wants(ctx, group, from)
	if err != nil {
		return err
	}
	if to <= from || to > now.most {
		return fmt.Errorf("%w: %s has target size %d of at most %d, which is not raised to %d", asg.ErrChanged, group, from, now.most, to)
	}
	return change(ctx, v, group, now, "NodeGroupIncreaseSize", v.provider.client.NodeGroupIncreaseSize,
		&protocol.NodeGroupIncreaseSizeRequest{Id: idOf(group), Delta: int32(to - from)})
}

// wants reads a group, and fails unless its target size is n.
func (v *Verbs) wants(ctx context.Context, group string, n int) (state, error) {
	now, err := v.read(ctx, group)
	if err == nil && now.target != n {
		err = fmt.Errorf("%w: %s has target size %d, not %d", asg.ErrChanged, group, now.target, n)
	}
	return now, err
}

// Lower takes back what a group wants and has not got, if it still wants from, and if all that are
// there fit in to.
func (v *Verbs) Lower(ctx context.Context, group string, from, to int) error {
	defer v.alone(group)()
	now, err := v.wants(ctx, group, from)
	if err != nil {
		return err
	}
	if to >= from || to < now.live+now.told || to < now.least {
		return fmt.Errorf("%w: %s has %d instances and target size %d of at least %d, which is not lowered to %d", asg.ErrChanged, group, now.live+now.told, from, now.least, to)
	}
	return change(ctx, v, group, now, "NodeGroupDecreaseTargetSize", v.provider.client.NodeGroupDecreaseTargetSize,
		&protocol.NodeGroupDecreaseTargetSizeRequest{Id: idOf(group), Delta: int32(to - from)})
}

// Terminate ends an instance of a group, if it is in it, not ending already, and the group does not
// become smaller than its minimum. The target size goes down with it, so that nothing is done
// without decrement.
func (v *Verbs) Terminate(ctx context.Context, group, instance string, decrement bool) error {
	if !decrement {
		return fmt.Errorf("%w: the provider makes %s smaller with each instance that it ends", asg.ErrChanged, group)
	}
	defer v.alone(group)()
	now, err := v.read(ctx, group)
	if err != nil {
		return asg.Unasked(err)
	}
	i := now.instances[instance]
	switch {
	case i == nil:
		return fmt.Errorf("%w: %s is not in %s any more", asg.ErrChanged, instance, group)
	case v.leaves(i):
		return fmt.Errorf("%w: %s is ending already", asg.ErrChanged, instance)
	case now.target-now.told-1 < now.least:
		return fmt.Errorf("%w: %s has target size %d, %d of which are ending, and its minimum is %d", asg.ErrChanged, group, now.target, now.told, now.least)
	}
	err = change(ctx, v, group, now, "NodeGroupDeleteNodes", v.provider.client.NodeGroupDeleteNodes,
		&protocol.NodeGroupDeleteNodesRequest{Id: idOf(group), Nodes: []*protocol.ExternalGrpcNode{v.machine(instance, i.GetId())}})
	if err == nil || asg.Unheard(err) {
		v.provider.ended.note(instance, v.now())
	}
	return err
}

// machine names a machine as Cluster Autoscaler does: by its Node, or by its id alone where it has
// none.
func (v *Verbs) machine(instance, id string) *protocol.ExternalGrpcNode {
	out := &protocol.ExternalGrpcNode{ProviderID: id, Name: id}
	if v.Node != nil {
		if n, known := v.Node(instance); known {
			out.Name, out.Labels, out.Annotations = n.Name, n.Labels, n.Annotations
		}
	}
	return out
}

// leaves reports whether an instance is ending, or the provider was told to end it.
func (v *Verbs) leaves(i *protocol.Instance) bool {
	return i.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceDeleting || v.told(fleet.InstanceIDOf(i.GetId()))
}

// Serves fails unless the instance runs at this moment.
func (v *Verbs) Serves(ctx context.Context, group, instance string) error {
	now, err := v.read(ctx, group)
	if err != nil {
		return err
	}
	if i := now.instances[instance]; i == nil || v.leaves(i) || i.GetStatus().GetInstanceState() == protocol.InstanceStatus_instanceCreating {
		return fmt.Errorf("%w: %s of %s does not run", asg.ErrChanged, instance, group)
	}
	return nil
}

// ErrNotOffered means that the protocol has no such call. Nothing that is decided for an external
// group asks for one.
var ErrNotOffered = errors.New("an external provider offers no such call")

// Launch is not offered: the provider chooses the zones.
func (v *Verbs) Launch(context.Context, asg.LaunchOrder) (asg.Launched, error) {
	return asg.Launched{}, fmt.Errorf("%w: %w", asg.ErrUnsent, ErrNotOffered)
}

// Complete is not offered: there are no hooks.
func (v *Verbs) Complete(context.Context, asg.Wait) error { return ErrNotOffered }

// Heartbeat is not offered: there are no hooks.
func (v *Verbs) Heartbeat(context.Context, asg.Wait) error { return ErrNotOffered }

// Down is not offered: whether a machine is switched off is not known.
func (v *Verbs) Down(context.Context, string) error { return ErrNotOffered }

// Suspend is not offered: there are no processes.
func (v *Verbs) Suspend(context.Context, string, string) error { return ErrNotOffered }

// Resume is not offered: there are no processes.
func (v *Verbs) Resume(context.Context, string, string) error { return ErrNotOffered }

// Disclaim is not offered: a provider is asked by one cluster.
func (v *Verbs) Disclaim(context.Context, string, types.UID) error { return ErrNotOffered }

// DeleteHook is not offered: there are no hooks.
func (v *Verbs) DeleteHook(context.Context, string, string) error { return ErrNotOffered }

// Claim is not offered: a provider is asked by one cluster.
func (v *Verbs) Claim(context.Context, string, types.UID) error { return ErrNotOffered }
