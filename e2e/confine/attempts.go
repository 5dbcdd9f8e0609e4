// Package confine tries what a thief could do who has the token of one agent, or that of the
// scaler: on a real API server, with tokens that are bound to the agents' own pods, under the
// manifests and under their components. What the programs themselves do goes through
// the same doors, and must not be kept out.
package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"windlass.dev/windlass/pkg/contract"
)

// Scene is a cluster of two nodes with an agent and a pod of somebody's on each. The
// thief has the token of the agent on the near one.
type Scene struct {
	// Server leads to the API server; no credentials of it are used.
	Server *rest.Config
	// Near and Far are Nodes, NearPod and FarPod pods on them, in namespace default.
	Near, Far, NearPod, FarPod string
	// Token and Unbound are tokens of the agents' account: that of the pod of the near
	// agent, and one that is bound to no pod.
	Token, Unbound string
	// Scaler is a token of the scaler's account.
	Scaler string
	Rights Rights
}

// Rights are the doors that a cluster leaves open to agents.
type Rights struct {
	// AsNode: the API server lets an account be the node that its token is bound to.
	// AsAccount: the account itself may read Nodes and pods, and evict. Deletes: and
	// delete.
	AsNode, AsAccount, Deletes bool
	// OutOfService: the scaler may call a Node's machine down that is not Ready.
	OutOfService bool
}

// UserAgent is how the thief calls himself, by which audit logs tell him from the agent.
const UserAgent = "thief"

// Try makes every attempt and returns what did not end as it should, in a sentence each.
func (s Scene) Try(ctx context.Context) []string {
	var wrong []string
	for _, a := range s.attempts() {
		client, err := s.client(a.as)
		if err == nil {
			err = a.judge(a.do(ctx, client))
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s as %+v: %v", a.what, a.as, err))
		}
	}
	return wrong
}

// thief is somebody who has a token of the agent's account, or of the scaler's.
type thief struct {
	scaler  bool   // the token is of the scaler's account
	unbound bool   // the token is bound to no pod
	node    string // whom he says he is; "" is the account
}

func (s Scene) client(t thief) (kubernetes.Interface, error) {
	config := rest.AnonymousClientConfig(s.Server)
	config.UserAgent, config.BearerToken = UserAgent, s.Token
	if t.unbound {
		config.BearerToken = s.Unbound
	}
	if t.scaler {
		config.BearerToken = s.Scaler
	}
	if t.node != "" {
		config.Impersonate.UserName = "system:node:" + t.node
	}
	return kubernetes.NewForConfig(config)
}

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

	scalersSpec   = "of a Node's spec the scaler may write"
	scalersTaint  = "of a Node's taints the scaler may write"
	scalersEffect = "the scaler may write its taints with the effect NoSchedule only"
	scalersLabel  = "of the labels of a Node the scaler may write"
	scalersNote   = "of the annotations of a Node the scaler may write"
	scalersDown   = "the scaler may write node.kubernetes.io/out-of-service on a Node only that is not Ready"
	scalersMeta   = "of the metadata of a Node the scaler may write"
)

// needs returns what is to be expected: without a right nobody asks a policy.
func needs(right bool, without, want string) string {
	if !right {
		return without
	}
	return want
}

// judge returns an error if what came of an attempt is not what should.
func (a attempt) judge(came error) error {
	switch {
	case a.want == "":
		return came
	case came == nil:
		return errors.New("it was allowed")
	case !apierrors.IsForbidden(came) || !strings.Contains(came.Error(), a.want):
		return fmt.Errorf("denied by %w, want %q", came, a.want)
	}
	return nil
}

func (s Scene) attempts() []attempt {
	account, unbound := thief{}, thief{unbound: true}
	var all []attempt
	all = append(all, s.nodeWrites(account, unbound)...)
	all = append(all, s.evictions(account, unbound)...)
	all = append(all, s.deletions(account, unbound)...)
	all = append(all, s.reads(account)...)
	all = append(all, s.scalersWrites(thief{scaler: true})...)
	return append(all, s.events(account, unbound)...)
}

func (s Scene) nodeWrites(account, unbound thief) []attempt {
	own := func(what string, want string, ops ...op) attempt {
		return attempt{what, account, patch(s.Near, ops...), want}
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
		{"a note on a foreign Node", account, annotate(s.Far, contract.AnnotationServed), foreignNode},
		{"cordoning a foreign Node", account, patch(s.Far, op{"add", "/spec/unschedulable", true}), foreignNode},
		{"a note on its Node", unbound, annotate(s.Near, contract.AnnotationServed), foreignNode},
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
		own("the scaler's word that it waits", foreignNote, op{"add", notes + key(contract.AnnotationDrainNotYet), "x"}),
		own("the point of no return", foreignNote, op{"add", notes + key(contract.AnnotationTerminating), "x"}),
		own("a hold", foreignNote, op{"add", notes + key(contract.AnnotationHold), "true"}),
		own("a finalizer", foreignMeta, op{"add", "/metadata/finalizers", []string{"a.b/c"}}),
		own("an owner", foreignMeta, op{"add", "/metadata/ownerReferences", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.Far, UID: "u"}}}),
		{"the status of its Node", account, patchStatus(s.Near), noRight},
		{"deleting its Node", account, deleteNode(s.Near), noRight},
		{"a note on its Node as the node", thief{node: s.Near}, annotate(s.Near, contract.AnnotationServed), notTheNode},
	}
}

