package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// runAsAgent is set where this test program is to be the agent.
const runAsAgent = "WINDLASS_TEST_RUN_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(runAsAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// An agent at work listens on no port: there is nothing to attack, and nothing that
// another process of the host network could have taken.
func TestOpensNoPort(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system does not tell which ports a process listens on")
	}
	asked := newAsked()
	api := httptest.NewServer(asked.of("the API server", http.StatusNotFound))
	defer api.Close()
	metadata := httptest.NewServer(asked.of("the metadata service", http.StatusForbidden))
	defer metadata.Close()
	if len(listening(t, os.Getpid())) < 2 {
		t.Fatal("the ports of this test itself are not seen")
	}

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, kubeconfigFormat, api.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	agent := exec.CommandContext(ctx, os.Args[0], "--node-name=n", "--kubeconfig="+kubeconfig)
	agent.Env = append(os.Environ(), runAsAgent+"=1", "AWS_EC2_METADATA_SERVICE_ENDPOINT="+metadata.URL)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"the API server", "the metadata service"} {
		if err := asked.await(ctx, who); err != nil {
			t.Errorf("%s was not asked: %v", who, err)
		}
	}
	if ports := listening(t, agent.Process.Pid); len(ports) > 0 {
		t.Errorf("the agent listens on %s", ports)
	}
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent did not end well: %v", err)
	}
}

const kubeconfigFormat = `
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {}}]
`

// asked reports which server was asked for something.
type asked struct {
	mu    sync.Mutex
	first map[string]chan struct{}
}

func newAsked() *asked { return &asked{first: map[string]chan struct{}{}} }

// of returns a server of that name, which answers nothing but a status.
func (a *asked) of(who string, status int) http.Handler {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := make(chan struct{})
	a.first[who] = first
	note := sync.OnceFunc(func() { close(first) })
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		note()
	})
}

func (a *asked) await(ctx context.Context, who string) error {
	select {
	case <-a.first[who]:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listening lists the local addresses of the TCP sockets on which a process
// listens, as the kernel prints them; see proc_net(5).
func listening(t *testing.T, pid int) []string {
	t.Helper()
	sockets := map[string]bool{}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	err := filepath.WalkDir(fds, func(path string, _ fs.DirEntry, err error) error {
		if path == fds || err != nil {
			return err
		}
		if target, err := os.Readlink(path); err == nil { // it may have been closed meanwhile
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const address, state, inode, listens = 1, 3, 9, "0A"
	var out []string
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile("/proc/net/" + name)
		if err != nil {
			continue // a system without IPv6
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > inode && f[state] == listens && sockets[f[inode]] {
				out = append(out, name+" "+f[address])
			}
		}
	}
	slices.Sort(out)
	return out
}
