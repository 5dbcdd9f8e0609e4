package observe

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// buffersEvery is how often it is tried whether the API server serves
	// CapacityBuffers by now: it does from when somebody has installed their definition. Most
	// clusters never have it.
	buffersEvery = time.Minute
	// buffersAgain is how soon after a try that failed the next one is; twice as long
	// after each more, and buffersAgainMost at most.
	buffersAgain, buffersAgainMost = 500 * time.Millisecond, 10 * time.Second
	// scalablesEvery is how often the scalable objects are read that buffers refer to:
	// to watch them is to watch all of their kind.
	scalablesEvery = 10 * time.Second
)

// withoutBuffers is what is decided where they may not be read.
const withoutBuffers = "no room is kept for them"

// bufferWatch sees CapacityBuffers and what they refer to. Where their definition is not
// installed, it asks for it now and then; PodTemplates are watched, and scalable objects
// read, only while a buffer refers to some. It is nil where buffers are not read.
type bufferWatch struct {
	api     dynamic.ResourceInterface
	client  kubernetes.Interface
	report  func(error)
	changed func()
	logger  *slog.Logger
	// refused takes the outcome of all that is asked about buffers, templatesRefused of what
	// is about PodTemplates, quotasRefused of what is about ResourceQuotas.
	refused, templatesRefused, quotasRefused *refusal

	buffers   *table[*unstructured.Unstructured, fleet.Buffer]
	templates *table[*corev1.PodTemplate, templateRow]
	quotas    *table[*corev1.ResourceQuota, fleet.Quota]
	// moved wakes to read again what buffers refer to.
	moved chan struct{}

	mu sync.Mutex
	// asked: it is known whether buffers are served. Followed: what they refer to has been
	// looked for.
	asked, served, followed bool
	scalables               map[scalable]scaled
}

// scalable names an object that a buffer refers to.
type scalable struct {
	namespace string
	fleet.Scalable
}

// templateRow is a PodTemplate.
type templateRow struct {
	key types.NamespacedName
	fleet.BufferPods
}

func newBufferWatch(o *Observer, client dynamic.Interface) *bufferWatch {
	w := &bufferWatch{
		api: client.Resource(BufferResource), client: o.config.Client, report: o.report, logger: o.config.Logger,
		changed:          func() { o.news(later) },
		refused:          o.refusal("list and watch capacitybuffers", withoutBuffers),
		templatesRefused: o.refusal("list and watch podtemplates", "no room is kept for capacity buffers that refer to one"),
		quotasRefused:    o.refusal("list and watch resourcequotas", "capacity buffers keep room whatever the quotas of their namespaces say"),
		moved:            make(chan struct{}, 1), scalables: map[scalable]scaled{},
	}
	w.buffers = newTable(bufferFrom, bufferName, differ[fleet.Buffer], func(_, _ *fleet.Buffer) { w.wake(); w.changed() })
	w.buffers.versions = map[types.NamespacedName]string{}
	w.templates = newTable(templateFrom, func(t *templateRow) types.NamespacedName { return t.key }, sameTemplate, func(_, _ *templateRow) { w.changed() })
	w.quotas = newTable(quotaFrom, quotaName, differ[fleet.Quota], func(_, _ *fleet.Quota) { w.changed() })
	return w
}

func bufferName(b *fleet.Buffer) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

func templateFrom(t *corev1.PodTemplate) *templateRow {
	generation := t.Generation
	return &templateRow{keyOf(t), fleet.BufferPods{Template: slimTemplate(&t.Template), Generation: &generation}}
}

func quotaName(q *fleet.Quota) types.NamespacedName {
	return types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
}

// quotaFrom keeps of a quota what bounds requests. How much of anything else is used changes
// all the time, and no buffer goes by it.
func quotaFrom(q *corev1.ResourceQuota) *fleet.Quota {
	quota := &fleet.Quota{Namespace: q.Namespace, Name: q.Name, Hard: corev1.ResourceList{}, Used: corev1.ResourceList{}}
	for name, hard := range q.Status.Hard {
		if fleet.Requests(name) {
			quota.Hard[name], quota.Used[name] = hard, q.Status.Used[name]
		}
	}
	for _, scope := range q.Spec.Scopes {
		quota.Scopes = append(quota.Scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if s := q.Spec.ScopeSelector; s != nil {
		quota.Scopes = append(quota.Scopes, s.MatchExpressions...)
	}
	return quota
}

// slimTemplate keeps what decisions go by.
func slimTemplate(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	slim := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels, Annotations: contract.Only(t.Annotations, podAnnotations)}, Spec: *t.Spec.DeepCopy()}
	slimTemplateSpec(&slim.Spec)
	return slim
}

