package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asSupervisor makes the test binary run as the program itself.
const asSupervisor = "CONTROLPLANE_TEST_AS_SUPERVISOR"

func TestMain(m *testing.M) {
	if os.Getenv(asSupervisor) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// supervised is a control plane run by a supervisor process.
type supervised struct {
	ready  ready
	dir    string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

func up(t *testing.T, args ...string) *supervised {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s := &supervised{dir: filepath.Join(t.TempDir(), "cluster")}
	s.cmd = exec.Command(os.Args[0], append([]string{"up", "--dir", s.dir}, args...)...)
	s.cmd.Env = append(os.Environ(), asSupervisor+"=1")
	s.cmd.Stderr = &s.stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdout = bufio.NewScanner(stdout)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stdin.Close()
		s.cmd.Wait() // an error where a test has killed it
	})
	s.answer(t, &s.ready)
	return s
}

func (s *supervised) answer(t *testing.T, v any) {
	t.Helper()
	if !s.stdout.Scan() {
		s.stdin.Close()
		t.Fatalf("the supervisor said nothing: %v\n%s", s.cmd.Wait(), s.stderr.String())
	}
	if err := json.Unmarshal(s.stdout.Bytes(), v); err != nil {
		t.Fatalf("%q: %v", s.stdout.Text(), err)
	}
}

func (s *supervised) command(t *testing.T, line string) reply {
	t.Helper()
	if _, err := fmt.Fprintln(s.stdin, line); err != nil {
		t.Fatal(err)
	}
	var r reply
	s.answer(t, &r)
	return r
}

func (s *supervised) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.ready.Kubectl, append([]string{"--kubeconfig", s.ready.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

const node = `
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations: {kwok.x-k8s.io/node: fake}
status:
  conditions: [{type: Ready, status: "False"}]
`

const pod = `
apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {pod-delete.stage.kwok.x-k8s.io/seconds: "0.1"}
spec:
  containers: [{name: main, image: none}]
`

// TestLife: a pod runs on a simulated node; it does so again after every
// component was killed and started; the end of stdin ends everything.
func TestLife(t *testing.T) {
	s := up(t)
	t.Logf("ready after %.1f s", s.ready.Seconds)
	s.kubectl(t, node, "create", "-f", "-")
	s.kubectl(t, fmt.Sprintf(pod, "before"), "create", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Ready", "pod/before", "--timeout=30s")
	s.kubectl(t, "", "delete", "pod", "before", "--timeout=20s") // its grace period alone is 30 s

	for _, name := range []string{"kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		verb := "kill"
		if name == "etcd" {
			verb = "stop"
		}
		old := s.ready.PIDs[name]
		if r := s.command(t, verb+" "+name); !r.OK {
			t.Fatalf("%s: %s", r.Command, r.Error)
		}
		if alive(old) {
			t.Errorf("%s is alive after %s", name, verb)
		}
		if r := s.command(t, verb+" "+name); r.OK {
			t.Errorf("%s twice was no error", r.Command)
		}
		r := s.command(t, "start "+name)
		if !r.OK {
			t.Fatalf("%s: %s", r.Command, r.Error)
		}
		s.ready.PIDs[name] = r.PIDs[name]
	}
	if r := s.command(t, "start nonsense"); r.OK || !strings.Contains(r.Error, "nonsense") {
		t.Errorf("start nonsense: %+v", r)
	}
	s.kubectl(t, fmt.Sprintf(pod, "after"), "create", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Ready", "pod/after", "--timeout=60s")

	s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the supervisor did not end well: %v\n%s", err, s.stderr.String())
	}
	for name, pid := range s.ready.PIDs {
		if alive(pid) {
			t.Errorf("%s outlived the supervisor", name)
		}
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("something is left in %s", s.dir)
	}
}

// TestOutage: an API server that was away for too long starts its leaders anew, but
// none that was ended on purpose, and no kubelet.
func TestOutage(t *testing.T) {
	s := up(t, "--renew-deadline=0s")
	for _, line := range []string{"kill kube-scheduler", "kill kube-apiserver", "start kube-apiserver"} {
		r := s.command(t, line)
		if !r.OK {
			t.Fatalf("%s: %s", line, r.Error)
		}
		if line == "kill kube-apiserver" { // as the manager does itself, if it starts just then
			if err := syscall.Kill(s.ready.PIDs["kube-controller-manager"], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		if line == "start kube-apiserver" && len(r.PIDs) != 2 {
			t.Errorf("started %v, want API server and controller manager", r.PIDs)
		}
		for name, pid := range r.PIDs {
			if old := s.ready.PIDs[name]; alive(old) {
				t.Errorf("%s: the old %s is alive", line, name)
			}
			s.ready.PIDs[name] = pid
		}
	}
	for name, pid := range s.ready.PIDs {
		if want := name != "kube-scheduler"; alive(pid) != want {
			t.Errorf("%s: alive is %v, want %v", name, !want, want)
		}
	}
}

// TestForsaken: a leader that is started while there is no API server ends again and again,
// and is there when that is back.
func TestForsaken(t *testing.T) {
	const leader = "kube-controller-manager"
	s := up(t)
	if r := s.command(t, "kill kube-apiserver"); !r.OK {
		t.Fatal(r.Error)
	}
	if err := syscall.Kill(s.ready.PIDs[leader], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(s.dir, "logs", leader+".log")
	for ends := 0; ends < 2; time.Sleep(10 * time.Millisecond) { // a process that is not our child cannot be waited for
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		ends = strings.Count(string(text), "command failed")
	}
	if r := s.command(t, "start kube-apiserver"); !r.OK {
		t.Fatal(r.Error)
	}
}

// TestKilledSupervisor: no component survives a supervisor that could not clean up.
func TestKilledSupervisor(t *testing.T) {
	s := up(t)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for name, pid := range s.ready.PIDs {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("%s outlived the killed supervisor", name)
			}
			time.Sleep(10 * time.Millisecond) // a process that is not our child cannot be waited for
		}
	}
}

// TestFailedStart: the error names the component and shows why.
func TestFailedStart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	cmd := exec.Command(os.Args[0], "up", "--dir", dir, "--arg", "kube-scheduler=--no-such-flag")
	cmd.Env = append(os.Environ(), asSupervisor+"=1")
	if _, err := cmd.StdinPipe(); err != nil { // held open: an end would be an order to end
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("no error")
	}
	for _, want := range []string{"kube-scheduler", "unknown flag: --no-such-flag"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// alive reports whether a process runs; one that has ended and that nobody has
// waited for yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
