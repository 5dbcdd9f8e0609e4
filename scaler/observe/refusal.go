package observe

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusalLasts is how long the API server must say no to be believed: one that
// starts refuses everybody until it has read the roles.
const refusalLasts = 10 * time.Second

// refusal is a right that we lack: the service account was given its rights by
// the manifests of an older version, as a rule.
type refusal struct {
	// what cannot be read, and what is decided without it.
	what, without string
	logger        *slog.Logger
	// changed is called when the refusal is believed, and when it ends.
	changed func()

	mu    sync.Mutex
	since time.Time // zero while there is no refusal
	err   error     // once it is believed
}

// heard takes the outcome of one try.
func (r *refusal) heard(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		if r.err != nil {
			r.logger.Info("right granted", "right", r.what)
			r.changed()
		}
		r.since, r.err = time.Time{}, nil
	case !apierrors.IsForbidden(err):
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = time.Now()
	case r.err == nil && time.Since(r.since) >= refusalLasts:
		r.err = err
		r.logger.Warn("right missing: apply the ClusterRole of this version", "right", r.what, "meanwhile", r.without, "err", err)
		r.changed()
	}
}

// before takes outcomes before report does, which gets no refusal: that is reported as a
// fault, and not as trouble with the API server, which is healthy.
func (r *refusal) before(report func(error)) func(error) {
	return func(err error) {
		r.heard(err)
		if !apierrors.IsForbidden(err) {
			report(err)
		}
	}
}

// lasts reports whether the refusal is believed.
func (r *refusal) lasts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// fault is a sentence for people; empty while nothing is refused.
func (r *refusal) fault() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return ""
	}
	return fmt.Sprintf("the scaler may not %s: %s; apply the ClusterRole of this version (%v)", r.what, r.without, r.err)
}
