package fakegrpc

import (
	"context"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Machines are what a provider owns.
type Machines interface {
	// Groups are all groups, by name.
	Groups() []Group
	Increase(group string, by int) error
	// Delete ends a machine by its provider id, and makes its group smaller by one.
	Delete(group, id string) error
	Decrease(group string, by int) error
}

// Group is one group of Machines.
type Group struct {
	Name             string
	Min, Max, Target int
	Instances        []*protocol.Instance
	// Node describes a new one; nil is not served.
	Node  *corev1.Node
	Price float64
	// Options are not served where they are nil.
	Options *protocol.NodeGroupAutoscalingOptions
}

// Faults are what is wrong with a provider's answers.
type Faults struct {
	// Old: it speaks the numbers of before November 2025 alone, New those of since then.
	Old, New bool
	// Fail has an error for calls by their name, such as NodeGroupIncreaseSize.
	Fail map[string]error
	// Silent are calls that have their effect and never answer, until their caller gives up.
	Silent map[string]bool
	// Lie changes the groups before they are told.
	Lie func([]Group) []Group
	// Template is told in place of each group's.
	Template []byte
}

// Call is one call that changes something.
type Call struct {
	Name, Group string
	Delta       int
	Nodes       []*protocol.ExternalGrpcNode
}

// Provider serves Machines.
type Provider struct {
	protocol.UnimplementedCloudProviderServer
	GPULabelName string

	machines Machines

	mu      sync.Mutex
	faults  Faults
	calls   []Call
	asked   map[string]int
	options *protocol.NodeGroupAutoscalingOptionsRequest
	price   *protocol.PricingNodePriceRequest
	changed chan struct{} // closed and replaced with each call
	server  *grpc.Server
	address string
	creds   credentials.TransportCredentials
}

// Start serves on a free port of 127.0.0.1 until Stop. creds may be nil.
func Start(machines Machines, creds credentials.TransportCredentials) (*Provider, error) {
	p := &Provider{machines: machines, asked: map[string]int{}, changed: make(chan struct{}), creds: creds, address: "127.0.0.1:0"}
	return p, p.Serve()
}

// Address is where it serves, and served.
func (p *Provider) Address() string { return p.address }

// Serve serves again after Stop, at the same address.
func (p *Provider) Serve() error {
	listener, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	var options []grpc.ServerOption
	if p.creds != nil {
		options = append(options, grpc.Creds(p.creds))
	}
	p.server, p.address = grpc.NewServer(append(options, grpc.UnaryInterceptor(p.intercept))...), listener.Addr().String()
	protocol.RegisterCloudProviderServer(p.server, p)
	go func() { _ = p.server.Serve(listener) }() // ends with Stop
	return nil
}

// Stop is away until Serve.
func (p *Provider) Stop() { p.server.Stop() }

// Break has the answers be wrong from now on; the zero Faults mend them.
func (p *Provider) Break(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Calls are those that changed something, or were to.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Asked is how often a call came.
func (p *Provider) Asked(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[name]
}

// Requests are the latest of those that carry numbers of both generations.
func (p *Provider) Requests() (*protocol.NodeGroupAutoscalingOptionsRequest, *protocol.PricingNodePriceRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options, p.price
}

// Await waits until there is a call such as that, or ctx ends.
func (p *Provider) Await(ctx context.Context, is func(Call) bool) error {
	for {
		p.mu.Lock()
		found, changed := slices.ContainsFunc(p.calls, is), p.changed
		p.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Provider) intercept(ctx context.Context, in any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	name := info.FullMethod[len("/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"):]
	p.mu.Lock()
	p.asked[name]++
	err, silent := p.faults.Fail[name], p.faults.Silent[name]
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	out, err := handle(ctx, in)
	if silent {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return out, err
}

func (p *Provider) broken() Faults {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults
}

func (p *Provider) groups() []Group {
	groups := p.machines.Groups()
	if lie := p.broken().Lie; lie != nil {
		groups = lie(groups)
	}
	return groups
}

func (p *Provider) group(id string) (Group, error) {
	for _, g := range p.groups() {
		if g.Name == id {
			return g, nil
		}
	}
	return Group{}, status.Errorf(codes.NotFound, "there is no group %q", id)
}

func (p *Provider) note(c Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	close(p.changed)
	p.changed = make(chan struct{})
}

// NodeGroups lists the groups.
func (p *Provider) NodeGroups(context.Context, *protocol.NodeGroupsRequest) (*protocol.NodeGroupsResponse, error) {
	out := &protocol.NodeGroupsResponse{}
	for _, g := range p.groups() {
		out.NodeGroups = append(out.NodeGroups, &protocol.NodeGroup{Id: g.Name, MinSize: int32(g.Min), MaxSize: int32(g.Max)})
	}
	return out, nil
}

// Refresh has nothing to do.
func (p *Provider) Refresh(context.Context, *protocol.RefreshRequest) (*protocol.RefreshResponse, error) {
	return &protocol.RefreshResponse{}, nil
}

// GPULabel is that of the provider.
func (p *Provider) GPULabel(context.Context, *protocol.GPULabelRequest) (*protocol.GPULabelResponse, error) {
	return &protocol.GPULabelResponse{Label: p.GPULabelName}, nil
}

// NodeGroupTargetSize is what a group shall have.
func (p *Provider) NodeGroupTargetSize(_ context.Context, in *protocol.NodeGroupTargetSizeRequest) (*protocol.NodeGroupTargetSizeResponse, error) {
	g, err := p.group(in.GetId())
	return &protocol.NodeGroupTargetSizeResponse{TargetSize: int32(g.Target)}, err
}

// NodeGroupNodes is what a group has.
func (p *Provider) NodeGroupNodes(_ context.Context, in *protocol.NodeGroupNodesRequest) (*protocol.NodeGroupNodesResponse, error) {
	g, err := p.group(in.GetId())
	return &protocol.NodeGroupNodesResponse{Instances: g.Instances}, err
}

// NodeGroupIncreaseSize adds machines.
func (p *Provider) NodeGroupIncreaseSize(_ context.Context, in *protocol.NodeGroupIncreaseSizeRequest) (*protocol.NodeGroupIncreaseSizeResponse, error) {
	err := p.machines.Increase(in.GetId(), int(in.GetDelta()))
	p.note(Call{Name: "NodeGroupIncreaseSize", Group: in.GetId(), Delta: int(in.GetDelta())})
	return &protocol.NodeGroupIncreaseSizeResponse{}, err
}

// NodeGroupDecreaseTargetSize takes back what is not there.
func (p *Provider) NodeGroupDecreaseTargetSize(_ context.Context, in *protocol.NodeGroupDecreaseTargetSizeRequest) (*protocol.NodeGroupDecreaseTargetSizeResponse, error) {
	err := p.machines.Decrease(in.GetId(), -int(in.GetDelta()))
	p.note(Call{Name: "NodeGroupDecreaseTargetSize", Group: in.GetId(), Delta: int(in.GetDelta())})
	return &protocol.NodeGroupDecreaseTargetSizeResponse{}, err
}

// NodeGroupDeleteNodes ends machines.
func (p *Provider) NodeGroupDeleteNodes(_ context.Context, in *protocol.NodeGroupDeleteNodesRequest) (*protocol.NodeGroupDeleteNodesResponse, error) {
	var err error
	for _, n := range in.GetNodes() {
		if err = p.machines.Delete(in.GetId(), n.GetProviderID()); err != nil {
			break
		}
	}
	p.note(Call{Name: "NodeGroupDeleteNodes", Group: in.GetId(), Nodes: in.GetNodes()})
	return &protocol.NodeGroupDeleteNodesResponse{}, err
}

// NodeGroupTemplateNodeInfo describes a new node, by the numbers that the provider speaks.
func (p *Provider) NodeGroupTemplateNodeInfo(_ context.Context, in *protocol.NodeGroupTemplateNodeInfoRequest) (*protocol.NodeGroupTemplateNodeInfoResponse, error) {
	g, err := p.group(in.GetId())
	if err != nil {
		return nil, err
	}
	f := p.broken()
	encoded := f.Template
	if encoded == nil && g.Node == nil {
		return nil, status.Error(codes.Unimplemented, "no templates")
	}
	if encoded == nil {
		if encoded, err = g.Node.Marshal(); err != nil {
			return nil, err
		}
	}
	out := &protocol.NodeGroupTemplateNodeInfoResponse{}
	if !f.New {
		out.NodeInfo = encoded
	}
	if !f.Old {
		out.NodeBytes = encoded
	}
	return out, nil
}

// PricingNodePrice is what a machine costs in the time asked for.
func (p *Provider) PricingNodePrice(_ context.Context, in *protocol.PricingNodePriceRequest) (*protocol.PricingNodePriceResponse, error) {
	f := p.broken()
	p.mu.Lock()
	p.price = in
	p.mu.Unlock()
	from, to := in.GetStartTimestamp(), in.GetEndTimestamp()
	if f.Old {
		from, to = in.GetStartTime(), in.GetEndTime()
	}
	for _, g := range p.groups() {
		if g.Node != nil && g.Node.Name == in.GetNode().GetName() {
			return &protocol.PricingNodePriceResponse{Price: g.Price * to.AsTime().Sub(from.AsTime()).Hours()}, nil
		}
	}
	return nil, status.Error(codes.Unimplemented, "no prices")
}

// NodeGroupGetOptions are what a group wants otherwise.
func (p *Provider) NodeGroupGetOptions(_ context.Context, in *protocol.NodeGroupAutoscalingOptionsRequest) (*protocol.NodeGroupAutoscalingOptionsResponse, error) {
	g, err := p.group(in.GetId())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.options = in
	p.mu.Unlock()
	if g.Options == nil {
		return nil, status.Error(codes.Unimplemented, "no options")
	}
	return &protocol.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: g.Options}, nil
}