// scalersWrites are what the scaler writes on any Node, and what it never does.
func (s Scene) scalersWrites(scaler thief) []attempt {
	const labels, notes = "/metadata/labels/", "/metadata/annotations/"
	try := func(what string, want string, ops ...op) attempt {
		return attempt{what, scaler, patch(s.Far, ops...), want}
	}
	taints := func(taints ...corev1.Taint) op { return op{"add", "/spec/taints", taints} }
	with := func(t corev1.Taint, effect corev1.TaintEffect) corev1.Taint { t.Effect = effect; return t }
	draining, unneeded := contract.DrainingTaint(contract.KindScaleDown), contract.UnneededTaint(time.Unix(1700000000, 0))
	last := contract.WithFillTurn(nil, contract.FillLast)
	return []attempt{
		try("asking for a drain", "", op{"add", notes + key(contract.AnnotationDrainRequest), "x"},
			op{"add", notes + key(contract.AnnotationDrainPermit), "x"}, taints(draining)),
		try("marking as unneeded", "", taints(unneeded)),
		try("having a node filled last", "", taints(last...)),
		try("the point of no return", "", op{"add", notes + key(contract.AnnotationTerminating), "x"}),
		try("draining in place of an agent", "", op{"add", "/spec/unschedulable", true}, taints(draining, unneeded, contract.KubeProxyTaint()),
			op{"add", labels + key(contract.LabelExcludeFromLoadBalancers), "true"},
			op{"add", notes + key(contract.AnnotationExcluded), "x"}, op{"add", notes + key(contract.AnnotationCordonedBy), "x"}),
		try("a NoExecute taint", scalersEffect, taints(with(draining, corev1.TaintEffectNoExecute))),
		try("another NoExecute taint", scalersEffect, taints(with(unneeded, corev1.TaintEffectNoExecute))),
		try("unneeded as NoSchedule", scalersEffect, taints(with(unneeded, corev1.TaintEffectNoSchedule))),
		try("fill-later as NoSchedule", scalersEffect, taints(with(last[0], corev1.TaintEffectNoSchedule))),
		try("surplus as NoSchedule", scalersEffect, taints(with(last[1], corev1.TaintEffectNoSchedule))),
		try("telling kube-proxy by a NoExecute taint", scalersEffect, taints(with(contract.KubeProxyTaint(), corev1.TaintEffectNoExecute))),
		try("Cluster Autoscaler's own taint", scalersTaint, taints(corev1.Taint{Key: contract.TaintToBeDeleted, Value: "1700000000", Effect: corev1.TaintEffectNoSchedule})),
		try("Cluster Autoscaler's softer taint", scalersTaint, taints(corev1.Taint{Key: contract.TaintDeletionCandidate, Value: "1700000000", Effect: corev1.TaintEffectPreferNoSchedule})),
		try("a foreign NoExecute taint", scalersTaint, taints(corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})),
		try("that the machine of a Node is down that is Ready", map[bool]string{true: scalersDown, false: scalersTaint}[s.Rights.OutOfService], taints(contract.OutOfServiceTaint())),
		try("a field of the spec", scalersSpec, op{"add", "/spec/podCIDR", "10.1.0.0/24"}),
		try("a foreign label", scalersLabel, op{"add", labels + "a", "b"}),
		try("another value of a label", scalersLabel, op{"replace", labels + key(corev1.LabelTopologyZone), "b"}),
		try("the removal of a label", scalersLabel, op{"remove", labels + key(corev1.LabelTopologyZone), nil}),
		try("a foreign annotation", scalersNote, op{"add", notes + "a", "b"}),
		try("a hold", scalersNote, op{"add", notes + key(contract.AnnotationHold), "true"}),
		try("an agent's report", scalersNote, op{"add", notes + key(contract.AnnotationDrainReport), "x"}),
		try("what an agent has served", scalersNote, op{"add", notes + key(contract.AnnotationServed), "x"}),
		try("an agent's notices", scalersNote, op{"add", notes + key(contract.AnnotationNotices), "x"}),
		try("a finalizer", scalersMeta, op{"add", "/metadata/finalizers", []string{"a.b/c"}}),
		try("an owner", scalersMeta, op{"add", "/metadata/ownerReferences", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: s.Near, UID: "u"}}}),
		{"the status of a Node", scaler, patchStatus(s.Far), noRight},
		{"deleting a Node", scaler, deleteNode(s.Far), noRight},
		{"deleting a pod", scaler, deletePod(s.FarPod), noRight},
		{"listing Secrets", scaler, listSecrets, noRight},
	}
}

