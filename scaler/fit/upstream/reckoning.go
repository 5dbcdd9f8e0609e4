package upstream

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	binary "k8s.io/component-base/version"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// Gates are those features of the server's version by which others than these
// plugins reckon what a pod asks for.
type Gates struct {
	// PodLevelResources: spec.resources counts instead of the containers' sum.
	// https://github.com/kubernetes/enhancements/issues/2837
	PodLevelResources bool
	// NodeInclusionPolicy: spread constraints choose which nodes count.
	// https://github.com/kubernetes/enhancements/issues/3094
	NodeInclusionPolicy bool
	// MatchLabelKeys: spread constraints select by the values of the pod's labels.
	// https://github.com/kubernetes/enhancements/issues/3243
	MatchLabelKeys bool
	// Comparison: tolerations may compare numbers.
	// https://github.com/kubernetes/enhancements/issues/5471
	Comparison bool
}

// Gates of the version that the plugins were made for.
func (f *Filters) Gates() Gates {
	return Gates{
		PodLevelResources:   f.features.EnablePodLevelResources,
		NodeInclusionPolicy: f.features.EnableNodeInclusionPolicyInPodTopologySpread,
		MatchLabelKeys:      f.features.EnableMatchLabelKeysInPodTopologySpread,
		Comparison:          f.features.EnableTaintTolerationComparisonOperators,
	}
}

// Needs names the features that a node must declare for the pod, as one text; it
// is empty where none are needed. Pods of equal needs are equal to
// NodeDeclaredFeatures.
func (f *Filters) Needs(spec *corev1.PodSpec) string {
	if !f.features.EnableNodeDeclaredFeatures {
		return ""
	}
	v, err := builtWith()
	if err != nil {
		return err.Error()
	}
	needs, err := ndf.DefaultFramework.InferForPodScheduling(&ndf.PodInfo{Spec: spec}, v)
	if err != nil {
		return err.Error()
	}
	if needs.IsEmpty() {
		return ""
	}
	return needs.String()
}

// builtWith is the version of the plugins, which NodeDeclaredFeatures goes by.
var builtWith = sync.OnceValues(func() (*version.Version, error) { return version.Parse(binary.Get().String()) })

// Countable reports whether NodeResourcesFit counts a resource beside cpu, memory and
// ephemeral storage.
func Countable(name corev1.ResourceName) bool { return util.IsScalarResourceName(name) }
