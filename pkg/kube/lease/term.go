package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// term is the time during which one process holds the lease. It stands between
// client-go's election and the Lease, and closes four gaps of the former:
//
//   - work ends Renew after the last renewal was begun, and not, as an
//     unreachable server can make it, up to Retry and another Renew later;
//   - the lease is not released while work goes on;
//   - a lease that somebody else took meanwhile is not released in their name;
//   - a call that is not answered ends also where it is made to get the lease.
type term struct {
	resourcelock.Interface
	renew time.Duration
	lose  func()        // ends work
	timer *time.Timer   // calls lose
	ended chan struct{} // closed when work has returned

	mu     sync.Mutex
	has    bool   // this process has (had) the lease
	holder string // whom the last answer named
}

var _ resourcelock.Interface = (*term)(nil)

func newTerm(lock resourcelock.Interface, renew time.Duration, lose func()) *term {
	t := &term{Interface: lock, renew: renew, lose: lose, ended: make(chan struct{})}
	t.timer = time.AfterFunc(renew, lose)
	t.timer.Stop()
	return t
}

// begun reports whether the lease was ever had, and thereby whether work runs
// or ran.
func (t *term) begun() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.has
}

// end notes that work has returned.
func (t *term) end() { close(t.ended) }

// Get implements resourcelock.Interface.
func (t *term) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, t.renew)
	defer cancel()
	record, raw, err := t.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holder = record.HolderIdentity
	if t.has && t.holder != t.Identity() {
		t.lose()
	}
	return record, raw, nil
}

// Create implements resourcelock.Interface.
func (t *term) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.renew)
	defer cancel()
	if err := t.Interface.Create(ctx, record); err != nil {
		return err
	}
	t.renewed(begun)
	return nil
}

// Update implements resourcelock.Interface. A record that names nobody is a
// release.
func (t *term) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		return t.release(ctx, record)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, t.renew)
	defer cancel()
	if err := t.Interface.Update(ctx, record); err != nil {
		return err
	}
	t.renewed(begun)
	return nil
}

func (t *term) renewed(begun time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.has, t.holder = true, t.Identity()
	t.timer.Reset(t.renew - time.Since(begun))
}

func (t *term) release(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	t.lose()
	select {
	case <-t.ended:
	case <-ctx.Done():
		return errors.New("the leader's work has not ended: its lease is left to run out")
	}
	t.mu.Lock()
	holder := t.holder
	t.mu.Unlock()
	if holder != t.Identity() {
		return fmt.Errorf("the lease is held by %q: not released", holder)
	}
	return t.Interface.Update(ctx, record)
}
