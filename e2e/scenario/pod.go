package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// podDraft is a pod while its line is read.
type podDraft struct {
	*fleet.Pod
	now time.Time
}

// pod [NAMESPACE/]NAME: of a ReplicaSet called like it without the number, which
// is its label app too; Running and Ready where on=NODE is said, and waiting,
// Unschedulable, otherwise; an hour old.
func pod(w *World, l line) error {
	p := w.pod(podKey(l.name))
	if p == nil {
		p = w.newPod(podKey(l.name))
		w.Pods = append(w.Pods, p)
	}
	p.Spec = p.Spec.DeepCopy()
	return podWords.apply(&podDraft{p, w.Now}, l.words)
}

// podKey adds the namespace where it is not said.
func podKey(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return metav1.NamespaceDefault + "/" + name
}

func (w *World) newPod(key string) *fleet.Pod {
	namespace, name, _ := strings.Cut(key, "/")
	app := strings.TrimRight(strings.TrimRight(name, "0123456789"), "-")
	return &fleet.Pod{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + key), Created: fleet.SecondOf(w.Now.Add(-firstAge)),
		Labels: map[string]string{"app": app}, Owner: ownerReference("ReplicaSet", namespace, app),
		Spec:  &corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
		Phase: fleet.PodPending, Scheduling: fleet.Unschedulable, Judged: fleet.SecondOf(w.Now),
	}
}

var podWords = table[podDraft]{
	"on": setter(text, func(d *podDraft, v string) {
		d.Node, d.Phase, d.Ready, d.Scheduling, d.Judged = v, fleet.PodRunning, true, fleet.Unjudged, 0
	}),
	"waiting":    waits(fleet.Unschedulable),
	"unjudged":   waits(fleet.Unjudged),
	"gated":      waits(fleet.Gated),
	"unbindable": waits(fleet.Unbindable),
	"judged":     setter(clockTime, func(d *podDraft, t time.Time) { d.Judged = fleet.SecondOf(t) }),
	"nominated":  setter(text, func(d *podDraft, v string) { d.Nominate(v) }),
	"starting":   func(d *podDraft, _ string) error { d.Phase, d.Ready = fleet.PodPending, false; return nil },
	"unready":    func(d *podDraft, _ string) error { d.Ready = false; return nil },
	"ready":      func(d *podDraft, _ string) error { d.Phase, d.Ready = fleet.PodRunning, true; return nil },
	"succeeded":  func(d *podDraft, _ string) error { d.Phase, d.Ready = fleet.PodSucceeded, false; return nil },
	"failed":     func(d *podDraft, _ string) error { d.Phase, d.Ready = fleet.PodFailed, false; return nil },
	"ends":       setter(clockTime, func(d *podDraft, t time.Time) { d.Deleted = fleet.SecondOf(t) }),
	"age":        setter(duration, func(d *podDraft, t time.Duration) { d.Created = fleet.SecondOf(d.now.Add(-t)) }),

	"cpu": setter(quantity, func(d *podDraft, q resource.Quantity) { d.request(corev1.ResourceCPU, q) }),
	"mem": setter(quantity, func(d *podDraft, q resource.Quantity) { d.request(corev1.ResourceMemory, q) }),
	"gpu": setter(quantity, func(d *podDraft, q resource.Quantity) { d.request(gpu, q) }),

	"labels": setter(pairs, func(d *podDraft, m map[string]string) { d.Labels = m }),
	"owner": setter(text, func(d *podDraft, v string) {
		kind, name, ok := strings.Cut(v, "/")
		if !ok {
			kind, name = "ReplicaSet", v
		}
		d.Owner = ownerReference(kind, d.Namespace, name)
	}),
	"naked":    func(d *podDraft, _ string) error { d.Owner = nil; return nil },
	"mirror":   func(d *podDraft, _ string) error { d.annotate(contract.AnnotationMirror, "x"); return nil },
	"safe":     setter(text, func(d *podDraft, v string) { d.annotate(contract.AnnotationSafeToEvict, v) }),
	"annotate": setter(pairs, func(d *podDraft, m map[string]string) { d.annotateAll(m) }),
	"local": func(d *podDraft, _ string) error {
		d.Spec.Volumes = append(d.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		return nil
	},

	"claim":     setter(text, (*podDraft).claims),
	"priority":  setter(integer, func(d *podDraft, n int) { d.Spec.Priority = ptr.To(int32(n)) }),
	"selector":  setter(pairs, func(d *podDraft, m map[string]string) { d.Spec.NodeSelector = m }),
	"affinity":  setter(pairs, func(d *podDraft, m map[string]string) { d.affinity().NodeAffinity = nodeAffinity(m) }),
	"tolerates": setter(text, func(d *podDraft, v string) { d.Spec.Tolerations = tolerations(v) }),
	"hostport": setter(integer, func(d *podDraft, n int) {
		d.Spec.Containers[0].Ports = append(d.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(n), ContainerPort: int32(n)})
	}),
	"scheduler": setter(text, func(d *podDraft, v string) { d.Spec.SchedulerName = v }),
	"gang":      setter(text, func(d *podDraft, v string) { d.annotate(contract.AnnotationAllOrNothing, v) }),
	"podgroup": setter(text, func(d *podDraft, v string) {
		d.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &v}
	}),
	"apart": func(d *podDraft, domain string) error { // a node each, or another domain
		d.affinity().PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: withPods(d.Labels, cmp.Or(domain, corev1.LabelHostname))}
		return nil
	},
	"together": setter(text, func(d *podDraft, domain string) { // in one domain with its like
		d.affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: withPods(d.Labels, domain)}
	}),
	"near": setter(pairs, func(d *podDraft, m map[string]string) { // in a zone with pods of these labels
		d.affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: withPods(m, corev1.LabelTopologyZone)}
	}),
	"spread": setter(text, func(d *podDraft, key string) {
		d.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: d.Labels},
		}}
	}),
	// honor has the spread before it not count nodes whose taints are not tolerated.
	"honor": func(d *podDraft, _ string) error {
		for i := range d.Spec.TopologySpreadConstraints {
			d.Spec.TopologySpreadConstraints[i].NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
		}
		return nil
	},
	// mindomains is that of the spread before it.
	"mindomains": setter(integer, func(d *podDraft, n int) {
		for i := range d.Spec.TopologySpreadConstraints {
			d.Spec.TopologySpreadConstraints[i].MinDomains = ptr.To(int32(n))
		}
	}),
}

