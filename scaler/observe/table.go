package observe

import (
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// table holds the latest state of every object of one kind, in our words. A
// reflector fills it; the API's own objects are not kept.
type table[O object, T any] struct {
	// convert takes what we need; slim drops the rest from an object that has
	// just come off the wire, before it is converted.
	convert func(O) T
	slim    func(O)
	// differ says whether a change is one that decisions can see.
	differ func(was, is *T) bool
	// changed hears of every such change; was is nil for a new object, is for
	// one that is gone.
	changed func(was, is *T)

	mu       sync.Mutex
	rows     map[types.NamespacedName]int
	keys     []types.NamespacedName // of the row at each index
	list     []T
	versions map[types.NamespacedName]string // of nodes only, for await
	shared   bool                            // list was handed out: copy before writing
	synced   bool
	moved    chan struct{} // closed and replaced whenever a version moves
}

type object interface {
	metav1.Object
	runtime.Object
}

func newTable[O object, T any](convert func(O) T, differ func(was, is *T) bool, changed func(was, is *T)) *table[O, T] {
	return &table[O, T]{
		convert: convert, differ: differ, changed: changed, slim: func(O) {},
		rows: map[types.NamespacedName]int{}, moved: make(chan struct{}),
	}
}

var _ cache.TransformingStore = (*table[object, int])(nil)

// Transformer slims objects while a long list of them is still arriving.
func (t *table[O, T]) Transformer() cache.TransformFunc {
	return func(in any) (any, error) {
		if o, ok := in.(O); ok {
			o.SetManagedFields(nil)
			t.slim(o)
		}
		return in, nil
	}
}

// Add is Update: a watch that was broken may tell of either.
func (t *table[O, T]) Add(in any) error { return t.Update(in) }

// Update takes the new state of an object.
func (t *table[O, T]) Update(in any) error {
	o, err := of[O](in)
	if err != nil {
		return err
	}
	t.slim(o)
	key, is := keyOf(o), t.convert(o)
	t.mu.Lock()
	was := t.put(key, is)
	t.version(key, o.GetResourceVersion())
	t.mu.Unlock()
	t.tell(was, &is)
	return nil
}

// Delete takes an object out.
func (t *table[O, T]) Delete(in any) error {
	if gone, ok := in.(cache.DeletedFinalStateUnknown); ok {
		in = gone.Obj
	}
	o, err := of[O](in)
	if err != nil {
		return err
	}
	t.mu.Lock()
	was := t.drop(keyOf(o))
	t.mu.Unlock()
	t.tell(was, nil)
	return nil
}

// Replace takes a whole list. It is told of as one change.
func (t *table[O, T]) Replace(items []any, _ string) error {
	fresh := newTable(t.convert, t.differ, t.changed)
	if t.versions != nil {
		fresh.versions = map[types.NamespacedName]string{}
	}
	for _, item := range items {
		o, err := of[O](item)
		if err != nil {
			return err
		}
		t.slim(o)
		fresh.put(keyOf(o), t.convert(o))
		fresh.version(keyOf(o), o.GetResourceVersion())
	}
	t.mu.Lock()
	t.rows, t.keys, t.list, t.versions, t.shared, t.synced = fresh.rows, fresh.keys, fresh.list, fresh.versions, false, true
	t.wake()
	t.mu.Unlock()
	t.changed(nil, nil)
	return nil
}

// Resync has nothing to do.
func (t *table[O, T]) Resync() error { return nil }

// snapshot returns all rows, in no order. The result is not written to any
// more; it is the same slice until something changes.
func (t *table[O, T]) snapshot() []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = true
	return t.list[:len(t.list):len(t.list)]
}

func (t *table[O, T]) hasSynced() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.synced
}

// reached says whether an object is as new as a version, or gone. If not, the
// channel tells when to ask again.
func (t *table[O, T]) reached(key types.NamespacedName, version string) (bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have, ok := t.versions[key]
	if !ok {
		return true, nil
	}
	order, err := resourceversion.CompareResourceVersion(have, version)
	return err != nil || order >= 0, t.moved
}

// put, drop, version, own and wake are called with mu held.

func (t *table[O, T]) put(key types.NamespacedName, is T) (was *T) {
	t.own()
	if at, ok := t.rows[key]; ok {
		old := t.list[at]
		t.list[at] = is
		return &old
	}
	t.rows[key] = len(t.list)
	t.keys, t.list = append(t.keys, key), append(t.list, is)
	return nil
}

// drop moves the last row into the gap.
func (t *table[O, T]) drop(key types.NamespacedName) (was *T) {
	at, ok := t.rows[key]
	if !ok {
		return nil
	}
	t.own()
	old, last := t.list[at], len(t.list)-1
	t.list[at], t.keys[at] = t.list[last], t.keys[last]
	t.rows[t.keys[at]] = at
	delete(t.rows, key)
	delete(t.versions, key)
	var none T
	t.list[last] = none
	t.list, t.keys = t.list[:last], t.keys[:last]
	t.wake()
	return &old
}

func (t *table[O, T]) version(key types.NamespacedName, version string) {
	if t.versions == nil {
		return
	}
	t.versions[key] = version
	t.wake()
}

// own leaves the handed out list to whoever has it.
func (t *table[O, T]) own() {
	if t.shared {
		t.list, t.shared = slices.Clone(t.list), false
	}
}

func (t *table[O, T]) wake() {
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *table[O, T]) tell(was, is *T) {
	if was == nil && is == nil {
		return
	}
	if was != nil && is != nil && !t.differ(was, is) {
		return
	}
	t.changed(was, is)
}

func of[O object](in any) (O, error) {
	o, ok := in.(O)
	if !ok {
		var want O
		return want, fmt.Errorf("watch gave a %T, want a %T", in, want)
	}
	return o, nil
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
