package evict

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// budgets are those that may guard the pods of a node: as they were listed when
// the pods were, and in the live namespaces as they are now. Keys are
// namespace/name.
type budgets struct {
	// byKey is nil until any were listed.
	byKey map[string]fleet.Budget
	// live names the namespaces whose watch is in step.
	live map[string]bool
	// index of byKey; nil when it must be made anew.
	index *drainable.Budgets
}

func newBudgets() budgets {
	return budgets{live: map[string]bool{}}
}

// indexed returns them all, ready to be asked; nil while none are known.
func (b *budgets) indexed() *drainable.Budgets {
	if b.index == nil && b.byKey != nil {
		b.index = drainable.NewBudgets(slices.Collect(maps.Values(b.byKey)))
	}
	return b.index
}

// replaceAll takes over a list of all namespaces. What a watch has reported is
// newer.
func (b *budgets) replaceAll(list []policyv1.PodDisruptionBudget) {
	before := b.byKey
	b.byKey, b.index = map[string]fleet.Budget{}, nil
	for key, budget := range before {
		if b.live[budget.Namespace] {
			b.byKey[key] = budget
		}
	}
	for i := range list {
		if budget := fleet.BudgetFrom(&list[i]); !b.live[budget.Namespace] {
			b.byKey[budget.Key()] = budget
		}
	}
}

// replace takes over the list of one namespace, which is live from now on.
func (b *budgets) replace(namespace string, list []policyv1.PodDisruptionBudget) {
	there := map[string]bool{}
	for i := range list {
		budget := fleet.BudgetFrom(&list[i])
		there[budget.Key()] = true
		b.put(budget)
	}
	for key, budget := range b.byKey {
		if budget.Namespace == namespace && !there[key] {
			b.remove(key)
		}
	}
	b.live[namespace] = true
}

func (b *budgets) put(budget fleet.Budget) {
	if b.byKey == nil {
		b.byKey = map[string]fleet.Budget{}
	}
	b.byKey[budget.Key()], b.index = budget, nil
}

func (b *budgets) remove(key string) {
	delete(b.byKey, key)
	b.index = nil
}

// Guard takes over the budgets of the cluster, as far as they may guard a pod of
// the node.
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
			p.budgets.remove(budget.Key())
			return
		}
		p.budgets.put(budget)
	})
}

// Live notes whether the watch of a namespace's budgets is in step.
func (p *Pods) Live(namespace string, live bool) {
	p.change(func() {
		if live {
			p.budgets.live[namespace] = true
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

// guard lists the budgets that may guard pods of those namespaces, and tries again
// until it can, or may not, or ctx ends. Until then the drain does without: it asks
// for the pods of one owner one by one.
func (c *Client) guard(ctx context.Context, logger *slog.Logger, pods *Pods, namespaces map[string]bool) {
	for failures := 1; ctx.Err() == nil; failures++ {
		budgets, err := c.budgets(ctx, namespaces)
		if err == nil {
			pods.Guard(budgets)
			return
		}
		if failures == 1 && ctx.Err() == nil {
			logger.Warn("listing PodDisruptionBudgets failed", "err", err)
		}
		if apierrors.IsForbidden(err) {
			return
		}
		sleep(ctx, Pause(failures, err))
	}
}

// budgets lists those of the whole cluster, from the server's cache: they tell
// which pods are guarded together, and nothing that must be true this moment.
// Those of namespaces that no pod lives in are left out.
func (c *Client) budgets(ctx context.Context, namespaces map[string]bool) ([]policyv1.PodDisruptionBudget, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := &policyv1.PodDisruptionBudgetList{}
	err := c.api.Get().AbsPath("/apis/policy/v1/poddisruptionbudgets").Param("resourceVersion", "0").MaxRetries(0).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(b policyv1.PodDisruptionBudget) bool { return !namespaces[b.Namespace] }), nil
}
