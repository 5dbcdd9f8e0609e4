package lease

import (
	"context"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quiet drops what is logged after ctx ended, and that another replica was
// faster. The election tells of its planned end ("Error retrieving lease lock") and of
// a race between replicas that start together ("Error initially creating lease lock")
// in the words of a failure, which nobody should be alarmed by: who leads is told
// anyway.
type quiet struct {
	slog.Handler
	ctx context.Context
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return q.ctx.Err() == nil && q.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	if wasSlower(record) {
		return nil
	}
	return q.Handler.Handle(ctx, record)
}

// wasSlower reports whether a record is of an error that comes of somebody else's having
// written the lease first.
func wasSlower(record slog.Record) bool {
	slower := false
	record.Attrs(func(a slog.Attr) bool {
		err, is := a.Value.Any().(error)
		slower = is && (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err))
		return !slower
	})
	return slower
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.ctx}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.ctx}
}
