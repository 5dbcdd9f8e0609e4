package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// server answers lists at once, and hands each watch that is opened to the
// test, which sends its events and ends it.
type server struct {
	t       *testing.T
	watches chan *openWatch
	done    chan struct{}

	mu   sync.Mutex
	list *corev1.PodList
	// cached is what lists from the cache are answered with; nil for the same.
	cached *corev1.PodList
	lists  []string // by the version that was asked for
	// broken is what the next request is answered with instead.
	broken int
	// noBudgets: the list of all is forbidden. wide: each budget in it has so many bytes of a label.
	noBudgets bool
	wide      int
	// budgetLists counts the lists of all budgets that were asked for, and slow has each wait for the
	// test.
	budgetLists int
	slow        chan struct{}
	// guards are the budgets of namespace shop, as a list of that namespace has
	// them.
	guards *policyv1.PodDisruptionBudgetList
}

type openWatch struct {
	path, version, accept, selector string
	events                          chan watch.Event
}

func newServer(t *testing.T) (*server, *Client) {
	s := &server{t: t, watches: make(chan *openWatch), done: make(chan struct{}), list: &corev1.PodList{}}
	client := clientOf(t, s)
	t.Cleanup(func() { close(s.done) })
	return s, client
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/apis/policy/v1/poddisruptionbudgets" {
		s.budgets(w)
		return
	}
	s.mu.Lock()
	broken := s.broken
	s.broken = 0
	var list any = s.list
	if s.cached != nil && r.URL.Query().Get("resourceVersion") == "0" {
		list = s.cached
	}
	if strings.HasSuffix(r.URL.Path, "/namespaces/shop/poddisruptionbudgets") {
		list = s.guards
	}
	if pods, is := list.(*corev1.PodList); is {
		list = page(pods, r.URL.Query())
	}
	watching := r.URL.Query().Get("watch") == "true"
	if !watching && broken == 0 {
		asked := r.URL.Query().Get("resourceVersion")
		if r.URL.Query().Has("limit") {
			asked += "after " + r.URL.Query().Get("continue")
		}
		s.lists = append(s.lists, asked)
	}
	s.mu.Unlock()
	if broken != 0 {
		write(w, broken, apierrors.NewGenericServerResponse(broken, "get", pods, "", "broken", 0, true).Status())
		return
	}
	if !watching {
		write(w, http.StatusOK, list)
		return
	}
	open := &openWatch{
		path:     r.URL.Path,
		version:  r.URL.Query().Get("resourceVersion"),
		accept:   r.Header.Get("Accept"),
		selector: r.URL.Query().Get("fieldSelector"),
		events:   make(chan watch.Event),
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case s.watches <- open:
	case <-s.done:
		return
	}
	s.stream(w, r.Context(), open)
}

// page is what a list has from where the last page ended, up to its limit.
func page(list *corev1.PodList, query url.Values) *corev1.PodList {
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return list
	}
	part := *list
	part.Items = list.Items[from:min(from+limit, len(list.Items))]
	if from+limit < len(list.Items) {
		part.Continue = strconv.Itoa(from + limit)
	}
	return &part
}

// budgets answers with one that guards all pods of a namespace, or with no.
func (s *server) budgets(w http.ResponseWriter) {
	s.mu.Lock()
	forbidden, wide, slow := s.noBudgets, s.wide, s.slow
	s.budgetLists++
	s.mu.Unlock()
	if slow != nil {
		<-slow // it has come
		<-slow // and may have its answer
	}
	if forbidden {
		write(w, http.StatusForbidden, apierrors.NewGenericServerResponse(http.StatusForbidden, "list", pods, "", "no", 0, true).Status())
		return
	}
	elsewhere := guard("1", 0)
	elsewhere.Namespace = "elsewhere"
	elsewhere.Annotations = map[string]string{"document": strings.Repeat("x", wide)}
	write(w, http.StatusOK, guards("1", guard("1", 0), elsewhere))
}

func (s *server) stream(w http.ResponseWriter, ctx context.Context, open *openWatch) {
	for {
		select {
		case e, ok := <-open.events:
			if !ok {
				return
			}
			object, err := json.Marshal(e.Object)
			if err != nil {
				s.t.Error(err)
			}
			fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.Type, object)
			w.(http.Flusher).Flush()
		case <-ctx.Done():
			return
		case <-s.done:
			return
		}
	}
}

