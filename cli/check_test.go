package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/cli/view"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/statuspage"
)

// installation is a cluster in front of check.
type installation struct {
	view.World
	budgets []policyv1.PodDisruptionBudget
	version string
	// denied are rights that an account lacks, as "account verb resource", and forbidden what who
	// asks may not do, as "verb resource".
	denied, forbidden []string
	unserved          []string
	// sends is the notifier's Lease.
	sends    *coordinationv1.Lease
	noStatus bool
}

var checkTime = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// sound is one without a fault.
func sound() *installation {
	i := &installation{version: "v1.36.1"}
	i.Now = checkTime
	i.Page = statuspage.Page{Written: checkTime.Add(-time.Minute), Leader: "s-1", Version: "v0.1.0", Groups: []statuspage.GroupLine{}}
	i.Verdicts.Groups = []statuspage.Group{{Name: "web", Min: 1, Max: 3, Desired: 1, Verdict: statuspage.Verdict{Reason: "AtMax"}}}
	i.Verdicts.Nodes = []statuspage.Node{{Name: "a", Group: "web", Verdict: statuspage.Verdict{Reason: "Needed"}}}
	i.Nodes = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{}}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}}
	i.Pods = []corev1.Pod{i.pod(defaultSystem, "s-1", "windlass-scaler"), i.pod(defaultSystem, "a-1", "windlass-agent"), i.pod("shop", "api-1", "api")}
	i.Pods[1].Spec.HostNetwork = true
	i.Leader = &view.Leader{Holder: "s-1", Renewed: checkTime.Add(-2 * time.Second)}
	i.budgets = []policyv1.PodDisruptionBudget{budget("api", 3, 2)}
	return i
}

func budget(name string, expected, desired int32) policyv1.PodDisruptionBudget {
	return policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{contract.LabelAppName: "api"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: expected, DesiredHealthy: desired}}
}

func (i *installation) pod(namespace, name, app string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{contract.LabelAppName: app}, Annotations: map[string]string{}},
		Spec:   corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c", Image: "registry.example:5000/" + app + ":v0.1.0"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

// notifier installs one.
func (i *installation) notifier() *corev1.Pod {
	i.Pods = append(i.Pods, i.pod(defaultSystem, "n-1", "windlass-notifier"))
	i.sends = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: defaultSystem, Name: contract.LeaseNotifier},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("n-1"), RenewTime: &metav1.MicroTime{Time: checkTime.Add(-time.Second)}}}
	return &i.Pods[len(i.Pods)-1]
}

// cli is the program in front of it.
func (i *installation) cli(t *testing.T, out *bytes.Buffer) *cli {
	t.Helper()
	list := objects(t, i.World)
	if i.sends != nil {
		list = append(list, i.sends)
	}
	if i.noStatus {
		list = list[1:]
	}
	for b := range i.budgets {
		list = append(list, &i.budgets[b])
	}
	client := fake.NewClientset(list...)
	served := client.Discovery().(*fakediscovery.FakeDiscovery)
	served.FakedServerVersion = &version.Info{GitVersion: i.version}
	for _, group := range []string{"apps", "authentication.k8s.io", "authorization.k8s.io", "batch", "coordination.k8s.io", "policy", "storage.k8s.io"} {
		if !slices.Contains(i.unserved, group) {
			client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: group + "/v1"})
		}
	}
	for _, version := range []string{"autoscaling.x-k8s.io/v1beta1", "karpenter.sh/v1", "resource.k8s.io/v1"} {
		if slices.Contains(i.unserved, version) {
			version += "alpha1" // of which nothing is used
		}
		client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: version})
	}
	lacks := func(account string, a *authorizationv1.ResourceAttributes) bool {
		account = account[strings.LastIndexByte(account, ':')+1:]
		return slices.ContainsFunc(i.denied, func(d string) bool {
			return strings.HasPrefix(account+" "+a.Verb+" "+a.Resource+"/"+a.Subresource, d)
		})
	}
	client.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		review.Status.Allowed = !lacks(review.Spec.User, review.Spec.ResourceAttributes)
		return true, review, nil
	})
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = !lacks("me", review.Spec.ResourceAttributes)
		return true, review, nil
	})
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if slices.Contains(i.forbidden, action.GetVerb()+" "+action.GetResource().Resource) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "", errors.New("no role gives it"))
		}
		return false, nil, nil
	})
	c := newCLI(t, i.World, out)
	c.connect = func() (kubernetes.Interface, error) { return client, nil }
	return c
}

