//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// What is asked to end is asked inside, and how it ended there is told outside.
func TestEnterPassesEndings(t *testing.T) {
	if Inside() {
		fmt.Println(runningMark, os.Getpid())
		waitToBeEnded()
		return
	}
	needMachines(t)
	for name, test := range map[string]struct {
		end   func(cancel context.CancelFunc) error
		want  syscall.Signal
		asked bool
	}{
		"an interrupt":           {func(context.CancelFunc) error { return syscall.Kill(os.Getpid(), syscall.SIGINT) }, syscall.SIGINT, true},
		"a request to end":       {func(context.CancelFunc) error { return syscall.Kill(os.Getpid(), syscall.SIGTERM) }, syscall.SIGTERM, true},
		"the end of its context": {func(cancel context.CancelFunc) error { cancel(); return nil }, syscall.SIGTERM, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		out, in := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- Enter(ctx, []string{"-test.run=^" + t.Name() + "$"}, in, in)
			in.Close()
		}()
		inner := watchProcess(t, running(t, out)[0])
		if err := test.end(cancel); err != nil {
			t.Fatal(err)
		}
		if inner.wantEnd(t); t.Failed() {
			return
		}
		said := <-ended
		wantEndedBy(t, name, said, test.want)
		if errors.Is(said, ErrAsked) != test.asked {
			t.Errorf("after %s: %v; that we were asked to end is %t", name, said, test.asked)
		}
	}
}

// What is mounted inside is not seen outside, even below a folder whose mounts spread,
// as all do where systemd runs. Outside is itself inside here, to leave the host alone.
func TestEnterKeepsMounts(t *testing.T) {
	const where = "WINDLASS_TEST_MOUNT"
	if !inside(t) {
		return
	}
	if dir := os.Getenv(where); dir != "" {
		if err := syscall.Mount("inside", dir, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Mount("", dir, "", syscall.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	t.Setenv(where, dir)
	if err := Enter(t.Context(), []string{"-test.run=^" + t.Name() + "$"}, t.Output(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err == nil {
		t.Error("the mount is seen outside")
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}
}

// How a program ends inside is told outside.
func TestEnterStatus(t *testing.T) {
	needMachines(t)
	var exit *exec.ExitError
	if err := Enter(t.Context(), []string{"-test.no-such-flag"}, io.Discard, io.Discard); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("a program that ends with status 2: %v", err)
	}
}

// The network of the host is nobody's to change, whatever the environment says.
func TestInside(t *testing.T) {
	here, err := networkNamespace()
	if err != nil {
		t.Fatal(err)
	}
	for _, outside := range []string{"", here} {
		t.Setenv(outsideVariable, outside)
		if Inside() {
			t.Errorf("with %q in the environment this counts as inside", outside)
			continue // A Hub would change the host.
		}
		if _, err := OpenHub(slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("with %q in the environment, the network was taken", outside)
		}
	}
}
