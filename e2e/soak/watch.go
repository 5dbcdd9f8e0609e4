package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/laws"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// watch sees every Node and every pod of the workloads, and remembers what the laws
// need of them.
type watch struct {
	stop func()
	book *book

	mu sync.Mutex
	// cordons are the people's that stand, by node: as it was then.
	cordons map[string]*corev1.Node
	// nodes are all that there ever were, by instance.
	nodes map[string]*nodeLife
	pods  map[types.UID]*podLife
	broke []string
	// crowds are the moments at which more drains without hurry went on than may.
	crowds []crowd
}

type nodeLife struct {
	name string
	uid  types.UID
	gone time.Time
	// drain is the report of one without hurry that goes on and has waited for its permit.
	drain *contract.Report
	// wanted is the id that the present drain has waited for.
	wanted string
	// anonymous are the times in which the Node had no provider id, doors the moments at
	// which it opened for new pods, or closed.
	anonymous []laws.Span
	doors     []door
	// gaveUp are the moments from which its instance might be ended with pods on it.
	gaveUp []time.Time
}

type door struct {
	at   time.Time
	open bool
}

// openAt reports whether the Node took new pods at a moment, as far as can be said of a watch:
// it may not have seen, where the API server was away, that an agent has closed it since.
func (n *nodeLife) openAt(at time.Time, closed []time.Time) bool {
	var last door
	for _, d := range n.doors {
		switch {
		case d.at.Before(at.Add(-sight)):
			last = d
		case d.at.Before(at.Add(sight)):
			return false
		}
	}
	return last.open && !slices.ContainsFunc(closed, func(t time.Time) bool { return t.After(last.at) && !t.After(at) })
}

// crowd is a moment at which drains without hurry go on.
type crowd struct {
	at      time.Time
	allowed int
	nodes   []string
}

// givenUp reports whether a moment is not long after one of those.
func (n *nodeLife) givenUp(at time.Time) bool {
	return slices.ContainsFunc(n.gaveUp, func(from time.Time) bool {
		return from.Before(at.Add(sight)) && at.Before(from.Add(time.Minute))
	})
}

type podLife struct {
	name, node string
	// created is by the API server, in whole seconds; bound and gone are when it was seen to come and go.
	created, bound, gone time.Time
	// grace is what it asks for to end.
	grace time.Duration
	// stuck is when it was to be deleted, and ran on: its kubelet did not hear of it.
	stuck laws.Span
}

// there reports whether the pod was on its node at a moment, as far as can be said of
// a watch. deleted is when it was last asked for its deletion, if it was.
func (p *podLife) there(at, deleted time.Time) bool {
	if !deleted.IsZero() && deleted.Before(at) && !p.stuck.Holds(at) {
		return false
	}
	return p.bound.Before(at.Add(-sight)) && (p.gone.IsZero() || p.gone.After(at.Add(sight)))
}

// overdue reports whether the pod should have ended long before a moment. Its name was asked to end
// at some times, before it was created too: a pod of a StatefulSet has the name of its predecessor.
// When the watch saw it says nothing: after an outage that is late. API servers write whole seconds.
func (p *podLife) overdue(at time.Time, asked []time.Time) bool {
	return slices.ContainsFunc(asked, func(t time.Time) bool {
		return !t.Before(p.created) && t.Truncate(time.Second).Add(p.grace+drainable.Overtime).Before(at)
	})
}

func startWatch(ctx context.Context, client kubernetes.Interface, b *book) (*watch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{stop: stop, book: b, cordons: map[string]*corev1.Node{}, nodes: map[string]*nodeLife{}, pods: map[types.UID]*podLife{}}
	all := informers.NewSharedInformerFactory(client, 0)
	ours := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	_, err := all.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.seeNode(o.(*corev1.Node)) },
		UpdateFunc: func(_, o any) { w.seeNode(o.(*corev1.Node)) },
		DeleteFunc: func(o any) { w.missNode(o) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	_, err = ours.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.seePod(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { w.seePod(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) { w.missPod(o) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	for _, f := range []informers.SharedInformerFactory{all, ours} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
	}
	go w.poll(ctx, client)
	return w, nil
}

// poll reads the Nodes every second: after an outage of the API server the watch takes
// up to half a minute to come back, and a Node may have gone by then.
func (w *watch) poll(ctx context.Context, client kubernetes.Interface) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			continue // the API server is away
		}
		for i := range nodes.Items {
			w.seeNode(&nodes.Items[i])
		}
	}
}

// cordoned and uncordoned are told of what people do.
func (w *watch) cordoned(n *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cordons[n.Name] = n
}

func (w *watch) uncordoned(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cordons, node)
}

