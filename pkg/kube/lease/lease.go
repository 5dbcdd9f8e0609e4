// Package lease lets one of several replicas lead, by a Lease object.
//
// It stands apart from package kube because it links client-go's leader
// election, which the agent has no use for.
package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ErrLost means that the lease could not be renewed in time, or that somebody
// else has it. The work was ended; the process may call Lead again.
var ErrLost = errors.New("the leader lease was lost")

// The times that Kubernetes' own controllers use, but for the retry, which is 2 s there: to renew is half of
// what an idle leader costs. A leader that cannot has three tries before it gives up, and one that was
// killed is followed after 18.5 s in the mean, in place of 17.4.
const (
	DefaultDuration = 15 * time.Second
	DefaultRenew    = 10 * time.Second
	DefaultRetry    = 3 * time.Second
)

// Config says which lease, and who asks for it.
type Config struct {
	Namespace string
	Name      string
	// Identity tells this process from the other replicas. The pod's name does:
	// a container that starts again in its pod goes on leading at once, because
	// nobody else can have that name.
	Identity string
	Client   coordinationv1.LeasesGetter
	Logger   *slog.Logger

	// Duration is how long others wait for a leader that is silent. Renew is
	// for how long a leader goes on without having renewed; it must be less
	// than Duration, and the difference is what its work has to come to an
	// end. Retry is the pause between two tries. The defaults hold where 0.
	Duration, Renew, Retry time.Duration
	// OnNewLeader is told who leads whenever that changes; may be nil.
	OnNewLeader func(identity string)
}

// Lead waits for the lease and then runs work, whose ctx ends when ctx does or
// when the lease is lost. It returns when work has, with
//
//   - the error of work (nil too) if work ended by itself or because ctx did;
//   - ErrLost, and work's error if that tells more than the end of its ctx, if
//     the lease was lost;
//   - nil if ctx ended before the lease was had.
//
// The lease is given up at the end, so that the next replica begins at once,
// but never before work has returned. So two leaders never work at a time,
// unless work goes on for longer than Duration − Renew after its ctx ended.
func Lead(ctx context.Context, config Config, work func(context.Context) error) error {
	return lead(ctx, config, work, &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
		Client:     config.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: config.Identity},
	})
}

func lead(ctx context.Context, config Config, work func(context.Context) error, lock resourcelock.Interface) error {
	config.Duration = cmp.Or(config.Duration, DefaultDuration)
	config.Renew = cmp.Or(config.Renew, DefaultRenew)
	config.Retry = cmp.Or(config.Retry, DefaultRetry)

	// Before the lease is had, the end of ctx ends the election; after that
	// only the end of work does, so that the lease is renewed until then.
	electing, endElection := context.WithCancel(context.WithoutCancel(ctx))
	defer endElection()
	working, endWork := context.WithCancelCause(ctx)
	defer endWork(nil)
	term := newTerm(lock, config.Renew, func() { endWork(ErrLost) })
	defer term.timer.Stop()
	defer context.AfterFunc(ctx, func() {
		if !term.begun() {
			endElection()
		}
	})()

	var result error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            config.Name,
		Lock:            term,
		LeaseDuration:   config.Duration,
		RenewDeadline:   config.Renew,
		RetryPeriod:     config.Retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				defer endElection()
				defer term.end()
				defer context.AfterFunc(held, term.lose)()
				config.Logger.Info("leading", "lease", config.Name, "identity", config.Identity)
				result = outcome(working, work(working))
			},
			OnStoppedLeading: func() {}, // Required; Lead's return says it.
			OnNewLeader: func(identity string) {
				if config.OnNewLeader != nil {
					config.OnNewLeader(identity)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("electing a leader by lease %s/%s: %w", config.Namespace, config.Name, err)
	}
	elector.Run(klog.NewContext(electing, logr.FromSlogHandler(quiet{config.Logger.Handler(), electing})))
	if !term.begun() {
		return nil
	}
	<-term.ended
	return result
}

// outcome is what Lead returns after work returned err.
func outcome(working context.Context, err error) error {
	if !errors.Is(context.Cause(working), ErrLost) {
		return err
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
