package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
)

// TestHands: what top writes is what the commands write, and undo takes all of it off.
func TestHands(t *testing.T) {
	c := newCLI(t, view.World{Now: time.Now(), Nodes: named("a")}, &bytes.Buffer{})
	r, err := c.reader()
	if err != nil {
		t.Fatal(err)
	}
	h := hands{t.Context(), r, c.now}
	node := func() map[string]string {
		n, err := r.client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return n.Annotations
	}
	for _, step := range []struct {
		do            func(string) (string, error)
		said          string
		drained, held bool
	}{
		{h.Undo, "nothing to undo", false, false},
		{h.Hold, "node a held", false, true},
		{h.Drain, "the drain of node a is asked for", true, true},
		{h.Undo, "node a is not to be drained any more, not held", false, false},
	} {
		said, err := step.do("a")
		_, drained := node()[contract.AnnotationDrainRequest]
		_, held := node()[contract.AnnotationHold]
		if err != nil || !strings.Contains(said, step.said) || drained != step.drained || held != step.held {
			t.Errorf("said %q, error %v, drained %v, held %v; want %+v", said, err, drained, held, step)
		}
	}
	if _, err := h.Drain("a"); err != nil {
		t.Fatal(err)
	}
	if request, err := contract.ParseRequest(node()[contract.AnnotationDrainRequest]); err != nil || request.Reason != "by kubectl windlass top" {
		t.Errorf("those who look for who drains read %q, error %v", request.Reason, err)
	}
	scaledDown := named("a")
	scaledDown[0].Annotations = map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: contract.ScaleDownID("i-1", time.Unix(1, 0)), Kind: contract.KindScaleDown}.String()}
	c = newCLI(t, view.World{Nodes: []corev1.Node{scaledDown[0]}}, &bytes.Buffer{})
	if r, err = c.reader(); err != nil {
		t.Fatal(err)
	}
	if _, err := (hands{t.Context(), r, c.now}).Undo("a"); err == nil || !strings.Contains(err.Error(), "hold a cancels that") {
		t.Errorf("error %v", err)
	}
	if _, err := (hands{t.Context(), r, c.now}).Drain("gone"); err == nil || !strings.Contains(err.Error(), "node gone") {
		t.Errorf("error %v", err)
	}
}

// TestLoginPluginsHaveNoTerminal: while the view is up, a login plugin that client-go calls reads no
// keystroke of it and writes nothing over it; what it wrote is printed afterwards.
func TestLoginPluginsHaveNoTerminal(t *testing.T) {
	status := objects(t, view.World{Now: time.Now()})[0].(*corev1.ConfigMap)
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	watched := make(chan struct{})
	var once sync.Once
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/configmaps/"+contract.ConfigMapStatus):
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(status); err != nil {
				t.Error(err)
			}
			return
		case r.URL.Path == "/api/v1/nodes":
			once.Do(func() { close(watched) })
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	plugin := `echo "LOUD $KUBERNETES_EXEC_INFO" >&2; echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"2020-01-01T00:00:00Z"}}'`
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: server.URL, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{"u": {Exec: &api.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", plugin}, InteractiveMode: api.IfAvailableExecInteractiveMode}}},
		Contexts:       map[string]*api.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	person, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	wasIn, wasErr := os.Stdin, os.Stderr
	os.Stdin, os.Stderr = terminal, terminal
	defer func() { os.Stdin, os.Stderr = wasIn, wasErr }()
	c := &cli{IOStreams: genericiooptions.IOStreams{In: terminal, Out: terminal, ErrOut: terminal}, flags: genericclioptions.NewConfigFlags(true), now: time.Now}
	c.connect = c.client
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(c.run(context.Background(), []string{"top", "--kubeconfig=" + file}), terminal.Close())
	}()
	var all strings.Builder
	buffer := make([]byte, 4096)
	for left := false; ; {
		n, err := person.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			break // nobody has it open any more
		}
		if !left && strings.Contains(all.String(), "\x1b[?1049h") {
			left = true
			go func() {
				<-watched
				if _, err := person.WriteString("q"); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_, up, _ := strings.Cut(all.String(), "\x1b[?1049h")
	up, after, _ := strings.Cut(up, "\x1b[?1049l")
	if strings.Contains(up, "LOUD") {
		t.Errorf("the plugin wrote over the view: %q", up)
	}
	if !strings.Contains(after, "LOUD") || strings.Contains(after, `"interactive":true`) {
		t.Errorf("after the view: %q", after)
	}
}
