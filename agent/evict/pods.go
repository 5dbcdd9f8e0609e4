package evict

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

// Pods are the pods of a node, as a watch last reported. Safe for concurrent use.
type Pods struct {
	changed func()
	// guarding is held by whoever lists the budgets of the cluster for these pods.
	guarding sync.Mutex

	mu      sync.Mutex
	known   bool
	pods    map[types.UID]fleet.Pod
	ending  map[types.UID]drain.Ending
	stirred map[string]time.Time
	back    time.Time
	budgets budgets
}

// NewPods returns an empty list that is not known yet. changed is called after
// every change that a drain may take note of, from the watch's goroutine.
func NewPods(changed func()) *Pods {
	return &Pods{changed: changed, pods: map[types.UID]fleet.Pod{}, ending: map[types.UID]drain.Ending{}, stirred: map[string]time.Time{}, budgets: newBudgets()}
}

// change changes what is known, and reports it.
func (p *Pods) change(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	p.changed()
}

// Seen is what is known about the pods of the node.
type Seen struct {
	// Known is false until the pods were listed once.
	Known bool
	// Pods in no order.
	Pods []fleet.Pod
	// Ending are those that came to be deleted while we watched, and those for which the watch came back.
	Ending map[types.UID]drain.Ending
	// Stirred holds, by namespace, when a pod last left or changed its readiness.
	Stirred map[string]time.Time
	// Back is when the watch last came back after it had failed; zero for never.
	Back time.Time
	// Budgets are those that may guard pods, as they were listed when the pods were, or
	// are now in the Live namespaces; nil while none are known.
	Budgets *drainable.Budgets
	// Live names the namespaces whose budgets are watched, and current.
	Live map[string]bool
}

// UIDs are those of the pods.
func (s Seen) UIDs() sets.Set[types.UID] {
	uids := make(sets.Set[types.UID], len(s.Pods))
	for i := range s.Pods {
		uids.Insert(s.Pods[i].UID)
	}
	return uids
}

// Seen returns what is known now.
func (p *Pods) Seen() Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Seen{
		Known:   p.known,
		Pods:    slices.Collect(maps.Values(p.pods)),
		Ending:  maps.Clone(p.ending),
		Stirred: maps.Clone(p.stirred),
		Back:    p.back,
		Budgets: p.budgets.indexed(p.pods),
		Live:    maps.Clone(p.budgets.live),
	}
}

// Replace takes over a whole list. Pods that are missing have left.
func (p *Pods) Replace(list []corev1.Pod) {
	p.change(func() {
		before := p.pods
		p.pods = make(map[types.UID]fleet.Pod, len(list))
		for i := range list {
			p.put(&list[i])
			if was, known := before[list[i].UID]; known {
				p.hearOf(&list[i], was)
			}
		}
		for uid, pod := range before {
			if _, still := p.pods[uid]; !still {
				p.leave(pod.Namespace, uid)
			}
		}
		p.known = true
	})
}

// Take takes over one change, of a watch of pods.
func (p *Pods) Take(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	if p.take(e.Type, pod) {
		p.changed()
	}
}

// take reports whether the change is one to a drain: the API server writes two or three
// for each eviction, and what kubelet writes about a pod is mostly about its
// containers.
func (p *Pods) take(kind watch.EventType, pod *corev1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, had := p.pods[pod.UID]
	if kind == watch.Deleted {
		delete(p.pods, pod.UID)
		p.leave(pod.Namespace, pod.UID)
		return true
	}
	p.put(pod)
	after := p.pods[pod.UID]
	p.hearOf(pod, before)
	if had && before.Ready != after.Ready {
		p.stirred[pod.Namespace] = time.Now()
	}
	return !had || !reflect.DeepEqual(before, after)
}

// hearOf notes that a pod is being deleted, if that is new. Whoever shortens its time to end
// later does not begin it again.
func (p *Pods) hearOf(pod *corev1.Pod, before fleet.Pod) {
	if !before.Deleted.IsZero() || pod.DeletionTimestamp == nil {
		return
	}
	e := drain.Ending{Heard: time.Now(), Asked: pod.DeletionTimestamp.Time}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		e.Asked = e.Asked.Add(-time.Duration(*grace) * time.Second)
	}
	p.ending[pod.UID] = e
}

// leave notes that a pod is there no more.
func (p *Pods) leave(namespace string, uid types.UID) {
	delete(p.ending, uid)
	p.stirred[namespace] = time.Now()
}

// Return notes that the watch is open again after it had failed.
func (p *Pods) Return() {
	p.change(func() {
		p.back = time.Now()
		for uid, pod := range p.pods {
			if e := p.ending[uid]; !pod.Deleted.IsZero() && e.Back.IsZero() {
				e.Back = p.back
				p.ending[uid] = e
			}
		}
	})
}

// kubeletReturns is how long a kubelet may take to hear of an API server that is back: the longest pause of
// its watches.
const kubeletReturns = 30 * time.Second

// Broke notes that the watch has failed. A return that did not last is none: kubelets may not have heard.
func (p *Pods) Broke() {
	p.change(func() {
		for uid, e := range p.ending {
			if time.Since(e.Back) < kubeletReturns {
				e.Back = time.Time{}
				p.ending[uid] = e
			}
		}
	})
}

