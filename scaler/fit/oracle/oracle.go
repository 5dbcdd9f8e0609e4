// Package oracle is kube-scheduler as a judge: its framework with the default
// profile, over a snapshot of a cluster that is given and not watched. The tests of
// package fit hold fit against it at every step of a packing.
//
// It shares no reckoning with fit. Undo is done by doing everything again up to
// that point, which is slow and cannot forget anything.
package oracle

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream/memory"
)

// World is a cluster as it is before anything is done to it. Pods have a node or
// none; those without are not in anybody's way.
type World struct {
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	Namespaces map[string]map[string]string
	Storage    fleet.Storage
	Devices    fleet.Devices
}

// Oracle judges pods in one world at a time.
type Oracle struct {
	ctx       context.Context
	framework framework.Framework
	informers *memory.Informers
	claims    *claims

	world World
	done  []step
	// What the steps have led to.
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	snapshot fwk.SharedLister
	assumed  []assumed
	revision int
}

// step is something that was done, to be done again.
type step func(*Oracle) error

// assumed is a pod that the framework reserved volumes and devices for.
type assumed struct {
	state fwk.CycleState
	pod   *corev1.Pod
	node  string
}

// New makes an oracle with the feature gates of a Kubernetes version such as 1.35,
// which are those of the whole process. It runs goroutines of the framework until
// ctx ends.
func New(ctx context.Context, serverVersion string) (*Oracle, error) {
	v, err := version.ParseMajorMinor(serverVersion)
	if err != nil {
		return nil, err
	}
	ctx = klog.NewContext(ctx, klog.Logger{})
	gates := feature.DefaultMutableFeatureGate.(featuregate.MutableVersionedFeatureGateWithLogger)
	if err := gates.SetEmulationVersionWithLogger(klog.Logger{}, v); err != nil {
		return nil, err
	}
	metrics.Register()

	o := &Oracle{ctx: ctx, informers: memory.NewInformers()}
	devices, err := o.newDevices()
	if err != nil {
		return nil, err
	}
	profile, err := profile()
	if err != nil {
		return nil, err
	}
	o.framework, err = runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithInformerFactory(o.informers.Factory),
		runtime.WithSnapshotSharedLister(current{o}),
		runtime.WithSharedDRAManager(devices),
		runtime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(o.informers.Factory.Storage().V1().CSINodes().Lister())),
		runtime.WithClientSet(fake.NewClientset()),
		runtime.WithParallelism(1),
		runtime.WithLogger(klog.Logger{}),
	)
	if err != nil {
		return nil, fmt.Errorf("making the framework of Kubernetes %s: %w", serverVersion, err)
	}
	return o, nil
}

// profile is the default one, without the constraints that PodTopologySpread adds
// to pods which have none: those are wishes, and never keep a pod off a node.
func profile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &defaults.Profiles[0]
	for i := range profile.PluginConfig {
		if args, ok := profile.PluginConfig[i].Args.(*config.PodTopologySpreadArgs); ok {
			args.DefaultingType = config.ListDefaulting
		}
	}
	return profile, nil
}

func (o *Oracle) newDevices() (fwk.SharedDRAManager, error) {
	slices, err := tracker.StartTracker(o.ctx, tracker.Options{SliceInformer: o.informers.Factory.Resource().V1().ResourceSlices()})
	if err != nil {
		return nil, err
	}
	known := assumecache.NewAssumeCache(klog.Logger{}, o.informers.DeviceClaims, "ResourceClaim", "", nil)
	manager := dynamicresources.NewDRAManager(o.ctx, known, slices, o.informers.Factory)
	if resolver, ok := manager.DeviceClassResolver().(handler); ok && feature.DefaultFeatureGate.Enabled("DRAExtendedResource") {
		o.informers.DeviceClasses.Handle(resolver)
	}
	o.claims = &claims{ResourceClaimTracker: manager.ResourceClaims()}
	return devices{manager, o.claims}, nil
}

// current is the snapshot as it is now.
type current struct{ o *Oracle }

func (c current) NodeInfos() fwk.NodeInfoLister           { return c.o.snapshot.NodeInfos() }
func (c current) StorageInfos() fwk.StorageInfoLister     { return c.o.snapshot.StorageInfos() }
func (c current) PodGroupStates() fwk.PodGroupStateLister { return c.o.snapshot.PodGroupStates() }

// Reset puts the oracle into another world.
func (o *Oracle) Reset(w World) {
	o.world, o.done = w, nil
	o.begin()
	o.look()
}

