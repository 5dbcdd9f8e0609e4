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
