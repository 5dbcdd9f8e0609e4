package imds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// service answers as IMDSv2 does: a token by PUT, and nothing without it.
type service struct {
	mu      sync.Mutex
	bodies  map[string]string // by path below meta-data; others are not found
	status  map[string]int    // answered instead, by path; "" stands for all
	mute    bool              // does not answer at all
	stuck   map[string]bool   // paths that hang after their headers
	drips   bool              // slowly
	endless map[string]bool   // paths whose body never ends
	behind  time.Duration     // its clock is behind ours by that much
	token   int               // the number of the token that is valid

	tokens int            // how many were given
	asked  map[string]int // how often, by path
	at     []time.Time    // of every request, those for tokens too
	opened int            // connections
	closed int            // of those
	sent   int            // bytes of endless bodies

	flowing sync.WaitGroup // requests that may not end
}

func newService() *service {
	return &service{
		bodies: map[string]string{pathInstanceID: "i-1", pathLifeCycle: "spot"},
		status: map[string]int{},
		asked:  map[string]int{},
	}
}

// change changes what the service answers, between two requests.
func (s *service) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
}

// put gives a path a body; an empty one takes it away.
func (s *service) put(path, body string) {
	s.change(func() {
		s.bodies[path] = body
		if body == "" {
			delete(s.bodies, path)
		}
	})
}

// countOf a path is how often it was asked for.
func (s *service) countOf(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// requests that came so far.
func (s *service) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.silent() {
		<-r.Context().Done()
		return
	}
	if s.flows(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
	w.Header().Set("Date", time.Now().Add(-s.behind).UTC().Format(http.TimeFormat))
	if r.URL.Path == "/latest/api/token" {
		s.giveToken(w, r)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")
	s.asked[path]++
	body, found := s.bodies[path]
	switch {
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != fmt.Sprintf("token-%d", s.token):
		w.WriteHeader(http.StatusUnauthorized)
	case s.status[path]+s.status[""] != 0:
		w.WriteHeader(max(s.status[path], s.status[""]))
	case !found:
		w.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprint(w, body)
	}
}

// flows answers a path whose body does not end.
func (s *service) flows(w http.ResponseWriter, r *http.Request) bool {
	s.flowing.Add(1)
	defer s.flowing.Done()
	path := strings.TrimPrefix(r.URL.Path, "/latest/meta-data/")
	s.mu.Lock()
	stuck, endless := s.stuck[path], s.endless[path]
	s.mu.Unlock()
	if stuck {
		w.(http.Flusher).Flush() // the headers
		<-r.Context().Done()
	}
	for endless {
		if s.drips {
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond): // of virtual time
			}
		}
		n, err := w.Write(make([]byte, 1024))
		if s.change(func() { s.sent += n }); err != nil {
			break
		}
	}
	return stuck || endless
}

func (s *service) silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mute
}

func (s *service) giveToken(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if status := s.status["token"]; status != 0 {
		w.WriteHeader(status)
		return
	}
	s.tokens++
	w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
	fmt.Fprintf(w, "token-%d", s.token)
}

func (s *service) count(_ net.Conn, state http.ConnState) {
	s.change(func() {
		switch state {
		case http.StateNew:
			s.opened++
		case http.StateClosed:
			s.closed++
		}
	})
}

// listen serves on a port of this machine.
func (s *service) listen(t *testing.T) {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnState = s.count
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
}

// pipes serves in memory, so that it can be in a bubble of virtual time, and
// returns the way to it.
func (s *service) pipes(t *testing.T) dial {
	t.Helper()
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s, ConnState: s.count}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving: %v", err)
		}
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
		s.flowing.Wait()
	})
	return p.dial
}

// pipes is a listener of connections in memory.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }
