package view

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// large is a cluster of so many nodes, of which one in ten drains and each has had an Event.
func large(nodes int) World {
	w := World{Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	for i := range nodes {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip-10-%d-%d-%d", i>>16, i>>8&255, i&255)}}
		if i%10 == 0 {
			n.Annotations = map[string]string{contract.AnnotationDrainRequest: contract.Request{ID: "request:x", Kind: contract.KindRequest, Reason: "x", At: contract.At(w.Now)}.String()}
		}
		w.Nodes = append(w.Nodes, n)
		w.Verdicts.Nodes = append(w.Verdicts.Nodes, statuspage.Node{Name: n.Name, Group: "web", Verdict: statuspage.Verdict{Reason: "Needed"}})
		w.Events = append(w.Events, corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: n.Name}, Reason: contract.EventDrained, LastTimestamp: metav1.NewTime(w.Now)})
	}
	return w
}

// What a screen costs: ten times the nodes take ten times the time.
func BenchmarkLargeCluster(b *testing.B) {
	for _, nodes := range []int{1_500, 15_000} {
		w := large(nodes)
		for what, draw := range map[string]func() int{
			"status": func() int { return len(NewStatus(w).Drains) },
			"events": func() int { return len(NewStory(w, w.Now.Add(-hour), true).Names()) },
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", what, nodes), func(b *testing.B) {
				for b.Loop() {
					if draw() < nodes/10 {
						b.Fatal("something is missing")
					}
				}
			})
		}
	}
}
