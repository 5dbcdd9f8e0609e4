package fit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"windlass.dev/windlass/pkg/fleet"
)

// unseen names what a pod asks for that this package does not look at yet.
// Preferences are not asked for: they keep no pod off a node.
func unseen(spec *corev1.PodSpec) []string {
	var terms []string
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			terms = append(terms, "pod affinity")
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			terms = append(terms, "pod anti-affinity")
		}
	}
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		terms = append(terms, "topology spread")
	}
	if slices.ContainsFunc(spec.Volumes, bindsToPlaces) {
		terms = append(terms, "volumes")
	}
	if len(spec.ResourceClaims) > 0 {
		terms = append(terms, "resource claims")
	}
	return terms
}

// bindsToPlaces says that a volume may exist on some nodes only, or that a node
// takes a limited number of them.
func bindsToPlaces(v corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil ||
		v.AWSElasticBlockStore != nil || v.GCEPersistentDisk != nil || v.AzureDisk != nil || v.ISCSI != nil || v.RBD != nil
}

// repulsion is a required anti-affinity term of a pod of the cluster: it keeps
// other pods away, also those that say nothing of it themselves.
type repulsion struct {
	namespaces []string
	everywhere bool
	selector   labels.Selector
}

func (r repulsion) repels(p *fleet.Pod) bool {
	if !r.everywhere && !slices.Contains(r.namespaces, p.Namespace) {
		return false
	}
	return r.selector.Matches(labels.Set(p.Labels))
}

// repulsions of one pod. A namespace selector may select any namespace.
func repulsions(p *fleet.Pod) []repulsion {
	if p.Spec == nil || p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	var list []repulsion
	for _, term := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			continue
		}
		namespaces := term.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{p.Namespace}
		}
		list = append(list, repulsion{namespaces: namespaces, everywhere: term.NamespaceSelector != nil, selector: selector})
	}
	return list
}
