package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
)

// nodegroup is what EKS knows of a managed group's new nodes.
type nodegroup struct {
	labels map[string]string
	taints []corev1.Taint
	until  time.Time
}

// nodegroupFor is how long a managed group's labels and taints are taken to be
// what they were: they change without a trace on the Auto Scaling group.
const nodegroupFor = 10 * time.Minute

// Labels that EKS puts on the nodes of managed groups.
// https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
const (
	labelNodegroup    = "eks.amazonaws.com/nodegroup"
	labelCapacityType = "eks.amazonaws.com/capacityType"
)

// nodegroupBook reads managed groups.
type nodegroupBook struct {
	eks managed
	now func() time.Time

	mu    sync.Mutex
	known map[string]nodegroup
}

func (b *nodegroupBook) get(ctx context.Context, cluster, name string) (nodegroup, error) {
	key := cluster + "/" + name
	b.mu.Lock()
	n, ok := b.known[key]
	b.mu.Unlock()
	if ok && b.now().Before(n.until) {
		return n, nil
	}
	out, err := b.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
	if err != nil {
		return nodegroup{}, fmt.Errorf("managed node group %s of cluster %s: %w", name, cluster, explain("eks:DescribeNodegroup", err))
	}
	n = newNodegroup(name, out.Nodegroup)
	n.until = b.now().Add(nodegroupFor)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[key] = n
	return n, nil
}

func newNodegroup(name string, g *ekstypes.Nodegroup) nodegroup {
	n := nodegroup{labels: map[string]string{labelNodegroup: name}}
	if g == nil {
		return n
	}
	if g.CapacityType != "" {
		n.labels[labelCapacityType] = string(g.CapacityType)
	}
	maps.Copy(n.labels, g.Labels)
	for _, t := range g.Taints {
		// The value is absent where it is empty.
		n.taints = append(n.taints, corev1.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: effectOf(t.Effect)})
	}
	slices.SortFunc(n.taints, compareTaints)
	return n
}

func effectOf(e ekstypes.TaintEffect) corev1.TaintEffect {
	switch e {
	case ekstypes.TaintEffectNoExecute:
		return corev1.TaintEffectNoExecute
	case ekstypes.TaintEffectPreferNoSchedule:
		return corev1.TaintEffectPreferNoSchedule
	}
	return corev1.TaintEffectNoSchedule
}
