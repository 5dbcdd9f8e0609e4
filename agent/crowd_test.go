package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/agent/notice"
	bed "windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
)

// crowd are many agents of one real API server, in this process. Each has what an
// agent has in a cluster: a Node, a pod of its own with a token that is bound to
// it, the rights of the manifests, and a connection. There is no scheduler, no
// controller and no kubelet: only the agents are at work.
type crowd struct {
	*bed.World
	b     *testing.B
	seats []*seat
	// requests that all clients have sent.
	requests atomic.Int64
}

// seat is what one agent has.
type seat struct {
	node   string
	client *evict.Client
}

// podsEach is how many pods a node has.
const podsEach = 20

// assemble starts an API server with so many nodes.
func assemble(b *testing.B, nodes int) *crowd {
	b.Helper()
	supervisor, err := bed.BuildControlPlane(b.Context(), b.TempDir(), os.Stderr)
	if err != nil {
		b.Skipf("the control plane cannot be had here: %v", err)
	}
	w, err := bed.Start(b.Context(), bed.Config{
		Programs: supervisor, Progress: os.Stderr, Manifests: overlay(b),
		Spec: bed.Spec{
			NoIMDS: true, Replicas: ptr.To(0),
			ControlPlane: []string{"--without=kube-controller-manager", "--without=kube-scheduler", "--without=kwok"},
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	c := &crowd{World: w, b: b, seats: make([]*seat, nodes)}
	// What the controller manager would do.
	c.must(c.createAccount(metav1.NamespaceDefault, "default"))
	c.all(nodes, func(i int) (err error) {
		c.seats[i], err = c.seat(fmt.Sprintf("node-%04d", i))
		return err
	})
	return c
}

// overlay is a folder of manifests for servers that let an agent be its node. The
// policy that stands in for that on older ones looks at every pod of a namespace for
// each eviction, whatever its client, and would be all that is measured.
func overlay(b *testing.B) string {
	b.Helper()
	root, err := bed.Root(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(root, "manifests"))
	if err != nil {
		b.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%[1]s]\ncomponents: [%[1]s/components/impersonation-only]\n", manifests)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

func (c *crowd) must(err error) {
	c.b.Helper()
	if err != nil {
		c.b.Fatal(err)
	}
}

// all does something n times, a bounded number at a time.
func (c *crowd) all(n int, do func(i int) error) {
	c.b.Helper()
	const atOnce = 64
	var failed error
	var mu sync.Mutex
	var workers sync.WaitGroup
	for worker := range atOnce {
		workers.Go(func() {
			for i := worker; i < n; i += atOnce {
				if err := do(i); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
			}
		})
	}
	workers.Wait()
	c.must(failed)
}

func (c *crowd) createAccount(namespace, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.Client.CoreV1().ServiceAccounts(namespace).Create(c.b.Context(), account, metav1.CreateOptions{})
	return err
}

// seat makes a Node and an agent's pod on it, and a client with the token of that
// pod.
func (c *crowd) seat(node string) (*seat, error) {
	ctx := c.b.Context()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-" + node},
	}
	if _, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	agent := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "agent-" + node, Labels: map[string]string{contract.LabelAppName: contract.AppAgent},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: contract.AppAgent, UID: "agents", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: contract.AppAgent,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "agent", Image: "agent"}},
		},
	}
	agent, err := c.Client.CoreV1().Pods(bed.Namespace).Create(ctx, agent, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: agent.Name, UID: agent.UID},
	}}
	token, err := c.Client.CoreV1().ServiceAccounts(bed.Namespace).CreateToken(ctx, contract.AppAgent, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	client, err := c.connect(node, token.Status.Token)
	return &seat{node: node, client: client}, err
}

// connect makes an agent's client with a connection of its own; clients of one
// process otherwise share one.
func (c *crowd) connect(node, token string) (*evict.Client, error) {
	anonymous := rest.AnonymousClientConfig(c.Admin)
	anonymous.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host: anonymous.Host, ContentConfig: anonymous.ContentConfig, UserAgent: contract.AppAgent, QPS: anonymous.QPS,
		BearerToken: token, Transport: counting{transport, &c.requests},
	}
	return evict.New(config, node)
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	sent *atomic.Int64
}

func (t counting) RoundTrip(r *http.Request) (*http.Response, error) {
	t.sent.Add(1)
	return t.RoundTripper.RoundTrip(r)
}

// populate runs podsEach bare pods on every node, and returns how to evict each of
// them: those of a node are a thousand apart, as a loop over a cluster would have
// them.
func (c *crowd) populate(name string, grace int64) []podOf {
	c.b.Helper()
	pods := make([]podOf, len(c.seats)*podsEach)
	c.all(len(pods), func(i int) error {
		s := c.seats[i%len(c.seats)]
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%05d", name, i)},
			Spec: corev1.PodSpec{
				NodeName: s.node, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: "app", Image: "app"}},
			},
		}
		pod, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(c.b.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pods[i] = podOf{s, drain.Evict{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
		_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(c.b.Context(), pod.Name, types.StrategicMergePatchType, []byte(runs), metav1.PatchOptions{}, "status")
		return err
	})
	return pods
}

