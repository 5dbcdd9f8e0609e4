//go:build linux

package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// runningMark begins the line in which the inner part of a test tells its processes.
const runningMark = "running as "

// A world that is killed in the middle takes its machines, their pods, namespaces and
// cables with it.
func TestNothingIsLeft(t *testing.T) {
	if Inside() {
		n := newNetwork(t)
		one, two := n.boot("i-one", 1), n.boot("i-two", 2)
		one.wantToken("before the end", 2, true)
		fmt.Println(runningMark, os.Getpid(), one.init.Process.Pid, one.inPod.Process.Pid, two.init.Process.Pid, two.inPod.Process.Pid)
		waitToBeEnded()
		return
	}
	needMachines(t)
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Enter(t.Context(), []string{"-test.run=^" + t.Name() + "$", "-test.v"}, in, in)
		in.Close()
	}()
	processes := running(t, out)
	watches := make([]watch, len(processes))
	for i, pid := range processes {
		watches[i] = watchProcess(t, pid)
	}

	if err := syscall.Kill(processes[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantEndedBy(t, "a kill", <-ended, syscall.SIGKILL)
	for _, w := range watches {
		w.wantEnd(t)
	}
	wantNobodyIn(t, watches)
	for _, id := range []string{"i-one", "i-two"} {
		if exists(endName(id)) {
			t.Errorf("the interface %s is left, outside", endName(id))
		}
	}
}

// waitToBeEnded waits for the signal that ends this program. It does so in the kernel: a
// program of which every goroutine waits for another is ended by the runtime, as a deadlock.
func waitToBeEnded() {
	for {
		_, _ = unix.Poll(nil, -1) // A signal of the runtime's own wakes it too.
	}
}

// running reads the processes from the inner part's output, of which the first is
// itself, and then leaves the rest unread.
func running(t *testing.T, out *io.PipeReader) []int {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		list, ok := strings.CutPrefix(lines.Text(), runningMark)
		if !ok {
			t.Log(lines.Text())
			continue
		}
		go func() { _, _ = io.Copy(io.Discard, out) }() // It ends with the program.
		var pids []int
		for field := range strings.FieldsSeq(list) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	t.Fatal("it ended before its machines ran")
	return nil
}

// watch is how the end of a process is seen that is not our child.
type watch struct {
	pid, fd int
	net     string // its network namespace
}

func watchProcess(t *testing.T, pid int) watch {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	return watch{pid, fd, name}
}

func (w watch) wantEnd(t *testing.T) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(answered.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			t.Fatal(err)
		case n == 0:
			t.Errorf("process %d still runs", w.pid)
		}
		return
	}
}

// wantEndedBy wants the error of a program to say that this signal ended it.
func wantEndedBy(t *testing.T, after string, said error, want syscall.Signal) {
	t.Helper()
	var exit *exec.ExitError
	if !errors.As(said, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != want {
		t.Errorf("after %s: %v, want that %s ended it", after, said, unix.SignalName(want))
	}
}

// wantNobodyIn looks for processes in the network namespaces of others that have ended:
// without one, a namespace and its devices are gone.
func wantNobodyIn(t *testing.T, gone []watch) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		name, err := os.Readlink("/proc/" + p.Name() + "/ns/net")
		if err != nil {
			continue // no process, or none any more
		}
		for _, w := range gone {
			if name == w.net {
				t.Errorf("process %s is left in %s", p.Name(), name)
			}
		}
	}
}