func (i *installation) check(t *testing.T, args ...string) (view.Check, int) {
	t.Helper()
	var out bytes.Buffer
	err := i.cli(t, &out).run(t.Context(), append([]string{"check", "-o", "json"}, args...))
	var found view.Check
	if err := yaml.UnmarshalStrict(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	with := statusError{}
	if err != nil && !errors.As(err, &with) {
		t.Fatal(err)
	}
	return found, with.status
}

// Where nothing is wrong each area is all right.
func TestCheckOfSoundInstallation(t *testing.T) {
	found, status := sound().check(t, "--strict")
	for _, f := range found.Findings {
		if f.Severity != view.SeverityOK {
			t.Errorf("%+v", f)
		}
	}
	if status != 0 || len(found.Findings) != 12+3 { // areas, and optional APIs
		t.Errorf("status %d, %d findings", status, len(found.Findings))
	}
}

// Each fault is found by itself, with what mends it.
func TestCheck(t *testing.T) {
	details := func(text string, params map[string]any) []statuspage.Detail {
		return []statuspage.Detail{{Text: text, Params: params}}
	}
	for _, c := range []struct {
		what, want, of string
		change         func(*installation)
	}{
		{"old server", "warning api: Windlass goes by the scheduler of Kubernetes 1.33 to 1.36", "v1.29.4-eks-1", func(i *installation) { i.version = "v1.29.4-eks-1" }},
		{"newer server", "warning api: Windlass goes by", "v1.40.0", func(i *installation) { i.version = "v1.40.0" }},
		{"no such API", "error api: the API server does not serve this API group", "policy", func(i *installation) { i.unserved = []string{"policy"} }},
		{"no scaler", "error scaler: no pod of windlass-scaler is there", "namespace/windlass-system", func(i *installation) { i.Pods = i.Pods[1:] }},
		{"no lease", "error scaler: no replica has ever led", "lease/windlass-scaler", func(i *installation) { i.Leader = nil }},
		{"old lease", "error scaler: no replica leads: it was last renewed at 2026-08-01 11:00:00", "lease/windlass-scaler", func(i *installation) { i.Leader.Renewed = checkTime.Add(-time.Hour) }},
		{"released lease", "error scaler: no replica leads", "lease/windlass-scaler", func(i *installation) { i.Leader.Holder = "" }},
		{"page of another", "warning scaler: s-1 leads, and windlass-status was written by s-0", "configmap/windlass-status", func(i *installation) { i.Page.Leader = "s-0" }},
		{"scaler crashes", "error scaler: it is not Ready: CrashLoopBackOff: back-off", "pod/s-1", func(i *installation) {
			i.Pods[0].Status.Conditions = nil
			i.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}}}}
		}},
		{"skew", "warning scaler: scalers and agents have different versions: v0.1.0 (1, such as s-1), v0.2.0 (1, such as a-1)", "namespace/windlass-system", func(i *installation) { i.Pods[1].Spec.Containers[0].Image = "r:5000/windlass-agent:v0.2.0@sha256:1" }},
		{"a sidecar", "", "", func(i *installation) {
			for n := range 2 {
				own := i.Pods[n].Spec.Containers[0]
				own.Name = []string{"scaler", "agent"}[n]
				i.Pods[n].Spec.Containers = []corev1.Container{{Name: "proxy", Image: fmt.Sprint("mesh/proxy:v", n)}, own}
			}
		}},
		{"notifier", "", "", func(i *installation) { i.notifier() }},
		{"notifier not Ready", "error notifier: it is not Ready", "pod/n-1", func(i *installation) { i.notifier().Status.Conditions = nil }},
		{"nobody sends", "error notifier: no replica sends", "lease/windlass-notifier", func(i *installation) { i.notifier(); i.sends = nil }},
		{"notifier's right", "error rights: role windlass-notifier: not allowed: list nodes", "serviceaccount/windlass-system/windlass-notifier", func(i *installation) {
			i.notifier()
			i.denied = []string{"windlass-notifier list nodes"}
		}},
		{"no agents", "error agents: no pod of windlass-agent is there", "namespace/windlass-system", func(i *installation) { i.Pods = append(i.Pods[:1:1], i.Pods[2]) }},
		{"agent not Ready", "error agents: it is not Ready: no reason", "pod/a-1", func(i *installation) { i.Pods[1].Status.Conditions = nil }},
		{"agent off the host's network", "error agents: it is not on its host's network, so IMDS does not answer", "pod/a-1", func(i *installation) { i.Pods[1].Spec.HostNetwork = false }},
		{"node without agent", "error agents: no agent runs on it", "node/b", func(i *installation) {
			i.Nodes = append(i.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-2"}})
			i.Verdicts.Nodes = append(i.Verdicts.Nodes, statuspage.Node{Name: "b", Group: "web"})
		}},
		{"scaler's right", "error rights: role windlass-scaler: not allowed: patch nodes", "serviceaccount/windlass-system/windlass-scaler", func(i *installation) { i.denied = []string{"windlass-scaler patch nodes"} }},
		{"agent's right", "error rights: role windlass-agent: not allowed: create events", "serviceaccount/windlass-system/windlass-agent", func(i *installation) { i.denied = []string{"windlass-agent create events"} }},
		{"only told of", "warning rights: not allowed: list nodepools.karpenter.sh", "serviceaccount/windlass-system/windlass-scaler", func(i *installation) { i.denied = []string{"windlass-scaler list nodepools"} }},
		{"no way to evict on an old server", "error rights: role windlass-agent-direct: not allowed: get nodes, watch nodes, list pods, watch pods, create pods/eviction", "serviceaccount/windlass-system/windlass-agent", func(i *installation) {
			i.version = "v1.35.2"
			i.denied = []string{"windlass-agent get nodes", "windlass-agent watch nodes", "windlass-agent list pods", "windlass-agent watch pods", "windlass-agent create pods/eviction"}
		}},
		{"not confined", "error rights: no admission policy", "serviceaccount/windlass-system/windlass-agent", func(i *installation) {
			i.Events = []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}, Source: corev1.EventSource{Component: contract.AppAgent}, Reason: contract.EventNotConfined, Message: "no admission policy"}}
		}},
		{"metadata unread", "error agents: in the last hour: nobody answers", "node/a", func(i *installation) {
			i.Events = []corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}, Source: corev1.EventSource{Component: contract.AppAgent}, Reason: contract.EventMetadataUnread, Message: "nobody answers"}}
		}},
		{"viewer's right", "warning access: you are not allowed: list pods", "clusterrole/windlass-viewer", func(i *installation) { i.denied = []string{"me list pods"} }},
		{"trouble", "error cluster: AWS does not answer", "scaler", func(i *installation) { i.Page.Trouble = "AWS does not answer" }},
		{"fault", "error cluster: volumes may not be listed", "cluster", func(i *installation) { i.Page.Faults = []string{"volumes may not be listed"} }},
		{"failing", "warning cluster: terminate i-9: AccessDenied", "action", func(i *installation) { i.Page.Failing = []string{"terminate i-9: AccessDenied"} }},
		{"no status", "error cluster: there is none with a page", "configmap/windlass-status", func(i *installation) { i.noStatus = true }},
		{"no group", "error groups: the leader knows no group", "-", func(i *installation) { i.Verdicts.Groups, i.Verdicts.Nodes = nil, nil }},
		{"a hook's timeout", "error groups: hook windlass times out", "group/web", func(i *installation) {
			i.Verdicts.Groups[0].Details = details("hook windlass times out", map[string]any{"hook": "windlass"})
		}},
		{"no hook", "error groups: no hook windlass holds its terminations", "group/web", func(i *installation) {
			i.Verdicts.Groups[0].Verdict = statuspage.Verdict{Reason: "HookMissing", Details: details("no hook windlass holds its terminations", map[string]any{"hooks": []string{"windlass"}})}
		}},
		{"a hook that runs", "", "", func(i *installation) {
			i.Verdicts.Groups[0].Details = details("hook x of instance i-1 runs", map[string]any{"hook": "x", "instance": "i-1"})
		}},
		{"definition", "error groups: Faulty: its node template is not known", "group/web", func(i *installation) {
			i.Verdicts.Groups[0].Verdict = statuspage.Verdict{Reason: "Faulty", Details: details("its node template is not known", nil)}
		}},
		{"tag", "warning groups: tag x is no quantity", "group/web", func(i *installation) { i.Verdicts.Groups[0].Faults = []string{"tag x is no quantity"} }},
		{"protection", "warning groups: instances that are not protected from scale-in: 2", "group/web", func(i *installation) { i.Verdicts.Groups[0].Unprotected = 2 }},
		{"as the leader found", "warning others: aws-node-termination-handler runs too (daemon set x in namespace shop)", "other program", func(i *installation) {
			i.Page.Others = []string{"aws-node-termination-handler runs too (daemon set x in namespace shop)"}
			i.Pods[2].Labels[contract.LabelAppName] = contract.AppTerminationHandler
		}},
		{"Cluster Autoscaler", "warning others: Cluster Autoscaler runs in namespace shop", "deployment/ca", func(i *installation) {
			i.Pods[2].Spec.Containers[0].Image = "registry.k8s.io/autoscaling/cluster-autoscaler-arm64:v1.35.0"
			i.Pods[2].Labels["pod-template-hash"] = "5f"
			i.Pods[2].OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "ca-5f", Controller: new(true)}}
		}},
		{"Karpenter", "warning others: Karpenter runs in namespace shop", "pod/api-1", func(i *installation) {
			i.Pods[2].Spec.Containers[0].Image = "public.ecr.aws/karpenter/controller:1.8.0@sha256:2"
		}},
		{"a second Windlass", "warning others: second Windlass runs in namespace shop", "pod/api-1", func(i *installation) { i.Pods[2].Labels[contract.LabelAppName] = contract.AppScaler }},
		{"descheduler", "warning others: descheduler runs in namespace shop", "pod/api-1", func(i *installation) { i.Pods[2].Labels["app"] = "descheduler" }},
		{"one that has ended", "", "", func(i *installation) {
			i.Pods[2].Labels["app"], i.Pods[2].Status.Phase = "descheduler", corev1.PodSucceeded
		}},
		{"cordoned", "warning nodes: somebody has cordoned it by hand", "node/a", func(i *installation) { i.Nodes[0].Spec.Unschedulable = true }},
		{"cordoned by an agent", "", "", func(i *installation) {
			i.Nodes[0].Spec.Unschedulable = true
			i.Nodes[0].Annotations[contract.AnnotationCordonedBy] = "{}"
		}},
		{"no provider ID", "warning nodes: it has no spec.providerID", "node/a", func(i *installation) { i.Nodes[0].Spec.ProviderID = "" }},
		{"bad request", "warning nodes: its drain request cannot be read", "node/a", func(i *installation) { i.Nodes[0].Annotations[contract.AnnotationDrainRequest] = "{" }},
		{"budget that never allows", "warning budgets: it wants 3 healthy of 3 pods, so it never allows an eviction", "pdb/shop/api", func(i *installation) { i.budgets[0].Status.DesiredHealthy = 3 }},
		{"budget of pods without controller", "warning budgets: Kubernetes cannot work out", "pdb/shop/api", func(i *installation) {
			i.budgets[0].Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason}}}
		}},
		{"budget of no pods", "", "", func(i *installation) { i.budgets[0].Status.ExpectedPods, i.budgets[0].Status.DesiredHealthy = 0, 0 }},
		{"two budgets", "warning budgets: budgets shop/api and shop/more guard it", "pod/shop/api-1", func(i *installation) { i.budgets = append(i.budgets, budget("more", 3, 2)) }},
		{"annotation", "warning pods: annotation " + contract.AnnotationSafeToEvict + ` is "yes", which says nothing`, "pod/shop/api-1", func(i *installation) { i.Pods[2].Annotations[contract.AnnotationSafeToEvict] = "yes" }},
		{"cost", "warning pods: annotation " + contract.AnnotationDisruptionCost + " is", "pod/shop/api-1", func(i *installation) { i.Pods[2].Annotations[contract.AnnotationDisruptionCost] = "NaN" }},
		{"no right to ask of others", "unknown rights: not checked: needs the right to create subjectaccessreviews, which role windlass-checker gives", "-", func(i *installation) { i.forbidden = []string{"create subjectaccessreviews"} }},
		{"no right to read budgets", "unknown budgets: not checked: reading budgets", "-", func(i *installation) { i.forbidden = []string{"list poddisruptionbudgets"} }},
		{"no right to read the lease", "unknown scaler: not checked: reading the lease", "-", func(i *installation) { i.forbidden = []string{"get leases"} }},
	} {
		t.Run(strings.ReplaceAll(c.what, " ", "_"), func(t *testing.T) {
			i := sound()
			c.change(i)
			found, status := i.check(t)
			var got []view.Finding
			for _, f := range found.Findings {
				if f.Severity != view.SeverityOK {
					got = append(got, f)
				}
			}
			if c.want == "" {
				if len(got) != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(fmt.Sprintf("%s %s: %s", got[0].Severity, got[0].Area, got[0].Text), c.want) || got[0].Of != c.of || got[0].Do == "" {
				t.Fatalf("want %s (of %s), have %+v", c.want, c.of, got)
			}
			if want := map[view.Severity]int{view.SeverityError: 1, view.SeverityUnknown: 2}[got[0].Severity]; status != want {
				t.Errorf("status %d, want %d", status, want)
			}
			if _, status := i.check(t, "--strict"); got[0].Severity == view.SeverityWarning && status != 1 {
				t.Errorf("status %d with --strict", status)
			}
		})
	}
}

