package observe

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

const (
	// rivalEvery is how often the lease of a Cluster Autoscaler is looked at.
	rivalEvery = 10 * time.Second
	// rivalAgain is how soon after a look that failed the next one is; twice as
	// long after each more, and rivalEvery at most. Before the first look nothing
	// is decided, so an API server that comes late is not to be waited for twice.
	rivalAgain = 500 * time.Millisecond
	// rivalAlive is how old its last renewal may be.
	rivalAlive = time.Minute
)

// rivalWatch looks whether a Cluster Autoscaler is alive in the cluster.
type rivalWatch struct {
	leases coordinationv1.LeaseInterface
	// refused says that there is no right to look. What was known stands then.
	refused *refusal
	// changed is called when a rival came or went.
	changed func()

	mu    sync.Mutex
	asked bool
	rival *fleet.Rival
}

func (w *rivalWatch) run(ctx context.Context) {
	again := rivalAgain
	for {
		pause := rivalEvery
		if w.look(ctx) {
			again = rivalAgain
		} else {
			pause, again = again, min(2*again, rivalEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look says whether it saw something: also that there is no rival, or no right
// to look for one.
func (w *rivalWatch) look(ctx context.Context) bool {
	lease, err := w.leases.Get(ctx, contract.LeaseClusterAutoscaler, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.refused.heard(err)
		return w.refused.lasts()
	}
	w.refused.heard(nil)
	var rival *fleet.Rival
	if err == nil && lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < rivalAlive {
		rival = &fleet.Rival{
			Lease:   contract.NamespaceClusterAutoscaler + "/" + contract.LeaseClusterAutoscaler,
			Renewed: lease.Spec.RenewTime.UTC(),
		}
		if lease.Spec.HolderIdentity != nil {
			rival.Holder = *lease.Spec.HolderIdentity
		}
	}
	w.mu.Lock()
	moved := !w.asked || (w.rival == nil) != (rival == nil)
	w.asked, w.rival = true, rival
	w.mu.Unlock()
	if moved {
		w.changed()
	}
	return true
}

// latest returns the rival, nil without one, and whether that is known: a refusal that lasts
// is an answer too.
func (w *rivalWatch) latest() (*fleet.Rival, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rival, w.asked || w.refused.lasts()
}
