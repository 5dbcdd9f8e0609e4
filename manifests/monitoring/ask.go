package monitoring

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Ask has Prometheus's own engine answer a question at some time.
func Ask(ctx context.Context, q Question, data storage.Queryable, at time.Time) (promql.Vector, error) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	query, err := engine.NewInstantQuery(ctx, data, nil, q.Expr, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Where, err)
	}
	defer query.Close()
	result, err := query.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Where, err)
	}
	return slices.Clone(result), nil // which is the query's until it is closed
}

// Shows is how many of the values are numbers that can be drawn.
func Shows(values promql.Vector) (n int) {
	for _, s := range values {
		if !math.IsNaN(s.F) && !math.IsInf(s.F, 0) {
			n++
		}
	}
	return n
}
