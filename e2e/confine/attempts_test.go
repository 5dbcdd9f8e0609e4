package confine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
)

// attempt is one thing that a thief may try. Nothing that succeeds is done: all
// writes are dry runs, which admission sees as it sees others.
type attempt struct {
	what string
	as   thief
	do   func(context.Context, kubernetes.Interface) error
	// want is part of the words in which it is denied; "" is that it is allowed.
	want string
}

// What denies.
const (
	noRight       = "cannot "
	notTheNode    = "cannot impersonate"
	foreignNode   = "the agent may write its own Node only"
	foreignSpec   = "of a Node's spec the agent may write"
	foreignTaint  = "of a Node's taints the agent may write"
	foreignEffect = "with the effect NoSchedule only"
	foreignLabel  = "of the labels of a Node the agent may write"
	foreignNote   = "of the annotations of a Node the agent may write"
	foreignMeta   = "of the metadata of a Node the agent may write"
	foreignPod    = "only pods of the Node that the token is bound to"
	unmarked      = "must bear the label " + contract.LabelAsAccount
	notRestricted = "can only evict pods with spec.nodeName set to itself"
	foreignSource = "must say that it comes from windlass-agent on its own Node"
	foreignObject = "must be about its own Node or about a pod"
	foreignDelete = "the agent may delete pods of its own Node only"
)

// needs returns what is to be expected: without a right nobody asks a policy.
func needs(right bool, without, want string) string {
	if !right {
		return without
	}
	return want
}

func (b *bed) try(a attempt) {
	b.t.Helper()
	err := a.do(b.ctx, b.as(a.as))
	switch {
	case a.want == "" && err != nil:
		b.t.Errorf("%s as %+v: %v", a.what, a.as, err)
	case a.want != "" && err == nil:
		b.t.Errorf("%s as %+v was allowed", a.what, a.as)
	case a.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.want)):
		b.t.Errorf("%s as %+v: denied by %v, want %q", a.what, a.as, err, a.want)
	}
}

func (b *bed) attempts() []attempt {
	account, unbound := thief{}, thief{unbound: true}
	var all []attempt
	all = append(all, b.nodeWrites(account, unbound)...)
	all = append(all, b.evictions(account, unbound)...)
	all = append(all, b.deletions(account, unbound)...)
	all = append(all, b.reads(account)...)
	return append(all, b.events(account, unbound)...)
}

