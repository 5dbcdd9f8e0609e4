package metadata

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Mode is how the service behaves as a whole.
type Mode string

// Modes of a service.
const (
	On      Mode = "on"
	Off     Mode = "off"     // the HTTP endpoint is disabled: 403 for everything
	Hung    Mode = "hung"    // requests are taken and never answered
	Refused Mode = "refused" // no connection is taken
	Failing Mode = "failing" // 500 for everything
)

// Answer replaces what the service answers for a path. NOW in its body stands for the moment Ahead seconds after the answer, so that a notice moves as
// amazon-ec2-metadata-mock's does.
type Answer struct {
	Status int    `json:"status,omitempty"` // 0 means 200
	Body   string `json:"body,omitempty"`
	Ahead  int    `json:"ahead,omitempty"`
}

func (a Answer) body() string {
	return strings.ReplaceAll(a.Body, "NOW", stamp(time.Now().Add(time.Duration(a.Ahead)*time.Second)))
}

// Request is a request as it was answered.
type Request struct {
	Method string
	Path   string
	Status int // 0: not answered
	At     time.Time
}

// Service is the metadata service of one instance.
type Service struct {
	addr string
	view func() (View, bool)
	note func(Request)

	mu        sync.Mutex
	mode      Mode
	server    *http.Server
	changed   chan struct{} // closed when the mode changes: hung requests end
	tokens    map[string]time.Time
	overrides map[string]Answer
}

// Listen starts a service on addr. view is asked at each request and tells, besides, whether the instance runs; note learns of each request.
func Listen(addr string, mode Mode, view func() (View, bool), note func(Request)) (*Service, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening for the metadata service: %w", err)
	}
	s := &Service{
		addr: l.Addr().String(), view: view, note: note, mode: mode,
		changed: make(chan struct{}), tokens: map[string]time.Time{}, overrides: map[string]Answer{},
	}
	s.serve(l)
	return s, nil
}

// Addr is the host:port of the service.
func (s *Service) Addr() string { return s.addr }

func (s *Service) serve(l net.Listener) {
	s.server = &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: 10 * time.Second, ConnContext: withHops}
	server := s.server
	go func() { _ = server.Serve(l) }() // It ends when the server is closed.
}

// Close ends the service and every connection to it.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

func (s *Service) stop() error {
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.server = nil
	return err
}

// SetMode changes how the service behaves.
func (s *Service) SetMode(mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch mode {
	case On, Off, Hung, Failing, Refused:
	default:
		return fmt.Errorf("mode %q of a metadata service: want on, off, hung, refused or failing", mode)
	}
	s.mode = mode
	close(s.changed)
	s.changed = make(chan struct{})
	if mode == Refused {
		return s.stop()
	}
	if s.server != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listening again for the metadata service: %w", err)
	}
	s.serve(l)
	return nil
}

// Mode is how the service behaves now.
func (s *Service) Mode() Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// Override makes the service answer a path, such as meta-data/spot/instance-action, in another way; nil takes that back. A directory can be hidden with all
// below it by a 404: the categories of an instance can be fixed at its launch.
func (s *Service) Override(path string, a *Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path = strings.Trim(path, "/")
	if a == nil {
		delete(s.overrides, path)
		return
	}
	s.overrides[path] = *a
}

// ForgetTokens makes every token invalid, as a restart of the service would.
func (s *Service) ForgetTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = map[string]time.Time{}
}

func (s *Service) handle(w http.ResponseWriter, r *http.Request) {
	hopsOf(r).unlimited() // whatever the connection's last answer had
	status := s.answer(w, r)
	s.note(Request{Method: r.Method, Path: r.URL.Path, Status: status, At: time.Now()})
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
}

