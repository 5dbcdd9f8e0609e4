//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// mute is a machine without programs, with one pod behind a bridge.
type mute struct {
	Uplink
	t           *testing.T
	init, inPod *exec.Cmd
	host, pod   namespace
	podIP       netip.Addr
	imds        *metadata.Service
	hopLimit    *atomic.Int64
}

// boot starts a machine and connects it; number tells its addresses.
func (n *network) boot(id string, number byte) *mute {
	n.t.Helper()
	m := &mute{t: n.t, hopLimit: new(atomic.Int64)}
	m.init, m.inPod = sleeper(n.t), sleeper(n.t)
	m.host, m.pod = namespaceOf(n.t, m.init.Process.Pid, id), namespaceOf(n.t, m.inPod.Process.Pid, "the pod of "+id)
	m.podIP = netip.AddrFrom4([4]byte{100, 64, number, 2})
	m.serveMetadata(id)
	m.Uplink = Uplink{
		ID: id, IP: netip.AddrFrom4([4]byte{172, 31, 0, number}), PodCIDR: netip.PrefixFrom(m.podIP, 24).Masked(),
		IMDS: netip.MustParseAddrPort(m.imds.Addr()), PID: m.init.Process.Pid,
	}
	n.plug(m)
	m.bridge()
	return m
}

// sleeper starts a process in a network namespace of its own, which must be there
// before it is looked at.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := StartLasting(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	return cmd
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // It may have ended already,
	_ = cmd.Wait()         // and been waited for.
}

func (m *mute) powerOff() {
	end(m.init)
	end(m.inPod)
}

// serveMetadata starts the machine's metadata service, on the world's loopback.
func (m *mute) serveMetadata(id string) {
	view := func() (metadata.View, bool) {
		v := metadata.View{}
		v.Instance.ID, v.Notices.HopLimit = id, int(m.hopLimit.Load())
		return v, true
	}
	var err error
	if m.imds, err = metadata.Listen("127.0.0.1:0", metadata.On, view, func(metadata.Request) {}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = m.imds.Close() })
}

func (n *network) plug(m *mute) {
	n.t.Helper()
	if err := n.hub.Plug(n.t.Context(), m.Uplink); err != nil {
		n.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	m.enter(self, configureRole, m.IP.String())
}

// enter runs a command in the machine's network namespace.
func (m *mute) enter(args ...string) { enterNet(m.t, m.PID, args...) }

func enterNet(t *testing.T, pid int, args ...string) {
	t.Helper()
	if err := run(t.Context(), "", "nsenter", append([]string{"--net=/proc/" + strconv.Itoa(pid) + "/ns/net"}, args...)...); err != nil {
		t.Fatal(err)
	}
}

// bridge connects the pod to the machine as the CNI plugin of that name does.
func (m *mute) bridge() {
	m.t.Helper()
	gateway := m.podIP.Prev().String()
	pod := m.inPod.Process.Pid
	for command := range strings.Lines(fmt.Sprintf(`link add cni0 type bridge
address add %[1]s/24 dev cni0
link set cni0 up
link add veth0 type veth peer name eth0 netns %[2]d
link set veth0 master cni0 up
`, gateway, pod)) {
		m.enter(append([]string{"ip"}, strings.Fields(command)...)...)
	}
	for command := range strings.Lines(fmt.Sprintf(`link set lo up
address add %[1]s/24 dev eth0
link set eth0 up
route add default via %[2]s
`, m.podIP, gateway)) {
		enterNet(m.t, pod, append([]string{"ip"}, strings.Fields(command)...)...)
	}
}

// wantToken asks for a token at a hop limit, and what it is good for: from the machine,
// which always gets one, and from its pod.
func (m *mute) wantToken(when string, hopLimit int64, inPod bool) {
	m.t.Helper()
	m.hopLimit.Store(hopLimit)
	if id, err := m.host.instanceID(answered); id != m.ID || err != nil {
		m.t.Errorf("%s, %s: the machine is told that it is %q (%v)", m.ID, when, id, err)
	}
	if !inPod {
		if id, err := m.pod.instanceID(unanswered); !errors.Is(err, context.DeadlineExceeded) {
			m.t.Errorf("%s, %s: the pod is told that it is on %q (%v), want no answer", m.ID, when, id, err)
		}
	} else if id, err := m.pod.instanceID(answered); id != m.ID || err != nil {
		m.t.Errorf("%s, %s: the pod is told that it is on %q (%v)", m.ID, when, id, err)
	}
	// Answers to anything else have no hop limit.
	if status, _, err := m.pod.request(answered, http.MethodGet, "/latest/meta-data/instance-id", http.Header{}); status != http.StatusUnauthorized || err != nil {
		m.t.Errorf("%s, %s: a request without a token from the pod: status %d (%v)", m.ID, when, status, err)
	}
}
