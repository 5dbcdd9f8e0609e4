package observe

import (
	"context"
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
// reflector fills it; the API's own objects are not kept. A row never changes:
// a change puts another one in its place, so whoever has seen a row may keep it.
type table[O object, T any] struct {
	// convert takes what we need; slim drops the rest from an object that has
	// just come off the wire, before it is converted.
	convert func(O) *T
	slim    func(O)
	// key is the name of a row.
	key func(*T) types.NamespacedName
	// differ reports whether a change is one that decisions can see.
	differ func(was, is *T) bool
	// changed is called for every such change; was is nil for a new object, is for a deleted
	// one.
	changed func(was, is *T)
	// most is how many rows are kept, beside those that vital is true of; 0 for any number. Those
	// that come later are left out.
	most  int
	vital func(*T) bool
	// asked is called when a whole list is asked for, and listed when it has come: in between the
	// table is behind.
	asked, listed func()

	mu       sync.Mutex
	list     []*T
	rows     index                           // of list
	versions map[types.NamespacedName]string // nil where none is awaited
	shared   bool                            // list was handed out: copy before writing
	synced   bool
	moved    chan struct{} // closed and replaced whenever a version moves
}

type object interface {
	metav1.Object
	runtime.Object
}

func newTable[O object, T any](convert func(O) *T, key func(*T) types.NamespacedName, differ func(was, is *T) bool, changed func(was, is *T)) *table[O, T] {
	return &table[O, T]{
		convert: convert, key: key, differ: differ, changed: changed, slim: func(O) {}, asked: func() {}, listed: func() {},
		moved: make(chan struct{}),
	}
}

var _ cache.TransformingStore = (*table[object, int])(nil)

// arrival is a row with the version of the object that it was made of.
type arrival[T any] struct {
	row     *T
	version string
}

// Transformer makes rows while a long list of objects is still arriving, so that
// the objects are never there all at once.
func (t *table[O, T]) Transformer() cache.TransformFunc {
	return func(in any) (any, error) {
		o, ok := in.(O)
		if !ok {
			return in, nil // what it is, Replace reports
		}
		return t.arrive(o), nil
	}
}

func (t *table[O, T]) arrive(o O) arrival[T] {
	version := o.GetResourceVersion()
	t.slim(o)
	return arrival[T]{t.convert(o), version}
}

// Add is Update: a watch that was broken may call either.
func (t *table[O, T]) Add(in any) error { return t.Update(in) }

// Update takes the new state of an object.
func (t *table[O, T]) Update(in any) error {
	o, err := of[O](in)
	if err != nil {
		return err
	}
	is := t.arrive(o)
	t.mu.Lock()
	was, differs := t.put(is.row)
	t.version(t.key(is.row), is.version)
	t.mu.Unlock()
	if differs {
		t.changed(was, is.row)
	}
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
	if was != nil {
		t.changed(was, nil)
	}
	return nil
}

// Replace takes a whole list. It is signalled as one change. Rows that mean the
// same as before stay: a watch that broke is no reason to think again.
func (t *table[O, T]) Replace(items []any, _ string) error {
	fresh := newTable(t.convert, t.key, t.differ, t.changed)
	fresh.most, fresh.vital = t.most, t.vital
	fresh.list = make([]*T, 0, len(items))
	if t.versions != nil {
		fresh.versions = map[types.NamespacedName]string{}
	}
	for _, item := range items {
		is, ready := item.(arrival[T])
		if !ready {
			o, err := of[O](item)
			if err != nil {
				return err
			}
			is = t.arrive(o)
		}
		fresh.put(is.row)
		fresh.version(t.key(is.row), is.version)
	}
	t.mu.Lock()
	same := t.synced && t.keep(fresh)
	t.rows, t.list, t.versions, t.shared, t.synced = fresh.rows, fresh.list, fresh.versions, false, true
	t.wake()
	t.mu.Unlock()
	t.listed()
	if !same {
		t.changed(nil, nil)
	}
	return nil
}

// keep puts the present rows in place of equal ones of a fresh table. It reports
// whether all are equal.
func (t *table[O, T]) keep(fresh *table[O, T]) (same bool) {
	same = len(t.list) == len(fresh.list)
	for at, is := range fresh.list {
		before, known := t.find(t.key(is))
		if !known || t.differ(t.list[before], is) {
			same = false
			continue
		}
		fresh.list[at] = t.list[before]
	}
	return same
}

// Resync has nothing to do.
func (t *table[O, T]) Resync() error { return nil }

// snapshot returns all rows, in no order. The result is not written to any
// more; it is the same slice until something changes.
func (t *table[O, T]) snapshot() []*T {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = true
	return t.list[:len(t.list):len(t.list)]
}

// clear forgets everything, as before the first list.
func (t *table[O, T]) clear() {
	t.mu.Lock()
	t.rows, t.list, t.shared, t.synced = nil, nil, false, false
	t.wake()
	t.mu.Unlock()
	t.changed(nil, nil)
}

func (t *table[O, T]) hasSynced() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.synced
}

// reached reports whether an object is as new as a version, or deleted. If not, the channel
// signals when to ask again.
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

// await waits until an object is as new as a version, or deleted, or ctx ends.
func (t *table[O, T]) await(ctx context.Context, key types.NamespacedName, version string) {
	for {
		reached, moved := t.reached(key, version)
		if reached {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}

// find, put, drop, version, own and wake are called with mu held.

func (t *table[O, T]) find(key types.NamespacedName) (at int, known bool) {
	return t.rows.find(key, t.keyAt)
}

func (t *table[O, T]) keyAt(at int) types.NamespacedName { return t.key(t.list[at]) }

// put leaves a row in place that means the same, and one out for which there is no room.
func (t *table[O, T]) put(is *T) (was *T, differs bool) {
	key := t.key(is)
	at, known := t.find(key)
	if known && !t.differ(t.list[at], is) {
		return t.list[at], false
	}
	if !known && t.most > 0 && len(t.list) >= t.most && !t.vital(is) {
		return nil, false
	}
	t.own()
	if known {
		was, t.list[at] = t.list[at], is
		return was, true
	}
	t.list = append(t.list, is)
	t.rows = t.rows.with(len(t.list)-1, t.keyAt)
	return nil, true
}

// drop moves the last row into the gap.
func (t *table[O, T]) drop(key types.NamespacedName) (was *T) {
	at, known := t.find(key)
	if !known {
		return nil
	}
	t.own()
	last := len(t.list) - 1
	t.rows.remove(at, t.keyAt)
	t.rows.move(last, at, t.keyAt)
	was, t.list[at] = t.list[at], t.list[last]
	t.list[last] = nil
	t.list = t.list[:last]
	delete(t.versions, key)
	t.wake()
	return was
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
