package lease

import (
	"context"
	"log/slog"
)

// quietAfter drops what is logged after ctx ended. The election tells of its
// planned end in the words of a failure ("Error retrieving lease lock"), which
// nobody should be alarmed by.
type quietAfter struct {
	slog.Handler
	ctx context.Context
}

// Enabled implements slog.Handler.
func (q quietAfter) Enabled(ctx context.Context, level slog.Level) bool {
	return q.ctx.Err() == nil && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quietAfter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietAfter{q.Handler.WithAttrs(attrs), q.ctx}
}

// WithGroup implements slog.Handler.
func (q quietAfter) WithGroup(name string) slog.Handler {
	return quietAfter{q.Handler.WithGroup(name), q.ctx}
}
