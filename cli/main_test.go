package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
)

// TestErrorsCommandNoTerminal: an annotation, which a kubelet may write on its Node, stands in an
// error; it clears no screen, and begins no line of its own.
func TestErrorsCommandNoTerminal(t *testing.T) {
	if server := os.Getenv("WINDLASS_TEST_SERVER"); server != "" { // as a program
		os.Args = []string{name, "drain", "a", "b", "--reason=other", "--server=" + server}
		main()
		return
	}
	evil := "ann\x1b]0;owned\x07\x1b[2J\nkubectl-windlass: all is well\u009b2J\u202e"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/"):
			answer = corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: r.URL.Path[len("/api/v1/nodes/"):], Annotations: map[string]string{
				contract.AnnotationDrainRequest: contract.Request{ID: "x", Kind: contract.KindRequest, By: evil, Reason: evil}.String()}}}
		case strings.HasSuffix(r.URL.Path, "/poddisruptionbudgets"):
			answer = policyv1.PodDisruptionBudgetList{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"}}
		case r.URL.Path == "/api/v1/pods":
			answer = corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	program := exec.Command(os.Args[0], "-test.run=^TestErrorsCommandNoTerminal$")
	program.Env = append(os.Environ(), "WINDLASS_TEST_SERVER="+server.URL, "KUBECONFIG=/dev/null")
	var text strings.Builder
	program.Stderr = &text
	if exit := (&exec.ExitError{}); !errors.As(program.Run(), &exit) || exit.ExitCode() != 1 {
		t.Fatalf("status %v, it says %q", exit, text.String())
	}
	if lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "node a is being drained already") || !strings.Contains(lines[1], "node b is being drained already") {
		t.Errorf("%d lines: %q", len(lines), text.String())
	}
	for _, r := range text.String() {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Fatalf("%U reaches the terminal: %q", r, text.String())
		}
	}
}

// TestPrintable: errors stand one below the other, and a sentence about several is one.
func TestPrintable(t *testing.T) {
	a, b := errors.New("a\nb"), statusError{1, errors.New("c")}
	for want, err := range map[string]error{
		"a b\nc":      errors.Join(a, nil, b),
		"a b\nc\na b": errors.Join(errors.Join(a, b), a),
		"no: a b, c":  fmt.Errorf("no: %w, %w", a, b),
		"no: a b c":   fmt.Errorf("no: %w", errors.Join(a, b)),
	} {
		if got := printable(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
