package world

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestReadyIsToldInTheEnd: what the API server did not take is told again, unless
// something newer was told since.
func TestReadyIsToldInTheEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		tell  []bool // one after the other
		fails int
		want  string // statuses that the API server took
	}{
		{"at once", []bool{false, true}, 0, "False True"},
		{"after two failures", []bool{true}, 2, "True"},
		{"the newest alone", []bool{false, true}, 2, "True"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, fails, took := fake.NewClientset(), c.fails, []string{}
				client.PrependReactor("patch", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
					if fails--; fails >= 0 {
						return true, nil, errors.New("connection refused")
					}
					patch := string(a.(k8stesting.PatchAction).GetPatch())
					for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
						if strings.Contains(patch, `"`+string(status)+`"`) {
							took = append(took, string(status))
						}
					}
					return true, &corev1.Pod{}, nil
				})
				k := newPrograms(client, nil, t.TempDir(), slog.New(slog.DiscardHandler))
				p := &programPod{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default"}}}
				for _, ready := range c.tell {
					k.setReady(t.Context(), p, ready)
				}
				k.wait.Wait()
				if got := strings.Join(took, " "); got != c.want {
					t.Errorf("told %q, want %q", got, c.want)
				}
			})
		})
	}
}
