// Package feed tells a live view how a cluster is, by informers. What changes often is summed up
// where it changes: a view of thousands of nodes costs what has changed, and not what there is.
//
//	feed.go   what is known, and what a view is told of it
//	watch.go  what is watched
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/resource"

	"windlass.dev/windlass/cli/top"
	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// mostRecent is how many happenings are kept.
const mostRecent = 50

// Feed knows a cluster while it runs. All of it may be used concurrently.
type Feed struct {
	client  kubernetes.Interface
	system  string
	now     func() time.Time
	changed chan struct{}
	crashed chan error

	mu       sync.Mutex
	nodes    map[string]*corev1.Node
	loads    map[string]view.Load
	pending  map[string]*corev1.Pod // by namespace/name
	page     statuspage.Page
	verdicts statuspage.Verdicts
	verdict  map[string]*statuspage.Node
	leader   *view.Leader
	toldOld  string      // what was told last of a scaler that does not lead
	recent   []happening // the latest last
	problems map[string]string

	// What was made of it, and what of that is out of date.
	lines        []*view.NodeLine // by name
	at           map[string]int   // into them
	pendingLines []view.PendingLine
	dirty        map[string]bool
	pendingDirty bool
}

type happening struct {
	id string // of the Event
	view.Entry
}

// New is of a cluster, and of the windlass-status of a namespace. now is the time.
func New(client kubernetes.Interface, system string, now func() time.Time) *Feed {
	return &Feed{
		client: client, system: system, now: now, changed: make(chan struct{}, 1), crashed: make(chan error, 1),
		nodes: map[string]*corev1.Node{}, loads: map[string]view.Load{}, pending: map[string]*corev1.Pod{}, verdict: map[string]*statuspage.Node{},
		problems: map[string]string{}, at: map[string]int{}, dirty: map[string]bool{},
	}
}

// Run calls show with the cluster as it is whenever that has changed, with a pause in between,
// until ctx ends. A fault of this program is an error, too: who has the terminal has to give it back.
func (f *Feed) Run(ctx context.Context, pause time.Duration, show func(top.World)) error {
	ctx, cancel := context.WithCancel(ctx)
	stopped, err := f.watch(ctx)
	defer func() {
		cancel()
		stopped()
	}()
	if err != nil {
		return err
	}
	return Guarded(func() error { return f.run(ctx, pause, show) })
}

func (f *Feed) run(ctx context.Context, pause time.Duration, show func(top.World)) error {
	between := time.NewTicker(pause)
	defer between.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-f.crashed:
			return err
		case <-f.changed:
			show(f.World())
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-f.crashed:
			return err
		case <-between.C:
		}
	}
}

// Guarded makes an error of a panic, with where it was.
func Guarded(do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			where := []error{fmt.Errorf("a fault of this program: %v", cause)}
			for line := range strings.Lines(string(debug.Stack())) {
				where = append(where, errors.New(strings.TrimRight(line, "\n")))
			}
			err = errors.Join(where...)
		}
	}()
	return do()
}

// guarded ends Run where something panics that client-go calls, beside it.
func (f *Feed) guarded(do func()) {
	err := Guarded(func() error {
		do()
		return nil
	})
	if err == nil {
		return
	}
	select {
	case f.crashed <- err:
	default: // one is enough
	}
}

// tell changes what is known.
func (f *Feed) tell(change func()) {
	f.locked(change)
	select {
	case f.changed <- struct{}{}:
	default: // it is not told yet of the last change
	}
}

func (f *Feed) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// World is the cluster as it is known.
func (f *Feed) World() top.World {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refresh()
	if f.pendingDirty {
		f.pendingLines, f.pendingDirty = view.NewPendingLines(f.verdicts, slices.Collect(maps.Keys(f.pending))), false
	}
	entries := make([]view.Entry, 0, len(f.recent))
	for _, h := range f.recent {
		entries = append(entries, h.Entry)
	}
	about := view.World{Page: f.page, Verdicts: f.verdicts}
	return top.World{Lines: slices.Clone(f.lines), Pending: f.pendingLines, Groups: view.Groups(about), Recent: entries, Faults: view.Faults(about), Problem: f.problem()}
}

// refresh makes the lines of nodes anew that have changed.
func (f *Feed) refresh() {
	same := true
	for name := range f.dirty {
		_, was := f.at[name]
		same = same && was == (f.nodes[name] != nil)
	}
	if !same { // those that stay have other places
		was, before := f.at, f.lines
		f.at, f.lines = make(map[string]int, len(f.nodes)), make([]*view.NodeLine, len(f.nodes))
		for i, name := range slices.Sorted(maps.Keys(f.nodes)) {
			f.at[name] = i
			if old, stays := was[name]; stays {
				f.lines[i] = before[old]
			}
		}
	}
	for name := range f.dirty {
		if n := f.nodes[name]; n != nil {
			line := view.NewNodeLine(n, f.verdict[name], f.loads[name])
			f.lines[f.at[name]] = &line
		}
	}
	clear(f.dirty)
}

