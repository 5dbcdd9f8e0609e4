//go:build linux

package machine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/metadata"
)

// answered is how long an answer may take that is to come; unanswered is how long one is
// waited for that is not.
const (
	answered   = 10 * time.Second
	unanswered = 500 * time.Millisecond
)

// A machine reaches its metadata service, its pods do as far as the hop limit lets
// them, and pods reach each other and the world.
func TestNetwork(t *testing.T) {
	if !inside(t) {
		return
	}
	n := newNetwork(t)
	one, two := n.boot("i-one", 1), n.boot("i-two", 2)

	one.wantToken("at hop limit 1", 1, false)
	one.wantToken("at hop limit 2", 2, true)
	two.wantToken("at hop limit 1", 1, false)

	n.wantTraffic(one.pod, two.pod, two.podIP)
	n.wantTraffic(two.pod, one.pod, one.podIP)
	n.wantTraffic(one.pod, n.world, Address)
	n.wantTraffic(n.world, one.pod, one.podIP)

	if err := one.imds.SetMode(metadata.Refused); err != nil {
		t.Fatal(err)
	}
	if _, err := one.pod.instanceID(answered); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a service that takes no connection: %v, want a refused connection", err)
	}
	two.wantToken("while another's service takes no connection", 2, true)
}

// A machine that was plugged off, by its own end or by ours, can come back.
func TestReplug(t *testing.T) {
	if !inside(t) {
		return
	}
	n := newNetwork(t)
	n.boot("i-other", 1)
	for range 2 {
		m := n.boot("i-same", 2)
		m.wantToken("after a boot", 2, true)
		m.powerOff()
		n.unplug(m.ID)
		n.unplug(m.ID)
		n.wantNothingOf(m)
	}
	m := n.boot("i-same", 2)
	n.unplug(m.ID)
	n.wantNothingOf(m)
	for range 2 { // The second time it still hangs on the first cable.
		n.plug(m)
		m.wantToken("plugged again", 2, true)
	}
	broken := m.Uplink
	broken.ID, broken.IP, broken.PID = "i-broken", netip.Addr{}, sleeper(t).Process.Pid
	if err := n.hub.Plug(t.Context(), broken); err == nil {
		t.Error("a machine without an address was connected")
	}
	if exists(endName(broken.ID)) {
		t.Error("a cable that leads nowhere is left")
	}
}

// network is a world with nothing on it but machines that do nothing.
type network struct {
	t     *testing.T
	hub   *Hub
	world namespace
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	hub, err := OpenHub(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &network{t: t, hub: hub, world: namespaceOf(t, os.Getpid(), "the world")}
}

// wantTraffic sends a line from one namespace to an address of another and back.
func (n *network) wantTraffic(from, to namespace, address netip.Addr) {
	n.t.Helper()
	echo := to.listen(n.t, netip.AddrPortFrom(address, 0).String())
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return // Nobody came.
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn) // What got lost is missing at the other end.
	}()
	ctx, cancel := context.WithTimeout(n.t.Context(), answered)
	defer cancel()
	conn, err := from.DialContext(ctx, "tcp", echo.Addr().String())
	if err != nil {
		n.t.Errorf("from %s to %s: %v", from, address, err)
		return
	}
	defer conn.Close()
	const line = "good morning\n"
	if _, err := io.WriteString(conn, line); err != nil {
		n.t.Error(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		n.t.Error(err)
	}
	if back, err := io.ReadAll(conn); string(back) != line || err != nil {
		n.t.Errorf("from %s to %s: %q came back (%v)", from, address, back, err)
	}
}

// wantNothingOf looks for what Plug made.
func (n *network) wantNothingOf(m *mute) {
	n.t.Helper()
	if exists(endName(m.ID)) {
		n.t.Errorf("the interface %s is left", endName(m.ID))
	}
	rules, err := exec.Command("iptables-save", "-t", "nat").CombinedOutput()
	if err != nil {
		n.t.Fatal(err)
	}
	if strings.Contains(string(rules), endName(m.ID)) {
		n.t.Errorf("rules are left:\n%s", rules)
	}
	routes, err := exec.Command("ip", "route").CombinedOutput()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, to := range []string{m.IP.String(), m.PodCIDR.String()} {
		if strings.Contains(string(routes), to) {
			n.t.Errorf("a route to %s is left:\n%s", to, routes)
		}
	}
}

func (n *network) unplug(id string) {
	n.t.Helper()
	if err := n.hub.Unplug(id); err != nil {
		n.t.Fatal(err)
	}
}