// What could not be read leaves every area unchecked that goes by it.
func TestCheckSaysOkOfNothingUnread(t *testing.T) {
	for unread, areas := range map[string]string{
		"get group":                       "api",
		"get leases":                      "scaler notifier",
		"get configmaps":                  "cluster groups scaler agents others",
		"list nodes":                      "nodes agents",
		"list events":                     "rights agents",
		"list poddisruptionbudgets":       "budgets",
		"list pods":                       "pods scaler agents notifier others budgets rights",
		"create selfsubjectaccessreviews": "access",
		"create subjectaccessreviews":     "rights",
	} {
		i := sound()
		i.notifier()
		i.forbidden = []string{unread}
		found, status := i.check(t)
		unknown := map[string]bool{}
		for _, f := range found.Findings {
			if f.Severity == view.SeverityUnknown {
				unknown[string(f.Area)] = true
			} else if f.Severity != view.SeverityOK {
				t.Errorf("without %s: %+v", unread, f)
			}
		}
		for _, area := range strings.Fields(areas) {
			if !unknown[area] {
				t.Errorf("without %s area %s is said to be checked", unread, area)
			}
			delete(unknown, area)
		}
		if len(unknown) > 0 || status != 2 {
			t.Errorf("without %s also %v is not checked, status %d", unread, unknown, status)
		}
	}
}

