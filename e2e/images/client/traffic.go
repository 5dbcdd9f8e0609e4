package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// traffic says how requests are sent.
type traffic struct {
	url string
	// fresh and kept are how many workers open a connection for each request,
	// and how many keep theirs for as long as the server lets them.
	fresh, kept int
	// interval is how long a worker waits between two requests.
	interval time.Duration
	// timeout is how long the connection and the answer may take together.
	timeout time.Duration
}

// run sends requests until ctx ends, and returns when the last answer is there.
func (t traffic) run(ctx context.Context, tally *tally) {
	var workers sync.WaitGroup
	for range t.fresh {
		workers.Go(func() { t.work(ctx, false, tally) })
	}
	for range t.kept {
		workers.Go(func() { t.work(ctx, true, tally) })
	}
	workers.Wait()
}

// work is one worker. A request that is under way when ctx ends is not cut off:
// that would be a failure of the client's own making.
func (t traffic) work(ctx context.Context, keeps bool, tally *tally) {
	transport := &http.Transport{DisableKeepAlives: !keeps}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: t.timeout}
	for ctx.Err() == nil {
		begun := time.Now()
		name, err := ask(client, t.url)
		tally.add(answer{from: name, kept: keeps, begun: begun, took: time.Since(begun), err: err})
		select {
		case <-ctx.Done():
		case <-time.After(t.interval):
		}
	}
}

// await asks until there is an answer. A Service has servers that are ready before
// the kube-proxy of every node knows of them, and until then it refuses: no
// failure of a server. The error is the last one, if ctx ends first.
func (t traffic) await(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: t.timeout}
	for {
		_, err := ask(client, t.url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(t.interval):
		}
	}
}

// ask sends one request and returns the answer's text. It posts because package
// net/http sends a GET a second time, and says nothing, when a kept connection
// breaks before the answer; a POST it repeats only if nothing of it had left.
func ask(client *http.Client, url string) (string, error) {
	response, err := client.Post(url, "text/plain", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	text := strings.TrimSpace(string(body))
	if err != nil {
		return text, err
	}
	if response.StatusCode != http.StatusOK {
		return text, fmt.Errorf("%s: %q", response.Status, text)
	}
	return text, nil
}
