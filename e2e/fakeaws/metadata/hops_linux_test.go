package metadata

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A client behind routers, each of which takes a hop, gets what it asks for, but a token only within the hop limit.
func TestHopLimit(t *testing.T) {
	const answered, unanswered = 10 * time.Second, 300 * time.Millisecond
	for _, c := range []struct {
		hopLimit, routers int
		token             bool
	}{
		{hopLimit: 1, routers: 0, token: true},
		{hopLimit: 1, routers: 1, token: false},
		{hopLimit: 2, routers: 1, token: true},
		{hopLimit: 2, routers: 2, token: false},
		{hopLimit: 64, routers: 2, token: true},
	} {
		s := listen(t, c.hopLimit)
		client := behind(t, c.routers)
		patience := answered
		if !c.token {
			patience = unanswered
		}
		status, err := ask(client, patience, http.MethodPut, s.Addr())
		switch {
		case c.token && status != http.StatusOK:
			t.Errorf("hop limit %d, %d routers: status %d (%v), want a token", c.hopLimit, c.routers, status, err)
		case !c.token && !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("hop limit %d, %d routers: status %d (%v), want no answer", c.hopLimit, c.routers, status, err)
		}
		if status, err := ask(client, answered, http.MethodGet, s.Addr()); status != http.StatusUnauthorized {
			t.Errorf("hop limit %d, %d routers: a request without a token: status %d (%v)", c.hopLimit, c.routers, status, err)
		}
	}
}

// The answers that follow on the connection of a token have no hop limit.
func TestHopLimitOfTokensOnly(t *testing.T) {
	s := listen(t, 1)
	var dialed net.Conn
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		if dialed != nil {
			t.Error("the second request has a connection of its own")
		}
		dialed, err = new(net.Dialer).DialContext(ctx, network, address)
		return dialed, err
	}}
	client := &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	if status, err := ask(client, 10*time.Second, http.MethodPut, s.Addr()); status != http.StatusOK {
		t.Fatalf("a token: status %d (%v)", status, err)
	}
	raw, err := dialed.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := moveBehind(raw, 10); err != nil {
		t.Fatal(err)
	}
	if status, err := ask(client, 10*time.Second, http.MethodGet, s.Addr()); status != http.StatusUnauthorized {
		t.Errorf("a request after that of a token: status %d (%v)", status, err)
	}
}

// listen starts the service of an instance with this hop limit.
func listen(t *testing.T, hopLimit int) *Service {
	t.Helper()
	view := func() (View, bool) {
		var v View
		v.Notices.HopLimit = hopLimit
		return v, true
	}
	s, err := Listen("127.0.0.1:0", On, view, func(Request) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// behind is a client that hears what routers would let through.
func behind(t *testing.T, routers int) *http.Client {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error { return moveBehind(raw, routers) }}
	transport := &http.Transport{DialContext: d.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// moveBehind makes the kernel drop what arrives with fewer hops left than would have been taken on the way.
func moveBehind(raw syscall.RawConn, routers int) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MINTTL, routers+1)
	})
	return errors.Join(err, failed)
}

// ask asks for a token with PUT; with GET it gets an answer that is not one.
func ask(client *http.Client, patience time.Duration, method, addr string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+"/latest/api/token", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set(ttlHeader, "60")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}