func (s *server) next() *openWatch {
	s.t.Helper()
	select {
	case w := <-s.watches:
		return w
	case <-time.After(20 * time.Second):
		s.t.Fatal("no watch was opened")
		return nil
	}
}

func (s *server) set(version string, items ...corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = &corev1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: items,
	}
}

// listed are the versions that lists were asked for.
func (s *server) listed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lists)
}

func pod(name, version string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: version},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

// podsOf watches the pods until the test ends. until waits for a state of them.
func podsOf(t *testing.T, client *Client) (until func(what string, is func(Seen) bool) Seen) {
	t.Helper()
	return watching(t, func(ctx context.Context, list *Pods) { client.WatchPods(ctx, quiet, list) })
}

// watching runs a watch until the test ends. until waits for a state that it
// brings.
func watching(t *testing.T, watch func(context.Context, *Pods)) (until func(what string, is func(Seen) bool) Seen) {
	t.Helper()
	changed := make(chan struct{}, 1)
	list := NewPods(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch(ctx, list)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func(what string, is func(Seen) bool) Seen {
		t.Helper()
		deadline := time.After(20 * time.Second)
		for {
			if s := list.Seen(); is(s) {
				return s
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%s: not seen; the pods are %v", what, names(list.Seen()))
			}
		}
	}
}

func names(s Seen) string {
	var out []string
	for _, p := range s.Pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func are(want string) func(Seen) bool {
	return func(s Seen) bool { return s.Known && names(s) == want }
}

func TestWatchPods(t *testing.T) {
	s, client := newServer(t)
	s.set("10", *pod("a", "9"), *pod("b", "10"))
	until := podsOf(t, client)

	first := s.next()
	until("the list", are("a b"))
	seen := until("the budgets", func(s Seen) bool { return s.Budgets != nil })
	if first.version != "10" || first.selector != "spec.nodeName=n" {
		t.Errorf("watch %+v", first)
	}
	if len(seen.Stirred) > 0 || !seen.Back.IsZero() {
		t.Errorf("stirred %v, back %v, but nothing happened", seen.Stirred, seen.Back)
	}
	if guards := seen.Budgets.Guarding(&seen.Pods[0]); len(guards) != 1 || guards[0] != "shop/all" {
		t.Errorf("guarded by %v, want shop/all", guards)
	}
	if guards := seen.Budgets.Guarding(&fleet.Pod{Namespace: "elsewhere"}); len(guards) > 0 {
		t.Errorf("%v are kept of a namespace without a pod", guards)
	}
	stranger := pod("x", "10", func(p *corev1.Pod) { p.Namespace = "elsewhere" })
	first.events <- watch.Event{Type: watch.Added, Object: stranger}
	seen = until("a pod of another namespace", are("a b x"))
	if guards := seen.Budgets.Guarding(&fleet.Pod{Namespace: "elsewhere"}); len(guards) != 1 {
		t.Errorf("guarded by %v, want by one", guards)
	}
	first.events <- watch.Event{Type: watch.Deleted, Object: stranger}
	until("it left", are("a b"))
	if p := seen.Pods[0]; len(p.Spec.Containers) > 0 {
		t.Errorf("kept of a pod: %+v", p.Spec)
	}

	first.events <- watch.Event{Type: watch.Added, Object: pod("c", "11")}
	until("one more", are("a b c"))
	first.events <- watch.Event{Type: watch.Modified, Object: pod("c", "12", ready)}
	until("a pod that turned ready", func(s Seen) bool { return !s.Stirred["shop"].IsZero() })
	first.events <- watch.Event{Type: watch.Deleted, Object: pod("a", "13")}
	until("one less", are("b c"))
	first.events <- watch.Event{Type: watch.Bookmark, Object: pod("", "20")}
	close(first.events)

	second := s.next()
	if second.version != "20" || len(s.listed()) != 1 {
		t.Errorf("resumed at %s after %d lists, want at 20 after one", second.version, len(s.listed()))
	}
	until("the same pods", are("b c"))

	s.set("30", *pod("c", "12"), *pod("d", "29"))
	gone := apierrors.NewResourceExpired("too old").Status()
	gone.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	second.events <- watch.Event{Type: watch.Error, Object: &gone}
	third := s.next()
	if third.version != "30" || len(s.listed()) != 2 {
		t.Errorf("after 410: at %s after %d lists, want at 30 after two", third.version, len(s.listed()))
	}
	// What was seen to go must not come back from the server's cache.
	if asked, want := s.listed(), []string{"0", ""}; !slices.Equal(asked, want) {
		t.Errorf("lists of the versions %q, want of %q", asked, want)
	}
	until("the new list", are("c d"))
}

// The cache may be late: a list of it without a pod that must leave is not trusted.
func TestAnEmptyNodeIsListedConsistently(t *testing.T) {
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)} }
	for _, tc := range []struct {
		reason string
		cached []corev1.Pod
		sees   string
		lists  []string
		watch  string
	}{
		{"a pod", []corev1.Pod{*pod("a", "4")}, "a", []string{"0"}, "5"},
		{"none", nil, "b", []string{"0", ""}, "10"},
		{"one of a DaemonSet", []corev1.Pod{*pod("d", "4", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}
		})}, "b", []string{"0", ""}, "10"},
		{"one that has ended", []corev1.Pod{*pod("e", "4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, "b", []string{"0", ""}, "10"},
		{"one that should have gone", []corev1.Pod{*pod("f", "4", deleted)}, "b", []string{"0", ""}, "10"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s, client := newServer(t)
			s.set("5", tc.cached...)
			s.cached = s.list
			s.set("10", *pod("b", "9"))
			until := podsOf(t, client)
			if w := s.next(); w.version != tc.watch {
				t.Errorf("watched from %s, want %s", w.version, tc.watch)
			}
			until("the list", are(tc.sees))
			if asked := s.listed(); !slices.Equal(asked, tc.lists) {
				t.Errorf("lists of the versions %q, want of %q", asked, tc.lists)
			}
		})
	}
}

