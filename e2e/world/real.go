package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/e2e/fakeaws/catalog"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/machine"
)

// realMachines is hardware that boots: containerd, kubelet and kube-proxy in namespaces
// of their own, whose Nodes the kubelets register themselves.
type realMachines struct {
	yard   *machine.Yard
	groups func(name string) (cloud.Group, bool)
	region string
	fault  func(group string) machine.Fault
	went   func(node string) // told when everything on a machine has ended
}

// openHub makes the network that everything in a world of real machines is in.
func (w *World) openHub(c Config) (err error) {
	if c.Spec.Machines == Real {
		w.hub, err = machine.OpenHub(w.log)
	}
	return err
}

// makeReal makes the hardware of real machines, and what runs on it.
func (w *World) makeReal(ctx context.Context, c Config) (hardware, error) {
	var err error
	w.yard, err = machine.Open(ctx, machine.Config{
		Dir:  filepath.Join(w.Dir, "machines"),
		Boot: c.Programs.Boot, Kubelet: c.Programs.Kubelet, KubeProxy: c.Programs.KubeProxy,
		Server: w.Plane.Server, CA: w.Plane.CA, CAKey: w.Plane.CAKey,
		Images: c.Programs.Images, Hub: w.hub, Log: w.log,
	})
	if err != nil {
		return nil, err
	}
	pods := newContainers(w.Client, w.yard, w.log)
	w.runner = pods
	w.work.Go(func() { pods.run(ctx) })
	return &realMachines{yard: w.yard, groups: w.group, region: w.region, fault: c.Spec.fault, went: pods.went}, nil
}

// startReal prepares the cluster of real machines and, if wanted, installs Windlass in it.
func (w *World) startReal(ctx context.Context, c Config) error {
	if err := w.giveRole(ctx, c.Spec.Environment); err != nil {
		return fmt.Errorf("giving the scaler its role: %w", err)
	}
	if c.Spec.NoPrograms {
		return nil
	}
	return w.applyManifests(ctx, c)
}

func (r *realMachines) boot(ctx context.Context, i cloud.Instance, again bool) error {
	if again {
		if err := r.powerOff(i.ID, i.PrivateDNSName); err != nil {
			return err
		}
	}
	spec, err := r.spec(i)
	if err != nil {
		return err
	}
	return r.yard.PowerOn(ctx, spec)
}

func (r *realMachines) halt(_ context.Context, id string, was joined) error {
	return r.powerOff(id, was.node)
}

func (r *realMachines) powerOff(id, node string) error {
	r.went(node)
	return r.yard.PowerOff(id)
}

// end leaves nothing of a machine, also of one that has failed to boot: node is empty
// then. Of an instance that never tried to boot there is no machine.
func (r *realMachines) end(id, node string) error {
	if node != "" {
		r.went(node)
	}
	if err := r.yard.Discard(id); !errors.Is(err, machine.ErrUnknown) {
		return err
	}
	return nil
}

func (r *realMachines) kubelet(_ context.Context, i cloud.Instance, runs bool) error {
	if runs {
		return r.yard.StartKubelet(i.ID)
	}
	return r.yard.StopKubelet(i.ID)
}

// spec is the machine of an instance. What a kubelet says of itself it says: the labels
// are those that EKS gives to its command line.
func (r *realMachines) spec(i cloud.Instance) (machine.Spec, error) {
	t, ok := catalog.Lookup(i.Type)
	if !ok {
		return machine.Spec{}, fmt.Errorf("unknown instance type %q", i.Type)
	}
	group, _ := r.groups(i.Group)
	ip, err := netip.ParseAddr(i.PrivateIP)
	if err != nil {
		return machine.Spec{}, fmt.Errorf("the address of instance %s: %w", i.ID, err)
	}
	imds, err := netip.ParseAddrPort(i.IMDSAddr)
	if err != nil {
		return machine.Spec{}, fmt.Errorf("the metadata service of instance %s: %w", i.ID, err)
	}
	m := nodeOf{instance: i, group: group, region: r.region}
	labels := m.labels(t)
	maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(kubeletsOwn, key) })
	var taints []string
	for _, t := range m.taints() {
		taints = append(taints, t.ToString())
	}
	return machine.Spec{
		ID: i.ID, Name: i.PrivateDNSName, IP: ip, BootID: i.BootID, ProviderID: i.ProviderID(),
		VCPUs: t.VCPUs, MemoryMiB: i.MemoryMiB, MaxPods: int(maxPods(t)), Labels: labels, Taints: taints,
		IMDS: imds, Fault: r.fault(i.Group),
	}, nil
}

// kubeletsOwn are the labels that a kubelet gives its Node by itself.
var kubeletsOwn = []string{
	corev1.LabelHostname, corev1.LabelArchStable, corev1.LabelOSStable, "beta.kubernetes.io/arch", "beta.kubernetes.io/os",
}

// fault is what is wrong with the machines of a group.
func (s Spec) fault(group string) machine.Fault {
	switch {
	case slices.Contains(s.NeverJoin, group):
		return machine.NeverJoins
	case slices.Contains(s.NeverReady, group):
		return machine.NeverReady
	}
	return 0
}

// controlPlane are the flags of its supervisor.
func (s Spec) controlPlane() []string {
	if s.Machines != Real {
		return s.ControlPlane
	}
	return append([]string{"--address=" + machine.Address.String(), "--without=" + Kwok}, s.ControlPlane...)
}

// awsAddress is where the fake AWS listens: where machines reach it, if they are real.
func (s Spec) awsAddress() string {
	if s.Machines != Real {
		return ""
	}
	return machine.Address.String() + ":0"
}
