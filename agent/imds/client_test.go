package imds

import (
	"errors"
	"net/http"
	"strings"
	"testing"
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
	if s.opened != 1 || s.tokens != 1 {
		t.Errorf("%d connections and %d tokens for 40 requests, want one of each", s.opened, s.tokens)
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