func (w *watch) seeNode(n *corev1.Node) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if then := w.cordons[n.Name]; then != nil && then.UID == n.UID && !n.Spec.Unschedulable && later(n, then) {
		w.broke = append(w.broke, fmt.Sprintf("the cordon of a person was undone on %s at %s", n.Name, now.Format("15:04:05.000")))
		delete(w.cordons, n.Name)
	}
	id := w.book.ofNode(n.Name)
	if id == "" {
		return // one of the fixed nodes
	}
	life := w.nodes[id]
	if life == nil {
		life = &nodeLife{name: n.Name}
		w.nodes[id] = life
	}
	if life.uid == n.UID && !life.gone.IsZero() {
		return // an old word of a Node that is gone
	}
	life.uid, life.gone = n.UID, time.Time{}
	life.note(n, now)
	w.count(now)
	for _, at := range gaveUp(n) {
		if !slices.Contains(life.gaveUp, at) {
			life.gaveUp = append(life.gaveUp, at)
		}
	}
}

// note remembers what the Node says of itself.
func (n *nodeLife) note(now *corev1.Node, at time.Time) {
	if open := takesPods(now); len(n.doors) == 0 || n.doors[len(n.doors)-1].open != open {
		n.doors = append(n.doors, door{at, open})
	}
	last := len(n.anonymous) - 1
	switch hidden := last >= 0 && n.anonymous[last].To.Equal(forever); {
	case now.Spec.ProviderID == "" && !hidden:
		n.anonymous = append(n.anonymous, laws.Span{From: at, To: forever})
	case now.Spec.ProviderID != "" && hidden:
		n.anonymous[last].To = at
	}
	r, err := contract.ParseReport(now.Annotations[contract.AnnotationDrainReport])
	n.drain = nil
	switch {
	case err != nil || !r.Phase.Open() || isForged(now): // which may have taken the scaler's word away, too
		n.wanted = ""
	case r.Wants != "":
		n.wanted = r.Wants
	case n.wanted != "" && r.AnswersTo(n.wanted) && r.Phase == contract.PhaseDraining && !pressing(r, at):
		n.drain = &r
	}
}

// pressing reports whether a drain's deadline is near, so that it need not wait for others.
func pressing(r contract.Report, at time.Time) bool {
	return r.Kind == contract.KindSpot || r.Kind == contract.KindASG || !r.Deadline.IsZero() && r.Deadline.Sub(at) < 5*time.Minute
}

// takesPods reports whether the scheduler may put pods there.
func takesPods(n *corev1.Node) bool {
	_, draining := contract.Draining(n.Spec.Taints)
	return ready(n) && !n.Spec.Unschedulable && !draining
}

// count notes a moment at which more drains without hurry go on than may.
func (w *watch) count(now time.Time) {
	there := 0
	var draining []string
	for _, life := range w.nodes {
		if !life.gone.IsZero() {
			continue
		}
		there++
		if life.drain != nil {
			draining = append(draining, life.name)
		}
	}
	if allowed := max(2, (there+fixedNodes)/10); len(draining) > allowed {
		slices.Sort(draining)
		w.crowds = append(w.crowds, crowd{now, allowed, draining})
	}
}

// crowded finds the drains without hurry that went on, before a moment, beside too many
// others while the scaler could tell them to wait. A node that is empty makes room for the next one before
// its agent says so.
func (s *soak) crowded(before time.Time) []string {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	var found []string
	for _, c := range s.watch.crowds {
		if c.at.After(before) {
			continue // the pods that are there may be gone
		}
		c.nodes = slices.DeleteFunc(slices.Clone(c.nodes), func(name string) bool { return !s.watch.occupied(name, c.at) })
		if len(c.nodes) > c.allowed && !s.disturbed(c.at.Add(-permitWait), c.at) {
			found = append(found, fmt.Sprintf("%d drains without hurry went on at once, and %d may: %s", len(c.nodes), c.allowed, strings.Join(c.nodes, " ")))
		}
	}
	return found
}

// occupied reports whether a pod of the workloads was on a node at a moment.
func (w *watch) occupied(node string, at time.Time) bool {
	for _, p := range w.pods {
		if p.node == node && p.there(at, time.Time{}) {
			return true
		}
	}
	return false
}

// identified notes that a Node got its provider id at a moment, which the watch may see much
// later.
func (w *watch) identified(id string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if life := w.nodes[id]; life != nil && len(life.anonymous) > 0 {
		last := &life.anonymous[len(life.anonymous)-1]
		if at.Before(last.To) {
			last.To = at
		}
	}
}

// anonymousAt reports whether an instance's Node was there at a moment, without a provider id.
func (w *watch) anonymousAt(id string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	life := w.nodes[id]
	if life == nil || !life.gone.IsZero() && life.gone.Before(at.Add(sight)) {
		return false
	}
	return life.anonymousAt(at)
}

func (n *nodeLife) anonymousAt(at time.Time) bool {
	return slices.ContainsFunc(n.anonymous, func(s laws.Span) bool { return s.From.Add(sight).Before(at) && at.Before(s.To.Add(-sight)) })
}

// stick and unstick are told of pods whose kubelet does not hear that they are deleted.
func (w *watch) stick(pods []types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range pods {
		if life := w.pods[uid]; life != nil {
			life.stuck = laws.Span{From: now, To: forever}
		}
	}
}

func (w *watch) unstick(pods []types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range pods {
		if life := w.pods[uid]; life != nil {
			life.stuck.To = now
		}
	}
}

