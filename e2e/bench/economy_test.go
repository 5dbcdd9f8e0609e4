package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// BenchmarkAWSEconomy: a thousand pods are marked that need a node each, before
// the scaler starts; how many calls it takes until a thousand nodes are launched.
func BenchmarkAWSEconomy(b *testing.B) {
	b.Run("burst", func(b *testing.B) {
		const nodes = 1000
		g := groupOf("burst", "m5.large", 0, 2*nodes)
		g.Boot = cloud.Duration(time.Hour)
		g.Zones = []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}
		none := 0
		spec := world.Spec{NoIMDS: true, Replicas: &none}
		spec.Cloud.Groups = []fakeaws.Group{g}
		t := start(b, spec)
		var calls []fakeaws.Call
		once(b, func() {
			t.createPods("burst", nodes, "1500m")
			t.await("all pods to be marked", func() bool { return t.pods.count("burst", unschedulable) == nodes })
			t.scale(1)
			t.await(fmt.Sprintf("%d instances", nodes), func() bool {
				g, err := t.AWS.Group("burst")
				return err == nil && len(g.Instances) >= nodes
			})
			calls = t.AWS.Calls(launchCalls)
		})
		if g, err := t.AWS.Group("burst"); err != nil || g.Desired != nodes || len(g.Instances) != nodes {
			b.Errorf("desired is %d with %d instances (%v), want %d", g.Desired, len(g.Instances), err, nodes)
		}
		b.ReportMetric(0, "ns/op") // says nothing here
		bounded(b, "launch-calls", float64(len(calls)), 12)
		b.ReportMetric(milliseconds(calls[len(calls)-1].Time.Sub(calls[0].Time)), "first-to-last-call-ms")
	})
}

// BenchmarkAWSEconomyMoving: every three seconds a pod comes that needs a node of its own, until there are
// ten, and then they go one after the other and their nodes with them. How often Auto Scaling is asked to
// describe its groups in a minute of that, whoever of us asks.
func BenchmarkAWSEconomyMoving(b *testing.B) {
	const nodes, every = 10, 3 * time.Second
	hook := fakeaws.Hook{Name: "windlass", Transition: "terminate", HeartbeatSeconds: 300, Default: "CONTINUE"}
	spec := world.Spec{Scaler: []string{"--consolidate=unneeded", "--scale-down-unneeded-time=" + every.String(), "--scale-down-delay-after-add=0s"}}
	spec.Cloud.Groups = []fakeaws.Group{groupOf("web", "m5.large", 0, nodes, hook)}
	t := start(b, spec)
	from := time.Now()
	once(b, func() {
		for i := range nodes {
			p := podFor("web")
			p.Name = numbered("web", i)
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1500m")
			if _, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.ctx, p, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			t.pause(every)
		}
		t.await("all nodes", func() bool { return t.pods.count("web", ready) == nodes })
		for i := range nodes {
			if err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(t.ctx, numbered("web", i), metav1.DeleteOptions{}); err != nil {
				b.Fatal(err)
			}
			t.pause(every)
		}
		t.await("all terminations", func() bool { return len(t.terminations()) == nodes })
	})
	minutes := time.Since(from).Minutes()
	b.ReportMetric(0, "ns/op") // says nothing here
	bounded(b, "describes/min", float64(len(t.AWS.Calls(fakeaws.Operation("DescribeAutoScalingGroups"))))/minutes, 12)
	b.ReportMetric(float64(len(t.AWS.Calls(fakeaws.Operation("DescribeScalingActivities"))))/minutes, "activities/min")
	b.ReportMetric(float64(len(t.AWS.Calls(launchCalls))), "launch-calls")
}

// createPods creates so many pods without a controller that only the nodes of a
// group take.
func (t *bed) createPods(group string, count int, cpu string) {
	t.b.Helper()
	for i := range count {
		p := podFor(group)
		p.Name = fmt.Sprintf("%s-%04d", group, i)
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
		if _, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.ctx, p, metav1.CreateOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
}

// scale sets the number of scalers.
func (t *bed) scale(replicas int) {
	t.b.Helper()
	if _, err := t.Kubectl(t.ctx, nil, "-n", world.Namespace, "scale", "deployment", contract.AppScaler, fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		t.b.Fatal(err)
	}
}
