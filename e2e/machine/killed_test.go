//go:build linux

package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// nextRun makes the inner part of TestKilledYard the run after the killed one.
const nextRun = "WINDLASS_TEST_NEXT_RUN"

// A yard that is killed in the middle leaves cgroups and folders, which the next one
// removes, and nothing else.
func TestKilledYard(t *testing.T) {
	if Inside() {
		killedYard(t)
		return
	}
	needMachines(t)
	build(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // of both runs: the first leaves all that it has made
	out, in := io.Pipe()
	ended := make(chan error, 1)
	again := []string{"-test.run=^" + t.Name() + "$", "-test.v"}
	go func() {
		ended <- Enter(t.Context(), again, in, in)
		in.Close()
	}()
	processes := running(t, out)
	var watches []watch
	for _, pid := range processes {
		watches = append(watches, watchProcess(t, pid))
	}
	run := runOf(t, processes[1])
	machines := readFile(t, filepath.Join(registry, run))

	if err := syscall.Kill(processes[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) {
		t.Errorf("a run that was killed: %v", err)
	}
	for _, w := range watches {
		w.wantEnd(t)
	}
	wantNobodyIn(t, watches)
	if mounts := readFile(t, "/proc/self/mountinfo"); strings.Contains(mounts, machines) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	for _, left := range leftBy(t, run, machines) {
		if _, err := os.Stat(left); err != nil {
			t.Errorf("nothing is left, so that nothing is shown by its removal: %v", err)
		}
	}

	t.Setenv(nextRun, "yes")
	if err := Enter(t.Context(), again, t.Output(), t.Output()); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	for _, left := range leftBy(t, run, machines) {
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", left, err)
		}
	}
}

// killedYard is the inner part: machines that tell their processes until they are killed,
// or the run after it, which opens a yard.
func killedYard(t *testing.T) {
	c := newCluster(t)
	if os.Getenv(nextRun) != "" {
		return
	}
	one, two := specOf(1), specOf(2)
	c.powerOn(one, two)
	c.apply(echoes)
	c.kubectl("rollout", "status", "deployment/echo", "--timeout=60s")
	// A machine's process is the second, by which the run is known outside.
	list := runningMark + strconv.Itoa(os.Getpid())
	for _, pid := range processesIn(t, filepath.Join(cgroupRoot, "pids", c.yard.cgroups.top())) {
		list += " " + pid
	}
	for _, pid := range c.PIDs {
		list += " " + strconv.Itoa(pid)
	}
	fmt.Println(list)
	<-t.Context().Done() // It is killed here.
}

// processesIn lists the processes of a cgroup and those below it.
func processesIn(t *testing.T, group string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "cgroup.procs" {
			all = append(all, strings.Fields(readFile(t, path))...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// runOf is the run whose cgroup a process is in.
func runOf(t *testing.T, pid int) string {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/cgroup", pid))) {
		if _, rest, found := strings.Cut(line, cgroupPrefix); found {
			run, _, _ := strings.Cut(rest, "/")
			return run
		}
	}
	t.Fatalf("process %d is in no machine's cgroup", pid)
	return ""
}

// leftBy lists what a killed run leaves: its name, its folder, and a cgroup in each
// hierarchy.
func leftBy(t *testing.T, run, machines string) []string {
	t.Helper()
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	left := []string{filepath.Join(registry, run), machines}
	for _, hierarchy := range all {
		left = append(left, filepath.Join(hierarchy, cgroups{run}.top()))
	}
	return left
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
