//go:build linux

package machine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cluster is a control plane and a yard for its nodes.
type cluster struct {
	t    *testing.T
	yard *Yard

	// As the control plane's supervisor says.
	Kubeconfig, Kubectl, Server, CA, CAKey string
	PIDs                                   map[string]int
}

// newCluster starts a control plane, with these flags beside the usual ones, and opens a
// yard for its machines.
func newCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t}
	dir := t.TempDir()
	hub, err := OpenHub(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.startControlPlane(built("controlplane"), filepath.Join(dir, "cluster"), flags)
	programs := filepath.Dir(c.Kubectl)
	c.yard, err = Open(t.Context(), Config{
		Dir: filepath.Join(dir, "machines"), Boot: built("boot"),
		Kubelet: filepath.Join(programs, "kubelet"), KubeProxy: filepath.Join(programs, "kube-proxy"),
		Server: c.Server, CA: c.CA, CAKey: c.CAKey,
		Images: []string{built("e2e-pause.tar"), built("e2e-echo.tar"), built("e2e-client.tar")},
		Hub:    hub, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.showLogs()
		}
		if err := c.yard.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *cluster) startControlPlane(supervisor, dir string, flags []string) {
	c.t.Helper()
	cmd := exec.Command(supervisor, append([]string{"up", "--dir", dir, "--address", Address.String(), "--without", "kwok"}, flags...)...)
	cmd.Stderr = c.t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := StartLasting(cmd); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			c.t.Error("the control plane:", err)
		}
	})
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, c)
	}
	if err != nil {
		c.t.Fatalf("the control plane said %q: %v", line, err)
	}
	c.PIDs["supervisor"] = cmd.Process.Pid
	go func() { _, _ = io.Copy(io.Discard, lines) }()
}

// showLogs shows how the logs of all machines end.
func (c *cluster) showLogs() {
	const most = 25
	logs, _ := filepath.Glob(filepath.Join(c.yard.Dir, "*", logsFolder, "*.log"))
	for _, file := range logs {
		content, err := os.ReadFile(file)
		lines := strings.Split(string(content), "\n")
		c.t.Logf("%s (%v):\n%s", file, err, strings.Join(lines[max(0, len(lines)-most):], "\n"))
	}
}

// kubectl runs a command and returns what it says.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	said, err := c.try("", args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return said
}

// apply makes the objects of a manifest.
func (c *cluster) apply(manifest string) {
	c.t.Helper()
	if _, err := c.try(manifest, "apply", "--filename=-"); err != nil {
		c.t.Fatal(err)
	}
}

// try runs a command that may fail.
func (c *cluster) try(stdin string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Kubectl, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// wait waits until an object is there and what is asked of it holds, such as
// condition=Ready.
func (c *cluster) wait(object, what string) {
	c.t.Helper()
	c.kubectl("wait", "--for=create", object, "--timeout=60s")
	c.kubectl("wait", "--for="+what, object, "--timeout=90s")
}

// field is what an object says at a JSON path.
func (c *cluster) field(object, path string) string {
	c.t.Helper()
	return c.kubectl("get", object, "--output=jsonpath={"+path+"}")
}

// specOf is a machine of one processor, as many as each host has.
func specOf(n int) Spec {
	return Spec{
		ID: fmt.Sprintf("i-%017d", n), Name: fmt.Sprintf("ip-172-31-0-%d.eu-central-1.compute.internal", n),
		IP: netip.AddrFrom4([4]byte{172, 31, 0, byte(n)}), BootID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n),
		ProviderID: fmt.Sprintf("aws:///eu-central-1a/i-%017d", n),
		VCPUs:      1, MemoryMiB: 4096, MaxPods: 17,
		Labels: map[string]string{"topology.kubernetes.io/zone": "eu-central-1a", "node.kubernetes.io/instance-type": "m7a.medium"},
	}
}

// powerOn boots machines together.
func (c *cluster) powerOn(specs ...Spec) {
	c.t.Helper()
	results := make(chan error)
	for _, spec := range specs {
		go func() { results <- c.yard.PowerOn(c.t.Context(), spec) }()
	}
	for range specs {
		if err := <-results; err != nil {
			c.t.Fatal(err)
		}
	}
}
