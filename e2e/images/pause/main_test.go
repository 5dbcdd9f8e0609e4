//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReaps: two children have ended before the one SIGCHLD; afterwards neither
// is left as a zombie, a third that lives is let alone, and SIGTERM ends it.
func TestReaps(t *testing.T) {
	ended := []int{child(t, "true"), child(t, "true")}
	for _, pid := range ended {
		// Waits for the end and leaves the zombie.
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	living := child(t, "cat")

	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGCHLD
	signals <- syscall.SIGTERM
	pause(signals)

	for _, pid := range ended {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	if err := syscall.Kill(living, 0); err != nil {
		t.Errorf("process %d, which has not ended: %v", living, err)
	}
}

// child starts a command that nobody waits for; cat lives until the test ends,
// since its standard input stays open.
func child(t *testing.T, name string) int {
	t.Helper()
	cmd := exec.Command(name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		// What was reaped has nobody to wait for any more.
		if err := cmd.Wait(); err != nil && !errors.Is(err, syscall.ECHILD) {
			t.Error(err)
		}
	})
	return cmd.Process.Pid
}