func (p *Pods) put(pod *corev1.Pod) { p.pods[pod.UID] = fleet.PodFrom(lean(pod)) }

// lean keeps of a pod what a drain asks for: a node's pods are held in memory
// for as long as it drains, and most of a pod is how to run it.
func lean(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			CreationTimestamp:          pod.CreationTimestamp,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
			Labels:                     leanLabels(pod.Labels),
			Annotations:                contract.Only(pod.Annotations, drainable.Annotations),
			OwnerReferences:            slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(o metav1.OwnerReference) bool { return o.Controller == nil || !*o.Controller }),
		},
		Spec: corev1.PodSpec{
			NodeName:                      pod.Spec.NodeName,
			Priority:                      pod.Spec.Priority,
			PriorityClassName:             pod.Spec.PriorityClassName,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
			Tolerations:                   drainable.TolerationsAsked(pod.Spec.Tolerations),
			Volumes:                       leanVolumes(pod.Spec.Volumes),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions},
	}
}

// mostLabels is how many bytes of a pod's labels are kept, in keys and values: they tell which budget guards
// it, so that few are asked for in vain, and the API server has no bound for them.
const mostLabels = 16 << 10

func leanLabels(labels map[string]string) map[string]string {
	bytes := 0
	for key, value := range labels {
		bytes += len(key) + len(value)
	}
	if bytes > mostLabels {
		return nil
	}
	return labels
}

// mostVolumes is how many volumes of a pod are kept, more than a node can have attached.
const mostVolumes = 256

// leanVolumes keeps those that are lost with the node, and those that are
// attached to it.
func leanVolumes(volumes []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range volumes {
		kept := corev1.VolumeSource{HostPath: v.HostPath, EmptyDir: v.EmptyDir, PersistentVolumeClaim: v.PersistentVolumeClaim}
		if v.Ephemeral != nil {
			kept.Ephemeral = &corev1.EphemeralVolumeSource{} // its template makes no difference here
		}
		if kept != (corev1.VolumeSource{}) && len(out) < mostVolumes {
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: kept})
		}
	}
	return out
}

// WatchPods keeps pods in step with the pods that are bound to the node, until
// ctx ends. While the API server is away they stay as they were.
//
// The first list comes from the server's cache: a consistent one waits up to a tenth of a second.
// The watch begins at the list's version. It brings what the list lacks, and what is bound while the
// node is being cordoned. The cache may be late, so a list without a pod that must leave is asked for
// again, consistently: the drain would pass over its permit and report Drained. Lists after a watch
// are consistent, too: a pod that the watch has shown to go must not come back.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
func (c *Client) WatchPods(ctx context.Context, logger *slog.Logger, pods *Pods) {
	ours := "spec.nodeName=" + c.node
	c.identity.retry()
	var guarding sync.WaitGroup
	defer guarding.Wait()
	from := anyVersion
	follow(ctx, &source{
		what: "pods of node " + c.node,
		begin: func(ctx context.Context) (string, error) {
			list, err := c.pods(ctx, ours, from)
			if err == nil && from == anyVersion && !slices.ContainsFunc(list.Items, mustLeave) {
				list, err = c.pods(ctx, ours, latest)
			}
			if err != nil {
				return "", err
			}
			from = latest
			pods.Replace(list.Items)
			guarding.Go(func() { c.guard(ctx, logger, pods) })
			return list.ResourceVersion, nil
		},
		open: func(ctx context.Context, version string) (watch.Interface, error) {
			return c.own.Get().Resource("pods").
				Param("watch", "true").
				Param("allowWatchBookmarks", "true").
				Param("fieldSelector", ours).
				Param("resourceVersion", version).
				Param("timeoutSeconds", watchSeconds()).
				MaxRetries(0).
				Watch(ctx)
		},
		take: pods.Take,
		back: pods.Return, broke: pods.Broke,
	}, logger)
}

func mustLeave(pod corev1.Pod) bool {
	p := fleet.PodFrom(&pod)
	return drainable.MustBePlacedAgain(&p)
}

// The versions that a list may be asked for.
const anyVersion, latest = "0", ""

// pods lists those that a field selector selects. Where all at once are too large they come page by page,
// as they are now: of each page is kept what a drain asks for.
func (c *Client) pods(ctx context.Context, selector, version string) (*corev1.PodList, error) {
	list, err := c.page(ctx, selector, version, nil)
	if !kube.TooLarge(err) {
		return list, err
	}
	all := &corev1.PodList{}
	for {
		list, err := c.page(ctx, selector, latest, all)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all.Items = append(all.Items, *lean(&list.Items[i]))
		}
		all.ListMeta = list.ListMeta
		if all.Continue == "" {
			return all, nil
		}
	}
}

// page lists what comes after those pods, or all where they are nil.
func (c *Client) page(ctx context.Context, selector, version string, after *corev1.PodList) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ask := c.own.Get().Resource("pods").Param("fieldSelector", selector).Param("resourceVersion", version).MaxRetries(0)
	if after != nil {
		ask = ask.Param("limit", strconv.Itoa(kube.PodsPerPage)).Param("continue", after.Continue)
	}
	list := &corev1.PodList{}
	return list, ask.Do(ctx).Into(list)
}
