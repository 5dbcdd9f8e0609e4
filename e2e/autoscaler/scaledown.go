package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"windlass.dev/windlass/pkg/contract"
)

// deletions are the nodes that it removes at the moment.
type deletions struct {
	mu      *sync.Mutex
	nodes   map[string]bool // whether they are drained
	running *sync.WaitGroup
}

func newDeletions() deletions {
	return deletions{&sync.Mutex{}, map[string]bool{}, &sync.WaitGroup{}}
}

// begin reports whether a node may go now: ten at a time, of which one is drained.
func (d deletions) begin(node string, drained bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, goes := d.nodes[node]; goes || len(d.nodes) >= mostAtOnce || drained && slices.Contains(slices.Collect(maps.Values(d.nodes)), true) {
		return false
	}
	d.nodes[node] = drained
	return true
}

func (d deletions) end(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nodes, node)
}

// What bounds it: --max-scale-down-parallelism and --max-bulk-soft-taint-count.
const mostAtOnce, mostTaints = 10, 10

// evictAgain is the pace of evictions and of asking whether pods are gone. Cluster Autoscaler asks every
// five seconds.
const evictAgain = time.Second

// unneededOf are the nodes that may go, with the pods that would have to move, in the order in which they go.
func (a *autoscaler) unneededOf(s sight) (nodes []*node, moving map[*node][]*corev1.Pod) {
	moving = map[*node][]*corev1.Pod{}
	candidates := slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n.group == nil || !n.ready() || n.goes() })
	slices.SortStableFunc(candidates, func(x, y *node) int {
		_, xWas := a.needless[x.Name]
		_, yWas := a.needless[y.Name]
		return cmp.Or(cmp.Compare(len(movable(x)), len(movable(y))), cmp.Compare(order(yWas), order(xWas)), cmp.Compare(x.Name, y.Name))
	})
	stay := copies(s.nodes)
	shrinks := map[string]int{} // by those that go already: a group's size falls when they are terminated
	for _, n := range s.nodes {
		if n.group != nil && n.goes() {
			shrinks[n.group.name]++
		}
	}
	for _, n := range candidates {
		if n.utilization() > a.threshold || blocked(n) || n.Annotations[contract.AnnotationScaleDownDisabled] == "true" || n.group.desired-shrinks[n.group.name] <= n.group.min {
			continue
		}
		others := slices.DeleteFunc(copies(stay), func(o *node) bool { return o.Name == n.Name || !o.ready() || o.goes() })
		pods := movable(n)
		if len(place(pods, others)) > 0 {
			continue
		}
		shrinks[n.group.name]++
		stay = others
		nodes = append(nodes, n)
		moving[n] = pods
	}
	return nodes, moving
}

func order(is bool) int {
	if is {
		return 1
	}
	return 0
}

// movable are the pods that are evicted.
func movable(n *node) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(n.pods), func(p *corev1.Pod) bool {
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		return mirror || ofDaemonSet(p)
	})
}

// blocked reports whether a pod keeps its node: by its annotation, or because nothing would create it anew.
func blocked(n *node) bool {
	return slices.ContainsFunc(movable(n), func(p *corev1.Pod) bool {
		safe := p.Annotations[contract.AnnotationForeignSafeToEvict]
		return safe == "false" || safe != "true" && metav1.GetControllerOf(p) == nil
	})
}

// scaleDown marks unneeded nodes, and removes those that are unneeded for long.
func (a *autoscaler) scaleDown(ctx context.Context, s sight) error {
	nodes, moving := a.unneededOf(s)
	was := a.needless
	a.needless = map[string]time.Time{}
	for _, n := range nodes {
		a.needless[n.Name] = s.now
		if since, known := was[n.Name]; known {
			a.needless[n.Name] = since
		}
	}
	if err := a.markUnneeded(ctx, s); err != nil {
		return err
	}
	if s.now.Sub(a.grown) < a.afterAdd {
		return nil
	}
	for _, n := range nodes {
		if s.now.Sub(a.needless[n.Name]) < a.unneeded || !a.begin(n.Name, len(moving[n]) > 0) {
			continue
		}
		if err := a.remove(ctx, n, moving[n]); err != nil {
			a.end(n.Name)
			return err
		}
	}
	return nil
}

// markUnneeded keeps the soft taint on those that are unneeded.
func (a *autoscaler) markUnneeded(ctx context.Context, s sight) error {
	left := mostTaints
	for _, n := range s.nodes {
		if n.group == nil || n.goes() {
			continue
		}
		_, unneeded := a.needless[n.Name]
		marked := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == contract.TaintDeletionCandidate })
		if unneeded == marked || left == 0 {
			continue
		}
		left--
		change := func(spec *corev1.NodeSpec) { untaint(spec, contract.TaintDeletionCandidate) }
		if unneeded {
			change = func(spec *corev1.NodeSpec) {
				spec.Taints = append(spec.Taints, taintOf(contract.TaintDeletionCandidate, corev1.TaintEffectPreferNoSchedule, s.now))
			}
		}
		if err := a.update(ctx, n.Name, change); err != nil {
			return err
		}
	}
	return nil
}