func (s Scene) evictions(account, unbound thief) []attempt {
	const marked, plain = true, false
	return []attempt{
		{"evicting its pod", account, evict(s.NearPod, marked), needs(s.Rights.AsAccount, noRight, "")},
		{"evicting a foreign pod", account, evict(s.FarPod, marked), needs(s.Rights.AsAccount, noRight, foreignPod)},
		{"evicting its pod without a mark", account, evict(s.NearPod, plain), needs(s.Rights.AsAccount, noRight, unmarked)},
		{"evicting a foreign pod without a mark", account, evict(s.FarPod, plain), needs(s.Rights.AsAccount, noRight, unmarked)},
		{"evicting a pod", unbound, evict(s.NearPod, marked), needs(s.Rights.AsAccount, noRight, foreignPod)},
		{"evicting its pod", thief{node: s.Near}, evict(s.NearPod, plain), needs(s.Rights.AsNode, notTheNode, "")},
		{"evicting a foreign pod", thief{node: s.Near}, evict(s.FarPod, plain), needs(s.Rights.AsNode, notTheNode, notRestricted)},
		{"evicting a foreign pod with a mark", thief{node: s.Near}, evict(s.FarPod, marked), needs(s.Rights.AsNode, notTheNode, notRestricted)},
		{"evicting a pod of the node that he says he is", thief{node: s.Far}, evict(s.FarPod, plain), notTheNode},
		{"evicting a pod", thief{node: s.Near, unbound: true}, evict(s.NearPod, plain), notTheNode},
	}
}

func (s Scene) deletions(account, unbound thief) []attempt {
	return []attempt{
		{"deleting its pod", account, deletePod(s.NearPod), needs(s.Rights.Deletes, noRight, "")},
		{"deleting a foreign pod", account, deletePod(s.FarPod), needs(s.Rights.Deletes, noRight, foreignDelete)},
		{"deleting a pod", unbound, deletePod(s.NearPod), needs(s.Rights.Deletes, noRight, foreignDelete)},
		{"deleting all pods", account, deletePods, noRight},
		{"deleting its pod", thief{node: s.Near}, deletePod(s.NearPod), notTheNode},
	}
}

func (s Scene) reads(account thief) []attempt {
	ours, theirs := "spec.nodeName="+s.Near, "spec.nodeName="+s.Far
	node := thief{node: s.Near}
	return []attempt{
		{"reading its Node", node, readNode(s.Near), needs(s.Rights.AsNode, notTheNode, "")},
		{"reading a foreign Node", node, readNode(s.Far), needs(s.Rights.AsNode, notTheNode, noRight)},
		{"listing its pods", node, listPods(ours), needs(s.Rights.AsNode, notTheNode, "")},
		{"listing foreign pods", node, listPods(theirs), needs(s.Rights.AsNode, notTheNode, noRight)},
		{"listing all pods", node, listPods(""), needs(s.Rights.AsNode, notTheNode, noRight)},
		{"reading a foreign Node", account, readNode(s.Far), needs(s.Rights.AsAccount, noRight, "")},
		{"listing all pods", account, listPods(""), needs(s.Rights.AsAccount, noRight, "")},
		{"listing Secrets", account, listSecrets, noRight},
		{"listing Secrets", node, listSecrets, notTheNode},
	}
}

func (s Scene) events(account, unbound thief) []attempt {
	node := corev1.ObjectReference{Kind: "Node", Name: s.Near}
	pod := corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: s.NearPod}
	return []attempt{
		{"an Event of its Node", account, tell(node, contract.AppAgent, s.Near), ""},
		{"an Event of a pod", account, tell(pod, contract.AppAgent, s.Near), ""},
		{"an Event of a foreign Node", account, tell(corev1.ObjectReference{Kind: "Node", Name: s.Far}, contract.AppAgent, s.Near), foreignObject},
		{"an Event of a Secret", account, tell(corev1.ObjectReference{Kind: "Secret", Namespace: metav1.NamespaceDefault, Name: "s"}, contract.AppAgent, s.Near), foreignObject},
		{"an Event in the name of another agent", account, tell(pod, contract.AppAgent, s.Far), foreignSource},
		{"an Event in the name of kubelet", account, tell(node, "kubelet", s.Near), foreignSource},
		{"an Event", unbound, tell(pod, contract.AppAgent, s.Near), foreignSource},
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
