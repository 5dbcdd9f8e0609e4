package world

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// stray says which machines do not register as they should.
type stray struct {
	groups    map[string]bool // whose new machines are of another cluster
	ids       map[string]bool // of machines that are of another cluster
	anonymous map[string]bool // ids of machines whose Nodes have no provider id
	notBefore time.Time       // of a kubelet's first registration
}

// errTooEarly: a kubelet that boots waits before it registers.
var errTooEarly = errors.New("its kubelet waits before it tries again")

// mayJoin reports whether a machine that is up for the first time is of this cluster. It is
// decided once.
func (j *joiner) mayJoin(i cloud.Instance) (joins bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stray.groups[i.Group] {
		j.stray.ids[i.ID] = true
	}
	if j.stray.ids[i.ID] {
		return false, nil
	}
	if time.Now().Before(j.stray.notBefore) {
		return false, errTooEarly
	}
	return true, nil
}

func (j *joiner) isAnonymous(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stray.anonymous[id]
}

// JoinElsewhere has the machines of a group that come up from now on join another
// cluster, or no longer: they serve, and no Node of theirs is ever seen here. Those that
// have done so stay there.
func (w *World) JoinElsewhere(group string, on bool) {
	w.joiner.mu.Lock()
	defer w.joiner.mu.Unlock()
	w.joiner.stray.groups[group] = on
}

// Elsewhere reports whether an instance serves another cluster.
func (w *World) Elsewhere(id string) bool {
	w.joiner.mu.Lock()
	defer w.joiner.mu.Unlock()
	return w.joiner.stray.ids[id]
}

// DelayJoining lets no new machine register before a moment: while the API server is away
// kubelets try again at ever longer intervals.
func (w *World) DelayJoining(until time.Time) {
	w.joiner.mu.Lock()
	defer w.joiner.mu.Unlock()
	w.joiner.stray.notBefore = until
}

// Register has the kubelet of a simulated machine register its Node anew, as one does
// that starts again and finds none; anonymous, without the provider id that a cloud
// provider or a flag of the kubelet sets. A Node that is there stays as it is.
func (w *World) Register(ctx context.Context, i cloud.Instance, anonymous bool) error {
	j := w.joiner
	j.mu.Lock()
	j.stray.anonymous[i.ID] = anonymous
	j.mu.Unlock()
	if err := j.hardware.boot(ctx, i, false); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, there := j.latest[i.ID]; there {
		delete(j.stray.ids, i.ID)
		j.joined[i.ID] = joined{node: i.PrivateDNSName, bootID: i.BootID, up: true}
	}
	return nil
}

// Identify sets the provider id of a Node that has none, as a cloud controller does.
func (w *World) Identify(ctx context.Context, i cloud.Instance) error {
	w.joiner.mu.Lock()
	delete(w.joiner.stray.anonymous, i.ID)
	w.joiner.mu.Unlock()
	patch := fmt.Sprintf(`{"spec":{"providerID":%q}}`, i.ProviderID())
	if _, err := w.Client.CoreV1().Nodes().Patch(ctx, i.PrivateDNSName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("setting the provider id of node %s: %w", i.PrivateDNSName, err)
	}
	return nil
}