// withPods is the term of pods that are in a domain with pods of these labels.
func withPods(labels map[string]string, domain string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: domain}}
}

func waits(s fleet.Scheduling) func(*podDraft, string) error {
	return func(d *podDraft, _ string) error {
		d.Node, d.Phase, d.Ready, d.Scheduling, d.Judged = "", fleet.PodPending, false, s, fleet.SecondOf(d.now)
		return nil
	}
}

func (d *podDraft) request(name corev1.ResourceName, q resource.Quantity) {
	r := &d.Spec.Containers[0].Resources
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[name] = q
}

func (d *podDraft) annotate(key, value string) {
	d.Annotations = maps.Clone(d.Annotations)
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[key] = value
}

func (d *podDraft) annotateAll(m map[string]string) {
	for k, v := range m {
		d.annotate(k, v)
	}
}

// nodeAffinity requires labels; the values of one are separated by bars.
func nodeAffinity(m map[string]string) *corev1.NodeAffinity {
	var term corev1.NodeSelectorTerm
	for _, key := range slices.Sorted(maps.Keys(m)) {
		term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(m[key], "|"),
		})
	}
	return &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
	}
}

func (d *podDraft) affinity() *corev1.Affinity {
	if d.Spec.Affinity == nil {
		d.Spec.Affinity = &corev1.Affinity{}
	}
	return d.Spec.Affinity
}

// pdb [NAMESPACE/]NAME: allowed=1, match=app=NAME, everyone healthy.
func pdb(w *World, l line) error {
	key := podKey(l.name)
	namespace, name, _ := strings.Cut(key, "/")
	i := slices.IndexFunc(w.Budgets, func(b fleet.Budget) bool { return b.Key() == key })
	if i < 0 {
		i = len(w.Budgets)
		w.Budgets = append(w.Budgets, fleet.Budget{
			Namespace: namespace, Name: name, Allowed: 1, Healthy: 2, Desired: 1,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		})
	}
	return pdbWords.apply(&w.Budgets[i], l.words)
}

var pdbWords = table[fleet.Budget]{
	"allowed": setter(integer, func(b *fleet.Budget, n int) { b.Allowed = int32(n) }),
	"healthy": setter(integer, func(b *fleet.Budget, n int) { b.Healthy = int32(n) }),
	"desired": setter(integer, func(b *fleet.Budget, n int) { b.Desired = int32(n) }),
	"match":   setter(pairs, func(b *fleet.Budget, m map[string]string) { b.Selector = &metav1.LabelSelector{MatchLabels: m} }),
	"all":     func(b *fleet.Budget, _ string) error { b.Selector = &metav1.LabelSelector{}; return nil },
	"lenient": func(b *fleet.Budget, _ string) error { b.AlwaysAllowUnhealthy = true; return nil },
}

// daemonset [NAMESPACE/]NAME, with the words of its pods, whose label app is its name.
func daemonSet(w *World, l line) error {
	namespace, name, ok := strings.Cut(l.name, "/")
	if !ok {
		namespace, name = metav1.NamespaceDefault, l.name
	}
	p := w.newPod(namespace + "/" + name)
	if err := podWords.apply(&podDraft{p, w.Now}, l.words); err != nil {
		return err
	}
	if slices.ContainsFunc(w.DaemonSets, func(d fleet.DaemonSet) bool { return d.Namespace == namespace && d.Name == name }) {
		return fmt.Errorf("it is there already, and does not change")
	}
	w.DaemonSets = append(w.DaemonSets, fleet.DaemonSet{
		Namespace: namespace, Name: name,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: *p.Spec},
	})
	return nil
}
