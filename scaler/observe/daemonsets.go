package observe

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// daemonSet is a DaemonSet with what tells its pods, and those of its present template.
type daemonSet struct {
	fleet.DaemonSet
	UID types.UID
	// Generation is that of the template.
	Generation string
}

// templateGeneration is the label of a DaemonSet's pod that says of which template it came; the
// DaemonSet has it as an annotation.
// https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/controller/daemon/util/daemonset_util.go (CreatePodTemplate)
const templateGeneration = "pod-template-generation"

func newDaemonSet(d *appsv1.DaemonSet) *daemonSet {
	generation := d.Annotations[appsv1.DeprecatedTemplateGeneration]
	template := d.Spec.Template
	template.Annotations = contract.Only(template.Annotations, podAnnotations)
	slimTemplateSpec(&template.Spec)
	return &daemonSet{fleet.DaemonSet{Namespace: d.Namespace, Name: d.Name, Template: template}, d.UID, generation}
}

func daemonSetName(d *daemonSet) types.NamespacedName {
	return types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
}

// samples are the newest pod of each DaemonSet that has a node. A LimitRange, a RuntimeClass, a VPA or
// another webhook has a pod request more than its template does, and no template shows it; the pod
// does.
// https://kubernetes.io/docs/concepts/policy/limit-range/
// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/
type samples struct {
	mu     sync.Mutex
	newest map[types.UID]*fleet.Pod // by the DaemonSet
	// lost are the DaemonSets whose newest pod has gone: another is sought among all.
	lost map[types.UID]bool

	// sets are what was made of rows and the pods of used.
	rows []*daemonSet
	used []*fleet.Pod
	sets []fleet.DaemonSet
}

// note takes a change of a pod; after a Replace (was and is are nil) all of them.
func (s *samples) note(all func() []*fleet.Pod, was, is *fleet.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was == nil && is == nil {
		s.newest = nil
		for _, p := range all() {
			s.take(p)
		}
		return
	}
	if set, of := setOf(was); of && s.newest[set] == was {
		delete(s.newest, set)
		if s.lost == nil {
			s.lost = map[types.UID]bool{}
		}
		s.lost[set] = true
	}
	s.take(is)
}

func (s *samples) take(p *fleet.Pod) {
	set, of := setOf(p)
	if !of || s.newest[set] != nil && !newer(p, s.newest[set]) {
		return
	}
	if s.newest == nil {
		s.newest = map[types.UID]*fleet.Pod{}
	}
	s.newest[set] = p
}

// setOf is the DaemonSet of a pod that has a node and stays there.
func setOf(p *fleet.Pod) (set types.UID, of bool) {
	if p == nil || p.Node == "" || p.Ended() || !p.Deleted.IsZero() || p.Owner == nil || p.Owner.Kind != "DaemonSet" {
		return "", false
	}
	return p.Owner.UID, true
}

func newer(p, than *fleet.Pod) bool {
	return cmp.Or(p.Created.Time().Compare(than.Created.Time()), cmp.Compare(p.Name, than.Name)) > 0
}

// admitted are the DaemonSets as their pods will be on new nodes. The list is another one whenever
// one of them is.
func (s *samples) admitted(rows []*daemonSet, all func() []*fleet.Pod) []fleet.DaemonSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lost) > 0 {
		for _, p := range all() {
			if set, of := setOf(p); of && s.lost[set] {
				s.take(p)
			}
		}
		clear(s.lost)
	}
	used := make([]*fleet.Pod, len(rows))
	for i, row := range rows {
		// One of an earlier template says nothing of the present one.
		if p := s.newest[row.UID]; p != nil && p.Labels[templateGeneration] == row.Generation {
			used[i] = p
		}
	}
	if sameRows(s.rows, rows) && slices.Equal(s.used, used) {
		return s.sets
	}
	s.rows, s.used, s.sets = rows, used, make([]fleet.DaemonSet, len(rows))
	for i, row := range rows {
		s.sets[i] = row.DaemonSet
		if used[i] != nil {
			s.sets[i].Template.Spec = surcharged(row.Template.Spec, used[i].Spec)
		}
	}
	return s.sets
}

// surcharged is the spec of a template with what a pod requests beyond it as its overhead.
func surcharged(template corev1.PodSpec, pod *corev1.PodSpec) corev1.PodSpec {
	requests := func(spec *corev1.PodSpec) corev1.ResourceList {
		return resourcehelper.PodRequests(&corev1.Pod{Spec: *fleet.Bounded(spec)}, resourcehelper.PodResourcesOptions{})
	}
	asks, overhead := requests(&template), maps.Clone(template.Overhead)
	for name, q := range requests(pod) {
		more := q.DeepCopy()
		if more.Sub(asks[name]); more.Sign() <= 0 {
			continue
		}
		if overhead == nil {
			overhead = corev1.ResourceList{}
		}
		more.Add(overhead[name])
		overhead[name] = more
	}
	template.Overhead = overhead
	return template
}