// answer answers and tells the status, 0 where it does not.
func (s *Service) answer(w http.ResponseWriter, r *http.Request) int {
	s.mu.Lock()
	mode, changed := s.mode, s.changed
	s.mu.Unlock()
	view, runs := s.view()
	switch {
	case !runs:
		return 0
	case mode == Hung:
		hang(r.Context(), changed)
		return 0
	case mode == Failing:
		return fail(w, http.StatusInternalServerError)
	case mode == Off || view.Notices.NoIMDS:
		return fail(w, http.StatusForbidden)
	case r.Method == http.MethodPut:
		return s.putToken(w, r, view.Notices.HopLimit)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return fail(w, http.StatusMethodNotAllowed)
	case !s.valid(r.Header.Get(tokenHeader)):
		return fail(w, http.StatusUnauthorized)
	}
	return s.get(w, r, view)
}

func hang(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

const (
	tokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	maxTTL      = 21600
	// HopsHeader tells the fake how many hops a client on the same machine would be away, 1 if missing: the answer to a PUT gets lost behind the hop
	// limit. A client that is really behind a router needs no such word.
	HopsHeader = "X-Fakeaws-Hops"
)

// putToken answers PUT /latest/api/token.
func (s *Service) putToken(w http.ResponseWriter, r *http.Request, hopLimit int) int {
	if r.URL.Path != "/latest/api/token" || r.Header.Get("X-Forwarded-For") != "" {
		return fail(w, http.StatusForbidden)
	}
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	if err != nil || ttl < 1 || ttl > maxTTL {
		return fail(w, http.StatusBadRequest)
	}
	if hops, err := strconv.Atoi(r.Header.Get(HopsHeader)); err == nil && hops > hopLimit {
		hang(r.Context(), nil)
		return 0
	}
	token := rand.Text()
	s.mu.Lock()
	s.sweep()
	s.tokens[token] = time.Now().Add(time.Duration(ttl) * time.Second)
	s.mu.Unlock()
	hopsOf(r).limit(hopLimit)
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	return write(w, http.StatusOK, token)
}

// sweep forgets tokens that have run out.
func (s *Service) sweep() {
	now := time.Now()
	for token, until := range s.tokens {
		if now.After(until) {
			delete(s.tokens, token)
		}
	}
}

func (s *Service) valid(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.tokens[token]
	return ok && time.Now().Before(until)
}

var version = regexp.MustCompile(`^/(latest|1\.0|[0-9]{4}-[0-9]{2}-[0-9]{2})/?`)

func (s *Service) get(w http.ResponseWriter, r *http.Request, view View) int {
	prefix := version.FindString(r.URL.Path)
	if prefix == "" {
		if r.URL.Path == "/" {
			return write(w, http.StatusOK, "latest")
		}
		return fail(w, http.StatusNotFound)
	}
	path := strings.TrimPrefix(r.URL.Path, prefix)
	if a, ok := s.override(strings.Trim(path, "/")); ok {
		return write(w, a.Status, a.body())
	}
	tree := view.Tree()
	if body, ok := tree[strings.TrimSuffix(path, "/")]; ok {
		return write(w, http.StatusOK, body)
	}
	if names := list(tree, path); names != "" {
		return write(w, http.StatusOK, names)
	}
	return fail(w, http.StatusNotFound)
}

// override finds the answer set for a path or, if it is not a success, for a directory above it.
func (s *Service) override(path string) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for dir := path; ; {
		a, ok := s.overrides[dir]
		if a.Status == 0 {
			a.Status = http.StatusOK
		}
		if ok && (dir == path || a.Status >= 300) {
			return a, true
		}
		cut := strings.LastIndex(dir, "/")
		if cut < 0 {
			return Answer{}, false
		}
		dir = dir[:cut]
	}
}

func write(w http.ResponseWriter, status int, body string) int {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Server", "EC2ws")
	w.WriteHeader(status)
	if _, err := w.Write([]byte(body)); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
		return 0 // The client has gone.
	}
	return status
}

// fail answers with the page that AWS sends with its errors.
func fail(w http.ResponseWriter, status int) int {
	text := fmt.Sprintf("%d - %s", status, http.StatusText(status))
	return write(w, status, `<?xml version="1.0" encoding="iso-8859-1"?><html><head><title>`+text+`</title></head><body><h1>`+text+`</h1></body></html>`)
}
