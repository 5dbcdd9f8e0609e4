package status_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/action"
	"windlass.dev/windlass/scaler/shadow"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/status"
)

// What a shadow assumes and has logged is there for the next process; what could not be written is
// tried again; and what is no shadow's is named and left out.
func TestShadowBook(t *testing.T) {
	client := fake.NewClientset()
	maps := client.CoreV1().ConfigMaps("ns")
	ctx := t.Context()
	book, memory, faults, err := status.OpenShadowBook(ctx, maps)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := shadow.New(memory, false)
	s.See(fleet.Snapshot{Now: noon, Groups: []fleet.Group{{Name: "web", Max: 3}}})
	s.Assume(action.Grow{Group: "web", From: 0, To: 2})
	if err := book.Append(s.Records()); err != nil {
		t.Fatal(err)
	}

	away := errors.New("the API server is away")
	failing := true
	client.PrependReactor("*", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
		return failing && a.GetVerb() != "get", nil, away
	})
	if err := book.Flush(ctx, s); !errors.Is(err, away) {
		t.Fatalf("written without an API server: %v", err)
	}
	failing = false
	if err := book.Flush(ctx, s); err != nil {
		t.Fatal(err)
	}

	again, memory, faults, err := status.OpenShadowBook(ctx, maps)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if diff := cmp.Diff(s.Memory(), memory, cmpopts.EquateEmpty()); diff != "" || len(memory.Groups["web"].Assumed) != 2 {
		t.Errorf("what is assumed (-was +is):\n%s", diff)
	}
	if err := again.Append([]record.Record{{At: noon.Add(time.Hour), Began: &record.Began{}}}); err != nil {
		t.Fatal(err)
	}
	if err := again.Flush(ctx, s); err != nil {
		t.Fatal(err)
	}
	object, err := maps.Get(ctx, contract.ConfigMapsShadowLog(1)[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	chunk, is := record.ChunkOf(object)
	log := record.Read([]record.Chunk{chunk})
	kinds := ""
	for _, r := range log.Records {
		switch {
		case r.Decided != nil:
			kinds += "decided "
		case r.Began != nil:
			kinds += "began "
		}
	}
	if want := "decided began "; !is || kinds != want {
		t.Errorf("the log has %q, want %q: %v", kinds, want, log.Faults)
	}

	for _, name := range []string{contract.ConfigMapShadow, contract.ConfigMapsShadowLog(1)[0]} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, BinaryData: map[string][]byte{"assumed.json.gz": []byte("noise"), record.Key: []byte("noise")}}
		if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, memory, faults, err = status.OpenShadowBook(ctx, maps); err != nil || len(faults) != 2 || len(memory.Groups) > 0 {
		t.Errorf("noise is read as %+v, with %v, %v", memory, faults, err)
	}
}
