// Package prometheus reads the history of a live cluster's pods from what Prometheus has
// recorded of kube-state-metrics.
//
//	prometheus.go  Read: a history, part by part
//	queries.go     what is asked
//	pods.go        answers → pods
//	client.go      the HTTP client: credentials, bounds, and what errors mean
//
// https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/workload/pod-metrics.md
package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"windlass.dev/windlass/scaler/simulate/trace"
)

// Source is a server with the API of Prometheus.
type Source struct {
	URL string
	// TokenFile has a bearer token; empty for none.
	TokenFile string
	Header    http.Header
	// Match are matchers that all series are asked for by, such as cluster="prod".
	Match string
	// most is what an answer may have, in bytes; 0 takes mostBytes.
	most int64
}

const (
	// step is how precisely the end of a pod is known, and part what is asked for at once.
	step = time.Minute
	part = 2 * time.Hour
)

// Read reads the pods of a time.
func Read(ctx context.Context, s Source, from, to time.Time) (*trace.History, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	from, to = from.Truncate(time.Second), to.Truncate(time.Second)
	pods := newPods(from)
	for at := from; at.Before(to); at = at.Add(part) {
		until := at.Add(part)
		if until.After(to) {
			until = to
		}
		if err := c.readPart(ctx, pods, at, until); err != nil {
			return nil, fmt.Errorf("reading the pods of %s to %s from %s: %w", at.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339), c.name, err)
		}
	}
	if name := pods.missing(); name != "" {
		return nil, c.lacks(name, from, to)
	}
	return pods.history()
}

func (c *client) readPart(ctx context.Context, pods *pods, from, to time.Time) error {
	alive, err := c.ask(ctx, seriesPhase, func(ctx context.Context) (model.Value, v1.Warnings, v1.Infos, error) {
		return c.api.QueryRange(ctx, queryAlive(c.match), v1.Range{Start: from.Add(min(step, to.Sub(from))), End: to, Step: step})
	})
	if err != nil {
		return err
	}
	matrix, is := alive.(model.Matrix)
	if !is {
		return fmt.Errorf("the answer is a %s, want a matrix", alive.Type())
	}
	pods.alive(matrix)
	for _, q := range []struct {
		series, query string
		take          func(model.Vector)
	}{
		{seriesCreated, queryCreated(c.match, to.Sub(from)), pods.created},
		{seriesCompletion, queryCompletion(c.match, to.Sub(from)), pods.completed},
		{seriesOwner, queryOwner(c.match, to.Sub(from)), pods.owners},
		{seriesRequests, queryRequests(c.match, to.Sub(from)), pods.requests},
	} {
		value, err := c.ask(ctx, q.series, func(ctx context.Context) (model.Value, v1.Warnings, v1.Infos, error) {
			return c.api.Query(ctx, q.query, to)
		})
		if err != nil {
			return err
		}
		vector, is := value.(model.Vector)
		if !is {
			return fmt.Errorf("asking for %s: the answer is a %s, want a vector", q.series, value.Type())
		}
		q.take(vector)
	}
	return pods.bounded()
}
