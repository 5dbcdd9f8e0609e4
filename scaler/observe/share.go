package observe

import (
	"crypto/sha256"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// A cluster has few templates and many pods and nodes. What those of one template
// have in common is kept once.

// shared keeps equal values once, by a digest of what they are, and forgets each
// with the last that holds it.
type shared[T any] struct {
	mu    sync.Mutex
	known map[digest]weak.Pointer[T]
}

type digest [sha256.Size]byte

func newShared[T any]() *shared[T] { return &shared[T]{known: map[digest]weak.Pointer[T]{}} }

// share returns the value to use in place of an equal one.
func (s *shared[T]) share(key digest, value *T) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.known[key].Value(); one != nil {
		return one
	}
	s.known[key] = weak.Make(value)
	runtime.AddCleanup(value, s.forget, key)
	return value
}

// forget drops a key, unless an equal value has come up since.
func (s *shared[T]) forget(key digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].Value() == nil {
		delete(s.known, key)
	}
}

// sharer makes pods and nodes share what they can.
type sharer struct {
	specs    *shared[corev1.PodSpec]
	families *shared[family]
	words    once[string]
	rooms    once[corev1.ResourceList]
}

// Both are well above what the largest clusters have.
const (
	mostWords = 50_000 // nodes, namespaces and labels of nodes
	mostRooms = 2_000  // sizes of nodes
)

func newSharer() *sharer {
	return &sharer{
		specs: newShared[corev1.PodSpec](), families: newShared[family](),
		words: once[string]{most: mostWords}, rooms: once[corev1.ResourceList]{most: mostRooms},
	}
}

// family is what the pods of one owner have in common beside their spec. They
// hold on to it by its first field: a map cannot be pointed to.
type family struct {
	owner       metav1.OwnerReference
	labels      map[string]string
	annotations map[string]string
}

// pod changes a pod that is not published yet.
func (s *sharer) pod(p *fleet.Pod) {
	p.Namespace, p.Node = s.word(p.Namespace), s.word(p.Node)
	if encoded, err := p.Spec.Marshal(); err == nil { // nothing is wrong with a spec that is not shared
		p.Spec = s.specs.share(sha256.Sum256(encoded), p.Spec)
	}
	if p.Owner == nil {
		return
	}
	one := s.families.share(familyDigest(p), &family{*p.Owner, p.Labels, p.Annotations})
	p.Owner, p.Labels, p.Annotations = &one.owner, one.labels, one.annotations
}

func familyDigest(p *fleet.Pod) digest {
	var text strings.Builder
	o := p.Owner
	for _, word := range []string{o.APIVersion, o.Kind, o.Name, string(o.UID)} {
		text.WriteString(word + "\x00")
	}
	for _, m := range []map[string]string{p.Labels, p.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			text.WriteString(key + "\x00" + m[key] + "\x00")
		}
		text.WriteString("\x01")
	}
	return sha256.Sum256([]byte(text.String()))
}

// node changes a node that is not published yet.
func (s *sharer) node(n *fleet.Node) {
	n.Name = s.word(n.Name)
	if n.Labels != nil {
		labels := make(map[string]string, len(n.Labels))
		for key, value := range n.Labels {
			labels[s.word(key)] = s.word(value)
		}
		n.Labels = labels
	}
	n.Capacity, n.Allocatable = s.room(n.Capacity), s.room(n.Allocatable)
}

func (s *sharer) word(word string) string { return s.words.one(word, word) }

func (s *sharer) room(list corev1.ResourceList) corev1.ResourceList {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		text.WriteString(string(name) + "\x00" + amount.String() + "\x00")
	}
	return s.rooms.one(text.String(), list)
}

// once keeps equal values once, by a text that no others have. What is no longer used is
// forgotten with everything else, once there is too much.
type once[V any] struct {
	most int

	mu    sync.Mutex
	known map[string]V
}

func (o *once[V]) one(text string, value V) V {
	o.mu.Lock()
	defer o.mu.Unlock()
	if one, ok := o.known[text]; ok {
		return one
	}
	if o.known == nil || len(o.known) >= o.most {
		o.known = map[string]V{}
	}
	o.known[text] = value
	return value
}
