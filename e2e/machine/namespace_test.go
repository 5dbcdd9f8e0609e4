//go:build linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace in which sockets can be made from here.
type namespace struct {
	file *os.File
	name string
}

func (ns namespace) String() string { return ns.name }

func namespaceOf(t *testing.T, pid int, name string) namespace {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // Nothing was written to it.
	return namespace{f, name}
}

// do calls f on a thread that is in the namespace, and that ends with it.
func (ns namespace) do(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// DialContext connects from the namespace to a numeric address.
func (ns namespace) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = ns.do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

func (ns namespace) listen(t *testing.T, address string) (l net.Listener) {
	t.Helper()
	err := ns.do(func() (err error) {
		l, err = net.Listen("tcp4", address)
		return err
	})
	if err != nil {
		t.Fatalf("listening in %s: %v", ns, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// request asks the metadata service from the namespace, over a connection of its own.
func (ns namespace) request(patience time.Duration, method, path string, header http.Header) (status int, body string, err error) {
	transport := &http.Transport{DialContext: ns.DialContext, DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+Metadata.String()+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header = header
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	content, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(content), errors.Join(err, resp.Body.Close())
}

// instanceID asks as an SDK does: for a token, and with it for the instance's id.
func (ns namespace) instanceID(patience time.Duration) (string, error) {
	status, token, err := ns.request(patience, http.MethodPut, "/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}})
	if err != nil || status != http.StatusOK {
		return "", errors.Join(err, statusError(status))
	}
	status, id, err := ns.request(patience, http.MethodGet, "/latest/meta-data/instance-id", http.Header{"X-Aws-Ec2-Metadata-Token": {token}})
	return strings.TrimSpace(id), errors.Join(err, statusError(status))
}

func statusError(status int) error {
	if status == http.StatusOK || status == 0 {
		return nil
	}
	return fmt.Errorf("status %d", status)
}
