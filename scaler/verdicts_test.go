package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// leader is a scaler that leads and has a plan of so many pods.
func leader(pods int) *scaler {
	sc := newScaler(settings{policy: policy.DefaultPolicy()}, fake.NewClientset(), nil, nil, awsCloud{&asg.Account{}}, newMetrics(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	sc.leading.Store(true)
	var p plan.Plan
	for i := range pods {
		p.Verdicts = append(p.Verdicts, &verdict.Verdict{Of: verdict.OfPod, Name: fmt.Sprintf("default/a-pod-of-many-%d", i)})
	}
	sc.tell(evaluation{snapshot: fleet.Snapshot{Now: time.Unix(1, 0)}, plan: p})
	return sc
}

// asker asks as kubectl port-forward does.
func asker(path string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.RemoteAddr, request.Host = "127.0.0.1:9", "localhost:8086"
	return request
}

// Both paths are for programs of this host that name it, not for pages of a browser there, by
// whatever name those ask.
func TestPagesAreNotAnswered(t *testing.T) {
	for header, want := range map[string]int{
		"":                               http.StatusOK,
		"Sec-Fetch-Site: none":           http.StatusOK, // an address that a person typed
		"Sec-Fetch-Site: same-origin":    http.StatusOK,
		"Sec-Fetch-Site: cross-site":     http.StatusForbidden,
		"Sec-Fetch-Site: same-site":      http.StatusForbidden, // another port of localhost
		"Origin: https://evil.example":   http.StatusForbidden,
		"Origin: null":                   http.StatusForbidden,
		"Origin: http://127.0.0.1:8086":  http.StatusForbidden,
		"Origin: http://localhost:8087/": http.StatusForbidden,
	} {
		for _, path := range []string{"/", "/plan"} {
			sc := leader(1)
			go func() {
				select {
				case answer := <-sc.asked:
					answer <- seen{}
				case <-t.Context().Done():
				}
			}()
			request, response := asker(path), httptest.NewRecorder()
			if name, value, ok := strings.Cut(header, ": "); ok {
				request.Header.Set(name, value)
			}
			if sc.verdictsHandler().ServeHTTP(response, request); response.Code != want {
				t.Errorf("%s with %q: %d %.100s, want %d", path, header, response.Code, response.Body, want)
			}
		}
	}
}

// nowhere takes answers as a connection does that is read.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header          { return n.header }
func (nowhere) WriteHeader(int)                {}
func (nowhere) Write(text []byte) (int, error) { return len(text), nil }

// However many read a plan, it is encoded once.
func TestPlanIsEncodedOnce(t *testing.T) {
	sc := leader(5_000)
	handler := sc.verdictsHandler()
	read := func() uint64 {
		var before, after runtime.MemStats
		request := asker("/")
		runtime.ReadMemStats(&before)
		handler.ServeHTTP(nowhere{http.Header{}}, request)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if first := read(); first < 256<<10 {
		t.Fatalf("the first answer took %d bytes", first)
	}
	if second := read(); second > 32<<10 {
		t.Errorf("the second answer took %d bytes", second)
	}
	before := httptest.NewRecorder()
	handler.ServeHTTP(before, asker("/"))
	sc.tell(evaluation{plan: plan.Plan{Verdicts: []*verdict.Verdict{{Of: verdict.OfPod, Name: "default/new"}}}})
	after := httptest.NewRecorder()
	if handler.ServeHTTP(after, asker("/")); strings.Contains(before.Body.String(), "default/new") || !strings.Contains(after.Body.String(), "default/new") {
		t.Errorf("after another evaluation: %.200s", after.Body)
	}
}

// pipes is a listener whose connections are in virtual time, and come from loopback.
type pipes struct {
	made chan net.Conn
	end  func()
	over <-chan struct{}
}

func newPipes() *pipes {
	over := make(chan struct{})
	return &pipes{make(chan net.Conn), sync.OnceFunc(func() { close(over) }), over}
}

type local4 struct{ net.Conn }

func (local4) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return local4{c}, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.end(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8086} }

// ask sends a request, and reads no more than the answer's beginning.
func (p *pipes) ask(t *testing.T, path string) *http.Response {
	t.Helper()
	ours, theirs := net.Pipe()
	p.made <- theirs
	t.Cleanup(func() { _ = ours.Close() })
	if _, err := fmt.Fprintf(ours, "GET %s HTTP/1.1\r\nHost: localhost:8086\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Callers that do not read keep few places, and none for long.
func TestSlowReadersLockNobodyOut(t *testing.T) {
	for _, path := range []string{"/", "/plan"} {
		t.Run(path, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { slowReaders(t, path) }) })
	}
}

func slowReaders(t *testing.T, path string) {
	sc := leader(5_000)
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() {
		s := fleet.Snapshot{Faults: []string{strings.Repeat("long ", 100_000)}}
		for {
			select {
			case answer := <-sc.asked:
				answer <- seen{snapshot: s}
			case <-ctx.Done():
				return
			}
		}
	})
	listener := newPipes()
	defer sc.serve(ctx, &parts, listener, sc.verdictsHandler())()
	// patient asks again when it is told to.
	patient := func() *http.Response {
		for {
			response := listener.ask(t, path)
			seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
			if response.StatusCode != http.StatusTooManyRequests {
				return response
			}
			time.Sleep(time.Duration(seconds) * time.Second)
		}
	}
	began := time.Now()
	first := patient()
	second := patient()
	if took := time.Since(began); second.StatusCode != http.StatusOK || took > answerTime/2 {
		t.Errorf("%s: beside one that does not read: %s after %s", path, second.Status, took)
	}
	if text, err := io.ReadAll(second.Body); err != nil || len(text) < 256<<10 {
		t.Errorf("%s: the second answer has %d bytes, error %v", path, len(text), err)
	}
	time.Sleep(answerTime + time.Second)
	if text, err := io.ReadAll(first.Body); err == nil {
		t.Errorf("%s: all %d bytes of an answer were there for one that did not read", path, len(text))
	}
	answered := 0
	for range 50 {
		if listener.ask(t, path).StatusCode == http.StatusOK {
			answered++
		}
	}
	if answered > 8 {
		t.Errorf("%s: %d have an answer that they do not read", path, answered)
	}
	if last := patient(); last.StatusCode != http.StatusOK {
		t.Errorf("%s: at last: %s", path, last.Status)
	}
}

// Callers that hang up as soon as the loop has heard them do not keep it from its work.
func TestHangingUpCostsTheLoopNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := leader(1)
		handler := sc.verdictsHandler()
		hangUp := func() {}
		taken := 0
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		parts.Go(func() {
			for {
				select {
				case answer := <-sc.asked:
					hangUp()
					time.Sleep(time.Second) // for the snapshot
					taken++
					answer <- seen{}
				case <-ctx.Done():
					return
				}
			}
		})
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
			asking, stop := context.WithCancel(ctx)
			hangUp = stop
			handler.ServeHTTP(httptest.NewRecorder(), asker("/plan").WithContext(asking))
			stop()
		}
		cancel()
		parts.Wait()
		if taken < 10 || taken > 30 {
			t.Errorf("%d s of a minute went into snapshots", taken)
		}
	})
}
