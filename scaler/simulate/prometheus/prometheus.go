// Package prometheus reads the history of a live cluster's pods from what Prometheus has
// recorded of kube-state-metrics.
//
//	prometheus.go  Read: a history, part by part
//	queries.go     what is asked
//	pods.go        answers → pods
//	client.go      the HTTP client: credentials, and what errors mean
//	answer.go      one answer, as a stream: bounds
//
// https://github.com/kubernetes/kube-state-metrics/blob/main/docs/metrics/workload/pod-metrics.md
package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

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
	most int
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
	first := from.Add(min(step, to.Sub(from)))
	if err := c.ask(ctx, seriesPhase, "matrix", "query_range", url.Values{
		"query": {queryAlive(c.match)}, "start": {moment(first)}, "end": {moment(to)}, "step": {fmt.Sprint(step.Seconds())},
	}, pods.alive); err != nil {
		return err
	}
	pods.made = map[identity]int64{}
	for _, q := range []struct {
		series, query string
		take          func(result)
	}{
		{seriesCreated, queryCreated(c.match, to.Sub(from)), pods.created},
		{seriesCompletion, queryCompletion(c.match, to.Sub(from)), pods.completed},
		{seriesOwner, queryOwner(c.match, to.Sub(from)), pods.owners},
		{seriesRequests, queryRequests(c.match, to.Sub(from)), pods.requests},
	} {
		if err := c.ask(ctx, q.series, "vector", "query", url.Values{"query": {q.query}, "time": {moment(to)}}, q.take); err != nil {
			return err
		}
	}
	return pods.bounded()
}

// moment is a time as questions have it. Parts begin and end at whole seconds.
func moment(at time.Time) string { return fmt.Sprint(at.Unix()) }
