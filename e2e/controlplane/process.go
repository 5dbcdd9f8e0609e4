package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end by itself.
const stopGrace = 10 * time.Second

// process is one running child, whose output goes to a log file.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the child has been reaped
	err    error         // how it ended; valid once exited is closed
}

// startProcess starts a child that dies with the supervisor, however that dies.
func startProcess(path string, args []string, dir, logFile string) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening its log: %w", err)
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	// HOME keeps a child from writing caches into the user's own. GOGC: tests are
	// short of cores and not of memory, and this takes a tenth off a start.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOGC=200"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := startOnImmortalThread(cmd); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// starts feeds the one thread that starts every child. Linux sends a child its
// parent-death signal when the *thread* that started it ends, and the Go
// runtime ends threads as it likes, except one that a goroutine is locked to.
var starts = make(chan startRequest)

type startRequest struct {
	cmd    *exec.Cmd
	result chan error
}

func init() {
	go func() {
		runtime.LockOSThread()
		for r := range starts {
			r.result <- r.cmd.Start()
		}
	}()
}

func startOnImmortalThread(cmd *exec.Cmd) error {
	r := startRequest{cmd: cmd, result: make(chan error)}
	starts <- r
	return <-r.result
}

// kill ends the child at once and waits until it is gone.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.exited
	return nil
}

// stop asks the child to end, and kills it if it takes too long.
func (p *process) stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timeout := time.NewTimer(stopGrace)
	defer timeout.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	return p.kill()
}

// lastLines returns the end of a log file, for an error message.
func lastLines(file string, n int) string {
	const tail = 16 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tail {
		if _, err := f.Seek(-tail, io.SeekEnd); err != nil {
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