// Without the right to list budgets the pods are watched all the same.
func TestWatchPodsWithoutBudgets(t *testing.T) {
	s, client := newServer(t)
	s.noBudgets = true
	s.set("10", *pod("a", "9"))
	until := podsOf(t, client)
	first := s.next()
	first.events <- watch.Event{Type: watch.Added, Object: pod("b", "11")}
	if seen := until("a change", are("a b")); seen.Budgets != nil {
		t.Errorf("budgets %v, but none were listed", seen.Budgets)
	}
}

// Pods that are too large to read at once are read page by page, and of each is kept what a drain asks for.
func TestLargePodsComeByPages(t *testing.T) {
	s, client := newServer(t)
	var large []corev1.Pod
	for i := range 2*kube.PodsPerPage + 1 {
		large = append(large, *pod(fmt.Sprintf("p%02d", i), "4", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"document": strings.Repeat("x", 1<<20), contract.AnnotationSafeToEvict: "false"}
		}))
	}
	s.set("10", large...)
	until := podsOf(t, client)
	if w := s.next(); w.version != "10" {
		t.Errorf("watched from %s, want 10", w.version)
	}
	seen := until("all", func(s Seen) bool { return len(s.Pods) == len(large) })
	for _, p := range seen.Pods {
		if want := map[string]string{contract.AnnotationSafeToEvict: "false"}; !maps.Equal(p.Annotations, want) {
			t.Errorf("%s: %d annotations, want %v", p.Name, len(p.Annotations), want)
		}
	}
	if want := []string{"0", "after ", "after 5", "after 10"}; !slices.Equal(s.listed(), want) {
		t.Errorf("lists %q, want %q", s.listed(), want)
	}
}

// Budgets that are too large are done without, and not asked for again and again.
func TestLargeBudgetsAreLeft(t *testing.T) {
	s, client := newServer(t)
	s.wide = kube.MostBytes
	list := NewPods(func() {})
	client.guard(t.Context(), quiet, list)
	if b := list.Seen().Budgets; b != nil {
		t.Errorf("budgets %v", b)
	}
	s.wide = kube.MostBytes / 2
	list.Replace([]corev1.Pod{*pod("a", "1")})
	client.guard(t.Context(), quiet, list)
	if list.Seen().Budgets == nil || s.budgetLists != 2 {
		t.Errorf("%d lists, the last of which was not too large", s.budgetLists)
	}
}

// Whoever begins to list budgets while somebody does leaves it to him.
func TestBudgetsAreListedOnceAtATime(t *testing.T) {
	s, client := newServer(t)
	s.slow = make(chan struct{})
	list := NewPods(func() {})
	list.Replace([]corev1.Pod{*pod("a", "1")})
	first := make(chan struct{})
	go func() { client.guard(t.Context(), quiet, list); close(first) }()
	s.slow <- struct{}{} // the first one is on its way
	client.guard(t.Context(), quiet, list)
	s.slow <- struct{}{}
	<-first
	if s.budgetLists != 1 || list.Seen().Budgets == nil {
		t.Errorf("%d lists", s.budgetLists)
	}
}

