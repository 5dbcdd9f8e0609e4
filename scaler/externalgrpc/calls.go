package externalgrpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// Provider is the connection to an external provider.
type Provider struct {
	// Address is where it is asked.
	Address string

	client     protocol.CloudProviderClient
	connection *grpc.ClientConn
	timeout    time.Duration
	record     func(Call)
	ended      ledger
}

// Call is one call that was made, for metrics.
type Call = asg.Call

// Service is what metrics call the provider.
const Service = "externalgrpc"

// Close ends the connection.
func (p *Provider) Close() error { return p.connection.Close() }

// ask makes one call, never twice.
func ask[In, Out any](ctx context.Context, p *Provider, name string, call func(context.Context, In, ...grpc.CallOption) (Out, error), in In) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	began := time.Now()
	out, err := call(ctx, in)
	p.record(Call{Service: Service, Operation: name, Code: codeOf(err), Took: time.Since(began)})
	return out, explain(name, err)
}

func codeOf(err error) string {
	switch code := status.Code(err); code {
	case codes.OK:
		return "ok"
	case codes.Unavailable, codes.DeadlineExceeded:
		return "unreachable"
	default:
		return codeName(code)
	}
}

// codeName is a code's name: any number may come, and each would be a metric of its own.
func codeName(code codes.Code) string {
	if code > codes.Unauthenticated {
		code = codes.Unknown
	}
	return code.String()
}

// instances asks for those of a group. One answer may be forty times as large in memory as on the wire: so it
// is smaller than others, and no more is kept of it than shows that the instances are too many.
func (p *Provider) instances(ctx context.Context, group string) ([]*protocol.Instance, error) {
	call := func(ctx context.Context, in *protocol.NodeGroupNodesRequest, options ...grpc.CallOption) (*protocol.NodeGroupNodesResponse, error) {
		return p.client.NodeGroupNodes(ctx, in, append(options, grpc.MaxCallRecvMsgSize(mostBytesOfInstances))...)
	}
	nodes, err := ask(ctx, p, "NodeGroupNodes", call, &protocol.NodeGroupNodesRequest{Id: group})
	if err != nil {
		return nil, err
	}
	list := nodes.GetInstances()
	if len(list) > mostMachines {
		list = slices.Clone(list[:mostMachines+1])
	}
	return list, nil
}

// errNotServed: the provider does not serve the call, which is optional.
var errNotServed = errors.New("not served")

// mostMessage is how many bytes of a provider's message are passed on.
const mostMessage = 300

// refusals are the codes by which a provider says for certain that it has done nothing. Many
// providers say Unknown or Internal of everything: what such a call did is not known.
// https://grpc.io/docs/guides/status-codes/
var refusals = map[codes.Code]error{
	codes.InvalidArgument:    asg.ErrRefused,
	codes.FailedPrecondition: asg.ErrRefused,
	codes.OutOfRange:         asg.ErrRefused,
	codes.PermissionDenied:   asg.ErrRefused,
	codes.Unimplemented:      asg.ErrRefused,
	codes.NotFound:           asg.ErrMissing,
	codes.ResourceExhausted:  asg.ErrThrottled,
	codes.Unauthenticated:    asg.ErrCredentials,
}

// explain turns an error into one of those that actions go by; nil stays nil.
func explain(name string, err error) error {
	if err == nil {
		return nil
	}
	code := status.Code(err)
	e := &asg.CallError{Call: name, Code: codeName(code), Message: clean(status.Convert(err).Message()), Class: refusals[code]}
	switch {
	case code == codes.Unimplemented:
		return fmt.Errorf("%w: %w", errNotServed, e)
	case code == codes.DeadlineExceeded:
		e.Code, e.Message, e.Class = "", "no answer in time", asg.ErrUnavailable
	case code == codes.Canceled:
		e.Code, e.Message = "", "cancelled"
	case code == codes.Unavailable:
		e.Code, e.Class = "", asg.ErrUnavailable
	case e.Class == nil:
		// What it did is not known, and asked again it will say the same.
		e.Class = errors.Join(asg.ErrUnavailable, asg.ErrRefused)
	}
	return e
}

// clean is a text of a provider on one line, and not longer than people read.
func clean(text string) string {
	return contract.Shorten(strings.Join(strings.Fields(contract.OneLine(text)), " "), mostMessage)
}