func (b *bed) nodeWrites(account, unbound thief) []attempt {
	own := func(what string, want string, ops ...op) attempt {
		return attempt{what, account, patch(b.near, ops...), want}
	}
	draining := func(effect corev1.TaintEffect) op {
		return op{"add", "/spec/taints", []corev1.Taint{{Key: contract.TaintDraining, Value: "spot", Effect: effect}}}
	}
	taints := func(taints ...corev1.Taint) op { return op{"add", "/spec/taints", taints} }
	lasting := contract.KubeProxyTaint()
	lasting.Effect = corev1.TaintEffectNoExecute
	const labels, notes = "/metadata/labels/", "/metadata/annotations/"
	return []attempt{
		own("cordoning its Node and reporting", "",
			op{"add", "/spec/unschedulable", true}, draining(corev1.TaintEffectNoSchedule),
			op{"add", labels + key(contract.LabelExcludeFromLoadBalancers), "true"},
			op{"add", notes + key(contract.AnnotationExcluded), "x"},
			op{"add", notes + key(contract.AnnotationCordonedBy), "x"},
			op{"add", notes + key(contract.AnnotationDrainReport), "x"},
			op{"add", notes + key(contract.AnnotationNotices), "x"}),
		{"a note on a foreign Node", account, annotate(b.far, contract.AnnotationServed), foreignNode},
		{"cordoning a foreign Node", account, patch(b.far, op{"add", "/spec/unschedulable", true}), foreignNode},
		{"a note on its Node", unbound, annotate(b.near, contract.AnnotationServed), foreignNode},
		own("a NoExecute taint", foreignEffect, draining(corev1.TaintEffectNoExecute)),
		own("a PreferNoSchedule taint", foreignEffect, draining(corev1.TaintEffectPreferNoSchedule)),
		own("telling kube-proxy", "", taints(contract.KubeProxyTaint(), contract.DrainingTaint(contract.KindSpot))),
		own("telling kube-proxy by a NoExecute taint", foreignEffect, taints(lasting)),
		own("Cluster Autoscaler's own taint", foreignTaint, taints(corev1.Taint{Key: contract.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule})),
		own("Cluster Autoscaler's own taint without a value", foreignTaint, taints(corev1.Taint{Key: contract.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule})),
		own("a foreign taint", foreignTaint, op{"add", "/spec/taints", []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}),
		own("a foreign NoExecute taint", foreignTaint, op{"add", "/spec/taints", []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}}),
		own("a field of the spec", foreignSpec, op{"add", "/spec/podCIDR", "10.1.0.0/24"}),
		own("a foreign label", foreignLabel, op{"add", labels + "a", "b"}),
		own("another value of a label", foreignLabel, op{"replace", labels + key(corev1.LabelTopologyZone), "b"}),
		own("the removal of a label", foreignLabel, op{"remove", labels + key(corev1.LabelTopologyZone), nil}),
		own("a foreign annotation", foreignNote, op{"add", notes + "a", "b"}),
		own("a drain request", foreignNote, op{"add", notes + key(contract.AnnotationDrainRequest), "x"}),
		own("a permit", foreignNote, op{"add", notes + key(contract.AnnotationDrainPermit), "x"}),
		own("the point of no return", foreignNote, op{"add", notes + key(contract.AnnotationTerminating), "x"}),
		own("a hold", foreignNote, op{"add", notes + key(contract.AnnotationHold), "true"}),
		own("a finalizer", foreignMeta, op{"add", "/metadata/finalizers", []string{"a.b/c"}}),
		own("an owner", foreignMeta, op{"add", "/metadata/ownerReferences", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: b.far, UID: "u"}}}),
		{"the status of its Node", account, patchStatus(b.near), noRight},
		{"deleting its Node", account, deleteNode(b.near), noRight},
		{"a note on its Node as the node", thief{node: b.near}, annotate(b.near, contract.AnnotationServed), notTheNode},
	}
}

func (b *bed) evictions(account, unbound thief) []attempt {
	const marked, plain = true, false
	return []attempt{
		{"evicting its pod", account, evict(b.nearPod, marked), needs(b.asAccount, noRight, "")},
		{"evicting a foreign pod", account, evict(b.farPod, marked), needs(b.asAccount, noRight, foreignPod)},
		{"evicting its pod without a mark", account, evict(b.nearPod, plain), needs(b.asAccount, noRight, unmarked)},
		{"evicting a foreign pod without a mark", account, evict(b.farPod, plain), needs(b.asAccount, noRight, unmarked)},
		{"evicting a pod", unbound, evict(b.nearPod, marked), needs(b.asAccount, noRight, foreignPod)},
		{"evicting its pod", thief{node: b.near}, evict(b.nearPod, plain), needs(b.asNode, notTheNode, "")},
		{"evicting a foreign pod", thief{node: b.near}, evict(b.farPod, plain), needs(b.asNode, notTheNode, notRestricted)},
		{"evicting a foreign pod with a mark", thief{node: b.near}, evict(b.farPod, marked), needs(b.asNode, notTheNode, notRestricted)},
		{"evicting a pod of the node that he says he is", thief{node: b.far}, evict(b.farPod, plain), notTheNode},
		{"evicting a pod", thief{node: b.near, unbound: true}, evict(b.nearPod, plain), notTheNode},
	}
}

func (b *bed) deletions(account, unbound thief) []attempt {
	return []attempt{
		{"deleting its pod", account, deletePod(b.nearPod), needs(b.deletes, noRight, "")},
		{"deleting a foreign pod", account, deletePod(b.farPod), needs(b.deletes, noRight, foreignDelete)},
		{"deleting a pod", unbound, deletePod(b.nearPod), needs(b.deletes, noRight, foreignDelete)},
		{"deleting all pods", account, deletePods, noRight},
		{"deleting its pod", thief{node: b.near}, deletePod(b.nearPod), notTheNode},
	}
}

