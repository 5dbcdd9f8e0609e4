package plan_test

import (
	"math"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/scaler/fit"
)

// BenchmarkFeasibilityPair: what one answer costs, whether a pod fits a node or a
// new one of a node template. Each of the 10,000 pods of BenchmarkHeterogeneous gets a seat
// on one of the 5,000 nodes or on new ones, with all classes known: ns/pair is the
// time over pods × (nodes + node templates), ns/pod that over pods that got a seat. What is asked is
// how short one answer is, so neither is a multiple of a loop.
func BenchmarkFeasibilityPair(b *testing.B) {
	c := heterogeneous()
	cluster := fit.NewRules().Cluster(fit.World{
		Kubernetes: c.Kubernetes, Pods: c.Pods, Namespaces: c.Namespaces, Storage: c.Storage, Devices: c.Devices,
	})
	places := standing(cluster, c)
	var shapes []*fit.NodeTemplate
	for i := range c.Groups {
		for j := range c.Groups[i].NodeTemplates {
			shapes = append(shapes, cluster.TemplateOf(&c.Groups[i].NodeTemplates[j]))
		}
	}
	var waiting []fit.Tenant
	for _, p := range c.Pods {
		if p.Node == "" {
			waiting = append(waiting, cluster.Tenant(p))
		}
	}
	waiting = cluster.Sorted(waiting, shapes)
	// More new nodes of each node template than all pods need.
	const ofEach = 20
	for range ofEach {
		for _, l := range shapes {
			places = append(places, cluster.Open(l.Name, l))
		}
	}
	seat := func() (seated int) {
		row := cluster.NewRow(places)
		for _, t := range waiting {
			if row.Seat(t) != nil {
				seated++
			}
		}
		return seated
	}
	start := cluster.Fork()
	if n := seat(); n != len(waiting) {
		b.Fatalf("%d of %d pods found a seat", n, len(waiting))
	}
	cluster.Revert(start)

	var before, after runtime.MemStats
	runs := 0
	runtime.ReadMemStats(&before)
	for b.Loop() {
		seat()
		b.StopTimer()
		cluster.Revert(start)
		b.StartTimer()
		runs++
	}
	runtime.ReadMemStats(&after)
	seats := float64(runs * len(waiting))
	bounded(b, "ns/pair", float64(b.Elapsed())/seats/float64(len(c.Nodes)+len(shapes)), 10)
	bounded(b, "ns/pod", float64(b.Elapsed())/seats, 1000)
	bounded(b, "allocs/pod", math.Floor(float64(after.Mallocs-before.Mallocs)/seats), 0) // in whole ones, as package testing counts
	b.ReportMetric(0, "ns/op")                                                           // it depends on how many pods there are
}

// standing are the nodes of a city with the pods on them, as places.
func standing(cluster *fit.Cluster, c *city) []*fit.Place {
	byName := map[string]*fit.Place{}
	var places []*fit.Place
	for i := range c.Nodes {
		p := cluster.Add(cluster.TemplateFrom(&c.Nodes[i], func(corev1.Taint) bool { return false }))
		byName[c.Nodes[i].Name] = p
		places = append(places, p)
	}
	for _, p := range c.Pods {
		if p.Node != "" {
			cluster.Put(cluster.Tenant(p), byName[p.Node])
		}
	}
	return places
}
