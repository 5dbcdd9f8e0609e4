package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// reply answers one command, as one line of JSON.
type reply struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	// PIDs are those of the components that were started, by name.
	PIDs map[string]int `json:"pids,omitempty"`
}

// readCommands sends on what comes in, line by line, and calls eof at its end.
func readCommands(in io.Reader, eof func()) <-chan string {
	commands := make(chan string)
	go func() {
		for s := bufio.NewScanner(in); s.Scan(); {
			if line := strings.TrimSpace(s.Text()); line != "" {
				commands <- line
			}
		}
		eof()
	}()
	return commands
}

// obey carries out commands until ctx ends or a component ends unasked.
func (c *cluster) obey(ctx context.Context, commands <-chan string, out io.Writer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-c.crashed:
			return err
		case line := <-commands:
			if err := json.NewEncoder(out).Encode(c.command(ctx, line)); err != nil {
				return fmt.Errorf("answering %q: %w", line, err)
			}
		}
	}
}

// command carries out "kill NAME" (SIGKILL), "stop NAME" (SIGTERM, with time to
// end) or "start NAME" (same flags and port; answered when it is ready).
func (c *cluster) command(ctx context.Context, line string) reply {
	verb, name, _ := strings.Cut(line, " ")
	pids, err := c.do(ctx, verb, strings.TrimSpace(name))
	if err != nil {
		return reply{Command: line, Error: err.Error()}
	}
	return reply{Command: line, OK: true, PIDs: pids}
}

func (c *cluster) do(ctx context.Context, verb, name string) (pids map[string]int, err error) {
	i := slices.IndexFunc(c.components, func(x component) bool { return x.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no component %q", name)
	}
	switch verb {
	case "kill", "stop":
		p := c.take(name)
		if p == nil {
			return nil, fmt.Errorf("%s is not running", name)
		}
		if name == apiServer {
			c.missAPIServer()
		}
		if verb == "kill" {
			return nil, p.kill()
		}
		return nil, p.stop(ctx)
	case "start":
		if c.pid(name) != 0 {
			return nil, fmt.Errorf("%s is running already", name)
		}
		return c.startAgain(ctx, c.components[i])
	}
	return nil, fmt.Errorf("unknown command %q; there are kill, stop and start", verb)
}

// pid returns 0 if the component should not be running.
func (c *cluster) pid(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.running[name]; p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}
