// Package manifests holds what a cluster is given; its tests hold that to the
// rules by which it was written: least rights, least privilege, pinned images.
package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/manifests/flagfile"
	"windlass.dev/windlass/manifests/monitoring"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/scaler/shadow/record"
)

// objects are the rendered manifests, by kind.
type objects struct {
	namespaces   []corev1.Namespace
	accounts     []corev1.ServiceAccount
	roles        []rbacv1.Role
	clusterRoles []rbacv1.ClusterRole
	bindings     []rbacv1.RoleBinding
	clusterBinds []rbacv1.ClusterRoleBinding
	configMaps   []corev1.ConfigMap
	daemonSets   []appsv1.DaemonSet
	deployments  []appsv1.Deployment
	budgets      []policyv1.PodDisruptionBudget
	priorities   []schedulingv1.PriorityClass
	policies     []admissionv1.ValidatingAdmissionPolicy
	policyBinds  []admissionv1.ValidatingAdmissionPolicyBinding
	podMonitors  []monitoring.PodMonitor
	alertRules   []monitoring.PrometheusRule
	networks     []networkingv1.NetworkPolicy
	leases       []coordinationv1.Lease
}

// render does what `kubectl kustomize` does to a folder: it is the same code.
func render(t *testing.T, fs filesys.FileSystem, folder string) objects {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	if err != nil {
		t.Fatal(err)
	}
	var o objects
	for _, resource := range resources.Resources() {
		body, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := o.add(resource.GetKind(), body); err != nil {
			t.Fatalf("%s: %v", resource.CurId(), err)
		}
	}
	return o
}

func (o *objects) add(kind string, body []byte) error {
	switch kind {
	case "Namespace":
		return appendStrict(&o.namespaces, body)
	case "ServiceAccount":
		return appendStrict(&o.accounts, body)
	case "Role":
		return appendStrict(&o.roles, body)
	case "ClusterRole":
		return appendStrict(&o.clusterRoles, body)
	case "RoleBinding":
		return appendStrict(&o.bindings, body)
	case "ClusterRoleBinding":
		return appendStrict(&o.clusterBinds, body)
	case "ConfigMap":
		return appendStrict(&o.configMaps, body)
	case "DaemonSet":
		return appendStrict(&o.daemonSets, body)
	case "Deployment":
		return appendStrict(&o.deployments, body)
	case "PodDisruptionBudget":
		return appendStrict(&o.budgets, body)
	case "PriorityClass":
		return appendStrict(&o.priorities, body)
	case "ValidatingAdmissionPolicy":
		return appendStrict(&o.policies, body)
	case "ValidatingAdmissionPolicyBinding":
		return appendStrict(&o.policyBinds, body)
	case "PodMonitor":
		return appendStrict(&o.podMonitors, body)
	case "PrometheusRule":
		return appendStrict(&o.alertRules, body)
	case "Lease":
		return appendStrict(&o.leases, body)
	case "NetworkPolicy":
		return appendStrict(&o.networks, body)
	}
	return fmt.Errorf("kind %s is not one that these tests know", kind)
}

// appendStrict refuses fields that the type does not have.
func appendStrict[T any](list *[]T, body []byte) error {
	var object T
	if err := yaml.UnmarshalStrict(body, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

func renderBase(t *testing.T) objects { return render(t, filesys.MakeFsOnDisk(), ".") }

// workload is what both programs have in common.
type workload struct {
	name     string
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
}

func (o objects) workloads() map[string]workload {
	out := map[string]workload{}
	for _, d := range o.daemonSets {
		out[d.Name] = workload{d.Name, d.Spec.Selector, d.Spec.Template}
	}
	for _, d := range o.deployments {
		out[d.Name] = workload{d.Name, d.Spec.Selector, d.Spec.Template}
	}
	return out
}

func TestBothProgramsAreThere(t *testing.T) {
	o := renderBase(t)
	workloads := o.workloads()
	want := []string{contract.AppAgent, contract.AppScaler}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(workloads))); diff != "" {
		t.Fatalf("workloads (-want +got):\n%s", diff)
	}
	for _, w := range workloads {
		if got := w.template.Labels[contract.LabelAppName]; got != w.name || w.selector.MatchLabels[contract.LabelAppName] != w.name {
			t.Errorf("%s: its pods are labelled %s=%q; the programs know each other by that", w.name, contract.LabelAppName, got)
		}
		if w.template.Spec.ServiceAccountName != w.name {
			t.Errorf("%s runs as service account %q", w.name, w.template.Spec.ServiceAccountName)
		}
	}
}

// What Pod Security calls "restricted" holds for both programs but for the
// agent's host network.
func TestPodsAreConfined(t *testing.T) {
	for _, w := range renderBase(t).workloads() {
		t.Run(w.name, func(t *testing.T) {
			spec := w.template.Spec
			if spec.HostNetwork != (w.name == contract.AppAgent) {
				t.Errorf("hostNetwork is %v", spec.HostNetwork)
			}
			if spec.HostPID || spec.HostIPC {
				t.Error("shares the host's processes or memory")
			}
			if len(spec.Volumes) != 0 {
				t.Errorf("has volumes: %v", spec.Volumes)
			}
			pod := spec.SecurityContext
			if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 {
				t.Errorf("may run as root: %v", pod)
			}
			if pod == nil || pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Error("seccomp profile is not RuntimeDefault")
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				checkContainer(t, c)
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("container %s lacks a request or a memory limit: %v", c.Name, c.Resources)
				}
			}
		})
	}
}