// old says that no scaler leads, and since when.
func (f *Feed) old() string {
	w := view.World{Now: f.now(), Leader: f.leader}
	return w.AsOf().Old
}

func (f *Feed) problem() string {
	var all []string
	if old := f.old(); old != "" {
		all = append(all, old)
	}
	for _, what := range slices.Sorted(maps.Keys(f.problems)) {
		all = append(all, what+": "+f.problems[what])
	}
	return strings.Join(all, "; ")
}

// Why answers about a node or a pod.
func (f *Feed) Why(s view.Subject) (view.Why, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := view.World{Now: f.now(), Page: f.page, Verdicts: f.verdicts, Leader: f.leader}
	if n := f.nodes[s.Name]; s.Kind == view.KindNode && n != nil {
		w.Nodes = append(w.Nodes, *n)
	}
	if p := f.pending[s.Name]; s.Kind == view.KindPod && p != nil {
		w.Pods = append(w.Pods, *p)
	}
	if !w.Exists(s) {
		return view.Why{}, fmt.Errorf("there is no %s any more, or it is not pending", s)
	}
	return view.NewWhy(w, s), nil
}

func (f *Feed) node(_, n *corev1.Node) { f.tell(func() { f.nodes[n.Name], f.dirty[n.Name] = n, true }) }

func (f *Feed) nodeGone(n *corev1.Node) {
	f.tell(func() {
		delete(f.nodes, n.Name)
		f.dirty[n.Name] = true
	})
}

// pod changes what the nodes' pods request, by what has changed of one.
func (f *Feed) pod(before, after *corev1.Pod) {
	f.tell(func() {
		f.count(before, -1)
		f.count(after, 1)
	})
}

func (f *Feed) podGone(p *corev1.Pod) { f.tell(func() { f.count(p, -1) }) }

func (f *Feed) count(p *corev1.Pod, sign int) {
	if p == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	if p.Spec.NodeName == "" {
		key := p.Namespace + "/" + p.Name
		f.pending[key], f.pendingDirty = p, true
		if sign < 0 {
			delete(f.pending, key)
		}
		return
	}
	asked := resource.PodRequests(p, resource.PodResourcesOptions{})
	load := f.loads[p.Spec.NodeName]
	load.CPU += int64(sign) * asked.Cpu().MilliValue()
	load.Memory += int64(sign) * asked.Memory().Value()
	load.Pods += sign
	f.loads[p.Spec.NodeName], f.dirty[p.Spec.NodeName] = load, true
	if load.Pods == 0 {
		delete(f.loads, p.Spec.NodeName)
	}
}

// event keeps what happened last.
func (f *Feed) event(_, e *corev1.Event) {
	if !contract.Believed(e, f.system) || !view.Tells(e, time.Time{}, false) {
		return
	}
	id := e.Namespace + "/" + e.Name
	f.tell(func() {
		var annotations map[string]string
		if n := f.nodes[e.InvolvedObject.Name]; n != nil && view.Asks(e) {
			annotations = n.Annotations
		}
		f.recent = slices.DeleteFunc(f.recent, func(h happening) bool { return h.id == id })
		f.recent = append(f.recent, happening{id, view.EntryOf(e, annotations)})
		slices.SortStableFunc(f.recent, func(a, b happening) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.id, b.id)) })
		f.recent = f.recent[max(0, len(f.recent)-mostRecent):]
	})
}

// contents is the problem that windlass-status cannot be understood, beside that it cannot be read.
const contents = "contents of " + contract.ConfigMapStatus

func (f *Feed) status(_, object *corev1.ConfigMap) {
	page, pageErr := statuspage.Read(object)
	verdicts, verdictsErr := statuspage.ReadVerdicts(object)
	err := cmp.Or(pageErr, verdictsErr)
	f.report(contents, err)
	if err != nil {
		return
	}
	f.tell(func() {
		f.page, f.verdicts, f.pendingDirty = page, verdicts, true
		f.verdict = make(map[string]*statuspage.Node, len(verdicts.Nodes))
		for i := range verdicts.Nodes {
			f.verdict[verdicts.Nodes[i].Name] = &verdicts.Nodes[i]
		}
		for name := range f.nodes {
			f.dirty[name] = true
		}
	})
}

// statusGone leaves what it said last.
func (f *Feed) statusGone(*corev1.ConfigMap) {
	f.report(contents, errors.New("it was deleted; what is shown of it is the last"))
}

// report keeps why something is not known, until it is.
func (f *Feed) report(what string, err error) {
	known := false
	f.locked(func() { _, known = f.problems[what] })
	if err == nil && !known {
		return
	}
	f.tell(func() {
		delete(f.problems, what)
		if err != nil {
			f.problems[what] = err.Error()
		}
	})
}
