// Package trace has what is played to a simulated cluster: which pods come, when, and when
// they end.
//
//	trace.go     Trace: the pods of a time
//	slice.go     Slice: a part of pods that were there, as a trace
//	table.go     tables as CSV
//	alibaba.go   two public formats
//	history.go   History: the pods of a live cluster
//	pods.go      a history as CSV
//	alike.go     a history beside a snapshot: groups, nodes, and what pods need
//	generate.go  a time that a seed determines
//	snapshot.go  the pods of a snapshot, as they might go on
//
// Moments are whole seconds since the start.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/fleet"
)

// Trace is the pods of a time.
type Trace struct {
	Name string
	// Start is the moment 0 of the calendar: what is decided does not depend on it, but for
	// what people read.
	Start time.Time
	// Seconds is how long it is. Pods may end later.
	Seconds   int64
	Workloads []Workload
	// Pods come in the order of their arrival.
	Pods []Pod
	// Snapshot has the cluster at the start: its nodes, and pods that are on them. Nil where
	// nothing is there.
	Snapshot *fleet.Snapshot
	// Lacks is what is not known of the time.
	Lacks []string
}

// Workload is what makes pods, all of them equal.
type Workload struct {
	Namespace, Name string
	// Kind is that of the controller, such as ReplicaSet or Job; empty for naked pods, which
	// are not made again.
	Kind string
	// Controller is what its pods name as such; nil where it is made of the kind and name.
	Controller  *metav1.OwnerReference
	Labels      map[string]string
	Annotations map[string]string
	Spec        *corev1.PodSpec
	// MaxUnavailable is how many of its pods its PodDisruptionBudget lets be missing; none
	// guards it where it is nil.
	MaxUnavailable *int
}

// Key is namespace/name.
func (w Workload) Key() string { return w.Namespace + "/" + w.Name }

// Owner is the controller as a pod names it; nil for naked pods.
func (w Workload) Owner() *metav1.OwnerReference {
	if w.Kind == "" || w.Controller != nil {
		return w.Controller
	}
	version := "apps/v1"
	if w.Kind == "Job" {
		version = "batch/v1"
	}
	controls := true
	return &metav1.OwnerReference{APIVersion: version, Kind: w.Kind, Name: w.Name, UID: fleetUID(w.Kind, w.Key()), Controller: &controls}
}

// Pod is a replica, whatever node it is on: from its arrival to its end something of the kind
// runs, or waits for a node.
type Pod struct {
	// Workload is an index.
	Workload int
	Arrive   int64
	// Ends is Never for one that outlives the trace.
	Ends int64
	// Given is the pod as a snapshot has it, on a node or pending; nil for others.
	Given *fleet.Pod
}

// Never is later than everything.
const Never = int64(1) << 40

// spec is that of a pod with one container that asks for so much.
func spec(milliCPU, memory int64) *corev1.PodSpec {
	return &corev1.PodSpec{
		SchedulerName: corev1.DefaultSchedulerName,
		Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
		}}}},
	}
}

// order sorts pods by arrival. Those of one moment keep their order.
func (t *Trace) order() {
	slices.SortStableFunc(t.Pods, func(a, b Pod) int { return cmp.Compare(a.Arrive, b.Arrive) })
}

// Keep leaves out the pods of workloads that the test does not like, and says how many.
func (t *Trace) Keep(fits func(Workload) bool) (left int) {
	likes := make([]bool, len(t.Workloads))
	for i, w := range t.Workloads {
		likes[i] = fits(w)
	}
	before := len(t.Pods)
	t.Pods = slices.DeleteFunc(slices.Clone(t.Pods), func(p Pod) bool { return p.Given == nil && !likes[p.Workload] })
	return before - len(t.Pods)
}

// book finds the number of a workload, or makes it.
type book struct {
	trace  *Trace
	number map[string]int
}

func (b *book) workload(key string, make func() Workload) int {
	if n, known := b.number[key]; known {
		return n
	}
	if b.number == nil {
		b.number = map[string]int{}
	}
	n := len(b.trace.Workloads)
	b.number[key] = n
	b.trace.Workloads = append(b.trace.Workloads, make())
	return n
}

// epoch is a Monday.
var epoch = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

const day = 24 * 3600

// ParseDays reads a time such as 119-124, in days from the start of a trace.
func ParseDays(text string) (from, to float64, err error) {
	if n, err := fmt.Sscanf(text, "%g-%g", &from, &to); n != 2 || err != nil || from < 0 || to <= from {
		return 0, 0, fmt.Errorf("%q: want days from and to, such as 119-124", text)
	}
	return from, to, nil
}