func checkContainer(t *testing.T, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil {
		t.Fatalf("container %s has no securityContext", c.Name)
	}
	if s.Privileged != nil && *s.Privileged {
		t.Errorf("container %s is privileged", c.Name)
	}
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("container %s may gain privileges", c.Name)
	}
	if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("container %s may write to its root file system", c.Name)
	}
	if s.Capabilities == nil || len(s.Capabilities.Add) != 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("container %s keeps capabilities: %v", c.Name, s.Capabilities)
	}
}

// Flags are set in one file and nowhere else: that would take them away.
func TestFlagsAreInOnePlace(t *testing.T) {
	for name, w := range render(t, filesys.MakeFsOnDisk(), "base").workloads() {
		if c := w.template.Spec.Containers[0]; len(c.Args) != 0 {
			t.Errorf("the base sets flags of %s: %v", name, c.Args)
		}
	}
	for name, w := range renderBase(t).workloads() {
		args, err := flagfile.Read("flags", name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(args.Set, w.template.Spec.Containers[0].Args); diff != "" {
			t.Errorf("%s (-flags +rendered):\n%s", name, diff)
		}
	}
}

// A tag says what runs; "latest" says what ran last somewhere else. A registry
// would be somebody's.
func TestImagesArePinned(t *testing.T) {
	for _, w := range renderBase(t).workloads() {
		for _, c := range w.template.Spec.Containers {
			name, tag, _ := strings.Cut(c.Image, ":")
			if name != w.name || tag == "" || tag == "latest" {
				t.Errorf("%s has the image %q, want %s:<version>", w.name, c.Image, w.name)
			}
		}
	}
}

func TestAgentIsOnEveryNodeAndOpensNoPort(t *testing.T) {
	spec := renderBase(t).workloads()[contract.AppAgent].template.Spec
	if want := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}; !cmp.Equal(want, spec.Tolerations) {
		t.Errorf("tolerations %v, want all taints of all effects", spec.Tolerations)
	}
	if spec.PriorityClassName != "system-node-critical" {
		t.Errorf("priority class %q", spec.PriorityClassName)
	}
	if spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("DNS policy %q on the host's network", spec.DNSPolicy)
	}
	var env []string
	for _, c := range spec.Containers {
		if len(c.Ports) != 0 {
			t.Errorf("container %s opens %v on the host", c.Name, c.Ports)
		}
		for _, v := range c.Env {
			env = append(env, v.Name)
		}
	}
	for _, name := range []string{"NODE_NAME", "POD_NAME", "POD_NAMESPACE", "GOMEMLIMIT"} {
		if !slices.Contains(env, name) {
			t.Errorf("environment lacks %s: %v", name, env)
		}
	}
}

func TestScalerSurvivesTheLossOfANode(t *testing.T) {
	o := renderBase(t)
	deployment, budget := o.deployments[0], o.budgets[0]
	if *deployment.Spec.Replicas < 2 {
		t.Errorf("%d replicas", *deployment.Spec.Replicas)
	}
	var spread []string
	for _, c := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
		spread = append(spread, c.TopologyKey)
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("spread over %s keeps a replica from starting on a small cluster", c.TopologyKey)
		}
		if !cmp.Equal(c.LabelSelector, deployment.Spec.Selector) {
			t.Errorf("spread over %s counts %v", c.TopologyKey, c.LabelSelector)
		}
	}
	if diff := cmp.Diff([]string{corev1.LabelHostname, corev1.LabelTopologyZone}, spread); diff != "" {
		t.Errorf("spread (-want +got):\n%s", diff)
	}
	if budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntValue() != 1 || !cmp.Equal(budget.Spec.Selector, deployment.Spec.Selector) {
		t.Errorf("budget %v", budget.Spec)
	}
}

// A new version comes without a moment in which no scaler is there, or two agents are on
// a node; and one that does not work stops before it is everywhere.
func TestUpgrade(t *testing.T) {
	o := renderBase(t)
	scaler := o.deployments[0].Spec
	rolling := scaler.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() != 1 {
		t.Errorf("scalers are replaced by %v", scaler.Strategy)
	}
	const apiPatience = 15 // s; scaler.apiPatience
	probe := scaler.Template.Spec.Containers[0].ReadinessProbe
	if unready := apiPatience + probe.PeriodSeconds*probe.FailureThreshold; scaler.MinReadySeconds <= unready {
		t.Errorf("a scaler that cannot reach the API server counts after %d s, and is found not Ready after %d", scaler.MinReadySeconds, unready)
	}
	agent := o.daemonSets[0].Spec
	if u := agent.UpdateStrategy.RollingUpdate; u == nil || u.MaxSurge.IntValue() != 0 || u.MaxUnavailable.StrVal != "10%" {
		t.Errorf("agents are replaced by %v", agent.UpdateStrategy)
	}
	if agent.MinReadySeconds < 5 {
		t.Errorf("an agent counts after %d s, though it may end as it starts", agent.MinReadySeconds)
	}
}

