package observe

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
)

// specs keeps equal pod specs once: a cluster has few templates and many pods.
// What no pod uses any more is forgotten.
type specs struct {
	mu     sync.Mutex
	shared map[[sha256.Size]byte]weak.Pointer[corev1.PodSpec]
}

func newSpecs() *specs {
	return &specs{shared: map[[sha256.Size]byte]weak.Pointer[corev1.PodSpec]{}}
}

// share returns the spec to use in place of an equal one.
func (s *specs) share(spec *corev1.PodSpec) *corev1.PodSpec {
	encoded, err := spec.Marshal()
	if err != nil {
		return spec // nothing is wrong with a spec that is not shared
	}
	key := sha256.Sum256(encoded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.shared[key].Value(); one != nil {
		return one
	}
	s.shared[key] = weak.Make(spec)
	runtime.AddCleanup(spec, s.forget, key)
	return spec
}

// forget drops a key, unless an equal spec has come up since.
func (s *specs) forget(key [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared[key].Value() == nil {
		delete(s.shared, key)
	}
}
