package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// BenchmarkNoticeToEvicted: a spot notice becomes visible at the metadata service
// of a node whose pods no budget guards; the time until the last of them is seen to
// be evicted, and the part of it after the agent has read the notice. The agent is
// the program, as the manifests run it. Of 50 pods 45 belong to three Deployments
// and five to nobody; of 110 pods 100 belong to four. The figures are the worst of
// the samples. Before each, for comparison, as many such pods of another node, which is cordoned, are
// evicted by a bare loop with an administrator's rights, which knows them and asks for all in one moment.
func BenchmarkNoticeToEvicted(b *testing.B) {
	for _, c := range []struct {
		shape
		samples int
		target  time.Duration
	}{
		{shape{deployments: 3, replicas: 15, bare: 5}, 5, 300 * time.Millisecond},
		{shape{deployments: 4, replicas: 25, bare: 10}, 3, 600 * time.Millisecond},
	} {
		b.Run(fmt.Sprint(c.pods()), func(b *testing.B) {
			var spec world.Spec
			for i := range c.samples {
				g := groupOf(numbered("notice", i), "m5.4xlarge", 1, 1)
				g.Spot = true
				spec.Cloud.Groups = append(spec.Cloud.Groups, g, groupOf(numbered("bare", i), "m5.4xlarge", 1, 1))
			}
			t := start(b, spec)
			var all, own, bare []time.Duration
			once(b, func() {
				for i := range c.samples {
					bare = append(bare, t.evictAtOnce(numbered("bare", i), c.shape))
					// The agents began to poll together, and each sample ends just after
					// a poll: without this all notices would come at the worst moment.
					wait := time.Duration(i) * imds.UsualInterval / time.Duration(c.samples)
					visible, read, last := t.interrupt(numbered("notice", i), c.shape, wait)
					all, own = append(all, last.Sub(visible)), append(own, last.Sub(read))
				}
			})
			b.ReportMetric(0, "ns/op") // says nothing here
			bounded(b, "ms", milliseconds(percentile(all, 100)), milliseconds(imds.UsualInterval+c.target))
			bounded(b, "ms-after-poll", milliseconds(percentile(own, 100)), milliseconds(c.target))
			b.ReportMetric(milliseconds(percentile(own, 50)), "p50-ms-after-poll")
			b.ReportMetric(milliseconds(percentile(bare, 50)), "bare-p50-ms")
			b.ReportMetric(percentile(own, 50).Seconds()/percentile(bare, 50).Seconds(), "p50-ratio")
		})
	}
}

// shape is what runs on a node: so many Deployments with so many replicas each, and
// so many pods of nobody.
type shape struct{ deployments, replicas, bare int }

func (s shape) pods() int { return s.deployments*s.replicas + s.bare }

// interrupt fills the one node of a group, gives its instance a spot notice after a
// pause, and says when that became visible, when the agent read it, and when the
// last pod was evicted.
func (t *bed) interrupt(group string, s shape, pause time.Duration) (visible, read, last time.Time) {
	t.b.Helper()
	instance := t.instance(group)
	t.fill(group, s)
	t.pause(pause)
	visible = time.Now()
	if err := t.AWS.SpotNotice(instance.ID, 0); err != nil {
		t.b.Fatal(err)
	}
	path := fakeaws.Operation("GET /latest/meta-data/" + string(notice.FromInstanceAction))
	read = t.called(fakeaws.ForInstance(instance.ID), fakeaws.Since(visible), path).Time
	t.await(fmt.Sprintf("%d evictions of %s", s.pods(), group), func() bool { return t.pods.count(group, evicted) == s.pods() })
	last = t.pods.last(group, evicted)
	t.empty(group)
	return visible, read, last
}

// evictAtOnce fills the one node of a group, asks for the eviction of all of its pods in one
// moment, and says how long it was until the last of them was evicted.
func (t *bed) evictAtOnce(group string, s shape) time.Duration {
	t.b.Helper()
	t.instance(group)
	t.fill(group, s)
	list, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.ctx, metav1.ListOptions{LabelSelector: "app=" + group})
	if err != nil {
		t.b.Fatal(err)
	}
	t.setUnschedulable([]string{list.Items[0].Spec.NodeName}, true)
	began := time.Now()
	t.evict(list.Items)
	t.await(fmt.Sprintf("%d evictions of %s", s.pods(), group), func() bool { return t.pods.count(group, evicted) == s.pods() })
	last := t.pods.last(group, evicted)
	t.empty(group)
	return last.Sub(began)
}

