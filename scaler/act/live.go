package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
)

const (
	// nodesPerPage bounds what one page of the list of Nodes holds: a Node is some 20 KiB.
	nodesPerPage = 500
	// namedWithin is how old a Node is at the most whose provider id may yet come: cloud
	// controllers write it after the kubelet has registered. Older ones the decision knew.
	namedWithin = time.Minute
	// nodesTime is how long the whole list may take, less than an action may.
	nodesTime = 8 * time.Second
)

// batch is what the actions of one queue share.
type batch struct {
	*listing
	// podLists has a place for each list of a node's pods that may be under way.
	podLists chan struct{}
}

// listing is the list of Nodes that all actions of one Do share.
type listing struct {
	began time.Time
	// list begins the list of Nodes, once: when the first action asks for it, so after
	// all of them were decided. A list that failed is not tried again.
	list func()
	// listed is closed when what follows is there.
	listed chan struct{}
	live   *liveNodes
	err    error
	// took is how long that took, in nanoseconds.
	took atomic.Int64
}

func (a *Actor) newListing(ctx context.Context, actions []action.Action) *listing {
	l := &listing{began: time.Now(), listed: make(chan struct{})}
	l.list = sync.OnceFunc(func() {
		go func() {
			began := time.Now()
			l.live, l.err = a.liveNodes(ctx, actions)
			l.took.Store(int64(time.Since(began)))
			close(l.listed)
		}()
	})
	return l
}

// nodes are the Nodes of the instances that the actions end, or let go.
func (l *listing) nodes(ctx context.Context) (*liveNodes, error) {
	l.list()
	select {
	case <-l.listed:
		return l.live, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the list of nodes: %w", ctx.Err())
	}
}

// late reports whether an action is left to the next evaluation. The list of Nodes does not
// count, because the next evaluation makes one of its own.
func (l *listing) late(todo action.Action) bool {
	budget := action.TraitsOf(todo).Budget
	return budget > 0 && time.Since(l.began)-time.Duration(l.took.Load()) > budget
}

// liveNodes are, for each instance that the actions end or let go, the Nodes that claim to
// be it.
type liveNodes struct {
	now    time.Time          // as the list began
	claims map[string]*claims // by instance id
	// young are the Nodes that have just registered: one that names no machine may be any.
	young []fleet.Node
}

// claims are the Nodes that claim to be one instance.
type claims struct {
	// own have its provider id.
	own []action.NodeRef
	// weak are names of Nodes that name it in other words; see fleet.Node.WeakIDs.
	weak []string
}

// liveNodes lists all Nodes, page by page, as they are at this moment: without a
// resourceVersion the API server's answer is consistent. Of a page nothing is kept but
// the names of those that were asked for.
func (a *Actor) liveNodes(ctx context.Context, actions []action.Action) (*liveNodes, error) {
	ctx, cancel := context.WithTimeout(ctx, nodesTime)
	defer cancel()
	live := &liveNodes{now: a.now(), claims: map[string]*claims{}}
	for _, todo := range actions {
		if t := action.TraitsOf(todo); t.Confirms {
			live.claims[t.Instance] = &claims{}
		}
	}
	options := metav1.ListOptions{Limit: nodesPerPage}
	for {
		page, err := a.Nodes.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the nodes: %w", err)
		}
		for i := range page.Items {
			live.note(fleet.NodeFrom(&page.Items[i]))
		}
		if page.Continue == "" {
			return live, nil
		}
		options.Continue = page.Continue
	}
}

func (l *liveNodes) note(n fleet.Node) {
	if c, asked := l.claims[n.InstanceID()]; asked {
		c.own = append(c.own, action.NodeRef{Name: n.Name, UID: n.UID})
	}
	if l.now.Sub(n.Created) < namedWithin {
		l.young = append(l.young, fleet.Node{Name: n.Name, ProviderID: n.ProviderID})
	}
	for id := range n.WeakIDs() {
		if c, asked := l.claims[id]; asked && !slices.Contains(c.weak, n.Name) {
			c.weak = append(c.weak, n.Name)
		}
	}
}

// confirm fails unless the Nodes of an instance are what a decision took them for: the one
// that it named, or none. Where it is not clear what a Node is, it fails.
func (l *liveNodes) confirm(instance string, decided action.NodeRef) error {
	c := l.claims[instance]
	switch {
	case len(c.weak) > 0:
		return stopped("%s may be the machine of node %s, which names it in other words than a provider id", instance, strings.Join(c.weak, ", "))
	case len(c.own) > 1:
		return stopped("nodes %s and %s both have the provider id of %s", c.own[0], c.own[1], instance)
	case len(c.own) == 0 && decided.Name == "" && l.nameless(instance) != "":
		return stopped("%s may be the machine of node %s, which has just registered and has no provider id yet", instance, l.nameless(instance))
	case len(c.own) == 0 && decided.Name == "":
		return nil
	case len(c.own) == 0:
		return stopped("no node has the provider id of %s any more; it was that of node %s", instance, decided)
	case decided.Name == "":
		return stopped("node %s has the provider id of %s, which had no node", c.own[0], instance)
	case c.own[0].Name != decided.Name:
		return stopped("node %s has the provider id of %s, and not node %s any more", c.own[0], instance, decided)
	case decided.UID != "" && c.own[0].UID != decided.UID:
		return stopped("node %s has registered again", decided)
	}
	return nil
}

// nameless is a young Node that names no machine of the instance's cloud and so may be any; empty
// without one.
func (l *liveNodes) nameless(instance string) string {
	for _, n := range l.young {
		if !n.NamesOther(instance) {
			return n.Name
		}
	}
	return ""
}

// among reports whether a Node is one of those with the instance's provider id.
func (l *liveNodes) among(instance string, node action.NodeRef) bool {
	return slices.Contains(l.claims[instance].own, node)
}

// closed reports whether a drain keeps new pods off a node.
func closed(node *corev1.Node) bool {
	_, tainted := contract.Draining(node.Spec.Taints)
	return tainted || node.Spec.Unschedulable
}

// unreachable reports whether Kubernetes keeps new pods off a node, because its kubelet is
// silent or unhealthy.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
func unreachable(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule && (t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeNotReady) {
			return true
		}
	}
	return false
}

// serves reports whether a node is Ready and takes any pod. Taints that only prefer other nodes keep
// none away.
func serves(node *corev1.Node) bool {
	keepsAway := func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	return fleet.NodeFrom(node).Ready && !slices.ContainsFunc(node.Spec.Taints, keepsAway)
}
