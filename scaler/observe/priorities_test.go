package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
)

// watchPriorities reads the ConfigMap of namespace us until the test ends, and
// counts the news.
func watchPriorities(t *testing.T, client *fake.Clientset) (*prioritiesWatch, *atomic.Int32) {
	t.Helper()
	news := &atomic.Int32{}
	w := &prioritiesWatch{
		maps: client.CoreV1().ConfigMaps("us"), report: func(error) {}, changed: func() { news.Add(1) },
		refused: &refusal{what: "read it", without: "nothing", logger: slog.New(slog.DiscardHandler), changed: func() {}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go w.run(ctx)
	synctest.Wait()
	return w, news
}

// What people write is known within one reading, and a ConfigMap that goes is
// forgotten; what stays as it was is no news.
func TestPrioritiesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		w, news := watchPriorities(t, client)
		if text, known := w.latest(); text != nil || !known {
			t.Fatalf("without a ConfigMap: %v, known %t", text, known)
		}
		maps := client.CoreV1().ConfigMaps("us")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: contract.ConfigMapPriorities}, Data: map[string]string{contract.PrioritiesKey: "10: [a]"}}
		if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * prioritiesEvery)
		if text, _ := w.latest(); text == nil || *text != "10: [a]" || news.Load() != 2 {
			t.Fatalf("it says %v, and there were %d news", text, news.Load())
		}
		if err := maps.Delete(t.Context(), object.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(prioritiesEvery)
		synctest.Wait()
		if text, known := w.latest(); text != nil || !known || news.Load() != 3 {
			t.Errorf("after it went it says %v, known %t, %d news", text, known, news.Load())
		}
	})
}

// A missing right delays the start only briefly, and is reported.
func TestPrioritiesWithoutTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, contract.ConfigMapPriorities, errors.New("no"))
		})
		w, _ := watchPriorities(t, client)
		if _, known := w.latest(); known || w.fault() != "" {
			t.Error("the first refusal is believed")
		}
		time.Sleep(2 * refusalLasts)
		synctest.Wait()
		if _, known := w.latest(); !known || w.fault() == "" {
			t.Errorf("after %s of refusal it is known: %t, fault %q", 2*refusalLasts, known, w.fault())
		}
	})
}
