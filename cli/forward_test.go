package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// forwarding is an API server that forwards a port of one pod as kubelets do, for people who may
// not open websockets: a role that has create alone.
func forwarding(t *testing.T, path, to string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != path {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 100)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			streams <- s
			return nil
		})
		if connection == nil {
			t.Error("not upgraded")
			return
		}
		defer func() { _ = connection.Close() }() // the test is over
		failures := map[string]httpstream.Stream{}
		for {
			select {
			case <-connection.CloseChan():
				return
			case s := <-streams:
				id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
				if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
					failures[id] = s
					continue
				}
				if port := s.Headers().Get(corev1.PortHeader); port != "8086" {
					t.Errorf("port %s", port)
				}
				go pipe(t, s, failures[id], to)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func pipe(t *testing.T, data, failures httpstream.Stream, to string) {
	backend, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(backend, data) // either side may hang up
		_ = backend.(*net.TCPConn).CloseWrite()
	})
	both.Go(func() {
		_, _ = io.Copy(data, backend)
		_ = data.Close()
	})
	both.Wait()
	_, _ = backend.Close(), failures.Close()
}

// The leader is reached through the API server, by SPDY where websockets are not allowed.
func TestPlanIsForwarded(t *testing.T) {
	var asked []string
	scaler := leader(t, &asked, nextPlanAnswered)
	server := forwarding(t, "/api/v1/namespaces/windlass-system/pods/s-1/portforward", strings.TrimPrefix(scaler.URL, "http://"))
	for pod, want := range map[string]string{"s-1": "", "s-2": "Role windlass-planner"} {
		client := fake.NewClientset(
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.LeaseScaler}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &pod}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: pod}})
		out := &bytes.Buffer{}
		c := newCLI(t, view.World{}, out)
		c.connect, c.forward = func() (kubernetes.Interface, error) { return client, nil }, c.portForward
		err := c.run(t.Context(), []string{"plan", "--server=" + server.URL, "--set=max-nodes-total=3"})
		if want == "" && (err != nil || !strings.Contains(out.String(), "+ grow web 1→2 for shop/cart\n")) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "context canceled")) {
			t.Errorf("%s: error %v:\n%s", pod, err, out)
		}
	}
	if len(asked) != 1 || asked[0] != "max-nodes-total=3" {
		t.Errorf("asked %q", asked)
	}
}

// An API server that accepts and says nothing is given up.
func TestForwardEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.CloseClientConnections()
	c := newCLI(t, view.World{}, &bytes.Buffer{})
	*c.flags.APIServer = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.portForward(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, 1); err == nil {
		t.Error("no error")
	}
}
