package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// date answers every request with a date of its own, after some time.
type date struct {
	off, after time.Duration
}

func (d date) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(d.after)
	answer := httptest.NewRecorder()
	answer.Header().Set("Date", time.Now().Add(d.off).UTC().Format(http.TimeFormat))
	return answer.Result(), nil
}

func TestClockGoesByTheAPIServers(t *testing.T) {
	for _, tc := range []struct {
		name string
		date date
		want time.Duration // from the node's own clock
	}{
		{"a clock an hour ahead is set right", date{off: -time.Hour}, -time.Hour},
		{"a clock an hour behind, too", date{off: time.Hour}, time.Hour},
		{"a few seconds are what answers take", date{off: 4 * time.Second}, 0},
		{"an answer that hung tells nothing", date{off: time.Hour, after: 2 * time.Second}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				config := &rest.Config{Host: "http://127.0.0.1"}
				clock.Follow(config)
				transport := config.WrapTransport(tc.date)
				request := httptest.NewRequest(http.MethodGet, "/", nil)
				answer, err := transport.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				if err := answer.Body.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if off := clock.Now().Sub(time.Now().Add(tc.want)); off > time.Second || off < -time.Second {
					t.Errorf("the clock is %s off", off)
				}
			})
		})
	}
}

// A date that is no date changes nothing.
func TestClockIgnoresWhatIsNoDate(t *testing.T) {
	clock := NewClock()
	answer := httptest.NewRecorder()
	answer.Header().Set("Date", "yesterday")
	listener := listener{answered{answer.Result()}, clock}
	if _, err := listener.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
		t.Fatal(err)
	}
	if off := time.Since(clock.Now()); off > time.Second || off < -time.Second {
		t.Errorf("the clock is %s off", off)
	}
}

type answered struct{ *http.Response }

func (a answered) RoundTrip(*http.Request) (*http.Response, error) { return a.Response, nil }
