package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"windlass.dev/windlass/e2e/machine"
)

// process is a child that dies with us, and whose end can be waited for.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has been reaped
	asked  bool          // somebody ended it on purpose; for its owner to guard
	err    error         // how it ended; valid once exited is closed
}

// startProcess starts cmd in a process group of its own, so that an interrupt
// typed in the terminal reaches us alone and we end things in order.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = childAttributes()
	if err := machine.StartLasting(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop asks the process to end, waits at most grace (less if ctx ends), and
// then kills it.
func (p *process) stop(ctx context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timeout := time.NewTimer(grace)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	return p.kill()
}

// running reports whether the process has not been seen to end.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Tail returns the last n lines of a log file, for an error message.
func Tail(file string, n int) string {
	const most = 16 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// output runs a command to its end and returns its standard output; the error
// carries what it said on standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
