package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

var churnTime = flag.Duration("churn", 2*time.Minute, "how long pods come and go in BenchmarkChurn")

// BenchmarkChurn: 5,000 nodes with thirty pods each, of which fifty pods go every second and as many
// come, are bound and run. Every five seconds there is one that no group can take: until the Event
// that says so, and how many took longer than they should. The processor's share is that of the
// whole program; memory is the least of the second quarter of the time, when the heap has found
// its size, and of the last.
func BenchmarkChurn(b *testing.B) {
	for range b.N { // once: a run takes longer than what -benchtime asks for
		c := churn{nodes: 5_000, podsPerNode: 30, out: make(chan watched, 10_000), sent: map[string]probe{}, heard: make(chan struct{}, 1)}
		program := runBeside(b, crowd{nodes: c.nodes, podsPerNode: c.podsPerNode, grouped: true, pods: c.out, wrote: c.hear})
		from, began := processorOf(b, program.pid), time.Now()
		resident := c.live(b, func() float64 { return memoryOf(b, program.pid)["VmRSS"] })
		share := (processorOf(b, program.pid) - from).Seconds() / time.Since(began).Seconds()
		program.end()
		slices.Sort(c.took)
		b.ReportMetric(0, "ns/op") // says nothing here
		b.ReportMetric(100*share, "%core")
		b.ReportMetric(15, "target-%core")
		b.ReportMetric(float64(c.took[len(c.took)/2].Milliseconds()), "p50-ms")
		b.ReportMetric(float64(c.took[len(c.took)-1].Milliseconds()), "worst-ms")
		b.ReportMetric(float64(mostTook.Milliseconds()), "target-worst-ms")
		later, _ := slices.BinarySearch(c.took, mostTook+1)
		b.ReportMetric(float64(len(c.took)-later), "late")
		quarter := len(resident) / 4
		b.ReportMetric(slices.Min(resident[quarter:2*quarter]), "MiB-second-quarter")
		b.ReportMetric(slices.Min(resident[len(resident)-quarter:]), "MiB-last-quarter")
	}
}

// mostTook is how late a verdict may be.
const mostTook = 250 * time.Millisecond

// churn is the life of a crowd's pods.
type churn struct {
	nodes, podsPerNode int
	out                chan watched

	mu    sync.Mutex
	sent  map[string]probe // by name, until an Event tells of it
	took  []time.Duration  // until it did
	heard chan struct{}    // has something after each
}

// probe is a pod that no group can take.
type probe struct {
	pod *corev1.Pod
	at  time.Time
}

// live has pods come and go, and samples the memory every second.
func (c *churn) live(b *testing.B, memory func() float64) []float64 {
	const perSecond, probeEvery = 50, 5
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	var resident []float64
	first := c.nodes * c.podsPerNode
	for i := range int(churnTime.Seconds()) * perSecond {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
		c.come(first + i)
		c.leave(i)
		if i%perSecond == 0 {
			resident = append(resident, memory())
		}
		if i%(perSecond*probeEvery) == 0 {
			c.probe(i)
		}
	}
	c.await(b)
	return resident
}

// at is where the pod of a number is. Those that come are spread.
func (c *churn) at(number int) (node, place int) {
	if number < c.nodes*c.podsPerNode {
		return number / c.podsPerNode, number % c.podsPerNode
	}
	return number * 31 % c.nodes, c.podsPerNode
}

// come is a pod that is created, bound and runs.
func (c *churn) come(number int) {
	node, place := c.at(number)
	runs := crowdPod(number, node, place)
	bound, waits := runs.DeepCopy(), runs.DeepCopy()
	waits.Spec.NodeName, waits.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	bound.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
	c.out <- watched{watch.Added, waits}
	c.out <- watched{watch.Modified, bound}
	c.out <- watched{watch.Modified, runs}
}

// leave is the turn's pod that is deleted and ends: those of the beginning in no order that nodes have,
// and then those that came.
func (c *churn) leave(turn int) {
	number := turn
	if first := c.nodes * c.podsPerNode; turn < first {
		number = turn * 7_919 % first
	}
	node, place := c.at(number)
	p := crowdPod(number, node, place)
	p.DeletionTimestamp = ptr.To(metav1.Now())
	c.out <- watched{watch.Modified, p}
	c.out <- watched{watch.Deleted, p}
}

// probe adds a pod of which kube-scheduler has found that no node can take it.
func (c *churn) probe(turn int) {
	p := crowdPod(turn, 0, c.podsPerNode)
	p.Name, p.UID = fmt.Sprintf("probe-%d", turn), types.UID(fmt.Sprintf("probe-%d", turn))
	p.Spec.NodeName, p.Spec.NodeSelector = "", map[string]string{"nobody": "has"}
	p.CreationTimestamp = metav1.Now()
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: p.CreationTimestamp,
	}}}
	c.mu.Lock()
	c.sent[p.Name] = probe{p, time.Now()}
	c.mu.Unlock()
	c.out <- watched{watch.Added, p}
}

// hear takes the Event that tells of a probe, which may go then.
func (c *churn) hear(e *corev1.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of, is := c.sent[e.InvolvedObject.Name]
	if !is {
		return
	}
	delete(c.sent, e.InvolvedObject.Name)
	c.took = append(c.took, time.Since(of.at))
	c.out <- watched{watch.Deleted, of.pod}
	select {
	case c.heard <- struct{}{}:
	default:
	}
}

// await waits until all probes have been told of.
func (c *churn) await(b *testing.B) {
	for {
		c.mu.Lock()
		left := len(c.sent)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.heard:
		case <-time.After(time.Minute):
			b.Fatalf("no Event tells of %d pods", left)
		}
	}
}

// processorOf is the processor time that a process has used.
func processorOf(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err) // not Linux
	}
	const clockTicks = 100 // a second, on each architecture that Go knows
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // utime, stime: proc_pid_stat(5)
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks
}