// sameTemplate reports whether one has changed.
func sameTemplate(was, is *templateRow) bool { return !fleet.Equal(was.BufferPods, is.BufferPods) }

func (w *bufferWatch) wake() {
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *bufferWatch) run(ctx context.Context) {
	if w == nil {
		return
	}
	again := buffersAgain
	for {
		pause := buffersEvery
		served, known := w.try(ctx)
		switch {
		case served:
			w.follow(ctx)
			pause = buffersAgain // another version may be there at once; a later one is seen within buffersEvery
		case known:
			again = buffersAgain
		default:
			pause, again = again, min(2*again, buffersAgainMost)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// try asks for a buffer: the answer that there is no such thing means that the API server
// does not serve them. Known is false where there was no answer.
func (w *bufferWatch) try(ctx context.Context) (served, known bool) {
	_, err := w.api.List(ctx, metav1.ListOptions{Limit: 1, ResourceVersion: "0"})
	if ctx.Err() != nil {
		return false, false
	}
	missing := apierrors.IsNotFound(err)
	if missing {
		err = nil
	}
	w.refused.heard(err)
	if err != nil && !apierrors.IsForbidden(err) {
		w.report(err)
		return false, false
	}
	known, served = err == nil || w.refused.lasts(), err == nil && !missing
	w.mu.Lock()
	news := known && !w.asked
	w.asked, w.served = w.asked || known, served
	w.mu.Unlock()
	if news {
		w.changed()
	}
	return served, known
}

// follow watches until ctx ends or buffers are not served any more, and forgets them then.
func (w *bufferWatch) follow(ctx context.Context) {
	outer := ctx
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	report := w.refused.before(w.report)
	var watching sync.WaitGroup
	watching.Go(func() {
		follow(ctx, w.client, w.api, "", w.buffers, mostBackOffElse, func(err error) {
			if err != nil && apierrors.IsNotFound(err) {
				stop()
				return
			}
			report(err)
		})
	})
	watching.Go(func() { w.attend(ctx) })
	watching.Wait()
	if outer.Err() != nil {
		return
	}
	w.mu.Lock()
	w.served, w.followed = false, false
	clear(w.scalables)
	w.mu.Unlock()
	w.buffers.clear()
}

// attend keeps what buffers refer to up to date, and logs those that are left to others,
// until ctx ends.
func (w *bufferWatch) attend(ctx context.Context) {
	var (
		templateWatch, quotaWatch tap
		foreign                   map[types.UID]bool
	)
	defer w.templates.clear()
	defer w.quotas.clear()
	defer templateWatch.close()
	defer quotaWatch.close()
	tick := time.NewTicker(scalablesEvery)
	defer tick.Stop()
	for {
		foreign = w.tellForeign(foreign)
		some, templates, scalables := w.referred()
		templateWatch.keep(ctx, templates, w.followTemplates, w.templates.clear)
		quotaWatch.keep(ctx, some, w.followQuotas, w.quotas.clear)
		w.readScalables(ctx, scalables)
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
		case <-tick.C:
		}
	}
}

// tellForeign logs the buffers that are left to others, but for those logged before, and
// returns all of them. Those that are deleted are forgotten.
func (w *bufferWatch) tellForeign(told map[types.UID]bool) (foreign map[types.UID]bool) {
	foreign = map[types.UID]bool{}
	for _, b := range w.buffers.snapshot() {
		if b.Active() {
			continue
		}
		foreign[b.UID] = true
		if !told[b.UID] {
			w.logger.Info("capacity buffer left to others", "buffer", b.Key(), "strategy", b.Strategy)
		}
	}
	return foreign
}

// tap is a watch that is open now and then.
type tap struct {
	stop context.CancelFunc // nil while it is closed
	done chan struct{}
}

func (t *tap) open() bool { return t.stop != nil }

// keep opens the watch if it is wanted and else closes it, and clears what it has seen.
func (t *tap) keep(ctx context.Context, wanted bool, run func(context.Context), clear func()) {
	switch {
	case wanted && !t.open():
		t.start(ctx, run)
	case !wanted && t.open():
		t.close()
		clear()
	}
}

func (t *tap) start(ctx context.Context, run func(context.Context)) {
	ctx, t.stop = context.WithCancel(ctx)
	t.done = make(chan struct{})
	go func() { defer close(t.done); run(ctx) }()
}

func (t *tap) close() {
	if t.stop != nil {
		t.stop()
		<-t.done
		t.stop = nil
	}
}

func (w *bufferWatch) followTemplates(ctx context.Context) {
	follow(ctx, w.client, w.client.CoreV1().PodTemplates(""), "", w.templates, mostBackOffElse, w.templatesRefused.before(w.report))
}

func (w *bufferWatch) followQuotas(ctx context.Context) {
	follow(ctx, w.client, w.client.CoreV1().ResourceQuotas(""), "", w.quotas, mostBackOffElse, w.quotasRefused.before(w.report))
}

// referred is whether there are any buffers, and what they refer to: PodTemplates or not,
// and which scalable objects.
func (w *bufferWatch) referred() (some, templates bool, scalables []scalable) {
	seen := map[scalable]bool{}
	for _, b := range w.buffers.snapshot() {
		if !b.Active() {
			continue
		}
		some = true
		templates = templates || b.Template != ""
		if b.Scalable != nil && b.Scalable.Known() {
			seen[scalable{b.Namespace, *b.Scalable}] = true
		}
	}
	return some, templates, slices.Collect(maps.Keys(seen))
}

// latest are the buffers with what they refer to.
func (w *bufferWatch) latest() []fleet.Buffer {
	if w == nil {
		return nil
	}
	var list []fleet.Buffer
	templates := map[types.NamespacedName]*templateRow{}
	for _, t := range w.templates.snapshot() {
		templates[t.key] = t
	}
	for _, b := range w.buffers.snapshot() {
		buffer := *b
		switch {
		case b.Template != "":
			buffer.Fault = w.templatesRefused.fault()
			if t := templates[types.NamespacedName{Namespace: b.Namespace, Name: b.Template}]; t != nil {
				buffer.Pods = &t.BufferPods
			}
		case b.Scalable != nil:
			w.mu.Lock()
			s, read := w.scalables[scalable{b.Namespace, *b.Scalable}]
			w.mu.Unlock()
			if buffer.Pods, buffer.Fault = s.pods, s.fault; !read && b.Scalable.Known() {
				buffer.Fault = "what it refers to has not been read yet"
			}
		}
		list = append(list, buffer)
	}
	return list
}

// latestQuotas are the ResourceQuotas, where there are buffers.
func (w *bufferWatch) latestQuotas() []fleet.Quota {
	if w == nil {
		return nil
	}
	var list []fleet.Quota
	for _, q := range w.quotas.snapshot() {
		list = append(list, *q)
	}
	return list
}

// awaits is what has not been seen yet; empty where all has.
func (w *bufferWatch) awaits() string {
	if w == nil || w.refused.lasts() {
		return ""
	}
	w.mu.Lock()
	asked, served, followed := w.asked, w.served, w.followed
	w.mu.Unlock()
	switch {
	case !asked:
		return "whether there are capacity buffers"
	case !served:
		return ""
	case !w.buffers.hasSynced():
		return "capacity buffers"
	}
	some, templates, scalables := w.referred()
	if some && !w.quotas.hasSynced() && !w.quotasRefused.lasts() {
		return "resource quotas, which bound capacity buffers"
	}
	if templates && !w.templates.hasSynced() && !w.templatesRefused.lasts() {
		return "pod templates of capacity buffers"
	}
	if len(scalables) > 0 && !followed {
		return "what capacity buffers refer to"
	}
	return ""
}

// faults are sentences about what cannot be read.
func (w *bufferWatch) faults() []string {
	if w == nil {
		return nil
	}
	return slices.DeleteFunc([]string{w.refused.fault(), w.templatesRefused.fault(), w.quotasRefused.fault()}, func(s string) bool { return s == "" })
}
