package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/status/cas"
)

// conditions are what its status said last, and since when, by whose and what it is.
type conditions map[string]cas.Condition

// of is the condition as it is now.
func (c conditions) of(what, status string, now time.Time) cas.Condition {
	probe := metav1.NewTime(now.UTC().Truncate(time.Second))
	is := c[what]
	if is.Status != status {
		is = cas.Condition{Status: status, LastTransitionTime: probe}
	}
	is.LastProbeTime = probe
	c[what] = is
	return is
}

func (a *autoscaler) statusReference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: a.namespace, Name: contract.ConfigMapClusterAutoscalerStatus}
}

// status is what it says of the cluster and of each group.
func (a *autoscaler) status(s sight) cas.Status {
	out := cas.Status{Time: s.now.UTC().Format(cas.TimeFormat), AutoscalerStatus: cas.Running}
	all := &out.ClusterWide
	for i := range s.groups {
		g := &s.groups[i]
		is := cas.NodeGroup{Name: g.name}
		counts := &is.Health.NodeCounts
		counts.Unregistered = len(g.instances)
		for _, n := range s.nodes {
			if n.group != g {
				continue
			}
			counts.Unregistered--
			counts.Registered.Total++
			switch {
			case n.goes():
				counts.Registered.BeingDeleted++
			case n.ready():
				counts.Registered.Ready++
			default:
				counts.Registered.NotStarted++
			}
			if _, unneeded := a.needless[n.Name]; unneeded {
				is.ScaleDown.Candidates++
			}
		}
		is.Health.CloudProviderTarget, is.Health.MinSize, is.Health.MaxSize = g.desired, g.min, g.max
		is.Health.Condition = a.of(g.name+" health", cas.Healthy, s.now)
		growing := cas.NoActivity
		if counts.Registered.Ready+counts.Registered.BeingDeleted < g.desired {
			growing = cas.InProgress
		}
		if failed, was := a.backedOff[g.name]; was && s.now.Before(failed.until) {
			growing = cas.Backoff
			is.ScaleUp.BackoffInfo = cas.BackoffInfo{ErrorCode: "cloudProviderError", ErrorMessage: failed.message}
		}
		is.ScaleUp.Condition = a.of(g.name+" scale-up", growing, s.now)
		is.ScaleDown.Condition = a.of(g.name+" scale-down", candidates(is.ScaleDown.Candidates), s.now)
		out.NodeGroups = append(out.NodeGroups, is)

		sum := &all.Health.NodeCounts
		sum.Registered.Total += counts.Registered.Total
		sum.Registered.Ready += counts.Registered.Ready
		sum.Registered.NotStarted += counts.Registered.NotStarted
		sum.Registered.BeingDeleted += counts.Registered.BeingDeleted
		sum.Unregistered += counts.Unregistered
		all.ScaleDown.Candidates += is.ScaleDown.Candidates
		if growing == cas.InProgress {
			all.ScaleUp.Status = cas.InProgress
		}
	}
	all.Health.Condition = a.of("health", cas.Healthy, s.now)
	if all.ScaleUp.Status == "" {
		all.ScaleUp.Status = cas.NoActivity
	}
	all.ScaleUp = a.of("scale-up", all.ScaleUp.Status, s.now)
	all.ScaleDown.Condition = a.of("scale-down", candidates(all.ScaleDown.Candidates), s.now)
	return out
}

func candidates(n int) string {
	if n > 0 {
		return cas.CandidatesPresent
	}
	return cas.NoCandidates
}

// writeStatus writes it anew, at each iteration.
func (a *autoscaler) writeStatus(ctx context.Context, s sight) error {
	status := a.status(s)
	text, err := status.Encode()
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: contract.ConfigMapClusterAutoscalerStatus, Annotations: map[string]string{contract.AnnotationLastUpdated: status.Time}},
		Data:       map[string]string{contract.ClusterAutoscalerStatusKey: text},
	}
	maps := a.client.CoreV1().ConfigMaps(a.namespace)
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}

func (a *autoscaler) removeStatus(ctx context.Context) {
	err := a.client.CoreV1().ConfigMaps(a.namespace).Delete(ctx, contract.ConfigMapClusterAutoscalerStatus, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		a.log.Error("cannot delete the status", "error", err)
	}
}