func (b *bed) reads(account thief) []attempt {
	ours, theirs := "spec.nodeName="+b.near, "spec.nodeName="+b.far
	node := thief{node: b.near}
	return []attempt{
		{"reading its Node", node, readNode(b.near), needs(b.asNode, notTheNode, "")},
		{"reading a foreign Node", node, readNode(b.far), needs(b.asNode, notTheNode, noRight)},
		{"listing its pods", node, listPods(ours), needs(b.asNode, notTheNode, "")},
		{"listing foreign pods", node, listPods(theirs), needs(b.asNode, notTheNode, noRight)},
		{"listing all pods", node, listPods(""), needs(b.asNode, notTheNode, noRight)},
		{"reading a foreign Node", account, readNode(b.far), needs(b.asAccount, noRight, "")},
		{"listing all pods", account, listPods(""), needs(b.asAccount, noRight, "")},
		{"listing Secrets", account, listSecrets, noRight},
		{"listing Secrets", node, listSecrets, notTheNode},
	}
}

func (b *bed) events(account, unbound thief) []attempt {
	node := corev1.ObjectReference{Kind: "Node", Name: b.near}
	pod := corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: b.nearPod}
	return []attempt{
		{"an Event of its Node", account, tell(node, contract.AppAgent, b.near), ""},
		{"an Event of a pod", account, tell(pod, contract.AppAgent, b.near), ""},
		{"an Event of a foreign Node", account, tell(corev1.ObjectReference{Kind: "Node", Name: b.far}, contract.AppAgent, b.near), foreignObject},
		{"an Event of a Secret", account, tell(corev1.ObjectReference{Kind: "Secret", Namespace: metav1.NamespaceDefault, Name: "s"}, contract.AppAgent, b.near), foreignObject},
		{"an Event in the name of another agent", account, tell(pod, contract.AppAgent, b.far), foreignSource},
		{"an Event in the name of kubelet", account, tell(node, "kubelet", b.near), foreignSource},
		{"an Event", unbound, tell(pod, contract.AppAgent, b.near), foreignSource},
	}
}

var dryRun = []string{metav1.DryRunAll}

// op is one step of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// key escapes a key for a path of a JSON patch.
func key(k string) string { return strings.ReplaceAll(k, "/", "~1") }

func patch(node string, ops ...op) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		body, err := json.Marshal(ops)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().Nodes().Patch(ctx, node, types.JSONPatchType, body, metav1.PatchOptions{DryRun: dryRun})
		return err
	}
}

func annotate(node, annotation string) func(context.Context, kubernetes.Interface) error {
	return patch(node, op{"add", "/metadata/annotations/" + key(annotation), "x"})
}

func patchStatus(node string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"status":{"phase":"Pending"}}`), metav1.PatchOptions{DryRun: dryRun}, "status")
		return err
	}
}

func deleteNode(node string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{DryRun: dryRun})
	}
}

func evict(pod string, marked bool) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		e := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: pod},
			DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
		}
		if marked {
			e.Labels = map[string]string{contract.LabelAsAccount: "true"}
		}
		return c.CoreV1().Pods(metav1.NamespaceDefault).EvictV1(ctx, e)
	}
}

func deletePod(pod string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return c.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, pod, metav1.DeleteOptions{DryRun: dryRun})
	}
}

func deletePods(ctx context.Context, c kubernetes.Interface) error {
	return c.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{})
}

func readNode(node string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		return err
	}
}

func listPods(fields string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields})
		return err
	}
}

func listSecrets(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	return err
}

func tell(about corev1.ObjectReference, component, host string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		e := &corev1.Event{
			ObjectMeta:          metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s.%s", about.Name, strings.ToLower(component))},
			InvolvedObject:      about,
			Type:                corev1.EventTypeNormal,
			Reason:              contract.EventDrained,
			Source:              corev1.EventSource{Component: component, Host: host},
			ReportingController: component,
			ReportingInstance:   host,
		}
		_, err := c.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, e, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}
