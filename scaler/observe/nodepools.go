package observe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"windlass.dev/windlass/pkg/fleet"
)

// NodePoolResource is Karpenter's.
var NodePoolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}

const (
	// nodePoolsEvery is how often they are read: they are only reported.
	nodePoolsEvery = time.Minute
	maxNodePools   = 100
)

// nodePoolWatch reads Karpenter's NodePools where their definition is installed. Nothing
// waits for it.
type nodePoolWatch struct {
	api     dynamic.ResourceInterface
	refused *refusal
	report  func(error)
	changed func()

	mu    sync.Mutex
	pools []fleet.NodePool
}

func (w *nodePoolWatch) run(ctx context.Context) {
	if w == nil {
		return
	}
	for {
		w.read(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(nodePoolsEvery):
		}
	}
}

// read reads them once. What was read before stands where that fails.
func (w *nodePoolWatch) read(ctx context.Context) {
	list, err := w.api.List(ctx, metav1.ListOptions{Limit: maxNodePools})
	if ctx.Err() != nil {
		return
	}
	var pools []fleet.NodePool
	if apierrors.IsNotFound(err) { // no such definition
		err = nil
	} else if err == nil {
		for _, object := range list.Items {
			pool, invalid := nodePool(object.Object)
			if invalid != nil {
				continue // the definition allows no such thing
			}
			pools = append(pools, pool)
		}
	}
	w.refused.heard(err)
	if err != nil {
		if !apierrors.IsForbidden(err) {
			w.report(fmt.Errorf("listing node pools: %w", err))
		}
		return
	}
	w.mu.Lock()
	moved := !fleet.Equal(w.pools, pools)
	w.pools = pools
	w.mu.Unlock()
	if moved {
		w.changed()
	}
}

// nodePool reads what of a NodePool decides which pods it takes.
// https://karpenter.sh/docs/concepts/nodepools/
func nodePool(object map[string]any) (fleet.NodePool, error) {
	var read struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Template struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
				Spec struct {
					Taints       []corev1.Taint                   `json:"taints"`
					Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &read); err != nil {
		return fleet.NodePool{}, fmt.Errorf("reading a node pool: %w", err)
	}
	template := read.Spec.Template
	pool := fleet.NodePool{Name: read.Metadata.Name, Taints: template.Spec.Taints, Requirements: template.Spec.Requirements}
	for _, key := range slices.SortedFunc(maps.Keys(template.Metadata.Labels), strings.Compare) {
		pool.Requirements = append(pool.Requirements, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{template.Metadata.Labels[key]}})
	}
	return pool, nil
}

func (w *nodePoolWatch) latest() []fleet.NodePool {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools
}

func (w *nodePoolWatch) fault() string {
	if w == nil {
		return ""
	}
	return w.refused.fault()
}
