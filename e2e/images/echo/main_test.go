package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a listener without a network, so that the time of a test is virtual.
type memory chan net.Conn

func (m memory) Accept() (net.Conn, error) {
	conn, open := <-m
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (m memory) Close() error { close(m); return nil }

func (m memory) Addr() net.Addr { return &net.TCPAddr{} }

func (m memory) client() *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		m <- server
		return client, nil
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial}}
}

// TestLeaves plays the end of a pod: not ready from SIGTERM on, served until the
// drain is over, and the answer under way at that moment is finished.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config{name: "echo-1", drain: 5 * time.Second, takes: 20 * time.Millisecond}
		listener := make(memory)
		client := listener.client()
		ctx, terminate := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- serve(ctx, c, listener) }()

		want(t, client, "/ready", http.StatusOK, "echo-1\n", false)
		want(t, client, "/", http.StatusOK, "echo-1\n", false)

		terminate()
		told := time.Now()
		synctest.Wait()
		want(t, client, "/ready", http.StatusServiceUnavailable, "echo-1 leaves\n", false)
		want(t, client, "/", http.StatusOK, "echo-1\n", true)

		time.Sleep(c.drain - time.Since(told) - c.takes/2)
		want(t, client, "/", http.StatusOK, "echo-1\n", true)
		if over := time.Since(told) - c.drain; over != c.takes/2 {
			t.Errorf("the last answer was out %s after the drain", over)
		}
		client.CloseIdleConnections()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if over := time.Since(told) - c.drain; over < c.takes/2 || over > time.Second {
			t.Errorf("it ended %s after the drain", over)
		}
	})
}

// want asks for a path and checks the answer, and whether it asks to give up the
// connection.
func want(t *testing.T, client *http.Client, path string, status int, text string, closes bool) {
	t.Helper()
	response, err := client.Get("http://echo" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status || string(body) != text || response.Close != closes {
		t.Errorf("%s: %s %q, closes: %v; want %d %q, %v", path, response.Status, body, response.Close, status, text, closes)
	}
}
