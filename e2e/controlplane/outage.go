package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// apiServer is the component whose absence ends others.
const apiServer = "kube-apiserver"

// elected are the components that in production hold a leader lease and end when
// they cannot renew it: kubelet starts them again. Here each is alone and elects
// nobody, but that end matters. A watch of client-go that outlives an outage pauses
// up to 30 s before it tries again, is told by the API server's new cache that its
// resource version is too old, and pauses 30 to 60 s more.
var elected = []string{"kube-controller-manager", "kube-scheduler"}

// startAgain starts a component that is down, and with an API server that was away for too
// long the elected ones anew. It returns the processes that it started.
func (c *cluster) startAgain(ctx context.Context, x component) (pids map[string]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.readyTimeout)
	defer cancel()
	var others []component
	if x.name == apiServer && time.Since(c.away) >= c.renewDeadline {
		if others, err = c.loseLeases(); err != nil {
			return nil, err
		}
	}
	if err := c.startOne(ctx, x); err != nil {
		return nil, err
	}
	if err := c.startTogether(ctx, others); err != nil {
		return nil, err
	}
	pids = map[string]int{}
	for _, started := range append(others, x) {
		pids[started.name] = c.pid(started.name)
	}
	return pids, nil
}

// loseLeases ends the elected components that run and returns them.
func (c *cluster) loseLeases() (ended []component, err error) {
	for _, x := range c.components {
		if !slices.Contains(elected, x.name) {
			continue
		}
		if p := c.take(x.name); p != nil {
			ended, err = append(ended, x), errors.Join(err, p.kill())
		}
	}
	return ended, err
}
