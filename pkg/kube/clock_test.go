package kube

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// dated answers a request with a date of its own, after some time.
type dated struct {
	off, after time.Duration
	status     int // 200 if zero
}

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(d.after)
	answer := httptest.NewRecorder()
	answer.Header().Set("Date", time.Now().Add(d.off).UTC().Format(http.TimeFormat))
	if d.status != 0 {
		answer.WriteHeader(d.status)
	}
	return answer.Result(), nil
}

func TestClockGoesByTheAPIServers(t *testing.T) {
	const hour, right = time.Hour, 0
	ahead := dated{off: hour}
	for _, tc := range []struct {
		name    string
		answers []dated       // one each twenty seconds
		want    time.Duration // from the node's own clock
	}{
		{"a clock an hour ahead is set right", []dated{{off: -hour}}, -hour},
		{"a clock an hour behind, too", []dated{ahead}, hour},
		{"a few seconds are what answers take", []dated{{off: 4 * time.Second}}, right},
		{"an answer that hung tells nothing", []dated{{off: hour, after: 2 * time.Second}}, right},
		{"a failure tells nothing", []dated{{off: hour, status: http.StatusBadGateway}}, right},
		{"one wrong answer of many moves nothing", []dated{{}, ahead, {}, {}}, right},
		{"nor do those of less than a minute", []dated{{}, ahead, ahead, ahead}, right},
		{"those of a minute do", []dated{{}, ahead, ahead, ahead, ahead}, hour},
		{"back as well", []dated{{}, {off: -hour}, {off: -hour}, {off: -hour}, {off: -hour}}, -hour},
		{"unless one agrees with the clock", []dated{{}, ahead, ahead, {}, ahead, ahead, ahead}, right},
		{"or they do not agree", []dated{{}, ahead, ahead, {off: 2 * hour}, ahead, ahead}, right},
		{"a wrong one that came first is mended", []dated{ahead, {}, {}, {}, {}}, right},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				for _, answer := range tc.answers {
					config := &rest.Config{Host: "http://127.0.0.1"}
					clock.Follow(config)
					heard, err := config.WrapTransport(answer).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
					if err != nil {
						t.Fatal(err)
					}
					if err := heard.Body.Close(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(20 * time.Second)
				}
				if off := clock.Now().Sub(time.Now().Add(tc.want)); off.Abs() > time.Second {
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
