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
	PID     int    `json:"pid,omitempty"` // of the component that was started
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
	pid, err := c.do(ctx, verb, strings.TrimSpace(name))
	if err != nil {
		return reply{Command: line, Error: err.Error()}
	}
	return reply{Command: line, OK: true, PID: pid}
}

func (c *cluster) do(ctx context.Context, verb, name string) (pid int, err error) {
	i := slices.IndexFunc(c.components, func(x component) bool { return x.name == name })
	if i < 0 {
		return 0, fmt.Errorf("no component %q", name)
	}
	switch verb {
	case "kill", "stop":
		p := c.take(name)
		if p == nil {
			return 0, fmt.Errorf("%s is not running", name)
		}
		if verb == "kill" {
			return 0, p.kill()
		}
		return 0, p.stop(ctx)
	case "start":
		if c.pid(name) != 0 {
			return 0, fmt.Errorf("%s is running already", name)
		}
		ctx, cancel := context.WithTimeout(ctx, c.readyTimeout)
		defer cancel()
		if err := c.startOne(ctx, c.components[i]); err != nil {
			return 0, err
		}
		return c.pid(name), nil
	}
	return 0, fmt.Errorf("unknown command %q; there are kill, stop and start", verb)
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