// runs is the status of a pod that runs, as a patch.
const runs = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`

// podOf is a pod of a seat.
type podOf struct {
	*seat
	drain.Evict
}

// bareLoop evicts pods with the same requests, which the same clients send, and
// nothing around them: as many at a time as all sends, however many the server could
// bear. It is what the agents are compared with, not the fastest way there is.
func (c *crowd) bareLoop(pods []podOf) time.Duration {
	c.b.Helper()
	for _, s := range c.seats { // its connection
		_, err := s.client.Node(c.b.Context())
		c.must(err)
	}
	began := time.Now()
	c.all(len(pods), func(i int) error {
		answer := pods[i].client.Evict(c.b.Context(), pods[i].Evict)
		if answer.Outcome != drain.Accepted {
			return fmt.Errorf("evicting %s: %+v", pods[i].Name, answer)
		}
		return nil
	})
	return time.Since(began)
}

// drained says how the agents fared.
type drained struct {
	// evictions and drains are when the last eviction was accepted, and when the
	// last report said Drained, after the notices.
	evictions, drains time.Duration
	// refused counts evictions that were answered with something else, requests all
	// that the agents have sent from the notices on.
	refused  int
	requests int64
}

// drain runs an agent on every node, gives all of them a notice at one moment when
// all have settled, and returns when all nodes are drained.
func (c *crowd) drain(pods int) drained {
	c.b.Helper()
	ctx, cancel := context.WithTimeout(c.b.Context(), 5*time.Minute)
	defer cancel()
	t := &tally{nodes: len(c.seats), evictions: pods, settled: make(chan struct{}), done: make(chan struct{})}
	noticed := make(chan struct{})
	var agents sync.WaitGroup
	defer agents.Wait()
	defer cancel()
	for _, s := range c.seats {
		agents.Go(func() { c.runAgent(ctx, s, t, noticed) })
	}
	c.await(ctx, t.settled, "the agents to settle")
	began, before := time.Now(), c.requests.Load()
	close(noticed)
	c.await(ctx, t.done, "the drains")
	t.mu.Lock()
	defer t.mu.Unlock()
	return drained{t.lastEviction.Sub(began), t.lastDrain.Sub(began), t.refused, c.requests.Load() - before}
}

func (c *crowd) await(ctx context.Context, event <-chan struct{}, what string) {
	c.b.Helper()
	select {
	case <-event:
	case <-ctx.Done():
		c.b.Fatalf("waiting for %s: %v", what, ctx.Err())
	}
}

// runAgent runs the agent of a seat as the program does, but that the notice comes
// when the channel is closed, and that t hears of what it does.
func (c *crowd) runAgent(ctx context.Context, s *seat, t *tally, noticed <-chan struct{}) {
	logger := slog.New(slog.DiscardHandler)
	events := kube.NewEventWriter(s.client, contract.AppAgent, s.node, logger, kube.EventLimits{})
	a := wire(defaults(c.b, s.node), s.client, events, logger)
	a.WatchNotices = func(ctx context.Context, saw func(imds.Sighting)) {
		saw(imds.Sighting{Heard: true})
		select {
		case <-noticed:
			saw(imds.Sighting{Heard: true, Notices: []notice.Notice{interruption(s.node)}})
		case <-ctx.Done():
		}
	}
	t.listen(a)
	var writing sync.WaitGroup
	writing.Go(func() { events.Run(ctx) })
	a.Run(ctx)
	writing.Wait()
}

// defaults is an agent's configuration without any flag.
func defaults(b *testing.B, node string) config {
	var c config
	flags := pflag.NewFlagSet(contract.AppAgent, pflag.ContinueOnError)
	c.register(flags)
	if err := flags.Parse([]string{"--node-name=" + node}); err != nil {
		b.Fatal(err)
	}
	return c
}

func interruption(node string) notice.Notice {
	return notice.Notice{
		ID: "spot-terminate:i-" + node, Cause: notice.SpotTerminate, Kind: contract.KindSpot, Source: notice.FromInstanceAction,
		Reason: "EC2 interrupts the spot instance", Deadline: time.Now().Add(2 * time.Minute),
	}
}

// tally counts what agents do.
type tally struct {
	nodes, evictions int // that are to come
	settled, done    chan struct{}

	mu                      sync.Mutex
	reads, accepted, drains int
	refused                 int
	lastEviction, lastDrain time.Time
}

// listen has the tally count what the API server answers an agent.
func (t *tally) listen(a *Agent) {
	read, write, ask := a.ReadNode, a.WriteNode, a.Evict
	first := sync.OnceFunc(func() { t.note(func() { t.reads++ }) })
	last := sync.OnceFunc(func() { t.note(func() { t.drains, t.lastDrain = t.drains+1, time.Now() }) })
	a.ReadNode = func(ctx context.Context) (*corev1.Node, error) {
		node, err := read(ctx)
		if err == nil {
			first()
		}
		return node, err
	}
	a.WriteNode = func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
		node, err := write(ctx, patch)
		if err != nil {
			return node, err
		}
		if report, wrong := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport]); wrong == nil && report.Phase == contract.PhaseDrained {
			last()
		}
		return node, nil
	}
	a.Evict = func(ctx context.Context, step drain.Evict) drain.Answer {
		answer := ask(ctx, step)
		t.note(func() {
			if answer.Outcome != drain.Accepted {
				t.refused++
				return
			}
			t.accepted, t.lastEviction = t.accepted+1, time.Now()
		})
		return answer
	}
}

func (t *tally) note(what func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what()
	if t.reads == t.nodes && t.accepted == 0 {
		closeOnce(t.settled)
	}
	if t.accepted == t.evictions && t.drains == t.nodes {
		closeOnce(t.done)
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
