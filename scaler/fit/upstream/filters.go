package upstream

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
)

// Filters are kube-scheduler's filter plugins of the default profile. They answer
// the same to the same question: they have no clock, log nothing, call nobody and
// leave no goroutine behind. Not for concurrent use.
type Filters struct {
	features feature.Features
	static   []fwk.FilterPlugin
}

// Refusal is what one plugin has against a pod on a node.
type Refusal struct {
	// Plugin is its name, such as TaintToleration.
	Plugin string
	// Reasons are in its own words.
	Reasons []string
	// Unresolvable says that no other pod's leaving would change it.
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
	f := &Filters{features: features}
	if err := f.makeStatic(handle{}); err != nil {
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

// Static says what keeps a pod off a node that no other object decides: cordon,
// name, taints, selectors and node affinity, declared features. Every plugin that
// refuses is in it; none does where it is empty.
func (f *Filters) Static(pod *corev1.Pod, node *corev1.Node) []Refusal {
	info := framework.NewNodeInfo()
	info.SetNode(node)
	state := framework.NewCycleState()
	var refusals []Refusal
	for _, plugin := range f.static {
		if refusal, refused := ask(plugin, state, pod, info); refused {
			refusals = append(refusals, refusal)
		}
	}
	return refusals
}

// ask asks one plugin, with its preparation for the pod before where it has one.
func ask(plugin fwk.FilterPlugin, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) (Refusal, bool) {
	if prepares, ok := plugin.(fwk.PreFilterPlugin); ok {
		only, status := prepares.PreFilter(silent, state, pod, []fwk.NodeInfo{info})
		if status.IsSkip() {
			return Refusal{}, false
		}
		if !status.IsSuccess() {
			return refusalOf(plugin.Name(), status), true
		}
		if !only.AllNodes() && !only.NodeNames.Has(info.Node().Name) {
			return Refusal{Plugin: plugin.Name(), Reasons: []string{"the pod names other nodes"}, Unresolvable: true}, true
		}
	}
	if status := plugin.Filter(silent, state, pod, info); !status.IsSuccess() {
		return refusalOf(plugin.Name(), status), true
	}
	return Refusal{}, false
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
