package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

const nodeName, instance = "n", "i-1"

// world is an API server with one node, and its metadata service, in memory and
// in virtual time.
type world struct {
	t *testing.T

	mu       sync.Mutex
	version  int
	node     *corev1.Node
	pods     map[types.UID]*corev1.Pod
	sighting imds.Sighting
	down     bool
	// room says how many pods of an app may still be evicted; absent is any.
	room map[string]int
	// slow is how long an eviction takes.
	slow time.Duration
	// hangs is how long one of an app hangs until it fails, as in a webhook.
	hangs map[string]time.Duration
	// refusals are the answers to evictions of an app that are not carried out.
	refusals map[string]drain.Answer

	// budgets are listed to the agent; nil where it may not see them.
	budgets []policyv1.PodDisruptionBudget

	nodeWatches   map[int]func(evict.Metadata)
	podWatches    map[int]func(watch.Event)
	budgetWatches map[int]*evict.Pods
	listeners     map[int]func(imds.Sighting)
	watchers      int

	reads, writes, podLists int
	writtenAt               []nodeWrite
	deletions               map[types.UID]int
	asking, mostAsking      int
	events                  []string
}

func newWorld(t *testing.T) *world {
	w := &world{
		t:    t,
		pods: map[types.UID]*corev1.Pod{}, room: map[string]int{}, refusals: map[string]drain.Answer{}, deletions: map[types.UID]int{},
		nodeWatches: map[int]func(evict.Metadata){}, podWatches: map[int]func(watch.Event){}, budgetWatches: map[int]*evict.Pods{}, listeners: map[int]func(imds.Sighting){},
		sighting: imds.Sighting{Heard: true},
		slow:     10 * time.Millisecond,
	}
	w.node = newNode("node-uid")
	w.node.ResourceVersion = "1"
	w.version = 1
	return w
}

func newNode(uid types.UID) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: uid},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + instance},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot"}, Images: make([]corev1.ContainerImage, 3)},
	}
}

// agent starts an agent. It ends with stop, or with the test.
func (w *world) agent() (stop func()) { return w.agentWith() }

// agentWith starts an agent whose access to the world is changed.
func (w *world) agentWith(changes ...func(*Agent)) (stop func()) {
	policy := drain.DefaultPolicy()
	policy.Version = "test"
	a := &Agent{
		Name: nodeName, Policy: policy, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ReadNode: w.readNode, WriteNode: w.writeNode, Evict: w.evict,
		WatchNode: w.watchNode, WatchPods: w.watchPods, WatchBudgets: w.watchBudgets, WatchNotices: w.watchNotices,
		Tell: func(e kube.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, strings.TrimSpace(e.Object.Kind+" "+e.Reason+" "+e.Annotations[contract.AnnotationEventID]))
		},
	}
	for _, change := range changes {
		change(a)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(stop)
	return stop
}

var errDown = errors.New("connection refused")

func (w *world) readNode(context.Context) (*corev1.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.down {
		return nil, errDown
	}
	if w.node == nil {
		return nil, notFound("nodes", nodeName)
	}
	return w.node.DeepCopy(), nil
}

func (w *world) writeNode(_ context.Context, patch kube.NodePatch) (*corev1.Node, error) {
	body, err := json.Marshal(patch.Ops)
	if err != nil {
		return nil, err
	}
	return w.patchNode(body)
}

func (w *world) patchNode(patch []byte) (*corev1.Node, error) {
	time.Sleep(5 * time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.down {
		return nil, errDown
	}
	if w.node == nil {
		return nil, fmt.Errorf("%w: %w", kube.ErrChanged, notFound("nodes", nodeName))
	}
	before, err := json.Marshal(w.node)
	if err != nil {
		w.t.Errorf("encoding the node: %v", err)
	}
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		w.t.Errorf("decoding the patch: %v", err)
		return nil, err
	}
	after, err := ops.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kube.ErrChanged, err)
	}
	node := &corev1.Node{}
	if err := json.Unmarshal(after, node); err != nil {
		w.t.Errorf("decoding the node: %v", err)
	}
	w.writtenAt = append(w.writtenAt, nodeWrite{at: time.Now(), turnsDrained: reportOn(node).Phase == contract.PhaseDrained && reportOn(w.node).Left > 0})
	w.setNode(node)
	return w.node.DeepCopy(), nil
}

