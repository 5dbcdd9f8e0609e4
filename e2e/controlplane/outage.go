package main

import (
	"context"
	"errors"
	"fmt"
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
	if x.name == apiServer {
		c.missAPIServer()
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

// missAPIServer notes that the API server has been away until now.
func (c *cluster) missAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = time.Now()
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

// forsakenFor is how long after the API server was away an elected component may end by
// it. Later it ends by a fault of its own. While there is none, each start ends by it.
const forsakenFor = 2 * time.Minute

// restartPause is how long an elected component that ended by itself stays down.
const restartPause = time.Second

// restart starts an elected component anew that ended by itself because the API server
// was away, or answered before it was ready: a start in which it is forbidden something
// ends it. A command in the meantime goes first.
func (c *cluster) restart(x component, dead *process) {
	time.Sleep(restartPause)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[x.name] != dead {
		return
	}
	p, err := startProcess(c.program(x.name), x.args, c.dir, c.log(x.name))
	if err != nil {
		c.crash(fmt.Errorf("starting %s again: %w", x.name, err))
		return
	}
	c.running[x.name] = p
	go c.watch(x, p)
}
