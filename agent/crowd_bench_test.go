package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// BenchmarkThousandAgents: a thousand agents hear of a spot interruption at one
// moment, with twenty bare pods each; the time until the last eviction is accepted,
// and that of a bare loop of as many of the same requests. The pods have a grace of
// nothing, so that no kubelet has a part in it.
func BenchmarkThousandAgents(b *testing.B) {
	c := assemble(b, 1000)
	for taken := false; b.Loop(); taken = true {
		if taken {
			continue // one sample is minutes of work
		}
		bare := c.bareLoop(c.populate("bare", 0))
		agents := c.drain(len(c.populate("web", 0)))
		b.ReportMetric(milliseconds(bare), "bare-ms")
		b.ReportMetric(milliseconds(agents.evictions), "ms")
		b.ReportMetric(float64(agents.refused), "refusals")
		b.ReportMetric(float64(agents.requests)/float64(podsEach*len(c.seats)), "requests/eviction")
		b.ReportMetric(agents.evictions.Seconds()/bare.Seconds(), "ratio")
	}
	b.ReportMetric(1.3, "target-ratio")
	b.ReportMetric(0, "ns/op") // says nothing here
}

// BenchmarkHundredDrains: a hundred nodes with twenty bare pods each, which need
// five seconds to end, hear of a spot interruption at one moment; the time until
// the last of them is reported to be drained, and that of a bare loop of as many
// evictions, and until all that it has evicted have ended. Pods are ended by a kubelet
// that does nothing else, as fast as the API server lets it.
func BenchmarkHundredDrains(b *testing.B) {
	const grace = 5 * time.Second
	c := assemble(b, 100)
	gone := c.endPods(grace)
	for taken := false; b.Loop(); taken = true {
		if taken {
			continue
		}
		pods := c.populate("bare", int64(grace/time.Second))
		began := time.Now()
		bare := c.bareLoop(pods)
		for range pods {
			<-gone
		}
		bareGone := time.Since(began)
		agents := c.drain(len(c.populate("web", int64(grace/time.Second))))
		b.ReportMetric(milliseconds(bare), "bare-ms")
		b.ReportMetric(milliseconds(bareGone), "bare-gone-ms")
		b.ReportMetric(milliseconds(agents.evictions), "to-last-eviction-ms")
		b.ReportMetric(float64(agents.requests)/float64(len(pods)), "requests/eviction")
		b.ReportMetric(milliseconds(agents.drains), "ms")
		b.ReportMetric(milliseconds(grace)+1.15*milliseconds(bare), "target-ms")
	}
	b.ReportMetric(0, "ns/op") // says nothing here
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// endPods is the kubelet of all nodes: it ends pods that were asked to, when they
// have had their grace. Each end is reported.
func (c *crowd) endPods(grace time.Duration) <-chan struct{} {
	c.b.Helper()
	due, gone := make(chan *corev1.Pod, len(c.seats)*podsEach), make(chan struct{}, 2*len(c.seats)*podsEach)
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			was, pod := old.(*corev1.Pod), now.(*corev1.Pod)
			if was.DeletionTimestamp == nil && pod.DeletionTimestamp != nil {
				time.AfterFunc(grace, func() { due <- pod })
			}
		},
		DeleteFunc: func(any) { gone <- struct{}{} },
	})
	c.must(err)
	factory.Start(c.b.Context().Done())
	factory.WaitForCacheSync(c.b.Context().Done())
	const workers = 32
	for range workers {
		go func() {
			for {
				select {
				case pod := <-due:
					c.end(pod)
				case <-c.b.Context().Done():
					return
				}
			}
		}()
	}
	return gone
}

func (c *crowd) end(pod *corev1.Pod) {
	err := c.Client.CoreV1().Pods(pod.Namespace).Delete(c.b.Context(), pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && c.b.Context().Err() == nil {
		c.b.Errorf("ending pod %s: %v", pod.Name, err)
	}
}
