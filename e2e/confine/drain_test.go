package confine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
)

// drainAndUndo lets the real agent of the near Node do all its work: it drains the
// Node for somebody who asks, and undoes that when he asks no more.
func (b *bed) drainAndUndo() {
	b.t.Helper()
	b.ask(`"test"`)
	// A permit that stands is taken away with the drain.
	b.annotate(contract.AnnotationDrainPermit, `"request:test"`)
	b.await("the agent to drain its Node", func() bool {
		node := b.node(b.Near)
		report, err := contract.ParseReport(node.Annotations[contract.AnnotationDrainReport])
		_, tainted := contract.Draining(node.Spec.Taints)
		_, excluded := node.Labels[contract.LabelExcludeFromLoadBalancers]
		return err == nil && report.Phase == contract.PhaseDrained && node.Spec.Unschedulable && tainted && excluded
	})
	if pods := b.podsOn(b.Near); len(pods) != 0 {
		b.t.Errorf("the drained Node has the pods %v", pods)
	}
	b.ask("null")
	b.await("the agent to undo its drain", func() bool {
		node := b.node(b.Near)
		_, tainted := contract.Draining(node.Spec.Taints)
		_, excluded := node.Labels[contract.LabelExcludeFromLoadBalancers]
		_, permitted := node.Annotations[contract.AnnotationDrainPermit]
		_, reported := node.Annotations[contract.AnnotationDrainReport]
		return !node.Spec.Unschedulable && !tainted && !excluded && !permitted && !reported
	})
}

// lastChance lets the real agent of the far Node, where the pods are now, run out
// of time: a budget keeps them, and the instance is taken.
func (b *bed) lastChance() {
	b.t.Helper()
	if err := b.Apply(b.ctx, []byte(budget)); err != nil {
		b.t.Fatal(err)
	}
	b.await("the budget to be counted", func() bool {
		budget, err := b.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Get(b.ctx, "web", metav1.GetOptions{})
		return err == nil && budget.Status.ExpectedPods > 0 && budget.Status.ObservedGeneration == budget.Generation
	})
	instance, ok := b.Instance(b.Far)
	if !ok {
		b.t.Fatalf("no instance behind %s", b.Far)
	}
	if err := b.AWS.SpotNotice(instance.ID, shortNotice); err != nil {
		b.t.Fatal(err)
	}
	b.await("the agent to delete a pod that a budget keeps", func() bool {
		return slices.ContainsFunc(b.agentsRequests(), func(a audited) bool {
			return a.Verb == "delete" && a.ObjectRef.Resource == "pods" && a.ResponseStatus.Code == http.StatusOK
		})
	})
}

// shortNotice is what is left of a spot instance; real: two minutes.
const shortNotice = 15 * time.Second

const budget = `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: web}}
`

func (b *bed) ask(value string) { b.annotate(contract.AnnotationDrainRequest, value) }

func (b *bed) annotate(annotation, value string) {
	b.t.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, annotation, value)
	if _, err := b.Client.CoreV1().Nodes().Patch(b.ctx, b.Near, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) node(name string) *corev1.Node {
	b.t.Helper()
	node, err := b.Client.CoreV1().Nodes().Get(b.ctx, name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return node
}

// podsOn are the pods of namespace default on a Node.
func (b *bed) podsOn(node string) []string {
	b.t.Helper()
	pods, err := b.Client.CoreV1().Pods(metav1.NamespaceDefault).List(b.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	return names
}

// audited is what is read of a line of the API server's audit log.
type audited struct {
	Verb, UserAgent  string
	ImpersonatedUser struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, Name string }
	ResponseStatus   struct {
		Code    int
		Message string
	}
	RequestObject json.RawMessage
}

// agentsRequests are what the API server's audit log has of the real agents.
func (b *bed) agentsRequests() []audited {
	b.t.Helper()
	log, err := os.ReadFile(filepath.Join(b.Dir, "cluster", "logs", "audit.log"))
	if err != nil {
		b.t.Fatal(err)
	}
	var all []audited
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var a audited
		if err := json.Unmarshal(line, &a); err != nil {
			b.t.Fatalf("reading the audit log: %v", err)
		}
		if strings.HasPrefix(a.UserAgent, contract.AppAgent+"/") {
			all = append(all, a)
		}
	}
	return all
}

// checkAudit: the agents were denied nothing, and asked as who they should.
func (b *bed) checkAudit() {
	b.t.Helper()
	evicted, patched := 0, 0
	for _, a := range b.agentsRequests() {
		switch {
		case a.ResponseStatus.Code == http.StatusForbidden:
			b.t.Errorf("the agent was denied: %s %s/%s %s: %s", a.Verb, a.ObjectRef.Resource, a.ObjectRef.Subresource, a.ObjectRef.Name, a.ResponseStatus.Message)
		case a.ObjectRef.Subresource == "eviction":
			evicted++
			b.checkEviction(a)
		case a.ImpersonatedUser.Username != "":
			b.t.Errorf("the agent was to %s %s %s as %s", a.Verb, a.ObjectRef.Resource, a.ObjectRef.Name, a.ImpersonatedUser.Username)
		case a.ObjectRef.Resource == "nodes":
			patched++
		}
	}
	if evicted == 0 || patched == 0 {
		b.t.Errorf("the agents sent %d evictions and %d patches of Nodes", evicted, patched)
	}
}

func (b *bed) checkEviction(a audited) {
	b.t.Helper()
	var eviction metav1.PartialObjectMetadata
	if err := json.Unmarshal(a.RequestObject, &eviction); err != nil {
		b.t.Fatalf("reading the audit log: %v", err)
	}
	user, marked := "", eviction.Labels[contract.LabelAsAccount] == "true"
	if b.rights.AsNode {
		user = "system:node:" + b.Near
	}
	if a.ImpersonatedUser.Username != user || marked == b.rights.AsNode {
		b.t.Errorf("%s was evicted as %q, marked %v; want %q", a.ObjectRef.Name, a.ImpersonatedUser.Username, marked, user)
	}
}

// saysWhoItIs: people hear, once, that the server does not let the agent
// be its node.
func (b *bed) saysWhoItIs() {
	b.t.Helper()
	name, err := b.AgentOf(b.Near)
	if err != nil {
		b.t.Fatal(err)
	}
	log, err := b.Log(name)
	if err != nil {
		b.t.Fatal(err)
	}
	said := slices.Collect(bytes.Lines(log))
	said = slices.DeleteFunc(said, func(line []byte) bool { return !bytes.Contains(line, []byte("impersonating the node is not allowed")) })
	if want := map[bool]int{true: 0, false: 1}[b.rights.AsNode]; len(said) != want {
		b.t.Errorf("the agent said %d times that it is not its node, want %d: %s", len(said), want, said)
	}
}