// An API that is used where it is served is named, served or not, with what it is for.
func TestCheckNamesOptionalAPIs(t *testing.T) {
	for _, group := range []string{"autoscaling.x-k8s.io/v1beta1", "karpenter.sh/v1", "resource.k8s.io/v1"} {
		for _, served := range []bool{true, false} {
			i := sound()
			want := "it is served: "
			if !served {
				i.unserved, want = []string{group}, "it is not served: "
			}
			found, status := i.check(t, "--strict")
			if status != 0 || !slices.ContainsFunc(found.Findings, func(f view.Finding) bool {
				return f.Area == view.AreaAPI && f.Of == group && strings.HasPrefix(f.Text, want) && len(f.Text) > len(want)
			}) {
				t.Errorf("%s, served %v: status %d, %+v", group, served, status, found.Findings)
			}
		}
	}
}

// That the leader has found a program in kube-system says nothing of one in namespace kube.
func TestCheckTellsNamespacesApart(t *testing.T) {
	for namespace, want := range map[string]int{"kube": 2, "system": 2, "kube-system": 1} {
		i := sound()
		i.Pods[2].Namespace, i.Pods[2].Labels["app"] = namespace, "descheduler"
		i.Page.Others = []string{"descheduler runs in namespace kube-system: remove it"}
		if found, _ := i.check(t); found.Warnings != want {
			t.Errorf("namespace %s: %d warnings, want %d", namespace, found.Warnings, want)
		}
	}
}