// nodeWrite is when the node was written, and whether that is the news that it is drained after one
// that pods are left.
type nodeWrite struct {
	at           time.Time
	turnsDrained bool
}

// setNode stores a node at a new version and sends it to the watches.
func (w *world) setNode(node *corev1.Node) {
	w.version++
	node.ResourceVersion = strconv.Itoa(w.version)
	w.node = node
	w.tellNode(true)
}

func (w *world) tellNode(exists bool) {
	m := evict.Metadata{Exists: exists, Version: strconv.Itoa(w.version)}
	if exists {
		m.Annotations, m.Labels = maps.Clone(w.node.Annotations), maps.Clone(w.node.Labels)
	}
	for _, saw := range w.nodeWatches {
		go saw(m)
	}
}

// expectDrained: the report on the node says so.
func (w *world) expectDrained() {
	w.t.Helper()
	if r := w.report(); r.Phase != contract.PhaseDrained {
		w.t.Errorf("report %s", r)
	}
}

// change changes the node, as somebody else would.
func (w *world) change(f func(*corev1.Node)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	node := w.node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	f(node)
	w.setNode(node)
}

func (w *world) annotate(key, value string) {
	w.change(func(n *corev1.Node) {
		n.Annotations[key] = value
		if value == "" {
			delete(n.Annotations, key)
		}
	})
}

func (w *world) deleteNode() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.node = nil
	w.version++
	w.tellNode(false)
}

// createNode makes a new one of the same name, as a kubelet does that starts
// anew.
func (w *world) createNode() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setNode(newNode("second-uid"))
}

func (w *world) watchNode(ctx context.Context, saw func(evict.Metadata)) {
	w.mu.Lock()
	w.watchers++
	id := w.watchers
	w.nodeWatches[id] = saw
	w.tellNode(w.node != nil)
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodeWatches, id)
}

func (w *world) watchNotices(ctx context.Context, saw func(imds.Sighting)) {
	w.mu.Lock()
	w.watchers++
	id := w.watchers
	w.listeners[id] = saw
	s := w.sighting
	w.mu.Unlock()
	saw(s)
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.listeners, id)
}

func (w *world) notify(notices ...notice.Notice) {
	w.see(imds.Sighting{Heard: true, Notices: notices})
}

// see has the metadata service report something.
func (w *world) see(s imds.Sighting) {
	w.mu.Lock()
	w.sighting = s
	listeners := slices.Collect(maps.Values(w.listeners))
	w.mu.Unlock()
	for _, saw := range listeners {
		saw(s)
	}
}

func (w *world) watchPods(ctx context.Context, pods *evict.Pods) {
	w.mu.Lock()
	w.podLists++
	var list []corev1.Pod
	for _, p := range w.pods {
		list = append(list, *p.DeepCopy())
	}
	if w.budgets != nil {
		pods.Guard(w.budgets)
	}
	pods.Replace(list)
	w.mu.Unlock()
	w.followPods(ctx, pods.Take)
}

// followPods reports every change of the pods until ctx ends.
func (w *world) followPods(ctx context.Context, take func(watch.Event)) {
	w.mu.Lock()
	w.watchers++
	id := w.watchers
	w.podWatches[id] = take
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.podWatches, id)
}

// watchBudgets reports the budgets that room stands for, as long as the agent
// asks for them.
func (w *world) watchBudgets(ctx context.Context, namespace string, pods *evict.Pods) {
	w.mu.Lock()
	w.watchers++
	id := w.watchers
	w.budgetWatches[id] = pods
	list := w.guards()
	w.mu.Unlock()
	pods.GuardIn(namespace, list)
	<-ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.budgetWatches, id)
}

func (w *world) guards() []policyv1.PodDisruptionBudget {
	var list []policyv1.PodDisruptionBudget
	for app, room := range w.room {
		list = append(list, policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: app},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(room)},
		})
	}
	return list
}

