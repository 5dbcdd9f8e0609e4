package plan_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

// BenchmarkHostileTenant: what one tenant's objects cost an evaluation of a cluster of
// 1,000 nodes with 30,000 pods and five groups over three zones. Each case reports the
// first evaluation and one that follows, in processor time, that of the garbage collector
// included, also as a multiple of that of the same cluster without the tenant; and how much
// more heap the process has in use than there, at its peak and afterwards. What is bounded is the time
// itself: for so long all other tenants wait.
func BenchmarkHostileTenant(b *testing.B) {
	for _, attack := range attacks {
		b.Run(attack.name, func(b *testing.B) {
			base := evaluated(town())
			for b.Loop() {
				got := evaluated(attack.on(town()))
				bounded(b, "first-ms", got.first.Seconds()*1e3, 2_000)
				bounded(b, "next-ms", got.next.Seconds()*1e3, 2_000)
				bounded(b, "MiB", (got.peak-base.peak)/mib, 256)
				b.ReportMetric((got.kept-base.kept)/mib, "kept-MiB")
				b.ReportMetric(got.first.Seconds()/base.first.Seconds(), "first/base")
				b.ReportMetric(got.next.Seconds()/base.next.Seconds(), "next/base")
			}
			b.ReportMetric(0, "ns/op") // it is in ms
		})
	}
}

// evaluation is what two evaluations of a cluster cost.
type evaluation struct {
	first, next time.Duration
	// peak is the most heap that was in use, kept what is left of it afterwards, in bytes.
	peak, kept float64
}

func evaluated(c *city) evaluation {
	var got evaluation
	planner, policy := plan.NewPlanner(), policy.DefaultPolicy()
	before := heap()
	done, peak := make(chan struct{}), make(chan float64)
	go watchHeap(done, peak)
	began := processorTime()
	planner.Decide(c.Snapshot, policy)
	got.first = processorTime() - began
	began = processorTime()
	planner.Decide(c.Snapshot, policy)
	got.next = processorTime() - began
	close(done)
	got.peak = <-peak - before
	got.kept = heap() - before
	runtime.KeepAlive(planner)
	runtime.KeepAlive(c)
	return got
}

// processorTime is what the process has used so far.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it takes no input
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func heap() float64 {
	runtime.GC()
	return inUse()
}

func inUse() float64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// watchHeap finds the most heap that is in use until done is closed.
func watchHeap(done <-chan struct{}, peak chan<- float64) {
	most := inUse()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-tick.C:
			most = max(most, inUse())
		case <-done:
			tick.Stop()
			peak <- max(most, inUse())
			return
		}
	}
}

// town is a cluster of ordinary tenants.
func town() *city {
	c := tangled(1_000, 100)
	for i, m := range someMachines(4) {
		c.group(fmt.Sprintf("group-%d", i), m, 1_000)
	}
	c.Groups[0].Max = 2_000
	return c
}

// attack is what a tenant does to a cluster, within what API server and quotas allow.
type attack struct {
	name string
	on   func(*city) *city
}

const evil = "evil"

// small is a pod that costs its tenant next to nothing.
func small() template { return pods(10, 16*mib) }