// Every right to change something, by program. A new one belongs here, with
// the reason in the manifest. What is not in the list is reading.
func TestRightsToWrite(t *testing.T) {
	want := []string{
		"windlass-agent-direct: create pods/eviction",
		"windlass-agent: create events",
		"windlass-agent: impersonate-on:associated-node:create pods/eviction",
		"windlass-agent: impersonate:associated-node nodes.authentication.k8s.io",
		"windlass-agent: patch nodes",
		"windlass-scaler: create configmaps in its namespace",
		"windlass-scaler: create events",
		"windlass-scaler: create leases.coordination.k8s.io in its namespace",
		"windlass-scaler: create pods/eviction",
		"windlass-scaler: create subjectaccessreviews.authorization.k8s.io",
		"windlass-scaler: delete configmaps [cluster-autoscaler-status] in its namespace",
		"windlass-scaler: patch capacitybuffers/status.autoscaling.x-k8s.io",
		"windlass-scaler: patch nodes",
		"windlass-scaler: update configmaps [cluster-autoscaler-status] in its namespace",
		"windlass-scaler: update configmaps [" + strings.Join(append([]string{contract.ConfigMapShadow, contract.ConfigMapShadowState}, contract.ConfigMapsShadowLog(record.Chunks)...), " ") + "] in its namespace",
		"windlass-scaler: update configmaps [windlass-state windlass-status] in its namespace",
		"windlass-scaler: update leases.coordination.k8s.io [windlass-scaler] in its namespace",
	}
	if diff := cmp.Diff(want, renderBase(t).writes()); diff != "" {
		t.Errorf("rights to write (-want +got):\n%s", diff)
	}
}

// writes are the rights to write that the roles give, sorted.
func (o objects) writes() []string {
	var out []string
	for _, role := range o.clusterRoles {
		out = append(out, writes(role.Name, role.Rules, "")...)
	}
	for _, role := range o.roles {
		out = append(out, writes(role.Name, role.Rules, " in its namespace")...)
	}
	slices.Sort(out)
	return out
}

// asOwnNode begins the verbs of what an account may do as the node that it runs on.
const asOwnNode = "impersonate-on:associated-node:"

func writes(role string, rules []rbacv1.PolicyRule, where string) []string {
	var out []string
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			if slices.Contains([]string{"get", "list", "watch"}, strings.TrimPrefix(verb, asOwnNode)) {
				continue
			}
			for _, resource := range rule.Resources {
				if group := rule.APIGroups[0]; group != "" {
					resource += "." + group
				}
				if len(rule.ResourceNames) != 0 {
					resource += fmt.Sprint(" ", rule.ResourceNames)
				}
				out = append(out, fmt.Sprintf("%s: %s %s%s", role, verb, resource, where))
			}
		}
	}
	return out
}

// Rules that hold for reading too.
func TestRightsAreNamed(t *testing.T) {
	o := renderBase(t)
	var rules []rbacv1.PolicyRule
	for _, role := range o.clusterRoles {
		rules = append(rules, role.Rules...)
		if role.AggregationRule != nil {
			t.Errorf("%s takes in rights of other roles", role.Name)
		}
	}
	for _, role := range o.roles {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "*") }) {
			t.Errorf("rule with a wildcard: %v", rule)
		}
		if slices.Contains(rule.Resources, "secrets") {
			t.Errorf("rule for secrets: %v", rule)
		}
		if len(rule.APIGroups) != 1 {
			t.Errorf("rule for several API groups gives each of them every resource: %v", rule)
		}
		if len(rule.NonResourceURLs) != 0 {
			t.Errorf("rule for URLs: %v", rule)
		}
	}
	for _, account := range o.accounts {
		if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
			t.Errorf("any pod of %s gets its token without asking", account.Name)
		}
	}
}

// Bindings join each program's account to the roles that begin with its name, and
// to no other.
func TestBindings(t *testing.T) {
	o := renderBase(t)
	check := func(name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		account := contract.AppScaler
		if strings.HasPrefix(name, contract.AppAgent) {
			account = contract.AppAgent
		}
		want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: o.namespaces[0].Name}}
		if diff := cmp.Diff(want, subjects); diff != "" || ref.Name != name {
			t.Errorf("binding %s to role %s (-want +got):\n%s", name, ref.Name, diff)
		}
	}
	for _, b := range o.clusterBinds {
		check(b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range o.bindings {
		check(b.Name, b.RoleRef, b.Subjects)
	}
	if bound, roles := len(o.clusterBinds)+len(o.bindings), len(o.clusterRoles)+len(o.roles); bound != roles {
		t.Errorf("%d bindings for %d roles", bound, roles)
	}
}
