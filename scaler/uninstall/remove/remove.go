// Package remove carries out the steps of package uninstall, one at a time, each only if the world is
// as it expects, until none is left.
//
//	remove.go   Run: observe → Steps → do, again and again
//	observe.go  what is there
//	do.go       one step
package remove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/status"
	"windlass.dev/windlass/scaler/uninstall"
)

// Groups is what is done at AWS.
type Groups interface {
	Serves(ctx context.Context, group, instance string) error
	Complete(ctx context.Context, w asg.Wait) error
	Heartbeat(ctx context.Context, w asg.Wait) error
	Resume(ctx context.Context, group, process string) error
	Disclaim(ctx context.Context, group string, owner types.UID) error
	DeleteHook(ctx context.Context, group, hook string) error
}

var _ Groups = (*asg.Verbs)(nil)

// Remover removes Windlass.
type Remover struct {
	Client kubernetes.Interface
	Groups Groups
	// Read reads the groups anew.
	Read      func(context.Context) ([]fleet.Group, error)
	Namespace string
	Options   uninstall.Options
	// Stop lets the workloads of the programs be stopped; otherwise they are waited for to be
	// stopped by people.
	Stop bool
	// Say is told of each step, and Retry of errors after which it goes on and tries again.
	Say   func(uninstall.Step)
	Retry func(error)

	ours  bool                 // the persisted state was seen where it should be
	beats map[string]time.Time // heartbeats that were sent, as in uninstall.World
}

// poll is how often the world is observed while something is awaited.
const poll = 2 * time.Second

// ErrRuns means that a program runs, and that its end was not asked for.
var ErrRuns = errors.New("a program runs")

// Run does all steps, and returns what of them could not be done. It waits until ctx ends, which is an
// error that names what is waited for. Whenever it is killed, it goes on where it stood.
func (r *Remover) Run(ctx context.Context) error {
	failed, said := map[string]error{}, map[string]bool{}
	var pending []uninstall.Step
	var unseen error // why the world was not seen the last time
	for {
		w, err := r.Observe(ctx)
		switch {
		case err != nil && len(pending) > 0 && ctx.Err() != nil:
			return errors.Join(unfinished(pending, failed), unseen)
		case err != nil && len(pending) > 0 && !lasting(err): // what was begun goes on
			unseen = err
			r.again(err, said)
		case err != nil && len(pending) > 0:
			return errors.Join(err, unfinished(pending, failed))
		case err != nil:
			return errors.Join(err, joined(failed))
		default:
			unseen = nil
			pending, err = r.round(ctx, uninstall.Steps(w, r.Options), failed, said)
			if err != nil || len(pending) == 0 {
				return errors.Join(err, joined(failed))
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(unfinished(pending, failed), unseen)
		case <-time.After(poll):
		}
	}
}

func (r *Remover) again(err error, said map[string]bool) {
	if text := err.Error(); !said[text] {
		said[text] = true
		r.Retry(err)
	}
}

// unfinished says what was waited for when the time was over, and what failed.
func unfinished(pending []uninstall.Step, failed map[string]error) error {
	list := []error{errors.New("not done in time; run this again when what it waits for is over")}
	for _, step := range pending {
		if failed[step.ID()] == nil {
			list = append(list, fmt.Errorf("%s; by hand: %s", step, step.Command()))
		}
	}
	return errors.Join(append(list, joined(failed))...)
}

// round does what can be done now, and returns what has to show in the world before it goes on. While
// something is awaited, only instances that are drained go on, and others are kept waiting.
func (r *Remover) round(ctx context.Context, steps []uninstall.Step, failed map[string]error, said map[string]bool) (pending []uninstall.Step, err error) {
	awaited := map[string]bool{} // instances
	waits := false
	maps.DeleteFunc(failed, func(id string, err error) bool { // it was done all the same
		return transient(err) && !slices.ContainsFunc(steps, func(s uninstall.Step) bool { return s.ID() == id })
	})
	for _, step := range steps {
		if err := failed[step.ID()]; err != nil && !transient(err) || r.guarded(step, failed) {
			continue
		}
		if ctx.Err() != nil {
			return append(pending, step), nil
		}
		if waits && step.Do != uninstall.Await && step.Do != uninstall.Heartbeat && (step.Do != uninstall.Complete || awaited[step.Instance]) {
			continue
		}
		if step.Do == uninstall.Stop && !r.Stop {
			return nil, fmt.Errorf("%w: %s %s in namespace %s; stop it by %s, or give --stop, and run this again", ErrRuns, step.Kind, step.Name, step.Namespace, step.Command())
		}
		if text := step.String(); !said[text] {
			said[text] = true
			r.Say(step)
		}
		err := r.do(ctx, step)
		if err == nil {
			delete(failed, step.ID())
		}
		if err != nil && ctx.Err() == nil && !changed(err) {
			failed[step.ID()] = fmt.Errorf("%s: %w; by hand: %s", step, err, step.Command())
			switch {
			case transient(err):
				r.again(failed[step.ID()], said)
			case step.Do == uninstall.Stop:
				return nil, nil // nothing is done beside a program that runs
			default:
				continue
			}
		}
		if step.Do == uninstall.Heartbeat {
			continue // what it is for is awaited
		}
		pending = append(pending, step)
		if step.Barrier() {
			return pending, nil
		}
		waits = waits || step.Waits()
		if step.Do == uninstall.Await {
			awaited[step.Instance] = true
		}
	}
	return pending, nil
}

// guarded reports whether a step must not be done after others have failed: who knows what is to be
// resumed stays until that is done.
func (r *Remover) guarded(step uninstall.Step, failed map[string]error) bool {
	others := len(failed)
	if failed[step.ID()] != nil {
		others--
	}
	return step.Do == uninstall.Delete && step.Name == contract.ConfigMapState && others > 0
}

// lasting reports whether the world is not seen for a reason that no further try mends. All else may be
// over in a moment: an answer is torn, credentials are renewed, hooks were not read.
func lasting(err error) bool {
	return errors.Is(err, ErrElsewhere) || errors.Is(err, errNoGroups) || errors.Is(err, asg.ErrDenied) || errors.Is(err, status.ErrUnreadable) || apierrors.IsForbidden(err)
}

// transient reports whether a call may succeed when it is made again: whoever was asked was away, or
// had no time.
func transient(err error) bool {
	var network net.Error
	var answer apierrors.APIStatus
	switch {
	case errors.Is(err, asg.ErrUnavailable), errors.Is(err, asg.ErrThrottled), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return true
	case errors.As(err, &answer):
		code := answer.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}
	return false
}

func changed(err error) bool {
	return errors.Is(err, kube.ErrChanged) || errors.Is(err, asg.ErrChanged) || errors.Is(err, asg.ErrTooEarly) || errors.Is(err, asg.ErrBusy) || errors.Is(err, errOccupied)
}

func joined(failed map[string]error) error {
	var all []error
	for _, id := range slices.Sorted(maps.Keys(failed)) {
		all = append(all, failed[id])
	}
	return errors.Join(all...)
}

func (r *Remover) selector(app string) string { return contract.LabelAppName + "=" + app }

var apps = []string{contract.AppScaler, contract.AppAgent, contract.AppNotifier}

func replicas(wanted *int32) int {
	if wanted == nil {
		return 1
	}
	return int(*wanted)
}
