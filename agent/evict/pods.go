package evict

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Pods are the pods of a node, as a watch last told. Safe for concurrent use.
type Pods struct {
	changed func()

	mu      sync.Mutex
	known   bool
	pods    map[types.UID]fleet.Pod
	stirred map[string]time.Time
	back    time.Time
	budgets *drainable.Budgets
}

// NewPods returns an empty list that is not known yet. changed is called after
// every change, from the watch's goroutine.
func NewPods(changed func()) *Pods {
	return &Pods{changed: changed, pods: map[types.UID]fleet.Pod{}, stirred: map[string]time.Time{}}
}

// Seen is what is known about the pods of the node.
type Seen struct {
	// Known is false until the pods were listed once.
	Known bool
	// Pods in no order.
	Pods []fleet.Pod
	// Stirred tells by namespace when a pod last left or changed its readiness.
	Stirred map[string]time.Time
	// Back is when the watch last came back after it had failed; zero for never.
	Back time.Time
	// Budgets are those that guard pods, as they were listed with the pods; nil
	// where they could not be.
	Budgets *drainable.Budgets
}

// Has says whether a pod is there.
func (s Seen) Has(uid types.UID) bool {
	for i := range s.Pods {
		if s.Pods[i].UID == uid {
			return true
		}
	}
	return false
}

// Seen returns what is known now.
func (p *Pods) Seen() Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Seen{Known: p.known, Pods: make([]fleet.Pod, 0, len(p.pods)), Stirred: maps.Clone(p.stirred), Back: p.back, Budgets: p.budgets}
	for _, pod := range p.pods {
		s.Pods = append(s.Pods, pod)
	}
	return s
}

// Replace takes over a whole list. Pods that are missing have left.
func (p *Pods) Replace(list []corev1.Pod) {
	p.mu.Lock()
	before := p.pods
	p.pods = make(map[types.UID]fleet.Pod, len(list))
	for i := range list {
		p.put(&list[i])
	}
	for uid, pod := range before {
		if _, still := p.pods[uid]; !still {
			p.stirred[pod.Namespace] = time.Now()
		}
	}
	p.known = true
	p.mu.Unlock()
	p.changed()
}

// Guard takes over the budgets of the cluster.
func (p *Pods) Guard(budgets []policyv1.PodDisruptionBudget) {
	list := make([]fleet.Budget, 0, len(budgets))
	for i := range budgets {
		list = append(list, fleet.BudgetFrom(&budgets[i]))
	}
	p.mu.Lock()
	p.budgets = drainable.NewBudgets(list)
	p.mu.Unlock()
	p.changed()
}

// Take takes over one change, of a watch of pods.
func (p *Pods) Take(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	before, had := p.pods[pod.UID]
	if e.Type == watch.Deleted {
		delete(p.pods, pod.UID)
		p.stirred[pod.Namespace] = time.Now()
	} else {
		p.put(pod)
		if had && before.Ready != p.pods[pod.UID].Ready {
			p.stirred[pod.Namespace] = time.Now()
		}
	}
	p.mu.Unlock()
	p.changed()
}

// Return notes that the watch is open again after it had failed.
func (p *Pods) Return() {
	p.mu.Lock()
	p.back = time.Now()
	p.mu.Unlock()
	p.changed()
}

func (p *Pods) put(pod *corev1.Pod) { p.pods[pod.UID] = fleet.PodFrom(lean(pod)) }

// lean keeps of a pod what a drain asks for: a node's pods are held in memory
// for as long as it drains, and most of a pod is how to run it.
func lean(pod *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			CreationTimestamp: pod.CreationTimestamp,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            pod.Labels,
			Annotations:       pod.Annotations,
			OwnerReferences:   pod.OwnerReferences,
		},
		Spec: corev1.PodSpec{
			NodeName:                      pod.Spec.NodeName,
			Priority:                      pod.Spec.Priority,
			PriorityClassName:             pod.Spec.PriorityClassName,
			TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
			Tolerations:                   pod.Spec.Tolerations,
			Volumes:                       pod.Spec.Volumes,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions},
	}
}

// WatchPods keeps pods in step with the pods that are bound to the node, until
// ctx ends. While the API server is away they stay as they were.
func (c *Client) WatchPods(ctx context.Context, logger *slog.Logger, pods *Pods) {
	ours := "spec.nodeName=" + c.node
	follow(ctx, &source{
		what: "pods of node " + c.node,
		begin: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			if budgets, err := c.budgets(ctx); err != nil {
				// The drain does without; it is slower then.
				logger.Warn("budgets not listed", "err", err)
			} else {
				pods.Guard(budgets)
			}
			list := &corev1.PodList{}
			err := c.pods.Get().Resource("pods").Param("fieldSelector", ours).MaxRetries(0).Do(ctx).Into(list)
			if err != nil {
				return "", err
			}
			pods.Replace(list.Items)
			return list.ResourceVersion, nil
		},
		open: func(ctx context.Context, version string) (watch.Interface, error) {
			return c.pods.Get().Resource("pods").
				Param("watch", "true").
				Param("allowWatchBookmarks", "true").
				Param("fieldSelector", ours).
				Param("resourceVersion", version).
				Param("timeoutSeconds", watchSeconds()).
				MaxRetries(0).
				Watch(ctx)
		},
		take: pods.Take,
		back: pods.Return,
	}, logger)
}

// budgets lists those of the whole cluster, from the server's cache: they tell
// which pods are guarded together, and nothing that must be true this moment.
func (c *Client) budgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	list := &policyv1.PodDisruptionBudgetList{}
	err := c.api.Get().AbsPath("/apis/policy/v1/poddisruptionbudgets").Param("resourceVersion", "0").MaxRetries(0).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	return list.Items, nil
}