// Findings that are folded into one count as many as they are.
func TestCheckCountsAll(t *testing.T) {
	i := sound()
	for n := range 300 {
		pod := i.pod(defaultSystem, fmt.Sprint("a-", n+2), "windlass-agent")
		pod.Spec.HostNetwork, pod.Status.Conditions = true, nil
		i.Pods = append(i.Pods, pod)
	}
	if found, status := i.check(t); found.Errors != 300 || status != 1 || len(found.Findings) > 50 {
		t.Errorf("status %d, %d errors in %d findings", status, found.Errors, len(found.Findings))
	}
}

// The component impersonation-only leaves a role out, which servers that know the impersonation of
// nodes do not need.
func TestCheckKnowsImpersonationOnly(t *testing.T) {
	i := sound()
	i.denied = []string{"windlass-agent get nodes", "windlass-agent watch nodes", "windlass-agent list pods", "windlass-agent watch pods", "windlass-agent create pods/eviction"}
	if found, status := i.check(t); status != 0 {
		t.Errorf("%+v", found)
	}
}

// What tenants make does not grow an answer without end.
func TestCheckHasBounds(t *testing.T) {
	i := sound()
	for n := range 3000 {
		pod := i.pod("tenant", fmt.Sprint("p-", n), "descheduler")
		pod.Annotations[contract.AnnotationSafeToEvict] = strings.Repeat("x", 10_000)
		i.Pods = append(i.Pods, pod)
	}
	found, status := i.check(t)
	if status != 0 || len(found.Findings) > 60 || !slices.ContainsFunc(found.Findings, func(f view.Finding) bool { return f.Text == "and 980 more of that kind" }) {
		t.Errorf("status %d, %d findings", status, len(found.Findings))
	}
}

// An API server that does not answer is no sound installation.
func TestCheckWithoutServer(t *testing.T) {
	c := newCLI(t, view.World{}, &bytes.Buffer{})
	c.connect = func() (kubernetes.Interface, error) { return nil, errors.New("no route") }
	err := c.run(t.Context(), []string{"check"})
	if with := (statusError{}); !errors.As(err, &with) || with.status != statusUnchecked {
		t.Errorf("error %v", err)
	}
}
