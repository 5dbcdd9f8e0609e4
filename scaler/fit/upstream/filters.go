package upstream

import (
	"errors"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
)

// Filters are kube-scheduler's filter plugins of the default profile. They answer
// the same to the same question: they have no clock, log nothing, call no server and
// leave no goroutine behind. Not for concurrent use.
type Filters struct {
	features feature.Features
	static   []fwk.FilterPlugin

	// seldom are the plugins for volumes and devices, in their order; volumes and
	// devices those of them that reserve.
	seldom           []fwk.FilterPlugin
	volumes, devices fwk.ReservePlugin

	world *world
	// question is what was last asked about the world as it is.
	question *question
	// seats are the pods seated since Sync, the last one last.
	seats []*seat
}

// Refusal is what one plugin has against a pod on a node.
type Refusal struct {
	// Plugin is its name, such as TaintToleration.
	Plugin string
	// Reasons are in its own words.
	Reasons []string
	// Unresolvable is true if no other pod's leaving would change it.
	Unresolvable bool
}

// New makes the plugins with the feature gates of a server version, such as 1.36
// or v1.35.2-eks-1: those of 1.33 for an older one, and of the newest known for a
// newer one and for "". A version that is none is an error.
//
// Kubernetes has one set of feature gates for the whole process, and the plugins
// read some of them at every call. New sets them; Filters made before for another
// version give wrong answers from then on.
func New(serverVersion string) (*Filters, error) {
	v, err := known(serverVersion)
	if err != nil {
		return nil, err
	}
	features, err := follow(v)
	if err != nil {
		return nil, err
	}
	f := &Filters{features: features, world: newWorld()}
	h := handle{world: f.world}
	if err := errors.Join(f.makeStatic(h), f.makeSeldom(h)); err != nil {
		return nil, fmt.Errorf("making the plugins of Kubernetes %s: %w", v, err)
	}
	return f, nil
}

// makeStatic makes the plugins that look at a pod and a node alone, in the order
// of the default profile.
func (f *Filters) makeStatic(h fwk.Handle) error {
	for _, make := range []func() (fwk.Plugin, error){
		func() (fwk.Plugin, error) { return nodeunschedulable.New(silent, nil, h, f.features) },
		func() (fwk.Plugin, error) { return nodename.New(silent, nil, h, f.features) },
		func() (fwk.Plugin, error) { return tainttoleration.New(silent, nil, h, f.features) },
		func() (fwk.Plugin, error) { return nodeaffinity.New(silent, &config.NodeAffinityArgs{}, h, f.features) },
		func() (fwk.Plugin, error) { return nodedeclaredfeatures.New(silent, nil, h, f.features) },
	} {
		plugin, err := make()
		if err != nil {
			return err
		}
		f.static = append(f.static, plugin.(fwk.FilterPlugin))
	}
	return nil
}

// makeSeldom makes the plugins for volumes and devices, in the order of the
// default profile.
func (f *Filters) makeSeldom(h fwk.Handle) error {
	restrictions, err1 := volumerestrictions.New(silent, nil, h, f.features)
	limits, err2 := nodevolumelimits.NewCSI(silent, nil, h, f.features)
	binding, err3 := volumebinding.New(silent, &config.VolumeBindingArgs{}, h, f.features)
	zone, err4 := volumezone.New(silent, nil, h, f.features)
	devices, err5 := dynamicresources.New(silent, f.devicesArgs(), h, f.features)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	for _, plugin := range []fwk.Plugin{restrictions, limits, binding, zone, devices} {
		f.seldom = append(f.seldom, plugin.(fwk.FilterPlugin))
	}
	f.volumes, f.devices = binding.(fwk.ReservePlugin), devices.(fwk.ReservePlugin)
	return nil
}

// devicesArgs leave the clock out: no search ends by time (see patience), and no
// device counts as one that will never get ready.
func (f *Filters) devicesArgs() *config.DynamicResourcesArgs {
	args := &config.DynamicResourcesArgs{}
	if f.features.EnableDRADeviceBindingConditions && f.features.EnableDRAResourceClaimDeviceStatus {
		args.BindingTimeout = &metav1.Duration{Duration: math.MaxInt64}
	}
	return args
}

// Static returns what keeps a pod off a node that no other object decides: cordon,
// name, taints, selectors and node affinity, declared features. Every plugin that
// refuses is in it; none does where it is empty.
func (f *Filters) Static(pod *corev1.Pod, node *corev1.Node) []Refusal {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return newQuestion(pod, f.static, info).answer(info).refusals
}

// refusalOf a status. One that is an error refuses too: kube-scheduler does not
// place the pod either.
func refusalOf(plugin string, status *fwk.Status) Refusal {
	return Refusal{
		Plugin:       plugin,
		Reasons:      slices.Clone(status.Reasons()),
		Unresolvable: status.Code() == fwk.UnschedulableAndUnresolvable,
	}
}
