package act

import (
	"context"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// slowEviction is what an API server takes to read the budgets anew for an eviction.
const slowEviction = 100 * time.Millisecond

// slowPods evicts by a slow server.
type slowPods struct{ corev1client.PodsGetter }

func (p slowPods) Pods(namespace string) corev1client.PodInterface {
	return slowPod{p.PodsGetter.Pods(namespace)}
}

type slowPod struct{ corev1client.PodInterface }

func (p slowPod) EvictV1(ctx context.Context, eviction *policyv1.Eviction) error {
	time.Sleep(slowEviction)
	return p.PodInterface.EvictV1(ctx, eviction)
}