// allow changes how many pods of an app may be evicted, and sends that to the watches.
func (w *world) allow(app string, room int) {
	w.mu.Lock()
	w.room[app] = room
	list := w.guards()
	watches := slices.Collect(maps.Values(w.budgetWatches))
	w.mu.Unlock()
	for _, pods := range watches {
		pods.GuardIn("shop", list)
	}
}

func (w *world) tellPod(kind watch.EventType, p *corev1.Pod) {
	for _, take := range w.podWatches {
		take(watch.Event{Type: kind, Object: p.DeepCopy()})
	}
}

func (w *world) addPod(name string, change ...func(*corev1.Pod)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	app, _, _ := cutLast(name)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, len(w.deletions)+len(w.pods))), Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: app, Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: nodeName, TerminationGracePeriodSeconds: new(int64(1))},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range change {
		c(p)
	}
	w.pods[p.UID] = p
	w.tellPod(watch.Added, p)
}

func cutLast(name string) (before, after string, ok bool) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '-' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}

func (w *world) hang(uid types.UID) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.pods[uid]; ok {
		return w.hangs[p.Labels["app"]]
	}
	return 0
}

func (w *world) evict(ctx context.Context, step drain.Evict) drain.Answer {
	w.count(1)
	defer w.count(-1)
	slow, hangs := w.slow, w.hang(step.UID)
	select {
	case <-time.After(max(slow, hangs)):
	case <-ctx.Done():
		return drain.Answer{Outcome: drain.Failed, Message: ctx.Err().Error()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return drain.Answer{Outcome: drain.Failed, Message: errDown.Error()}
	}
	if hangs > 0 {
		return drain.Answer{Outcome: drain.Failed, Message: "failed calling webhook: context deadline exceeded"}
	}
	p, ok := w.pods[step.UID]
	if !ok {
		return drain.Answer{Outcome: drain.Gone}
	}
	app := p.Labels["app"]
	if answer, refused := w.refusals[app]; refused {
		return answer
	}
	if room, guarded := w.room[app]; guarded && !step.Delete {
		if room == 0 {
			return drain.Answer{Outcome: drain.Refused, Budget: "shop/" + app, Message: "no room"}
		}
		w.room[app]--
	}
	w.delete(p, step.Grace)
	return drain.Answer{Outcome: drain.Accepted}
}

// delete gives a pod its grace, or that many seconds, and lets it go.
func (w *world) delete(p *corev1.Pod, seconds *int64) {
	w.deletions[p.UID]++
	if seconds == nil {
		seconds = p.Spec.TerminationGracePeriodSeconds
	}
	grace := time.Duration(*seconds) * time.Second
	rightly := time.Now().Add(-w.sighting.ClockAhead)
	p.DeletionTimestamp = new(metav1.NewTime(rightly.Add(grace)))
	w.tellPod(watch.Modified, p)
	time.AfterFunc(grace, func() { w.end(p) })
}

func (w *world) end(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, p.UID)
	w.tellPod(watch.Deleted, p)
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking += n
	w.mostAsking = max(w.mostAsking, w.asking)
}

// deleted counts the pods that have ended or are ending.
func (w *world) deleted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.deletions)
}

func (w *world) cordoned() (yes bool) {
	w.set(func() { yes = w.node.Spec.Unschedulable })
	return yes
}

// written counts the writes of the Node that were tried.
func (w *world) written() (n int) {
	w.set(func() { n = w.writes })
	return n
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// report is the one on the node; the zero value where there is none.
func (w *world) report() contract.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return reportOn(w.node)
}

func reportOn(node *corev1.Node) contract.Report {
	r, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
	if err != nil {
		return contract.Report{}
	}
	return r
}

// after lets time pass, and everything that it brings.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// checkLaws: no pod is deleted twice, and the node is written at most once a
// second, but for the news that it is drained where pods were left.
func (w *world) checkLaws() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, n := range w.deletions {
		if n != 1 {
			w.t.Errorf("pod %s was deleted %d times", uid, n)
		}
	}
	for i := 1; i < len(w.writtenAt); i++ {
		if gap := w.writtenAt[i].at.Sub(w.writtenAt[i-1].at); gap < time.Second && !w.writtenAt[i].turnsDrained {
			w.t.Errorf("the node was written %s after the last time", gap)
		}
	}
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}
