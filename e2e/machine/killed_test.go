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

// These make the program the run that is killed, whose machines run inside, and, inside,
// the run after it.
const (
	firstRun = "WINDLASS_TEST_FIRST_RUN"
	nextRun  = "WINDLASS_TEST_NEXT_RUN"
)

// A run that is killed in the middle leaves cgroups and temporary folders, which the next
// yard removes, and nothing else.
func TestKilledYard(t *testing.T) {
	if Inside() {
		killedYard(t)
		return
	}
	again := []string{"-test.run=^" + t.Name() + "$", "-test.v"}
	if os.Getenv(firstRun) != "" {
		killedRun(t, again)
		return
	}
	needMachines(t)
	build(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // of both runs: the first leaves all that it has made
	first := startFirstRun(t, again)
	watches := []watch{watchProcess(t, first.cmd.Process.Pid)}
	for _, pid := range first.processes {
		watches = append(watches, watchProcess(t, pid))
	}
	run := runOf(t, first.processes[1])
	machines := readFile(t, filepath.Join(registry, run))

	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, w := range watches {
		w.wantEnd(t)
	}
	_ = first.cmd.Wait() // it was killed
	wantNobodyIn(t, watches[1:])
	if mounts := readFile(t, "/proc/self/mountinfo"); strings.Contains(mounts, machines) {
		t.Errorf("mounts are left:\n%s", mounts)
	}
	left := leftBy(t, run, dir)
	for _, file := range left {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("nothing is left, so that nothing is shown by its removal: %v", err)
		}
	}

	t.Setenv(nextRun, "yes")
	if err := Enter(t.Context(), again, t.Output(), t.Output()); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	for _, file := range left {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", file, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("temporary files are left: %v (%v)", entries, err)
	}
}

// started is a run with machines, and its processes inside.
type started struct {
	cmd       *exec.Cmd
	processes []int
}

func startFirstRun(t *testing.T, args []string) started {
	t.Helper()
	out, in := io.Pipe()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), firstRun+"=yes")
	cmd.Stdout, cmd.Stderr = in, in
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := StartLasting(cmd); err != nil {
		t.Fatal(err)
	}
	return started{cmd, running(t, out)}
}

// killedRun is the run until it is killed: one that has made a folder for what it has
// built, and then lets machines run.
func killedRun(t *testing.T, args []string) {
	dir, err := os.MkdirTemp("", "built-")
	if err != nil {
		t.Fatal(err)
	}
	owned, err := Own(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer owned.Close()
	if err := write(filepath.Join(dir, "image", "layer"), []byte("built")); err != nil {
		t.Fatal(err)
	}
	t.Error("the run has ended:", Enter(t.Context(), args, os.Stdout, os.Stderr))
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
	waitToBeEnded()
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

// leftBy lists what a killed run leaves: its name, a cgroup in each hierarchy, and what
// is in the folder for temporary ones.
func leftBy(t *testing.T, run, temporary string) []string {
	t.Helper()
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	left := []string{filepath.Join(registry, run)}
	for _, hierarchy := range all {
		left = append(left, filepath.Join(hierarchy, cgroups{run}.top()))
	}
	for _, kind := range []string{"built-*", "windlass-machines-*"} {
		folders, err := filepath.Glob(filepath.Join(temporary, kind))
		if err != nil || len(folders) != 1 {
			t.Fatalf("folders %s: %v (%v), want one", kind, folders, err)
		}
		left = append(left, folders...)
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
