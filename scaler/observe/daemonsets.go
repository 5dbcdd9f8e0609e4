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

// samples are the newest pods of each DaemonSet that have a node. A LimitRange, a RuntimeClass, a VPA or
// another webhook has a pod request more than its template does, and no template shows it; the pods
// do.
// https://kubernetes.io/docs/concepts/policy/limit-range/
// https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/
type samples struct {
	mu     sync.Mutex
	newest map[types.NamespacedName][]*fleet.Pod // by the DaemonSet, mostSamples of each at the most
	// lost are the DaemonSets of which one of so many has gone: another is sought among all.
	lost map[types.NamespacedName]bool

	// sets are what was made of rows and the pods of used.
	rows []*daemonSet
	used [][]*fleet.Pod
	sets []fleet.DaemonSet
}

// mostSamples are asked what a DaemonSet's pods request: what one alone does, because it was resized or
// its node is large, says nothing of the next.
const mostSamples = 3

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
	if set, of := setOf(was); of {
		s.drop(set, was, is)
	}
	s.take(is)
}

// drop forgets a pod of a set. Where it is the same pod that has changed none is sought in its place.
func (s *samples) drop(set types.NamespacedName, was, is *fleet.Pod) {
	list := s.newest[set]
	at := slices.Index(list, was)
	if at < 0 {
		return
	}
	full := len(list) == mostSamples
	if s.newest[set] = slices.Delete(list, at, at+1); len(list) == 1 {
		delete(s.newest, set)
	}
	if same, of := setOf(is); of && same == set && newer(is, was) == 0 || !full {
		return
	}
	if s.lost == nil {
		s.lost = map[types.NamespacedName]bool{}
	}
	s.lost[set] = true
}

func (s *samples) take(p *fleet.Pod) {
	set, of := setOf(p)
	if !of {
		return
	}
	list := s.newest[set]
	at, known := slices.BinarySearchFunc(list, p, newer)
	if known || at == mostSamples {
		return
	}
	if s.newest == nil {
		s.newest = map[types.NamespacedName][]*fleet.Pod{}
	}
	list = slices.Insert(list, at, p)
	s.newest[set] = list[:min(len(list), mostSamples)]
}

// setOf is the DaemonSet, by its namespace and UID, of a pod that has a node and stays there.
func setOf(p *fleet.Pod) (set types.NamespacedName, of bool) {
	if p == nil || p.Node == "" || p.Ended() || !p.Deleted.IsZero() || p.Owner == nil || p.Owner.Kind != "DaemonSet" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: p.Namespace, Name: string(p.Owner.UID)}, true
}

// newer puts the newest first; pods of the same second by their names.
func newer(p, than *fleet.Pod) int {
	return cmp.Or(than.Created.Time().Compare(p.Created.Time()), cmp.Compare(p.Name, than.Name))
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
	used := make([][]*fleet.Pod, len(rows))
	for i, row := range rows {
		for _, p := range s.newest[types.NamespacedName{Namespace: row.Namespace, Name: string(row.UID)}] {
			if p.Labels[templateGeneration] == row.Generation { // one of an earlier template says nothing
				used[i] = append(used[i], p)
			}
		}
	}
	if sameRows(s.rows, rows) && slices.EqualFunc(s.used, used, slices.Equal) {
		return s.sets
	}
	s.rows, s.used, s.sets = rows, used, make([]fleet.DaemonSet, len(rows))
	for i, row := range rows {
		s.sets[i] = row.DaemonSet
		s.sets[i].Template.Spec = surcharged(row.Template.Spec, used[i])
	}
	return s.sets
}

// surcharged is the spec of a template with what each of some pods requests beyond it as its overhead.
func surcharged(template corev1.PodSpec, pods []*fleet.Pod) corev1.PodSpec {
	requests := func(spec *corev1.PodSpec) corev1.ResourceList {
		return resourcehelper.PodRequests(&corev1.Pod{Spec: *fleet.Bounded(spec)}, resourcehelper.PodResourcesOptions{})
	}
	var least corev1.ResourceList
	for i, p := range pods {
		asks := requests(p.Spec)
		if i == 0 {
			least = asks
		}
		for name, q := range least {
			if has := asks[name]; has.Cmp(q) < 0 {
				least[name] = has
			}
		}
	}
	overhead := maps.Clone(template.Overhead)
	asks := requests(&template)
	for name, q := range least {
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
