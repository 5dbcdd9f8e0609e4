package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
)

// TestAutoscalerEventsAreBounded: whoever writes Events in the name of Cluster Autoscaler takes little
// memory, however long and many they are, and keeps out none that is believed.
func TestAutoscalerEventsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	nudges := 0
	w := NewAutoscalerEvents(nil, func(e *corev1.Event) Told {
		return map[string]Told{"claims": Claimed, "says": Believed}[e.Reason]
	}, func() { nudges++ }, func(error) {})
	event := func(name, reason string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: "1", Annotations: map[string]string{"a": long}},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: long, FieldPath: long}, Reason: reason, Message: long,
			Source: corev1.EventSource{Component: contract.AppClusterAutoscaler, Host: long}, ReportingInstance: long, Action: long}
	}
	update := func(e *corev1.Event) {
		t.Helper()
		if err := w.table.Update(e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		update(event(fmt.Sprint("silent-", i), "says nothing"))
	}
	if news := w.News(); len(news) != 0 || nudges != 0 || len(w.table.snapshot()) > 1 {
		t.Errorf("of Events that tell nothing %d rows are kept, %d are news, after %d nudges", len(w.table.snapshot()), len(news), nudges)
	}
	update(event("one", "claims"))
	news := w.News()
	if len(news) != 1 || nudges != 1 || news[0].Size() > 4<<10 {
		t.Fatalf("%d are news, after %d nudges", len(news), nudges)
	}
	if e := news[0]; e.InvolvedObject.Kind != "Pod" || e.Reason != "claims" || e.Source.Component != contract.AppClusterAutoscaler || e.UID != "one" {
		t.Errorf("of an Event is left %+v", e)
	}
	var list []any
	for i := range mostClaims + 100 {
		list = append(list, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1"}, Reason: "claims"})
	}
	if err := w.table.Replace(list, "1"); err != nil {
		t.Fatal(err)
	}
	update(event("more", "claims"))
	update(event("believed", "says"))
	var said []string
	for _, e := range w.table.snapshot() {
		if e.Reason == "says" {
			said = append(said, e.Name)
		}
	}
	if diff := cmp.Diff([]string{"believed"}, said); diff != "" || len(w.table.snapshot()) != mostClaims+1 {
		t.Errorf("%d are kept: %s", len(w.table.snapshot()), diff)
	}
}
