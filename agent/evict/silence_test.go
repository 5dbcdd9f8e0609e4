package evict

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/agent/drain"
)

// relay passes TCP connections on to a server. Those that are silenced stay open
// and carry nothing any more, as when a load balancer has lost the machine behind.
type relay struct {
	net.Listener

	mu     sync.Mutex
	silent chan struct{} // closed to silence the connections that there are
	conns  []net.Conn
}

func newRelay(t *testing.T, server string) *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, silent: make(chan struct{})}
	t.Cleanup(func() {
		listener.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.conns {
			c.Close()
		}
	})
	go func() {
		for {
			here, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			r.join(here, there)
		}
	}()
	return r
}

func (r *relay) join(a, b net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, a, b)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		go pass(way[0], way[1], r.silent)
	}
}

// pass copies until the connection is silenced, and reads on without a word then.
func pass(from io.Reader, to io.Writer, silent <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-silent:
		default:
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.silent)
	r.silent = make(chan struct{})
}

// A connection that has fallen silent is given up after the time that the
// environment says, and what hung on it goes on over another one.
func TestSilence(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	watches := make(chan string)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			write(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		node := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "5"},
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": node}); err != nil {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
		select {
		case watches <- r.URL.Query().Get("resourceVersion"):
		case <-r.Context().Done():
		}
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	between := newRelay(t, server.Listener.Addr().String())
	client, err := New(&rest.Config{
		Host: "https://" + between.Addr().String(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}, "n")
	if err != nil {
		t.Fatal(err)
	}

	heard := make(chan Metadata, 1)
	watching(t, func(ctx context.Context, _ *Pods) { client.WatchNode(ctx, quiet, func(m Metadata) { heard <- m }) })
	<-watches
	<-heard
	between.silence()
	began := time.Now()
	if version := <-watches; version != "5" {
		t.Errorf("resumed at %q", version)
	}
	answer := client.Evict(t.Context(), drain.Evict{Namespace: "shop", Name: "web-1", UID: "u"})
	if answer.Outcome != drain.Accepted {
		t.Errorf("answer %+v", answer)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
