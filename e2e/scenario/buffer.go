package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// buffer [NAMESPACE/]NAME: a CapacityBuffer for pods of a PodTemplate of that name, with
// the words of a pod, whose label app is its name. With scalable=KIND/NAME it refers to
// that, and has= says how many pods it has; missing: what it refers to is not there.
func buffer(w *World, l line) error {
	key := podKey(l.name)
	b := find(w.Buffers, func(b *fleet.Buffer) bool { return b.Key() == key })
	if b == nil {
		namespace, name, _ := strings.Cut(key, "/")
		w.Buffers = append(w.Buffers, fleet.Buffer{
			Namespace: namespace, Name: name, UID: types.UID("uid-buffer-" + key), Template: name, Pods: &fleet.BufferPods{Generation: ptr.To(int64(1))},
		})
		b = &w.Buffers[len(w.Buffers)-1]
	}
	pods := fleet.BufferPods{Generation: ptr.To(int64(1))}
	if b.Pods != nil {
		pods = *b.Pods
	}
	b.Pods = &pods
	p := w.newPod(key)
	if t := pods.Template; t != nil {
		p.Labels, p.Annotations, p.Spec = t.Labels, t.Annotations, t.Spec.DeepCopy()
	}
	if err := podWords.apply(&podDraft{p, w.Now}, l.without(bufferWordNames...)); err != nil {
		return err
	}
	pods.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: *p.Spec}
	return bufferWords.apply(b, slices.DeleteFunc(slices.Clone(l.words), func(w word) bool { return !slices.Contains(bufferWordNames, w.key) }))
}

var bufferWordNames = []string{"replicas", "percentage", "limits", "strategy", "scalable", "has", "template", "missing", "fault"}

var bufferWords = table[fleet.Buffer]{
	"replicas":   setter(integer, func(b *fleet.Buffer, n int) { b.Replicas = ptr.To(int32(n)) }),
	"percentage": setter(integer, func(b *fleet.Buffer, n int) { b.Percentage = ptr.To(int32(n)) }),
	"limits":     setter(resources, func(b *fleet.Buffer, r corev1.ResourceList) { b.Limits = r }),
	"strategy":   setter(text, func(b *fleet.Buffer, v string) { b.Strategy = v }),
	"template":   setter(text, func(b *fleet.Buffer, v string) { b.Template = v }),
	"has":        setter(integer, func(b *fleet.Buffer, n int) { b.Pods.Replicas = ptr.To(int32(n)) }),
	"missing":    func(b *fleet.Buffer, _ string) error { b.Pods = nil; return nil },
	"fault":      setter(text, func(b *fleet.Buffer, v string) { b.Pods, b.Fault = nil, v }),
	"scalable": func(b *fleet.Buffer, v string) error {
		kind, name, err := kindAndName(v)
		if err != nil {
			return err
		}
		groups := map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "Job": "batch", "ReplicationController": ""}
		group, usual := groups[kind]
		if !usual {
			group = "example.com"
		}
		b.Template, b.Scalable, b.Pods.Generation = "", &fleet.Scalable{Group: group, Kind: kind, Name: name}, nil
		return nil
	},
}

// resources reads cpu=2,memory=4Gi.
func resources(value string) (corev1.ResourceList, error) {
	m, err := pairs(value)
	if err != nil {
		return nil, err
	}
	out := corev1.ResourceList{}
	for name, text := range m {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: want a quantity such as 500m or 2Gi", name)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

// InformBuffer writes the status of a buffer.
func (w *World) InformBuffer(namespace, name string, status fleet.BufferStatus) error {
	b := find(w.Buffers, func(b *fleet.Buffer) bool { return b.Namespace == namespace && b.Name == name })
	if b == nil {
		return fmt.Errorf("buffer %s/%s is not there", namespace, name)
	}
	b.Status = status
	return nil
}

// buffer prints one but for its status.
func (p *printer) buffer(b fleet.Buffer) {
	var words []string
	for _, n := range []struct {
		word  string
		value *int32
	}{{"replicas", b.Replicas}, {"percentage", b.Percentage}} {
		if n.value != nil {
			words = append(words, fmt.Sprintf("%s=%d", n.word, *n.value))
		}
	}
	words = append(words, said("limits", printPairs(printed(b.Limits))), said("strategy", b.Strategy))
	if s := b.Scalable; s != nil {
		words = append(words, said("scalable", s.Kind+"/"+s.Name), said("template", b.Template))
	} else {
		words = append(words, other("template", b.Template, b.Name))
	}
	switch {
	case b.Pods == nil && b.Fault != "":
		words = append(words, said("fault", b.Fault))
	case b.Pods == nil:
		words = append(words, "missing")
	default:
		if n := b.Pods.Replicas; n != nil {
			words = append(words, fmt.Sprintf("has=%d", *n))
		}
		if usual := NewWorld().newPod(b.Key()).Labels; printPairs(b.Pods.Template.Labels) != printPairs(usual) {
			words = append(words, said("labels", printPairs(b.Pods.Template.Labels)))
		}
		words = append(words, specWords(&b.Pods.Template.Spec)...)
	}
	p.line("buffer", strings.TrimPrefix(b.Key(), metav1.NamespaceDefault+"/"), words...)
}

// quota [NAMESPACE/]NAME hard=cpu=4 used=cpu=1 scopes=BestEffort: a ResourceQuota.
func quota(w *World, l line) error {
	key := podKey(l.name)
	q := find(w.Quotas, func(q *fleet.Quota) bool { return q.Key() == key })
	if q == nil {
		namespace, name, _ := strings.Cut(key, "/")
		w.Quotas = append(w.Quotas, fleet.Quota{Namespace: namespace, Name: name})
		q = &w.Quotas[len(w.Quotas)-1]
	}
	return quotaWords.apply(q, l.words)
}

var quotaWords = table[fleet.Quota]{
	"hard": setter(resources, func(q *fleet.Quota, r corev1.ResourceList) { q.Hard = r }),
	"used": setter(resources, func(q *fleet.Quota, r corev1.ResourceList) { q.Used = r }),
	"scopes": func(q *fleet.Quota, v string) error {
		q.Scopes = nil
		for _, scope := range list(v) {
			q.Scopes = append(q.Scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScope(scope), Operator: corev1.ScopeSelectorOpExists})
		}
		return nil
	},
}

func (p *printer) quota(q fleet.Quota) {
	var scopes []string
	for _, s := range q.Scopes {
		scopes = append(scopes, string(s.ScopeName))
	}
	p.line("quota", strings.TrimPrefix(q.Key(), metav1.NamespaceDefault+"/"),
		said("hard", printPairs(printed(q.Hard))), said("used", printPairs(printed(q.Used))), said("scopes", strings.Join(scopes, ",")))
}

func printed(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}
