package upstream

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	plugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// The versions whose feature gates are known. The newest is that of the plugins.
var (
	oldest = version.MajorMinor(1, 33)
	newest = version.MajorMinor(1, 36)
)

// known finds the version to follow for a server that calls itself v.
func known(v string) (*version.Version, error) {
	if v == "" {
		return newest, nil
	}
	parsed, err := version.ParseGeneric(v)
	if err != nil {
		return nil, fmt.Errorf("the version of the Kubernetes server: %w", err)
	}
	minor := version.MajorMinor(parsed.Major(), parsed.Minor())
	switch {
	case minor.LessThan(oldest):
		return oldest, nil
	case minor.GreaterThan(newest):
		return newest, nil
	}
	return minor, nil
}

// follow sets the feature gates of this process to what they are by default in
// that version of Kubernetes. This is the one place that does: what the plugins
// read at their start comes back, but what a pod requests and what a node is are
// reckoned by the gates that are set at that moment.
func follow(v *version.Version) (plugins.Features, error) {
	gates := feature.DefaultMutableFeatureGate.(featuregate.MutableVersionedFeatureGateWithLogger)
	if err := gates.SetEmulationVersionWithLogger(klog.Logger{}, v); err != nil {
		return plugins.Features{}, fmt.Errorf("setting the feature gates of Kubernetes %s: %w", v, err)
	}
	return plugins.NewSchedulerFeaturesFromGates(feature.DefaultFeatureGate), nil
}