func taintOf(key string, effect corev1.TaintEffect, at time.Time) corev1.Taint {
	return corev1.Taint{Key: key, Value: strconv.FormatInt(at.Unix(), 10), Effect: effect}
}

func untaint(spec *corev1.NodeSpec, key string) {
	spec.Taints = slices.DeleteFunc(spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// release undoes what it does to a node that goes.
func release(spec *corev1.NodeSpec) {
	untaint(spec, contract.TaintToBeDeleted)
	spec.Unschedulable = false
}

// update changes a Node, however often others do at the same time.
func (a *autoscaler) update(ctx context.Context, name string, change func(*corev1.NodeSpec)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&n.Spec)
		_, err = a.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing node %s: %w", name, err)
	}
	return nil
}

// cleanUp takes off its groups' nodes what one that was ended in its work has left there.
func (a *autoscaler) cleanUp(ctx context.Context, s sight) error {
	for _, n := range s.nodes {
		if n.group == nil || !n.goes() {
			continue
		}
		if err := a.update(ctx, n.Name, release); err != nil {
			return err
		}
		a.events.Event(n.Node, corev1.EventTypeNormal, "ClusterAutoscalerCleanup", "marked the node as schedulable")
	}
	return nil
}

// remove taints and cordons a node, and begins to drain and to terminate it.
func (a *autoscaler) remove(ctx context.Context, n *node, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		a.record(corev1.EventTypeNormal, contract.EventScaleDownEmpty, "Scale-down: removing empty node %q", n.Name)
	} else {
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		a.record(corev1.EventTypeNormal, contract.EventScaleDown, "Scale-down: removing node %s, utilization: {%.4f}, pods to reschedule: %s", n.Name, n.utilization(), strings.Join(names, ","))
	}
	err := a.update(ctx, n.Name, func(spec *corev1.NodeSpec) {
		untaint(spec, contract.TaintToBeDeleted)
		spec.Taints = append(spec.Taints, taintOf(contract.TaintToBeDeleted, corev1.TaintEffectNoSchedule, time.Now()))
		spec.Unschedulable = true
	})
	if err != nil {
		return err
	}
	a.events.Event(n.Node, corev1.EventTypeNormal, contract.EventScaleDown, "marked the node as toBeDeleted/unschedulable")
	a.log.Info("scale-down", "node", n.Name, "pods", len(pods))
	a.running.Go(func() {
		defer a.end(n.Name)
		err := a.empty(ctx, n, pods)
		if err == nil {
			err = a.terminate(ctx, n)
		}
		switch {
		case ctx.Err() != nil: // what stands on the node stays, for its next start
		case err != nil:
			a.events.Eventf(n.Node, corev1.EventTypeWarning, contract.EventScaleDownFailed, "failed to drain the node: %v", err)
			if err := a.update(ctx, n.Name, release); err != nil {
				a.log.Error("cannot release a node", "node", n.Name, "error", err)
			}
		default:
			a.events.Event(n.Node, corev1.EventTypeNormal, contract.EventScaleDown, "nodes removed by cluster autoscaler")
		}
	})
	return nil
}

// empty evicts the pods, and waits until they are gone.
func (a *autoscaler) empty(ctx context.Context, n *node, pods []*corev1.Pod) error {
	if !pause(ctx, a.deleteDelay) {
		return ctx.Err()
	}
	for _, p := range pods {
		a.events.Event(p, corev1.EventTypeNormal, contract.EventScaleDown, "deleting pod for node scale down")
	}
	evicted, begun := map[*corev1.Pod]bool{}, time.Now()
	for {
		var errs []error
		gone := 0
		for _, p := range pods {
			if !evicted[p] {
				err := a.client.CoreV1().Pods(p.Namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}})
				if evicted[p] = err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err); !evicted[p] {
					errs = append(errs, err)
				}
			}
			now, err := a.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && now.UID != p.UID {
				gone++
			}
		}
		switch since := time.Since(begun); {
		case gone == len(pods):
			return nil
		case len(errs) > 0 && since > a.eviction:
			return fmt.Errorf("failed to evict all pods within %s: %w", a.eviction, errors.Join(errs...))
		case since > time.Duration(a.graceSeconds)*time.Second:
			return fmt.Errorf("pods remaining after timeout on node %s", n.Name)
		case !pause(ctx, evictAgain):
			return ctx.Err()
		}
	}
}

// pause reports whether the time has passed, and nothing ended it.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *autoscaler) terminate(ctx context.Context, n *node) error {
	_, err := a.groupsAPI.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: aws.String(n.instance()), ShouldDecrementDesiredCapacity: aws.Bool(true),
	})
	if err != nil {
		return fmt.Errorf("terminating instance %s: %w", n.instance(), err)
	}
	return nil
}