// begin is the world before the first step.
func (o *Oracle) begin() {
	for _, a := range slices.Backward(o.assumed) {
		o.framework.RunReservePluginsUnreserve(o.ctx, a.state, a.pod, a.node)
	}
	o.assumed = nil
	o.claims.forget()

	w := o.world
	fill(o.informers.Claims, w.Storage.Claims)
	fill(o.informers.Volumes, w.Storage.Volumes)
	fill(o.informers.Classes, w.Storage.Classes)
	fill(o.informers.Drivers, w.Storage.Drivers)
	fill(o.informers.CSINodes, w.Storage.Nodes)
	fill(o.informers.Capacities, w.Storage.Capacities)
	fill(o.informers.Attachments, w.Storage.Attachments)
	fill(o.informers.Slices, w.Devices.Slices)
	fill(o.informers.DeviceClasses, w.Devices.Classes)
	fill[*resourcev1.ResourceClaim](o.informers.DeviceClaims, nil)
	for _, claim := range w.Devices.Claims {
		o.write(claim)
	}
	var namespaces []*corev1.Namespace
	for name, labels := range w.Namespaces {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	fill(o.informers.Namespaces, namespaces)

	o.nodes = slices.Clone(w.Nodes)
	o.pods = nil
	for _, pod := range w.Pods {
		if pod.Spec.NodeName != "" {
			o.pods = append(o.pods, pod)
		}
	}
}

// look takes the snapshot that begins a scheduling cycle.
func (o *Oracle) look() { o.snapshot = cache.NewSnapshot(o.pods, o.nodes) }

// Steps counts what was done in this world.
func (o *Oracle) Steps() int { return len(o.done) }

// Revert undoes all but the first n steps. It is an error if those cannot be
// done again.
func (o *Oracle) Revert(n int) error {
	again := o.done[:n]
	o.begin()
	o.done = nil
	o.look()
	for _, s := range again {
		if err := o.do(s); err != nil {
			return fmt.Errorf("doing step %d again: %w", len(o.done), err)
		}
	}
	return nil
}

func (o *Oracle) do(s step) error {
	if err := s(o); err != nil {
		return err
	}
	o.done = append(o.done, s)
	o.look()
	return nil
}

// Open adds an empty node with what belongs to it; csi may be nil.
func (o *Oracle) Open(node *corev1.Node, csi *storagev1.CSINode, devices []*resourcev1.ResourceSlice) {
	_ = o.do(func(o *Oracle) error { // cannot fail
		o.nodes = append(o.nodes, node)
		if csi != nil {
			o.informers.CSINodes.Set(csi)
		}
		for _, s := range devices {
			o.informers.Slices.Set(s)
		}
		return nil
	})
}

// Taint gives a node more taints.
func (o *Oracle) Taint(node string, taints ...corev1.Taint) {
	_ = o.do(func(o *Oracle) error { // cannot fail
		for i, n := range o.nodes {
			if n.Name == node {
				tainted := n.DeepCopy()
				tainted.Spec.Taints = append(tainted.Spec.Taints, taints...)
				o.nodes[i] = tainted
			}
		}
		return nil
	})
}

// Seat reserves a node for a pod that fits there, and binds it as far as devices
// are concerned. It is an error if the framework does not reserve.
func (o *Oracle) Seat(pod *corev1.Pod, node string) error {
	return o.do(func(o *Oracle) error { return o.seat(pod, node) })
}

func (o *Oracle) seat(pod *corev1.Pod, node string) error {
	q := o.Ask(pod)
	if v := q.On(node); v.Plugin != "" {
		return fmt.Errorf("%s does not fit %s: %s %v", pod.Name, node, v.Plugin, v.Reasons)
	}
	if status := o.framework.RunReservePluginsReserve(o.ctx, q.state, pod, node); !status.IsSuccess() {
		return fmt.Errorf("%s gets nothing reserved on %s: %w", pod.Name, node, status.AsError())
	}
	o.assumed = append(o.assumed, assumed{q.state, pod, node})
	o.bindDevices(pod)
	there := pod.DeepCopy()
	there.Spec.NodeName = node
	o.pods = append(o.pods, there)
	return nil
}

// Lift deletes a pod that is on a node.
func (o *Oracle) Lift(pod *corev1.Pod) {
	_ = o.do(func(o *Oracle) error { // cannot fail
		o.pods = slices.DeleteFunc(slices.Clone(o.pods), func(p *corev1.Pod) bool { return p.UID == pod.UID })
		o.releaseDevices(pod)
		return nil
	})
}

// Verdict is what the framework decides on a pod and a node: it fits if Plugin is
// empty. The framework stops at the first plugin that refuses.
type Verdict struct {
	Plugin  string
	Reasons []string
}

// Question is a pod, prepared to be asked about each node. It holds until the next
// step.
type Question struct {
	o       *Oracle
	pod     *corev1.Pod
	state   fwk.CycleState
	nowhere *Verdict
	only    *fwk.PreFilterResult
	narrows sets.Set[string]
}

// Ask prepares a question.
func (o *Oracle) Ask(pod *corev1.Pod) *Question {
	q := &Question{o: o, pod: pod, state: framework.NewCycleState()}
	only, status, narrows := o.framework.RunPreFilterPlugins(o.ctx, q.state, pod)
	q.only, q.narrows = only, narrows
	if !status.IsSuccess() {
		verdict := verdictOf(status)
		if verdict.Plugin == "" {
			verdict.Plugin = narrowing(narrows)
		}
		q.nowhere = &verdict
	}
	return q
}

// On is the verdict on a node.
func (q *Question) On(node string) Verdict {
	if q.nowhere != nil {
		return *q.nowhere
	}
	if !q.only.AllNodes() && !q.only.NodeNames.Has(node) {
		return Verdict{narrowing(q.narrows), []string{"not among the nodes that the pod names"}}
	}
	info, err := q.o.snapshot.NodeInfos().Get(node)
	if err != nil {
		return Verdict{"no such node", []string{err.Error()}}
	}
	status := q.o.framework.RunFilterPlugins(q.o.ctx, q.state, q.pod, info)
	if status.IsSuccess() {
		return Verdict{}
	}
	return verdictOf(status)
}

func verdictOf(status *fwk.Status) Verdict { return Verdict{status.Plugin(), status.Reasons()} }

// narrowing names a plugin that left only some nodes.
func narrowing(plugins sets.Set[string]) string { return sets.List(plugins)[0] }