// guard is a budget of all pods of shop.
func guard(version string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", ResourceVersion: version},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

func guards(version string, items ...*policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudgetList {
	list := &policyv1.PodDisruptionBudgetList{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"},
		ListMeta: metav1.ListMeta{ResourceVersion: version},
	}
	for _, g := range items {
		list.Items = append(list.Items, *g)
	}
	return list
}

// The budgets of a namespace are followed from what there is, through changes,
// an outage, and a version that the server has forgotten.
func TestWatchBudgets(t *testing.T) {
	s, client := newServer(t)
	s.guards = guards("10", guard("9", 0))
	until := watching(t, func(ctx context.Context, list *Pods) {
		list.Replace([]corev1.Pod{*pod("a", "1", ready)})
		list.Guard(guards("1", guard("1", 5)).Items)
		client.WatchBudgets(ctx, quiet, "shop", list)
	})
	room := func(live, refuses bool, budgets int) func(Seen) bool {
		return func(s Seen) bool {
			p := &fleet.Pod{Namespace: "shop", Name: "a", Phase: fleet.PodRunning, Ready: true}
			return s.Live["shop"] == live && s.Budgets.Refuses(p) == refuses && len(s.Budgets.Guarding(p)) == budgets
		}
	}

	first := s.next()
	until("the list", room(true, true, 1))
	if first.version != "10" || first.path != "/apis/policy/v1/namespaces/shop/poddisruptionbudgets" {
		t.Errorf("watch %+v", first)
	}
	first.events <- watch.Event{Type: watch.Modified, Object: guard("11", 1)}
	until("room", room(true, false, 1))
	first.events <- watch.Event{Type: watch.Deleted, Object: guard("12", 1)}
	until("no budget", room(true, false, 0))
	first.events <- watch.Event{Type: watch.Added, Object: guard("13", 0)}
	until("a new one", room(true, true, 1))

	refusal := statusOf(apierrors.NewInternalError(errors.New("etcd is away")))
	first.events <- watch.Event{Type: watch.Error, Object: &refusal}
	until("an outage", room(false, true, 1))
	second := s.next()
	until("its end", room(true, true, 1))
	if second.version != "13" {
		t.Errorf("resumed at %s, want 13", second.version)
	}

	s.mu.Lock()
	s.guards = guards("30")
	s.mu.Unlock()
	expired := statusOf(apierrors.NewResourceExpired("too old"))
	second.events <- watch.Event{Type: watch.Error, Object: &expired}
	if third := s.next(); third.version != "30" {
		t.Errorf("after 410 at %s, want 30", third.version)
	}
	until("the new list", room(true, false, 0))
}

// A list of all budgets is older than what the watch of a namespace has reported, and
// so is that of others than it.
func TestGuard(t *testing.T) {
	list := NewPods(func() {})
	list.Replace([]corev1.Pod{*pod("a", "1", ready)})
	if b := list.Seen().Budgets; b != nil {
		t.Errorf("budgets %v, but none are known", b)
	}
	p := &fleet.Pod{Namespace: "shop", Name: "a", Phase: fleet.PodRunning, Ready: true}
	list.GuardIn("shop", guards("10", guard("9", 0)).Items)
	list.Guard(guards("1", guard("1", 5)).Items)
	if !list.Seen().Budgets.Refuses(p) {
		t.Error("an old list of all won over the watch")
	}
	list.Live("shop", false)
	list.Guard(guards("20", guard("20", 5)).Items)
	if list.Seen().Budgets.Refuses(p) {
		t.Error("a new list of all did not win over a watch that is lost")
	}
}

// A tenant may add as many budgets as he likes to what the agent watches, each with a selector of a
// megabyte. The drain does without budgets then, to its end.
func TestBudgetsAreBounded(t *testing.T) {
	list := NewPods(func() {})
	list.Replace([]corev1.Pod{*pod("a", "1", ready)})
	list.GuardIn("shop", guards("10", guard("9", 0)).Items)
	add := func(namespace string, n int) {
		large := guard("11", 0)
		large.Namespace, large.Name = namespace, fmt.Sprintf("large-%d", n)
		large.Spec.Selector.MatchLabels = map[string]string{"app": strings.Repeat("x", 1<<20)}
		list.TakeBudget(watch.Event{Type: watch.Added, Object: large})
	}
	for range 20 { // the same ones again are no more
		add("shop", 0)
		add("other", 0)
	}
	if seen := list.Seen(); seen.Budgets == nil || !seen.Live["shop"] {
		t.Fatal("two large budgets were too many")
	}
	for n := range kube.MostBytes >> 20 {
		add("other", n)
	}
	list.Live("other", true)
	list.GuardIn("shop", guards("12", guard("9", 0)).Items)
	list.Guard(guards("12", guard("9", 0)).Items)
	if seen := list.Seen(); seen.Budgets != nil || len(seen.Live) > 0 {
		t.Errorf("they are kept, of live namespaces %v", seen.Live)
	}
}

// The server answers with an error when the watch is to be resumed; the pods stay
// as they were.
func TestWatchPodsThroughErrors(t *testing.T) {
	for _, tc := range []struct {
		status, lists int
		failure       bool
	}{
		{http.StatusGone, 2, false},
		{http.StatusInternalServerError, 1, true},
		{http.StatusForbidden, 1, true},
		{http.StatusTooManyRequests, 1, true},
	} {
		t.Run(http.StatusText(tc.status), func(t *testing.T) {
			t.Parallel()
			s, client := newServer(t)
			s.set("10", *pod("a", "9"))
			until := podsOf(t, client)
			first := s.next()
			until("the list", are("a"))
			s.mu.Lock()
			s.broken = tc.status
			s.mu.Unlock()
			close(first.events)
			if second := s.next(); second.version != "10" || len(s.listed()) != tc.lists {
				t.Errorf("resumed at %s after %d lists, want at 10 after %d", second.version, len(s.listed()), tc.lists)
			}
			until("the same pods, and the end of an outage", func(s Seen) bool {
				return are("a")(s) && s.Back.IsZero() != tc.failure
			})
		})
	}
}

func TestWatchNode(t *testing.T) {
	s, client := newServer(t)
	heard := make(chan Metadata)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.WatchNode(ctx, quiet, func(m Metadata) {
			select {
			case heard <- m:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })

	first := s.next()
	if first.version != "" || first.selector != "metadata.name=n" || !strings.Contains(first.accept, "as=PartialObjectMetadata") {
		t.Errorf("watch %+v", first)
	}
	node := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "5", Annotations: map[string]string{"a": "b"}},
	}
	first.events <- watch.Event{Type: watch.Added, Object: node}
	if m := <-heard; !m.Exists || m.Version != "5" || m.Annotations["a"] != "b" {
		t.Errorf("heard %+v", m)
	}
	first.events <- watch.Event{Type: watch.Deleted, Object: node}
	if m := <-heard; m.Exists {
		t.Errorf("heard %+v", m)
	}
	close(first.events)
	if second := s.next(); second.version != "5" {
		t.Errorf("resumed at %q", second.version)
	}
	if len(s.listed()) > 0 {
		t.Error("the node was listed")
	}
}

func TestPause(t *testing.T) {
	busy := apierrors.NewTooManyRequests("too many requests", 1)
	for failures := range 40 {
		for range 100 {
			if pause := Pause(failures, errors.New("away")); pause < firstPause/2 || pause > longestPause {
				t.Fatalf("%s after %d failures", pause, failures)
			}
			if pause := Pause(failures, fmt.Errorf("watching: %w", busy)); pause < overloadPause/2 || pause > longestPause {
				t.Fatalf("%s after %d failures of a server that has no time", pause, failures)
			}
		}
	}
}

// Of a pod is kept what a drain asks for: what is lost with the node or attached
// to it, and nothing of how to run it.
func TestLean(t *testing.T) {
	p := pod("a", "1", ready, func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "document": "long", contract.AnnotationSafeToEvict: "true"}
		p.Spec.Priority, p.Spec.PriorityClassName = new(int32(7)), "high"
		p.Spec.TerminationGracePeriodSeconds = new(int64(5))
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Spec.Volumes = []corev1.Volume{
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
		}
	})
	kept := lean(p)
	want := corev1.PodSpec{
		NodeName: "n", Priority: p.Spec.Priority, PriorityClassName: "high",
		TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds, Tolerations: p.Spec.Tolerations,
		Volumes: []corev1.Volume{
			p.Spec.Volumes[2],
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			p.Spec.Volumes[4],
			p.Spec.Volumes[5],
		},
	}
	if diff := cmp.Diff(want, kept.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{contract.AnnotationSafeToEvict: "true"}, kept.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
