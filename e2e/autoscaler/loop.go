package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// loop goes on until ctx ends. What fails is tried again at the next iteration.
func (a *autoscaler) loop(ctx context.Context) {
	tick := time.NewTicker(a.scan)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := a.iterate(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("iteration failed", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	a.running.Wait()
}

func (a *autoscaler) iterate(ctx context.Context) error {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	if !a.cleaned {
		if err := a.cleanUp(ctx, s); err != nil {
			return err
		}
		a.cleaned = true
		return nil
	}
	grew, err := a.scaleUp(ctx, s)
	if err != nil {
		return err
	}
	if !grew {
		if err := a.scaleDown(ctx, s); err != nil {
			return err
		}
	}
	return a.writeStatus(ctx, s)
}

// sight is what one iteration goes by.
type sight struct {
	now     time.Time
	groups  []group
	nodes   []*node
	pending []*corev1.Pod
}

// observe reads everything anew.
func (a *autoscaler) observe(ctx context.Context) (sight, error) {
	s := sight{now: time.Now()}
	var err error
	if s.groups, err = a.readGroups(ctx); err != nil {
		return s, err
	}
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("listing pods: %w", err)
	}
	byName := map[string]*node{}
	for i := range nodes.Items {
		n := &node{Node: &nodes.Items[i]}
		for j := range s.groups {
			for _, i := range s.groups[j].instances {
				if i.id == n.instance() {
					n.group, n.leaves = &s.groups[j], i.leaving
				}
			}
		}
		byName[n.Name] = n
		s.nodes = append(s.nodes, n)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		n := byName[p.Spec.NodeName]
		switch {
		case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		case n != nil:
			n.pods = append(n.pods, p)
		case p.Spec.NodeName == "" && p.DeletionTimestamp == nil && unschedulable(p):
			s.pending = append(s.pending, p)
		}
	}
	return s, nil
}

// unschedulable is what kube-scheduler says of a pod that fits nowhere.
func unschedulable(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// mute is how long an Event of the same kind is not written again.
const mute = 5 * time.Minute

// once reports whether an Event of that kind is due.
func (a *autoscaler) once(kind string, now time.Time) bool {
	if at, was := a.told[kind]; was && now.Sub(at) < mute {
		return false
	}
	a.told[kind] = now
	return true
}