var attacks = []attack{
	{"apart-waiting", func(c *city) *city { return c.evilPods(5_000, false, own(corev1.LabelHostname)) }},
	{"apart-running", func(c *city) *city { return c.evilPods(5_000, true, own(corev1.LabelHostname)) }},
	{"apart-zones", func(c *city) *city { return c.evilPods(5_000, false, own(corev1.LabelTopologyZone)) }},
	{"apart-growing", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			t = own(corev1.LabelHostname)(t, i)
			t.spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "c6i.x8"}
			return t
		})
	}},
	{"apart-nowhere", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			t = own(corev1.LabelHostname)(t, i)
			t.spec.NodeSelector = map[string]string{"disk": "none"}
			return t
		})
	}},
	{"apart-others", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			return t.labelled(labelApp, fmt.Sprint("evil-", i)).apart(likes(labelApp, fmt.Sprint("nobody-", i)), corev1.LabelHostname)
		})
	}},
	{"apart-from-all", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			return t.apart(without(fmt.Sprint("evil-", i)), corev1.LabelHostname)
		})
	}},
	{"apart-from-all-running", func(c *city) *city {
		return c.evilPods(5_000, true, func(t template, i int) template { return t.apart(without(fmt.Sprint("evil-", i)), "example.com/rack") })
	}},
	{"apart-from-others-running", func(c *city) *city {
		return c.evilPods(5_000, true, func(t template, i int) template {
			t = t.labelled(evil, "true").apart(without(fmt.Sprint("evil-", i), evil), corev1.LabelHostname)
			t.spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = &metav1.LabelSelector{}
			return t
		})
	}},
	{"apart-hundred-terms", func(c *city) *city {
		return c.evilPods(100, false, func(t template, i int) template {
			return keptApart(t.labelled(labelApp, evil), 100, i)
		})
	}},
	{"apart-long-terms", func(c *city) *city {
		return c.evilPods(140, false, func(t template, i int) template {
			t = keptApart(t.labelled(labelApp, evil), 7, i)
			for j := range t.spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				values := make([]string, 1_000)
				for k := range values {
					values[k] = fmt.Sprintf("x%d-%d-%d", i, j, k)
				}
				t.spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[j].LabelSelector = &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelApp, Operator: metav1.LabelSelectorOpNotIn, Values: values}},
				}
			}
			return t
		})
	}},
	{"together", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			name := fmt.Sprint("evil-", i)
			return t.labelled(labelApp, name).together(likes(labelApp, name), corev1.LabelHostname)
		})
	}},
	{"spread", func(c *city) *city {
		return c.evilPods(5_000, false, func(t template, i int) template {
			name := fmt.Sprint("evil-", i)
			return t.labelled(labelApp, name).evenly(likes(labelApp, name), corev1.LabelHostname)
		})
	}},
	{"spread-honoring", func(c *city) *city {
		return c.evilPods(5_000, true, func(t template, i int) template {
			name, honor := fmt.Sprint("evil-", i), corev1.NodeInclusionPolicyHonor
			t = t.owned(name).labelled(labelApp, name).evenly(likes(labelApp, name), corev1.LabelHostname)
			t.spec.TopologySpreadConstraints[0].NodeTaintsPolicy = &honor
			t.spec.Tolerations = []corev1.Toleration{{Key: name, Operator: corev1.TolerationOpExists}}
			return t
		})
	}},
	{"selectors-by-value", func(c *city) *city {
		return c.evilPods(10_000, false, func(t template, i int) template {
			t.spec.NodeSelector = map[string]string{"team": fmt.Sprint("evil-", i)}
			return t
		})
	}},
	{"selectors-by-key", func(c *city) *city {
		return c.evilPods(10_000, false, func(t template, i int) template {
			t.spec.NodeSelector = map[string]string{fmt.Sprint("evil-", i): "true"}
			return t
		})
	}},
	{"sizes", func(c *city) *city {
		return c.evilPods(10_000, false, func(t template, i int) template { return pods(int64(10+i), 16*mib) })
	}},
	{"buffers", func(c *city) *city {
		for i := range 10 {
			c.evilBuffer(i, 150_000, pods(100, 128*mib))
		}
		return c
	}},
	{"buffers-many", func(c *city) *city {
		for i := range 2_000 {
			c.evilBuffer(i, 10, pods(int64(10+i), 16*mib))
		}
		return c
	}},
	{"buffers-apart", func(c *city) *city {
		for i := range 10 {
			name := fmt.Sprint("evil-", i)
			c.evilBuffer(i, 150_000, small().labelled(labelApp, name).apart(likes(labelApp, name), corev1.LabelHostname))
		}
		return c
	}},
	{"buffers-seven-terms", func(c *city) *city {
		for i := range 2_000 {
			c.evilBuffer(i, 10, keptApart(small().labelled(labelApp, evil), 7, i))
			c.Buffers[len(c.Buffers)-1].Namespace = evil
		}
		return c
	}},
	{"gangs", func(c *city) *city {
		c = c.evilPods(10_000, false, func(t template, i int) template {
			t = t.labelled(labelApp, evil).evenly(likes(labelApp, evil), corev1.LabelTopologyZone)
			t.spec.NodeSelector = map[string]string{"disk": "none"}
			return t
		})
		n := 0
		return c.of(evil, func(p *fleet.Pod) {
			n++
			p.Annotations = map[string]string{contract.AnnotationAllOrNothing: fmt.Sprint("gang-", n)}
		})
	}},
	{"gated", func(c *city) *city {
		return c.evilPods(1_000, false, manyTerms).of(evil, func(p *fleet.Pod) { p.Scheduling = fleet.Gated })
	}},
	{"daemons", func(c *city) *city {
		c.Namespaces[evil] = nil
		for i := range 200 {
			t := manyTerms(small(), i)
			t.spec.NodeSelector = map[string]string{"disk": "none"}
			c.DaemonSets = append(c.DaemonSets, fleet.DaemonSet{Namespace: evil, Name: fmt.Sprint("evil-", i), Template: corev1.PodTemplateSpec{Spec: *t.spec}})
		}
		return c
	}},
	{"budgets-long", func(c *city) *city {
		for i := range 100 {
			values := make([]string, 5_000)
			for j := range values {
				values[j] = fmt.Sprintf("x%09d", i*len(values)+j)
			}
			c.Budgets = append(c.Budgets, fleet.Budget{Namespace: evil, Name: fmt.Sprint("evil-", i), Selector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelApp, Operator: metav1.LabelSelectorOpIn, Values: values}},
			}})
		}
		return c.evilPods(5_000, true, func(t template, i int) template { return t.labelled(labelApp, fmt.Sprint("evil-", i)) })
	}},
}

