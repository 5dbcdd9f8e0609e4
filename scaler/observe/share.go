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

// A cluster has few templates and many pods. What pods of one template have in
// common is kept once, and forgotten with the last of them.

// shared keeps equal values once, by a digest of what they are.
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

// sharer makes pods share what they can.
type sharer struct {
	specs    *shared[corev1.PodSpec]
	families *shared[family]
	words    words
}

func newSharer() *sharer {
	return &sharer{specs: newShared[corev1.PodSpec](), families: newShared[family](), words: words{known: map[string]string{}}}
}

// family is what the pods of one owner have in common beside their spec. They
// hold on to it by its first field: a map cannot be pointed to.
type family struct {
	owner       metav1.OwnerReference
	labels      map[string]string
	annotations map[string]string
}

// pod changes a pod that nobody has seen yet.
func (s *sharer) pod(p *fleet.Pod) {
	p.Namespace, p.Node, p.Nominated = s.words.one(p.Namespace), s.words.one(p.Node), s.words.one(p.Nominated)
	p.Phase = corev1.PodPhase(s.words.one(string(p.Phase)))
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

// words keeps equal short strings once. Those that are gone are forgotten with
// all others, once there are too many.
type words struct {
	mu    sync.Mutex
	known map[string]string
}

// mostWords is well above the nodes and namespaces of the largest clusters.
const mostWords = 50_000

func (w *words) one(word string) string {
	if word == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if one, ok := w.known[word]; ok {
		return one
	}
	if len(w.known) >= mostWords {
		clear(w.known)
	}
	w.known[word] = word
	return word
}
