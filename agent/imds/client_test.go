package imds

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// version2 answers as IMDSv2 does: a token by PUT, and nothing without it.
type version2 struct {
	mu     sync.Mutex
	token  int
	reads  int
	tokens int
	opened int
	status int // answered to every read, if set
}

func (v *version2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" {
		v.tokens++
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
		fmt.Fprintf(w, "token-%d", v.token)
		return
	}
	v.reads++
	if r.Header.Get("X-Aws-Ec2-Metadata-Token") != fmt.Sprintf("token-%d", v.token) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if v.status != 0 {
		w.WriteHeader(v.status)
		return
	}
	if r.URL.Path != "/latest/meta-data/instance-id" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprint(w, "i-1")
}

func serve(t *testing.T) *version2 {
	t.Helper()
	v := &version2{}
	server := httptest.NewUnstartedServer(v)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			v.mu.Lock()
			v.opened++
			v.mu.Unlock()
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	return v
}

func TestRead(t *testing.T) {
	v := serve(t)
	read := NewRead()
	for range 20 {
		body, err := read(t.Context(), "instance-id")
		if err != nil || body != "i-1" {
			t.Fatalf("read %q, %v", body, err)
		}
		if _, err := read(t.Context(), "spot/instance-action"); !errors.Is(err, ErrAbsent) {
			t.Fatalf("404 is %v, want ErrAbsent", err)
		}
	}
	if v.opened != 1 || v.tokens != 1 {
		t.Errorf("%d connections and %d tokens for 40 requests, want one of each", v.opened, v.tokens)
	}

	v.mu.Lock()
	v.token++ // the token has expired before its time
	v.mu.Unlock()
	if body, err := read(t.Context(), "instance-id"); err != nil || body != "i-1" {
		t.Errorf("with a new token: %q, %v", body, err)
	}
}

// An error is an error, and never "no notice"; and never a reason to try
// IMDSv1.
func TestReadFails(t *testing.T) {
	v := serve(t)
	read := NewRead()
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
		v.status = status
		_, err := read(t.Context(), "instance-id")
		if err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "instance-id") {
			t.Errorf("%d: %v", status, err)
		}
	}
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
	if _, err := NewRead()(t.Context(), "instance-id"); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("nobody there: %v", err)
	}
}

// A service that gives no token is not asked without one, and says nothing about
// notices, whatever its answer.
func TestReadNeverFallsBack(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut {
				asked++
			}
			w.WriteHeader(status)
		}))
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
		read := NewRead()
		for range 3 {
			if _, err := read(t.Context(), "instance-id"); err == nil || errors.Is(err, ErrAbsent) {
				t.Errorf("%d: %v", status, err)
			}
		}
		if asked > 0 {
			t.Errorf("%d: asked %d times without a token", status, asked)
		}
		server.Close()
	}
}
