package confine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// setting is a cluster that people could make of the manifests.
type setting struct {
	name       string
	namespace  string // "" is that of the manifests
	components []string
	gates      string // the API server's feature gates
	rights     Rights
}

var settings = []setting{
	{name: "as it comes", rights: Rights{AsNode: true, AsAccount: true}},
	{name: "in another namespace, on an older server", namespace: "elsewhere", gates: "ConstrainedImpersonation=false", rights: Rights{AsAccount: true}},
	{
		name: "in another namespace, with components", namespace: "elsewhere",
		components: []string{"last-chance-delete", "impersonation-only", "out-of-service-taint"}, rights: Rights{AsNode: true, Deletes: true, OutOfService: true},
	},
}

func TestTokenIsOfUseOnItsNodeOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	programs, err := world.Build(t.Context(), t.TempDir(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	programs.Scaler = "" // it has no part in this
	for _, s := range settings {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			b := start(t, s, programs)
			b.checkPolicies()
			// The policies are in force a moment after they are there.
			for _, who := range []thief{{}, {scaler: true}} {
				b.await("a foreign annotation to be out of reach", func() bool {
					client, err := b.client(who)
					if err != nil {
						t.Fatal(err)
					}
					return annotate(b.Far, "foreign")(b.ctx, client) != nil
				})
			}
			for _, wrong := range b.Try(b.ctx) {
				t.Error(wrong)
			}
			b.drainAndUndo()
			b.checkAudit()
			b.saysWhoItIs()
			if s.rights.Deletes {
				b.lastChance()
			}
		})
	}
}

// bed is a scene in a world of its own.
type bed struct {
	*world.World
	Scene
	setting
	t   *testing.T
	ctx context.Context
}

// patience bounds each wait: who runs into it has found a defect.
const patience = 3 * time.Minute

func start(t *testing.T, s setting, programs world.Programs) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	spec, err := world.ParseSpec([]byte("groups: [{name: web, max: 2, desired: 2, type: m5.large, spot: true}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	spec.Cloud.Timing.Quick = true
	spec.ControlPlane = []string{"--audit", "--ready-timeout=" + patience.String()}
	if s.gates != "" {
		spec.ControlPlane = append(spec.ControlPlane, "--feature-gates="+s.gates)
	}
	b := &bed{setting: s, t: t, ctx: ctx}
	b.World, err = world.Start(ctx, world.Config{Spec: spec, Programs: programs, Manifests: b.overlay(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, agent := range b.Agents() {
				t.Logf("--- the end of %s\n%s", agent, world.Tail(filepath.Join(b.Dir, "logs", agent+".log"), 20))
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if b.namespace == "" {
		b.namespace = world.Namespace
	}
	b.settle()
	b.Server, b.Rights = b.Admin, b.rights
	b.Token, b.Unbound = b.tokenOf(contract.AppAgent, b.agentPod(b.Near)), b.tokenOf(contract.AppAgent, nil)
	b.Scaler = b.tokenOf(contract.AppScaler, nil)
	return b
}

// overlay is the folder of an overlay such as people write.
func (b *bed) overlay() string {
	b.t.Helper()
	root, err := world.Root(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	dir := b.t.TempDir()
	manifests, err := filepath.Rel(dir, filepath.Join(root, "manifests"))
	if err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	if b.namespace != "" {
		fmt.Fprintln(&text, "namespace:", b.namespace)
	}
	fmt.Fprintf(&text, "resources: [%s]\ncomponents:\n", manifests)
	for _, c := range b.components {
		fmt.Fprintf(&text, "- %s/components/%s\n", manifests, c)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// settle waits until there are an agent and a pod on both nodes.
func (b *bed) settle() {
	b.t.Helper()
	// Pods that come before the second Node does are all on the first, and stay there.
	b.await("two Nodes that take pods", func() bool {
		nodes, err := b.Client.CoreV1().Nodes().List(b.ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		tainted := func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 }
		return len(slices.DeleteFunc(nodes.Items, tainted)) == 2
	})
	if err := b.Apply(b.ctx, []byte(web)); err != nil {
		b.t.Fatal(err)
	}
	on := map[string]string{} // pods by Node
	b.await("a pod on both nodes", func() bool {
		pods, err := b.Client.CoreV1().Pods(metav1.NamespaceDefault).List(b.ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return false
		}
		clear(on)
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				on[p.Spec.NodeName] = p.Name
			}
		}
		return len(on) == 2
	})
	b.await("an agent on both nodes", func() bool { return len(b.Agents()) == 2 })
	for node, pod := range on {
		if b.Near == "" || node < b.Near {
			b.Near, b.Far, b.NearPod, b.FarPod = node, b.Near, pod, b.NearPod
		} else {
			b.Far, b.FarPod = node, pod
		}
	}
}

// web is spread over both nodes.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {pod-delete.stage.kwok.x-k8s.io/seconds: "1"}
    spec:
      topologySpreadConstraints:
      - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 100m}}}
`

func (b *bed) agentPod(node string) *corev1.Pod {
	b.t.Helper()
	name, err := b.AgentOf(node)
	if err != nil {
		b.t.Fatal(err)
	}
	pod, err := b.Client.CoreV1().Pods(b.namespace).Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return pod
}

// tokenOf asks for a token of an account, bound to that pod, as kubelet
// does for its volumes; bound to nothing if there is none.
func (b *bed) tokenOf(account string, pod *corev1.Pod) string {
	b.t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	answer, err := b.Client.CoreV1().ServiceAccounts(b.namespace).CreateToken(b.ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.Status.Token
}

// await waits until it is so.
func (b *bed) await(what string, so func() bool) {
	b.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ticker.C:
		case <-timeout.C:
			b.t.Fatalf("waiting for %s: not within %s", what, patience)
		}
	}
}

// checkPolicies: the server's own check of types, which goes through what no
// request has led to yet, finds nothing wrong.
func (b *bed) checkPolicies() {
	b.t.Helper()
	var names []string
	b.await("the policies to be checked", func() bool {
		list, err := b.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(b.ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		names = nil
		for _, p := range list.Items {
			if p.Status.TypeChecking == nil || p.Status.ObservedGeneration != p.Generation {
				return false
			}
			for _, w := range p.Status.TypeChecking.ExpressionWarnings {
				b.t.Errorf("policy %s: %s: %s", p.Name, w.FieldRef, w.Warning)
			}
			names = append(names, p.Name)
		}
		return true
	})
	if got := slices.Contains(names, "windlass-agent-evictions"); got != b.rights.AsAccount {
		b.t.Errorf("policies %v; the account may evict: %v", names, b.rights.AsAccount)
	}
}
