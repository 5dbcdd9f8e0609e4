//go:build linux

package machine

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// victim makes this program one that waits to be killed, with some memory of its own.
const victim = "WINDLASS_TEST_VICTIM"

// What exhausts a container's limit has the kernel kill the container's process.
func TestExhaust(t *testing.T) {
	if os.Getenv(victim) != "" {
		own := make([]byte, 16<<20)
		for i := range own {
			own[i] = 1
		}
		fmt.Println(runningMark)
		_, _ = os.Stdin.Read(own)
		return
	}
	needMachines(t)
	group := testGroup(t, "memory")
	limit := filepath.Join(group, "memory.limit_in_bytes")
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, os.Args[0], "-test.run=^TestExhaust$")
	cmd.Env = append(os.Environ(), victim+"=yes")
	if _, err := cmd.StdinPipe(); err != nil { // it reads until it is killed
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := StartLasting(cmd); err != nil {
		t.Fatal(err)
	}
	process := watchProcess(t, cmd.Process.Pid)
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // unless it was
	if lines := bufio.NewScanner(out); !lines.Scan() || !strings.HasPrefix(lines.Text(), runningMark) {
		t.Fatalf("the victim said %q", lines.Text())
	}

	const machine = 1 << 30
	if err := exhaust(t.Context(), group, machine); err == nil || !strings.Contains(err.Error(), "no memory limit") {
		t.Errorf("a container without a limit was exhausted: %v", err)
	}
	if err := os.WriteFile(limit, []byte(strconv.Itoa(128<<20)), 0); err != nil {
		t.Fatal(err)
	}
	if err := exhaust(t.Context(), group, machine); err != nil {
		t.Error(err)
	}
	if process.wantEnd(t); t.Failed() {
		return
	}
	wantEndedBy(t, "its memory was used up", cmd.Wait(), syscall.SIGKILL)
}

// A cgroup whose processes are still ending is removed when they have.
func TestGroupOfTheDying(t *testing.T) {
	needMachines(t)
	group := testGroup(t, "pids")
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && echo in && exec sleep 600`, group)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := StartLasting(cmd); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("it did not start")
	}
	ended := make(chan error, 1)
	time.AfterFunc(3*askAgain, func() {
		_ = cmd.Process.Kill()
		ended <- cmd.Wait()
	})
	if err := removeGroups(group); err != nil {
		t.Error(err)
	}
	<-ended
}

// testGroup makes a cgroup in one hierarchy, which ends with the test or, if that is
// killed, as all that machines leave.
func testGroup(t *testing.T, hierarchy string) (dir string) {
	t.Helper()
	run, lock, err := register(runKind, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(cgroupRoot, hierarchy, cgroups{run: run}.top())
	if err := makeGroup(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeGroups(dir); err != nil {
			t.Error(err) // and it stays registered
			return
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}
