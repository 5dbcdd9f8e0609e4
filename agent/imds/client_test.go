package imds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRead(t *testing.T) {
	s := newService()
	s.listen(t)
	read := NewRead()
	for range 20 {
		answer, err := read(t.Context(), "instance-id")
		if err != nil || answer.Body != "i-1" {
			t.Fatalf("read %q, %v", answer.Body, err)
		}
		if _, err := read(t.Context(), "spot/instance-action"); !errors.Is(err, ErrAbsent) {
			t.Fatalf("404 is %v, want ErrAbsent", err)
		}
	}
	if s.opened != 1 || s.tokens != 2 {
		t.Errorf("%d connections and %d tokens for 40 requests, want one, and a token for each path", s.opened, s.tokens)
	}

	s.change(func() { s.token++ }) // the token has expired before its time
	if answer, err := read(t.Context(), "instance-id"); err != nil || answer.Body != "i-1" {
		t.Errorf("with a new token: %q, %v", answer.Body, err)
	}
}

func TestReadTellsTheDate(t *testing.T) {
	s := newService()
	s.behind = time.Hour
	s.listen(t)
	answer, err := NewRead()(t.Context(), "instance-id")
	if err != nil {
		t.Fatal(err)
	}
	if ago := time.Since(answer.Date); ago < 59*time.Minute || ago > 61*time.Minute {
		t.Errorf("the answer is dated %s ago, want an hour", ago)
	}
}

// An error is an error, and never "no notice"; and never a reason to try
// IMDSv1.
func TestReadFails(t *testing.T) {
	s := newService()
	s.listen(t)
	read := NewRead()
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
		s.change(func() { s.status["instance-id"], s.asked["instance-id"] = status, 0 })
		_, err := read(t.Context(), "instance-id")
		if err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "instance-id") {
			t.Errorf("%d: %v", status, err)
		}
		if n := s.asked["instance-id"]; n != 1 {
			t.Errorf("%d: asked %d times at once, want once", status, n)
		}
	}
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
	if _, err := NewRead()(t.Context(), "instance-id"); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("nobody there: %v", err)
	}
}

// The service redirects to nothing: what another says is not its word.
func TestReadFollowsNoRedirect(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
			fmt.Fprint(w, "token")
		case "/latest/meta-data/instance-id":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(service.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", service.URL)
	if answer, err := NewRead()(t.Context(), "instance-id"); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("read %v, error %v", answer, err)
	}
}

// A service that gives no token is not asked without one, and says nothing about
// notices, whatever its answer.
func TestReadNeverFallsBack(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest} {
		s := newService()
		s.status["token"] = status
		s.listen(t)
		read := NewRead()
		for range 3 {
			if _, err := read(t.Context(), "instance-id"); err == nil || errors.Is(err, ErrAbsent) {
				t.Errorf("%d: %v", status, err)
			}
		}
		if n := s.asked["instance-id"]; n > 0 {
			t.Errorf("%d: asked %d times without a token", status, n)
		}
	}
}

// A body that never ends is not read to its end, whatever its status.
func TestReadIsBounded(t *testing.T) {
	s := newService()
	s.endless = map[string]bool{"instance-id": true}
	s.listen(t)
	_, err := NewRead()(t.Context(), "instance-id")
	if err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "instance-id") || !strings.Contains(err.Error(), "65536 bytes") {
		t.Errorf("an endless body: %v", err)
	}
	s.change(func() {
		if s.sent > 8<<20 { // what connections buffer is beside it
			t.Errorf("%d bytes were sent", s.sent)
		}
	})
}

// A path that does not answer, or hangs in its answer, is given up after two seconds.
func TestReadHasADeadline(t *testing.T) {
	for reason, hang := range map[string]func(*service){
		"no answer":  func(s *service) { s.mute = true },
		"no body":    func(s *service) { s.stuck = map[string]bool{"instance-id": true} },
		"drip, drip": func(s *service) { s.endless = map[string]bool{"instance-id": true}; s.drips = true },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				hang(s)
				began := time.Now()
				_, err := newRead(s.pipes(t))(t.Context(), "instance-id")
				if took := time.Since(began); err == nil || errors.Is(err, ErrAbsent) || took != requestTimeout {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// The metadata service is asked itself, whatever proxy the environment names.
func TestReadGoesThroughNoProxy(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://192.0.2.1:80")
	var dialled []string
	_, err := newRead(func(_ context.Context, _, address string) (net.Conn, error) {
		dialled = append(dialled, address)
		return nil, errors.New("nobody is there")
	})(t.Context(), "instance-id")
	if err == nil || len(dialled) == 0 {
		t.Fatalf("dialled %q: %v", dialled, err)
	}
	for _, address := range dialled {
		if address != "192.0.2.1:80" {
			t.Errorf("dialled %s", address)
		}
	}
}

// TestMain names a proxy before anybody asks the environment for one, which the standard
// library does once.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		os.Setenv(name, "http://192.0.2.2:3128")
	}
	os.Unsetenv("NO_PROXY")
	os.Unsetenv("no_proxy")
	os.Exit(m.Run())
}