// of changes the pods of a namespace.
func (c *city) of(namespace string, how func(*fleet.Pod)) *city {
	for _, p := range c.Pods {
		if p.Namespace == namespace {
			how(p)
		}
	}
	return c
}

// manyTerms has twenty terms that concern nearly everybody, of which no other pod has one.
func manyTerms(t template, i int) template {
	of := &corev1.PodAntiAffinity{}
	for j := range 20 {
		of.RequiredDuringSchedulingIgnoredDuringExecution = append(of.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
			LabelSelector: without(fmt.Sprintf("x-%d-%d", i, j)), NamespaceSelector: &metav1.LabelSelector{}, TopologyKey: corev1.LabelHostname,
		})
	}
	t.spec.Affinity = &corev1.Affinity{PodAntiAffinity: of}
	return t
}

// keptApart has so many anti-affinity terms, of which each concerns the evil pods and others.
func keptApart(t template, terms, i int) template {
	of := &corev1.PodAntiAffinity{}
	for j := range terms {
		of.RequiredDuringSchedulingIgnoredDuringExecution = append(of.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelApp, Operator: metav1.LabelSelectorOpIn, Values: []string{evil, fmt.Sprint("x", i, "-", j)}}},
		}, TopologyKey: corev1.LabelHostname})
	}
	t.spec.Affinity = &corev1.Affinity{PodAntiAffinity: of}
	return t
}

// without selects the pods that have none of these labels: those of nearly everybody.
func without(keys ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for _, key := range keys {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	return s
}

// own is an app of one pod that keeps away from itself.
func own(domain string) func(template, int) template {
	return func(t template, i int) template {
		name := fmt.Sprint("evil-", i)
		return t.labelled(labelApp, name).apart(likes(labelApp, name), domain)
	}
}

// evilPods are that many pods of one tenant that run, or wait, each with a spec of its own.
func (c *city) evilPods(count int, run bool, make func(template, int) template) *city {
	c.Namespaces[evil] = nil
	for i := range count {
		t := make(small(), i)
		if run {
			c.run(t, &c.Nodes[i%len(c.Nodes)])
		} else {
			c.wait(t)
		}
		c.Pods[len(c.Pods)-1].Namespace = evil
	}
	return c
}

// evilBuffer is a CapacityBuffer for that many pods, in a namespace of its own.
func (c *city) evilBuffer(i, replicas int, t template) {
	n, namespace := int32(replicas), fmt.Sprint("evil-", i)
	c.Namespaces[namespace] = nil
	c.Buffers = append(c.Buffers, fleet.Buffer{
		Namespace: namespace, Name: fmt.Sprint("buffer-", i), Template: "small", Replicas: &n,
		Pods: &fleet.BufferPods{Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: t.labels}, Spec: *t.spec}},
	})
}
