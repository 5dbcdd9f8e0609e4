package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/world"
)

// launchCalls are the operations by which a group gets more instances.
func launchCalls(c fakeaws.Call) bool {
	return c.Operation == "LaunchInstances" || c.Operation == "SetDesiredCapacity"
}

// BenchmarkDecisionLatency: in a cluster of 1,000 and of 5,000 nodes a pod is created that
// only one empty group can take; the time from when kube-scheduler's request
// reaches the API server that writes the Unschedulable condition, until the
// launch call reaches AWS. Each sample has a group and a pod of its own. The
// instances boot for an hour, so that no sample has more nodes than another.
func BenchmarkDecisionLatency(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			if testing.Short() && nodes > 1_000 {
				b.Skip("to make the nodes takes minutes")
			}
			decideAmong(b, nodes)
		})
	}
}

func decideAmong(b *testing.B, nodes int) {
	const samples = 100
	spec := world.Spec{NoIMDS: true, ControlPlane: []string{"--audit"}}
	for i := range samples {
		g := groupOf(numbered("pod", i), "m5.large", 0, 1)
		g.Boot = cloud.Duration(time.Hour)
		spec.Cloud.Groups = append(spec.Cloud.Groups, g)
	}
	t := start(b, spec)
	t.furnish(nodes)
	called := map[string]time.Time{}
	var fromCreation []time.Duration
	once(b, func() {
		for i := range samples {
			name := numbered("pod", i)
			created := time.Now()
			if _, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.ctx, podFor(name), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			call := t.called(launchCalls, fakeaws.ForGroup(name))
			called[name] = call.Time
			fromCreation = append(fromCreation, call.Time.Sub(created))
		}
	})
	judged, err := t.judged()
	if err != nil {
		b.Fatal(err)
	}
	var fromCondition []time.Duration
	for name, at := range called {
		condition, known := judged[name]
		if !known {
			b.Fatalf("the audit log does not know when pod %s was judged", name)
		}
		fromCondition = append(fromCondition, at.Sub(condition))
	}
	b.ReportMetric(0, "ns/op") // says nothing here
	bounded(b, "p50-ms", milliseconds(percentile(fromCondition, 50)), 30)
	bounded(b, "p99-ms", milliseconds(percentile(fromCondition, 99)), 70)
	b.ReportMetric(milliseconds(percentile(fromCreation, 50)), "from-creation-p50-ms")
}

// furnish adds nodes of no group, and waits until they are Ready and the agents'
// DaemonSet has a pod on each.
func (t *bed) furnish(nodes int) {
	t.b.Helper()
	for i := range nodes {
		if _, err := t.Client.CoreV1().Nodes().Create(t.ctx, fixedNode(i), metav1.CreateOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
	t.await(fmt.Sprintf("%d agents", nodes), func() bool {
		d, err := t.Client.AppsV1().DaemonSets(world.Namespace).Get(t.ctx, "windlass-agent", metav1.GetOptions{})
		return err == nil && int(d.Status.NumberReady) >= nodes
	})
}

// fixedNode is a node that no pod of the samples can go to.
func fixedNode(i int) *corev1.Node {
	name := fmt.Sprintf("fixed-%04d", i)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
				corev1.LabelTopologyZone: "eu-west-1" + string(rune('a'+i%3)),
			},
		},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
}

// judged says when kube-scheduler first wrote into the status of each pod of the
// default namespace, by name.
func (t *bed) judged() (map[string]time.Time, error) {
	f, err := os.Open(filepath.Join(t.Dir, "cluster", "logs", "audit.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[string]time.Time{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var request struct {
			User                     struct{ Username string }
			ObjectRef                struct{ Resource, Subresource, Namespace, Name string }
			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		of := request.ObjectRef
		if request.User.Username != "system:kube-scheduler" || of.Subresource != "status" || of.Namespace != metav1.NamespaceDefault {
			continue
		}
		if _, known := at[of.Name]; !known {
			at[of.Name] = request.RequestReceivedTimestamp
		}
	}
	return at, lines.Err()
}
