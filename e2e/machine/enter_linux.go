package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// outsideVariable is set inside to the network namespace that Enter was called in.
const outsideVariable = "WINDLASS_MACHINES_OUTSIDE"

// endGrace is how long a program that was asked to end may take to do so.
const endGrace = 20 * time.Second

// Inside reports whether this program runs where Enter brought it. The mark alone is not
// believed, because what follows changes the network it finds.
func Inside() bool {
	outside := os.Getenv(outsideVariable)
	here, err := networkNamespace()
	return outside != "" && err == nil && here != outside
}

func networkNamespace() (string, error) { return os.Readlink("/proc/self/ns/net") }

// Enter runs this program again with args in network and mount namespaces of its own
// and waits until it ends; an exit status other than 0 is an *exec.ExitError. What it
// mounts is not seen outside. SIGINT and SIGTERM are passed on, of which an ErrAsked
// tells, ctx's end asks it to end as SIGTERM does, and it dies with us however we end. Its
// TMPDIR is a folder that ends with it or, if we are killed, when the next yard is opened.
func Enter(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	temporary, end, err := temporaryFolder()
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	return errors.Join(enter(ctx, args, temporary, stdout, stderr), end())
}

func enter(ctx context.Context, args []string, temporary string, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	outside, err := networkNamespace()
	if err != nil {
		return fmt.Errorf("finding this network namespace: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), outsideVariable+"="+outside, "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// Unlike Cloneflags, this also keeps mounts from spreading outside.
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
		Setpgid:      true, // A terminal's interrupt comes once, from us.
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endGrace
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM) // Also one that comes while it starts is passed on.
	if err := StartLasting(cmd); err != nil {
		signal.Stop(signals)
		if len(signals) > 0 {
			err = fmt.Errorf("%w (%s): %w", ErrAsked, <-signals, err)
		}
		return fmt.Errorf("entering namespaces of its own: %w", err)
	}
	stop := passSignals(signals, cmd.Process)
	err = cmd.Wait()
	if passed := stop(); passed != nil {
		return fmt.Errorf("%w (%s): %w", ErrAsked, passed, errors.Join(err, ctx.Err()))
	}
	return err
}

// passSignals passes signals on to a child, until the answer is called, which also ends what
// they come by, and says what was passed last.
func passSignals(signals chan os.Signal, child *os.Process) (stop func() os.Signal) {
	done := make(chan os.Signal)
	go func() {
		var passed os.Signal
		for s := range signals {
			passed = s
			_ = child.Signal(s) // it may have ended
		}
		done <- passed
	}()
	return func() os.Signal {
		signal.Stop(signals)
		close(signals)
		return <-done
	}
}
