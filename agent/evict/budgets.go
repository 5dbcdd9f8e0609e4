package evict

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
)

// budgets are those of the cluster: as they were listed when the pods were, and in the live
// namespaces as they are now.
type budgets struct {
	// known holds them by namespace and name; nil until any were listed.
	known map[string]map[string]fleet.Budget
	// live names the namespaces whose watch is in step.
	live map[string]bool
	// index of those in namespaces that pods were in; nil when it must be made anew.
	index      *drainable.Budgets
	namespaces sets.Set[string]
	// size is what the known ones take, in bytes. Above kube.MostBytes tooMany is true, none is kept, and the
	// drain does without: watches add to what a list was small enough for.
	size    int
	tooMany bool
}

func newBudgets() budgets {
	return budgets{live: map[string]bool{}}
}

// indexed returns those that may guard one of the pods, ready to be asked; nil while none are known.
func (b *budgets) indexed(pods map[types.UID]fleet.Pod) *drainable.Budgets {
	if b.known == nil {
		return nil
	}
	now := sets.Set[string]{}
	for _, pod := range pods {
		now.Insert(pod.Namespace)
	}
	if b.index == nil || !b.namespaces.IsSuperset(now) {
		var list []fleet.Budget
		for namespace := range now {
			list = slices.AppendSeq(list, maps.Values(b.known[namespace]))
		}
		b.index, b.namespaces = drainable.NewBudgets(list), now
	}
	return b.index
}

// replaceAll takes over a list of all namespaces. What a watch has reported is
// newer.
func (b *budgets) replaceAll(list []policyv1.PodDisruptionBudget) {
	for namespace := range b.known {
		if !b.live[namespace] {
			b.forget(namespace)
		}
	}
	if b.known == nil && !b.tooMany {
		b.known = map[string]map[string]fleet.Budget{}
	}
	for i := range list {
		if budget := fleet.BudgetFrom(&list[i]); !b.live[budget.Namespace] {
			b.put(budget)
		}
	}
}

// replace takes over the list of one namespace, which is live from now on.
func (b *budgets) replace(namespace string, list []policyv1.PodDisruptionBudget) {
	b.forget(namespace)
	for i := range list {
		b.put(fleet.BudgetFrom(&list[i]))
	}
	b.setLive(namespace)
}

func (b *budgets) setLive(namespace string) {
	if !b.tooMany {
		b.live[namespace] = true
	}
}

// forget drops those of a namespace.
func (b *budgets) forget(namespace string) {
	for _, budget := range b.known[namespace] {
		b.size -= sizeOf(budget)
	}
	delete(b.known, namespace)
	b.index = nil
}

// sizeOf is about how many bytes a budget takes. Its selector is as long as its author likes.
func sizeOf(b fleet.Budget) int {
	const rest = 256
	return rest + len(b.Namespace) + len(b.Name) + b.Selector.Size()
}

func (b *budgets) put(budget fleet.Budget) {
	b.remove(budget)
	if b.size += sizeOf(budget); b.size > kube.MostBytes {
		*b = budgets{live: map[string]bool{}, tooMany: true}
	}
	if b.tooMany {
		return
	}
	if b.known == nil {
		b.known = map[string]map[string]fleet.Budget{}
	}
	if b.known[budget.Namespace] == nil {
		b.known[budget.Namespace] = map[string]fleet.Budget{}
	}
	b.known[budget.Namespace][budget.Name] = budget
}

func (b *budgets) remove(budget fleet.Budget) {
	if known, is := b.known[budget.Namespace][budget.Name]; is {
		b.size -= sizeOf(known)
		delete(b.known[budget.Namespace], budget.Name)
	}
	b.index = nil
}

// Guard takes over the budgets of the cluster.
func (p *Pods) Guard(list []policyv1.PodDisruptionBudget) {
	p.change(func() { p.budgets.replaceAll(list) })
}

// GuardIn takes over the budgets of a namespace that is watched from now on.
func (p *Pods) GuardIn(namespace string, list []policyv1.PodDisruptionBudget) {
	p.change(func() { p.budgets.replace(namespace, list) })
}

// TakeBudget takes over one change, of a watch of budgets.
func (p *Pods) TakeBudget(e watch.Event) {
	object, ok := e.Object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	p.change(func() {
		budget := fleet.BudgetFrom(object)
		if e.Type == watch.Deleted {
			p.budgets.remove(budget)
			return
		}
		p.budgets.put(budget)
	})
}

// Live notes whether the watch of a namespace's budgets is in step.
func (p *Pods) Live(namespace string, live bool) {
	p.change(func() {
		if live {
			p.budgets.setLive(namespace)
			return
		}
		delete(p.budgets.live, namespace)
	})
}

// WatchBudgets keeps the budgets of a namespace in step until ctx ends. A drain
// without it is slower, and asks in vain more often.
func (c *Client) WatchBudgets(ctx context.Context, logger *slog.Logger, namespace string, pods *Pods) {
	path := "/apis/policy/v1/namespaces/" + namespace + "/poddisruptionbudgets"
	follow(ctx, &source{
		what: "budgets of namespace " + namespace,
		begin: func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			list := &policyv1.PodDisruptionBudgetList{}
			if err := c.api.Get().AbsPath(path).MaxRetries(0).Do(ctx).Into(list); err != nil {
				return "", err
			}
			pods.GuardIn(namespace, list.Items)
			return list.ResourceVersion, nil
		},
		open: func(ctx context.Context, version string) (watch.Interface, error) {
			return c.api.Get().AbsPath(path).
				Param("watch", "true").
				Param("allowWatchBookmarks", "true").
				Param("resourceVersion", version).
				Param("timeoutSeconds", watchSeconds()).
				MaxRetries(0).
				Watch(ctx)
		},
		take:  pods.TakeBudget,
		broke: func() { pods.Live(namespace, false) },
		back:  func() { pods.Live(namespace, true) },
		spare: true,
	}, logger)
}

// guard lists the budgets of the cluster, and tries again until it can, or may not, or they are too
// many, or ctx ends. Until then the drain does without: it asks for the pods of one owner one by one.
// Where one that began before is not through yet, that will do.
func (c *Client) guard(ctx context.Context, logger *slog.Logger, pods *Pods) {
	if !pods.guarding.TryLock() {
		return
	}
	defer pods.guarding.Unlock()
	for failures := 1; ctx.Err() == nil; failures++ {
		budgets, err := c.budgets(ctx)
		if err == nil {
			pods.Guard(budgets)
			return
		}
		if failures == 1 && ctx.Err() == nil {
			logger.Warn("listing PodDisruptionBudgets failed", "err", err)
		}
		if apierrors.IsForbidden(err) || kube.TooLarge(err) {
			return
		}
		sleep(ctx, Pause(failures, err))
	}
}

// budgets lists those of the whole cluster, from the server's cache: they tell
// which pods are guarded together, and nothing that must be true this moment.
func (c *Client) budgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := &policyv1.PodDisruptionBudgetList{}
	err := c.api.Get().AbsPath("/apis/policy/v1/poddisruptionbudgets").Param("resourceVersion", anyVersion).MaxRetries(0).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	return list.Items, nil
}
