package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// server answers with its name until it has answered so many requests, then it
// ends the client.
type server struct {
	*httptest.Server
	connections atomic.Int64
}

func newServer(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{Server: httptest.NewUnstartedServer(handler)}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// play runs the client with these flags against a handler, which gets the number
// of the request and is told to end the client by the function stop.
func play(t *testing.T, args []string, handle func(w http.ResponseWriter, n int64, stop func())) (s *server, out string, err error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var requests atomic.Int64
	s = newServer(t, func(w http.ResponseWriter, _ *http.Request) { handle(w, requests.Add(1), stop) })
	var text strings.Builder
	err = run(ctx, append(args, s.URL), &text)
	return s, text.String(), err
}

// Connections: a worker that keeps its own opens one, one that does not opens
// one for each request.
func TestConnections(t *testing.T) {
	const requests = 20
	answer := func(w http.ResponseWriter, n int64, stop func()) {
		fmt.Fprintln(w, "echo-1")
		if n == requests {
			stop()
		}
	}
	for _, c := range []struct {
		name            string
		workers, kept   int
		wantConnections int64
	}{
		{"new ones", 1, 0, requests},
		{"kept", 0, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{fmt.Sprintf("--workers=%d", c.workers), fmt.Sprintf("--keep-alive=%d", c.kept), "--interval=0"}
			s, out, err := play(t, args, answer)
			if err != nil {
				t.Error(err)
			}
			if got := s.connections.Load(); got != c.wantConnections {
				t.Errorf("%d connections for %d requests, want %d", got, requests, c.wantConnections)
			}
			if !strings.HasPrefix(out, fmt.Sprintf("summary requests=%d failed=0 ", requests)) || !strings.HasSuffix(out, fmt.Sprintf(" from=echo-1:%d\n", requests)) {
				t.Errorf("it printed\n%s", out)
			}
		})
	}
}

// Every failure is printed and counted, also that of a kept connection that
// breaks before the answer, and the client ends with an error.
func TestFailures(t *testing.T) {
	refuse := func(w http.ResponseWriter) { http.Error(w, "echo-1 leaves", http.StatusServiceUnavailable) }
	cut := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name string
		flag string
		fail func(http.ResponseWriter)
		want string
	}{
		{"a refusal", "--workers=1", refuse, " connection=new 503 Service Unavailable: \"echo-1 leaves\"\n"},
		{"a cut connection", "--workers=1", cut, " connection=new Post "},
		{"a cut connection that was kept", "--keep-alive=1", cut, " connection=kept Post "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, out, err := play(t, []string{"--workers=0", "--keep-alive=0", "--interval=0", c.flag}, func(w http.ResponseWriter, n int64, stop func()) {
				switch n {
				case 3:
					c.fail(w)
					return
				case 5:
					stop()
				}
				fmt.Fprintln(w, "echo-1")
			})
			if err == nil || err.Error() != "1 of 5 requests failed" {
				t.Errorf("it ended with %v", err)
			}
			if strings.Count(out, "FAILED at=") != 1 || !strings.Contains(out, c.want) {
				t.Errorf("want one failure with %q:\n%s", c.want, out)
			}
		})
	}
}

// What is waited for is the first answer, and it is an error if none came.
func TestAwait(t *testing.T) {
	var asked int64
	_, out, err := play(t, []string{"--await", "--interval=0"}, func(w http.ResponseWriter, n int64, _ func()) {
		asked = n
		if n < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "echo-1")
	})
	if err != nil || asked != 3 || out != "" {
		t.Errorf("it asked %d times, printed %q and ended with %v", asked, out, err)
	}
	_, _, err = play(t, []string{"--await", "--interval=1h"}, func(w http.ResponseWriter, _ int64, stop func()) {
		http.Error(w, "never", http.StatusServiceUnavailable)
		stop()
	})
	if err == nil || !strings.Contains(err.Error(), "never") {
		t.Errorf("without an answer it ended with %v", err)
	}
}

func TestRefusedConnection(t *testing.T) {
	s := newServer(t, nil)
	s.Close()
	ctx, stop := context.WithCancel(t.Context())
	tally := newTally(writer(func(line string) {
		if !strings.HasPrefix(line, "FAILED ") || !strings.Contains(line, "connection refused") {
			t.Errorf("it printed %q", line)
		}
		stop()
	}))
	traffic{url: s.URL, fresh: 1, timeout: time.Minute}.run(ctx, tally)
	if err := tally.verdict(); err == nil {
		t.Error("no request failed")
	}
}

// writer sees each line.
type writer func(line string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// A request that is under way when the client is told to end is answered.
func TestEndCutsNothingOff(t *testing.T) {
	_, out, err := play(t, []string{"--workers=1", "--keep-alive=0"}, func(w http.ResponseWriter, _ int64, stop func()) {
		stop()
		fmt.Fprintln(w, "echo-1")
	})
	if err != nil || !strings.Contains(out, "requests=1 failed=0 ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestSummaryWhenAsked(t *testing.T) {
	lines, out := io.Pipe()
	tally := newTally(out)
	ctx, end := context.WithCancel(t.Context())
	asked, done := make(chan os.Signal), make(chan struct{})
	go func() {
		defer close(done)
		tally.summarize(ctx, time.Hour, asked)
	}()
	scanner := bufio.NewScanner(lines)
	next := func() string {
		scanner.Scan()
		return scanner.Text()
	}

	tally.add(answer{from: "echo-1", took: 3 * time.Millisecond})
	asked <- syscall.SIGUSR1
	if got, want := next(), "summary requests=1 failed=0 longest=3ms from=echo-1:1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tally.add(answer{from: "echo-0", took: 2 * time.Millisecond})
	end()
	if got, want := next(), "summary requests=2 failed=0 longest=3ms from=echo-0:1,echo-1:1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	<-done
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"http://a", "http://b"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "want one address") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestProbe(t *testing.T) {
	metadata := func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "PUT /latest/api/token":
			fmt.Fprint(w, "t-"+r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds"))
		case "GET /latest/meta-data/instance-id":
			if r.Header.Get("X-aws-ec2-metadata-token") != "t-60" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, "i-1")
		}
	}
	release := make(chan struct{})
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
		ok      bool
	}{
		{"a token", metadata, "token: of i-1\n", true},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "403 Forbidden\n", false},
		{"silence", func(http.ResponseWriter, *http.Request) { <-release }, "context deadline exceeded\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, c.handler)
			timeout := "--timeout=1m"
			if c.name == "silence" {
				timeout = "--timeout=50ms"
				defer close(release)
			}
			var out strings.Builder
			err := run(t.Context(), []string{"--probe", timeout, s.URL}, &out)
			if (err == nil) != c.ok || !strings.HasSuffix(out.String(), c.want) || strings.HasPrefix(out.String(), "no token: ") == c.ok {
				t.Errorf("error %v, and it printed %q", err, out.String())
			}
		})
	}
}
