package world

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"sync"
	"time"
)

// ControlPlane is a real API server with its storage, controllers, scheduler
// and kwok, run by the supervisor of e2e/controlplane as a child process. The
// supervisor ends everything when our end of its stdin closes, so also when we
// are killed.
type ControlPlane struct {
	// Kubeconfig is the file of an administrator, Server the URL of the API
	// server, CA and CAKey the files of its
	// authority, Kubectl the
	// program of the same version, Logs the folder with a log per component.
	Kubeconfig string         `json:"kubeconfig"`
	Server     string         `json:"server"`
	CA         string         `json:"ca"`
	CAKey      string         `json:"caKey"`
	Kubectl    string         `json:"kubectl"`
	Logs       string         `json:"logs"`
	PIDs       map[string]int `json:"pids"`
	// Seconds is how long it took from start to ready.
	Seconds float64 `json:"seconds"`

	process *process
	stdin   io.WriteCloser
	answers chan []byte // lines of its stdout; closed when it ended

	mu sync.Mutex // one command at a time
}

// Components that can be killed, stopped and started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// startControlPlane runs "supervisor up" in dir and waits until it is ready.
// What the supervisor says, such as the progress of a build, goes to progress.
func startControlPlane(ctx context.Context, supervisor, dir string, args []string, progress io.Writer) (*ControlPlane, error) {
	c := &ControlPlane{answers: make(chan []byte)}
	cmd := exec.Command(supervisor, append([]string{"up", "--dir", dir, "--keep-logs"}, args...)...)
	cmd.Stderr = progress
	// Not StdoutPipe: waiting for the process would close it under the reader.
	out, in := io.Pipe()
	cmd.Stdout = in
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if c.process, err = startProcess(cmd); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	go func() {
		<-c.process.exited
		in.Close()
	}()
	go func() {
		defer close(c.answers)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.answers <- append([]byte(nil), s.Bytes()...)
		}
	}()
	if err := c.answer(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.close())
	}
	return c, nil
}

// answer reads the next line into v.
func (c *ControlPlane) answer(ctx context.Context, v any) error {
	select {
	case line, open := <-c.answers:
		if !open {
			return errors.New("its supervisor ended; it said why on standard error")
		}
		return json.Unmarshal(line, v)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends a component with SIGKILL, Stop with SIGTERM and time to end.
func (c *ControlPlane) Kill(ctx context.Context, component string) error {
	return c.command(ctx, "kill", component)
}

// Stop ends a component with SIGTERM and time to end.
func (c *ControlPlane) Stop(ctx context.Context, component string) error {
	return c.command(ctx, "stop", component)
}

// Start starts a component that was killed or stopped, with the same flags and
// on the same port, and returns when it is ready. An API server that was away for 10 s
// brings a new controller manager and a new scheduler: as leaders they would have ended.
func (c *ControlPlane) Start(ctx context.Context, component string) error {
	return c.command(ctx, "start", component)
}

func (c *ControlPlane) command(ctx context.Context, verb, component string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := fmt.Fprintf(c.stdin, "%s %s\n", verb, component); err != nil {
		return fmt.Errorf("%s %s: %w", verb, component, err)
	}
	var reply struct {
		OK    bool
		Error string
		PIDs  map[string]int
	}
	if err := c.answer(ctx, &reply); err != nil {
		return fmt.Errorf("%s %s: %w", verb, component, err)
	}
	if !reply.OK {
		return fmt.Errorf("%s %s: %s", verb, component, reply.Error)
	}
	maps.Copy(c.PIDs, reply.PIDs)
	return nil
}

// close ends the supervisor and with it the control plane.
func (c *ControlPlane) close() error {
	if err := c.stdin.Close(); err != nil {
		return fmt.Errorf("ending the control plane: %w", err)
	}
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for {
		select {
		case <-c.process.exited:
			if c.process.err != nil {
				return fmt.Errorf("the control plane's supervisor: %w", c.process.err)
			}
			return nil
		case _, open := <-c.answers: // lest it wait for a reader
			if !open {
				c.answers = nil
			}
		case <-timeout.C:
			return errors.Join(errors.New("the control plane did not end"), c.process.kill())
		}
	}
}
