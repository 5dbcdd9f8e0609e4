package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One part's life: each row goes on from the one before.
func TestPartOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var health Health
		check := health.Add(Part{Name: "loop", Within: time.Minute, Patience: 10 * time.Second})
		for _, step := range []struct {
			name  string
			after time.Duration
			do    func()
			want  string
		}{
			{"patience at the start", 0, func() {}, "loop: ok, started 0s ago: no success yet"},
			{"no success in time", 10 * time.Second, func() {}, "loop: UNHEALTHY, started 10s ago: no success yet"},
			{"first success", 0, check.OK, "loop: ok, last success 0s ago"},
			{"a failure is forgiven", 5 * time.Second, func() { check.Fail(errors.New("timed out")) }, "loop: ok, last success 5s ago: timed out"},
			{"but not for ever", 5 * time.Second, func() {}, "loop: UNHEALTHY, last success 10s ago: timed out"},
			{"well again", 0, func() { check.Report(nil) }, "loop: ok, last success 0s ago"},
			{"at the limit of silence", time.Minute, func() {}, "loop: ok, last success 1m0s ago"},
			{"silent for too long", time.Second, func() {}, "loop: UNHEALTHY, last success 1m1s ago: silent for longer than 1m0s"},
		} {
			time.Sleep(step.after)
			step.do()
			diagnosis := health.Diagnose()[0]
			if got := diagnosis.String(); got != step.want {
				t.Errorf("%s:\n got %q\nwant %q", step.name, got, step.want)
			}
			if health.Well() != diagnosis.Well {
				t.Errorf("%s: Well() = %v, part is %v", step.name, health.Well(), diagnosis.Well)
			}
		}
	})
}

// An API server that is away is a reason to complain, not to be restarted.
func TestOnlyVitalPartsKill(t *testing.T) {
	var health Health
	mux := http.NewServeMux()
	health.Register(mux)
	api := health.Add(Part{Name: "api-server"})
	loop := health.Add(Part{Name: "loop", Vital: true})
	loop.OK()
	api.Fail(errors.New("connection refused"))

	status, body := get(t, mux, HealthPath)
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "api-server: UNHEALTHY") || !strings.Contains(body, "connection refused") {
		t.Errorf("%s: %d %s", HealthPath, status, body)
	}
	if status, body := get(t, mux, LivePath); status != http.StatusOK {
		t.Errorf("%s: %d %s", LivePath, status, body)
	}

	loop.Fail(errors.New("stuck"))
	if status, _ := get(t, mux, LivePath); status != http.StatusServiceUnavailable {
		t.Errorf("%s: %d although a vital part failed", LivePath, status)
	}
}

func get(t *testing.T, handler http.Handler, path string) (int, string) {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
	return response.Code, response.Body.String()
}