// gaveUp are when the drain of a node may be given up: at the deadlines of what was asked
// for and of what is reported, which may be another drain's, or when it was reported to have
// failed.
func gaveUp(n *corev1.Node) []time.Time {
	var times []time.Time
	switch r, err := contract.ParseReport(n.Annotations[contract.AnnotationDrainReport]); {
	case err == nil && r.Phase == contract.PhaseFailed:
		times = append(times, r.Renewed.Time)
	case err == nil && !r.Deadline.IsZero():
		times = append(times, r.Deadline.Time)
	}
	if asked, err := contract.ParseRequest(n.Annotations[contract.AnnotationDrainRequest]); err == nil && !asked.Deadline.IsZero() {
		times = append(times, asked.Deadline.Time)
	}
	return times
}

// later reports whether a Node is a later one than the other; what a watch tells may
// come after what was read since.
func later(n, than *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(n.ResourceVersion, than.ResourceVersion)
	return err == nil && order > 0
}

func (w *watch) missNode(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	n, ok := o.(*corev1.Node)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cordons, n.Name)
	for _, life := range w.nodes {
		if life.name == n.Name && life.uid == n.UID {
			life.gone, life.drain = time.Now(), nil
		}
	}
}

func (w *watch) seePod(p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods[p.UID] == nil {
		w.pods[p.UID] = &podLife{name: p.Name, node: p.Spec.NodeName, created: p.CreationTimestamp.Time, bound: time.Now(), grace: drainable.GraceOf(&fleet.Pod{Spec: &p.Spec})}
	}
	if life := w.pods[p.UID]; life.gone.IsZero() && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) {
		life.gone = time.Now() // it needs no place any more
	}
}

func (w *watch) missPod(o any) {
	if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tombstone.Obj
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if life := w.pods[p.UID]; life != nil && life.gone.IsZero() {
		life.gone = time.Now()
	}
}

// sight is how far what a watch saw may be from when it happened.
const sight = 2 * time.Second

// hindsight is how long after a call it is judged: when the API server comes back
// from an outage, a watch may take half a minute to do so.
const hindsight = 45 * time.Second

// breaches are what must not have been seen: a person's cordon undone, an instance
// ended by us, before a moment, while its node had pods or was open to new ones. The watch may have seen late
// that a pod had gone, or a node was closed; the audit log then knows better.
func (w *watch) breaches(calls []fakeaws.Call, audit []laws.Request, before time.Time, skewed []laws.Span) []string {
	deleted := map[string]time.Time{} // the last time: the first may only have asked it to end
	asked := map[string][]time.Time{} // all of them, and evictions
	closed := map[string][]time.Time{}
	for _, a := range audit {
		switch of := a.ObjectRef; {
		case of.Subresource == "eviction" && a.ResponseStatus.Code == http.StatusCreated:
			asked[of.Name] = append(asked[of.Name], a.RequestReceivedTimestamp)
		case a.ResponseStatus.Code != http.StatusOK:
		case of.Resource == "pods" && a.Verb == "delete":
			deleted[of.Name] = a.RequestReceivedTimestamp
			asked[of.Name] = append(asked[of.Name], a.RequestReceivedTimestamp)
		case of.Resource == "nodes" && a.RequestObject.Metadata.Annotations[contract.AnnotationCordonedBy] != "":
			closed[of.Name] = append(closed[of.Name], a.RequestReceivedTimestamp)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.broke)
	for _, c := range calls {
		ends := c.Operation == "TerminateInstanceInAutoScalingGroup" || c.Operation == "CompleteLifecycleAction"
		if !ends || c.Error != "" || c.Time.After(before) {
			continue
		}
		// By a wrong clock a deadline has come.
		if c.Operation == "CompleteLifecycleAction" && slices.ContainsFunc(skewed, func(s laws.Span) bool { return s.Holds(c.Time) }) {
			continue
		}
		node := w.nodes[c.Params["InstanceId"]]
		if node == nil || !node.gone.IsZero() && node.gone.Before(c.Time) || node.givenUp(c.Time) {
			continue
		}
		// Nobody knows whose Node it is, and so none can be drained: soak.unrecognised judges that.
		if c.Operation == "CompleteLifecycleAction" && node.anonymousAt(c.Time) {
			continue
		}
		if node.openAt(c.Time, closed[node.name]) {
			all = append(all, fmt.Sprintf("%s of %s at %s, while %s took new pods", c.Operation, c.Params["InstanceId"], c.Time.Format("15:04:05.000"), node.name))
		}
		for _, p := range w.pods {
			// Pods that are long overdue are not waited for.
			stuck := !p.stuck.From.IsZero() && c.Operation == "CompleteLifecycleAction"
			if p.node == node.name && !stuck && !p.overdue(c.Time, asked[p.name]) && p.there(c.Time, deleted[p.name]) {
				all = append(all, fmt.Sprintf("%s of %s at %s, while pod %s was on %s", c.Operation, c.Params["InstanceId"], c.Time.Format("15:04:05.000"), p.name, p.node))
			}
		}
	}
	return all
}
