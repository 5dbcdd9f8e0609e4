package fit

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Class is all of a pod that decides where it fits, and where it lets others fit.
// Pods of one class are interchangeable, so each question is asked once for all of
// them.
type Class struct {
	// Key is canonical: equal for equal pods, whatever their names and owners. A pod
	// with volumes or claims is equal to no other.
	Key string

	// id numbers the classes that are known.
	id int
	*traits
	*terms
	// takes is what a pod of the class uses of a node where it is; it differs from
	// what it asks for while a resize is under way.
	takes []amount
	// matched are the selectors that select these pods, in ascending order.
	matched *matches
	// terminating pods do not count for spread.
	terminating bool
	// own is the only pod of a class that volumes or devices are asked about; nil for
	// the others.
	own *corev1.Pod
}

// Tenant is a pod with its class.
type Tenant struct {
	Pod   *fleet.Pod
	Class *Class
}

// classKey is equal for pods of one class alone.
type classKey struct {
	traits      *traits
	terms       *terms
	matched     *matches
	terminating bool
	allocated   string
	own         *fleet.Pod
}

// tenantOf finds the class of a pod that may be asked about again soon.
func (l *lore) tenantOf(p *fleet.Pod) *Class {
	class, known := l.byPod[p]
	if !known {
		class = l.classOf(p)
		l.byPod[p] = class
	}
	return class
}

// classOf finds a pod's class.
func (l *lore) classOf(p *fleet.Pod) *Class {
	t := l.traitsOf(p.Spec)
	key := classKey{
		traits: t, terms: l.termsOf(p, t), matched: l.selectors.matching(p.Namespace, p.Labels, l.namespaces),
		terminating: !p.Deleted.IsZero(), allocated: allocated(p),
	}
	if t.claims || l.asksServed(t) {
		key.own = p
	}
	l.classified++
	return l.classBy(key, p)
}

// classBy finds or makes the class of a key, which is that of a pod.
func (l *lore) classBy(key classKey, p *fleet.Pod) *Class {
	class, known := l.classes[key]
	if !known {
		class = l.newClass(key, p)
		l.classes[key] = class
	}
	return class
}

func (l *lore) newClass(k classKey, p *fleet.Pod) *Class {
	c := &Class{
		Key: k.canonical(l, p), id: len(l.classes),
		traits: k.traits, terms: k.terms, takes: k.traits.takes, matched: k.matched, terminating: k.terminating,
	}
	if resized := p.Allocated(); resized != nil {
		c.takes = l.names.taken(resized)
	}
	if k.own != nil {
		c.own = apiPod(p)
	}
	return c
}

// asksServed reports whether the pods ask for a resource that a device class serves.
func (l *lore) asksServed(t *traits) bool {
	for _, name := range t.extended {
		if l.serves(name) {
			return true
		}
	}
	return false
}

// canonical is a text that separates classes as the key does, and does not change
// from process to process.
func (k classKey) canonical(l *lore, p *fleet.Pod) string {
	text := []string{k.traits.key}
	if k.terms != nil {
		text = append(text, k.terms.key)
	}
	for _, s := range k.matched.ids {
		text = append(text, "in "+l.selectors.list[s].key)
	}
	if k.terminating {
		text = append(text, "terminating")
	}
	if k.allocated != "" {
		text = append(text, k.allocated)
	}
	if k.own != nil {
		text = append(text, p.Namespace+"/"+p.Name+"/"+string(p.UID))
	}
	return strings.Join(text, " ")
}

// Body is a canonical text of what pods of the class ask for by themselves: not which
// others have terms about them, nor which of several with claims of their own it is.
// It does not change from process to process.
func (c *Class) Body() string {
	if c.terms == nil {
		return c.traits.key
	}
	return c.traits.key + " " + c.terms.key
}

// allocated is the canonical text of what counts for a pod that is being resized.
func allocated(p *fleet.Pod) string {
	resized := p.Allocated()
	if resized == nil {
		return ""
	}
	return "resized " + encoded(resized)
}

// apiPod is the pod as kube-scheduler's plugins know it.
func apiPod(p *fleet.Pod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Labels: p.Labels, Annotations: p.Annotations},
		Spec:       *specOf(p.Spec),
	}
	pod.Status.ResourceClaimStatuses, pod.Status.ExtendedResourceClaimStatus = p.Claims(), p.ExtendedClaim()
	if p.Owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*p.Owner}
	}
	if !p.Deleted.IsZero() {
		at := metav1.NewTime(p.Deleted.Time())
		pod.DeletionTimestamp = &at
	}
	return pod
}

// encoded is the canonical text of what encodes: maps are sorted by the encoder,
// lists by whoever calls.
func encoded(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("API values always encode: %v", err))
	}
	return string(out)
}

// CPUAndMemory is what the class requests, in thousandths of a cpu and in
// bytes.
func (c *Class) CPUAndMemory() (milli, bytes int64) { return c.request(cpu), c.request(memory) }

// Requested is how much of a resource the pods of a class request, in Units.
func (c *Cluster) Requested(class *Class, name corev1.ResourceName) int64 {
	return class.request(c.lore.names.of(name))
}
