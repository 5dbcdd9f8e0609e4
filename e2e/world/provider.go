package world

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakegrpc"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// scheme is that of the provider ids of the provider's machines.
const scheme = "lab://"

// rented are the machines of the fake AWS in the hands of an external provider.
type rented struct {
	aws  *fakeaws.Server
	node func(cloud.Group) (*corev1.Node, error)
}

// Groups are those of the fake AWS, and their machines by the provider's ids.
func (r rented) Groups() []fakegrpc.Group {
	var groups []fakegrpc.Group
	for _, g := range r.aws.Groups() {
		out := fakegrpc.Group{Name: g.Spec.Name, Min: g.Min, Max: g.Max, Target: g.Desired, Price: 0.1}
		for _, i := range g.Instances {
			instance := fakegrpc.Running(scheme + i.ID)
			switch {
			case strings.HasPrefix(string(i.LifecycleState), "Terminat"):
				instance.Status.InstanceState = protocol.InstanceStatus_instanceDeleting
			case i.LifecycleState != cloud.InService:
				instance.Status.InstanceState = protocol.InstanceStatus_instanceCreating
			}
			out.Instances = append(out.Instances, instance)
		}
		if node, err := r.node(g.Spec); err == nil { // else there is no template
			node.Name = g.Spec.Name
			out.Node = node
		}
		groups = append(groups, out)
	}
	return groups
}

// Increase adds machines.
func (r rented) Increase(group string, by int) error {
	g, err := r.aws.Group(group)
	if err != nil {
		return err
	}
	if by <= 0 || g.Desired+by > g.Max {
		return status.Errorf(codes.OutOfRange, "%s has %d of at most %d, and shall have %d more", group, g.Desired, g.Max, by)
	}
	return r.aws.SetDesired(group, g.Desired+by)
}

// Decrease takes back machines that are not there.
func (r rented) Decrease(group string, by int) error {
	g, err := r.aws.Group(group)
	if err != nil {
		return err
	}
	if by <= 0 || g.Desired-by < max(g.Min, len(g.Instances)) {
		return status.Errorf(codes.FailedPrecondition, "%s has %d machines of %d", group, len(g.Instances), g.Desired)
	}
	return r.aws.SetDesired(group, g.Desired-by)
}

// Delete ends a machine of a group.
func (r rented) Delete(group, id string) error {
	g, err := r.aws.Group(group)
	if err != nil {
		return err
	}
	instance := strings.TrimPrefix(id, scheme)
	if !slices.ContainsFunc(g.Instances, func(i cloud.Instance) bool { return i.ID == instance }) {
		return fmt.Errorf("%s has no machine %s", group, id)
	}
	return r.aws.Terminate(instance, true)
}

// startProvider puts an external provider in front of the fake AWS, which both ends of the
// connection know by certificates, and has the programs use it.
func (w *World) startProvider(c Config) error {
	certificates, err := fakegrpc.MakeCertificates(w.Dir)
	if err != nil {
		return fmt.Errorf("making the provider's certificates: %w", err)
	}
	creds, err := certificates.Mutual()
	if err != nil {
		return fmt.Errorf("reading the provider's certificates: %w", err)
	}
	node := func(g cloud.Group) (*corev1.Node, error) {
		zone := w.region + "a"
		if len(g.Zones) > 0 {
			zone = g.Zones[0]
		}
		return nodeOf{instance: cloud.Instance{Type: g.Type, Zone: zone, MemoryMiB: 7600}, group: g, region: w.region, diskGiB: 20}.node()
	}
	if w.Provider, err = fakegrpc.Start(rented{w.AWS, node}, creds); err != nil {
		return fmt.Errorf("starting the external provider: %w", err)
	}
	file, err := fakegrpc.WriteConfig(w.Dir, w.Provider.Address(), certificates)
	if err != nil {
		return fmt.Errorf("writing the provider's cloud-config: %w", err)
	}
	w.providerArgs = map[string][]string{
		contract.AppScaler: {"--cloud-provider=externalgrpc", "--cloud-config=" + file},
		contract.AppAgent:  {"--metadata=none"},
	}
	return nil
}
