package template

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// nodegroup is what EKS knows of a managed group's new nodes.
type nodegroup struct {
	labels map[string]string
	taints []corev1.Taint
	// tags are node-template tags of the node group, which EKS does not hand on to
	// its Auto Scaling group.
	tags tagged
	// read is when EKS was asked, asked when we were.
	read, asked time.Time
}

const (
	// nodegroupTurn is how often the managed groups that were read longest ago are
	// read again: their labels and taints change without a trace on the Auto Scaling
	// group. What else changes shows there, and has the group read at once.
	nodegroupTurn = RedrawEvery
	// nodegroupsATurn is how many these are, so that a hundred managed groups cost no
	// more than a few; a hundred are through in eight hours.
	nodegroupsATurn = 2
	// unaskedFor is when a group that is not asked for counts as deleted: its blueprint is
	// made anew every RedrawEvery.
	unaskedFor = 3 * RedrawEvery
)

// labelNodegroup is put by EKS on the nodes of managed groups, as contract.LabelCapacityType is.
// https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
const labelNodegroup = "eks.amazonaws.com/nodegroup"

// nodegroupBook reads managed groups.
type nodegroupBook struct {
	aws Describer
	now func() time.Time

	mu    sync.Mutex
	known map[string]nodegroup
	// turn are the groups whose turn it is to be read again, until when.
	turn  []string
	until time.Time
}

// get returns a managed group; changed is true if it is to be read anew.
func (b *nodegroupBook) get(ctx context.Context, cluster, name string, changed bool) (nodegroup, error) {
	key := cluster + "/" + name
	if n, ok := b.recall(key); ok && !changed {
		return n, nil
	}
	described, err := b.aws.Nodegroup(ctx, cluster, name)
	if err != nil {
		return nodegroup{}, fmt.Errorf("managed node group %s of cluster %s: %w", name, cluster, err)
	}
	n := newNodegroup(name, described)
	b.mu.Lock()
	defer b.mu.Unlock()
	n.read = b.now()
	n.asked = n.read
	b.known[key] = n
	return n, nil
}

// recall returns what is known of a group, unless it is its turn to be read again.
func (b *nodegroupBook) recall(key string) (nodegroup, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.known[key]
	if !ok {
		return nodegroup{}, false
	}
	now := b.now()
	n.asked = now
	b.known[key] = n
	if !now.Before(b.until) {
		b.forgetUnasked(now)
		b.turn, b.until = b.oldest(), now.Add(nodegroupTurn)
	}
	i := slices.Index(b.turn, key)
	if i < 0 || now.Sub(n.read) < nodegroupTurn {
		return n, true
	}
	b.turn = slices.Delete(b.turn, i, i+1)
	return nodegroup{}, false
}

// forgetUnasked drops the groups that are not asked for any more. Deleted ones would
// stay the oldest, and their turn would never end.
func (b *nodegroupBook) forgetUnasked(now time.Time) {
	maps.DeleteFunc(b.known, func(_ string, n nodegroup) bool { return now.Sub(n.asked) > unaskedFor })
}

// oldest are those that were read longest ago.
func (b *nodegroupBook) oldest() []string {
	keys := slices.Collect(maps.Keys(b.known))
	slices.SortFunc(keys, func(x, y string) int {
		return cmp.Or(b.known[x].read.Compare(b.known[y].read), cmp.Compare(x, y))
	})
	return keys[:min(nodegroupsATurn, len(keys))]
}

func newNodegroup(name string, g *ekstypes.Nodegroup) nodegroup {
	n := nodegroup{labels: map[string]string{labelNodegroup: name}}
	if g == nil {
		return n
	}
	if g.CapacityType != "" {
		n.labels[contract.LabelCapacityType] = string(g.CapacityType)
	}
	maps.Copy(n.labels, g.Labels)
	for _, t := range g.Taints {
		// The value is absent where it is empty.
		n.taints = append(n.taints, corev1.Taint{Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: effectOf(t.Effect)})
	}
	slices.SortFunc(n.taints, compareTaints)
	var tags []astypes.TagDescription
	for key, value := range g.Tags {
		tags = append(tags, astypes.TagDescription{Key: &key, Value: &value})
	}
	n.tags = readTags(tags)
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