func (t *bed) setUnschedulable(nodes []string, to bool) {
	t.b.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, to)
	for _, name := range nodes {
		if _, err := t.Client.CoreV1().Nodes().Patch(t.ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
}

// evict asks for the eviction of the pods, of 500 at a time: the API server takes a thousand writes
// at once, and the control plane needs some of them.
func (t *bed) evict(pods []corev1.Pod) {
	t.b.Helper()
	var asked errgroup.Group
	asked.SetLimit(500)
	for _, pod := range pods {
		asked.Go(func() error {
			return t.Client.PolicyV1().Evictions(pod.Namespace).Evict(t.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		})
	}
	if err := asked.Wait(); err != nil {
		t.b.Fatal(err)
	}
}

// empty takes away what waits for a place: it is no part of the next sample.
func (t *bed) empty(group string) {
	t.b.Helper()
	err := t.Client.AppsV1().Deployments(metav1.NamespaceDefault).DeleteCollection(t.ctx,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}, metav1.ListOptions{LabelSelector: "app=" + group})
	if err != nil {
		t.b.Fatal(err)
	}
}

// fill runs pods on the nodes of a group and waits until all are Ready.
func (t *bed) fill(group string, s shape) {
	t.b.Helper()
	for i := range s.deployments {
		template := templateFor(group)
		template.Labels["part"] = fmt.Sprint(i)
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: numbered(group, i), Labels: map[string]string{"app": group}},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(int32(s.replicas)), Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			},
		}
		if _, err := t.Client.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.ctx, d, metav1.CreateOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
	for i := range s.bare {
		p := podFor(group)
		p.Name = numbered(group+"-bare", i)
		if _, err := t.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.ctx, p, metav1.CreateOptions{}); err != nil {
			t.b.Fatal(err)
		}
	}
	t.await(fmt.Sprintf("%d pods of %s", s.pods(), group), func() bool { return t.pods.count(group, ready) == s.pods() })
}

// BenchmarkAgentIdle: what an agent costs a node on which there is nothing to do, a
// spot instance's, over a minute: what of it is resident, how long its file is, and
// what it asks of the API server, beside the watch that it holds, and of the
// metadata service. There is no scaler.
func BenchmarkAgentIdle(b *testing.B) {
	const idle = time.Minute
	g := groupOf("idle", "m5.large", 1, 1)
	g.Spot = true
	policy := filepath.Join(b.TempDir(), "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(everythingOfAgents), 0o600); err != nil {
		b.Fatal(err)
	}
	spec := world.Spec{Replicas: ptr.To(0), ControlPlane: []string{"--audit", "--arg=kube-apiserver=--audit-policy-file=" + policy}}
	spec.Cloud.Groups = []fakeaws.Group{g}
	t := start(b, spec)
	file, err := os.Stat(filepath.Join(programsDir, contract.AppAgent))
	if err != nil {
		b.Fatal(err)
	}
	once(b, func() {
		instance := t.instance("idle")
		t.await("the agent to look", func() bool { return len(t.Processes()) == 1 && t.requests(time.Time{}) > 0 })
		t.pause(settling)
		from := time.Now()
		t.pause(idle)
		memory, err := world.MemoryOf(t.Processes()[0].PID)
		if err != nil {
			b.Skip(err)
		}
		polls := t.AWS.Calls(fakeaws.Service("imds"), fakeaws.ForInstance(instance.ID), fakeaws.Since(from))
		const mebibyte = 1 << 20
		b.ReportMetric(0, "ns/op") // says nothing here
		bounded(b, "MiB", float64(memory.Resident)/mebibyte, 26)
		bounded(b, "anon-MiB", float64(memory.Anonymous)/mebibyte, 6)
		bounded(b, "binary-MiB", float64(file.Size())/mebibyte, 30)
		bounded(b, "requests/min", float64(t.requests(from))/idle.Minutes(), 0)
		bounded(b, "imds/s", float64(len(polls))/idle.Seconds(), 0.6)
	})
}

// settling is how long an agent is given to look at its node once before it counts
// as idle.
const settling = 10 * time.Second

// everythingOfAgents is an audit policy: every request of an agent, and nothing
// else. A watch is written down when it opens.
const everythingOfAgents = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:serviceaccount:windlass-system:windlass-agent"]
- level: None
`

// requests counts what agents have asked the API server for since a moment.
func (t *bed) requests(since time.Time) int {
	t.b.Helper()
	text, err := os.ReadFile(filepath.Join(t.Dir, "cluster", "logs", "audit.log"))
	if err != nil && !os.IsNotExist(err) {
		t.b.Fatal(err)
	}
	asked := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var request struct {
			AuditID                  string
			RequestReceivedTimestamp time.Time
		}
		if json.Unmarshal([]byte(line), &request) == nil && !request.RequestReceivedTimestamp.Before(since) {
			asked[request.AuditID] = true
		}
	}
	return len(asked)
}
