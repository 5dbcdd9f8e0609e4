package manifests

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"

	"windlass.dev/windlass/pkg/contract"
)

// The role is said once, in settings.env.
func TestRoleOfTheScaler(t *testing.T) {
	o := renderOverlay(t, withComponents("eks-irsa"))
	for _, account := range o.accounts {
		want := map[string]string{contract.AppScaler: exampleRole}[account.Name]
		if got := account.Annotations["eks.amazonaws.com/role-arn"]; got != want {
			t.Errorf("eks-irsa: account %s has the role %q, want %q", account.Name, got, want)
		}
	}
	o = renderOverlay(t, withComponents("kube2iam"))
	for name, w := range o.workloads() {
		want := map[string]string{contract.AppScaler: exampleRole}[name]
		if got := w.template.Annotations["iam.amazonaws.com/role"]; got != want {
			t.Errorf("kube2iam: pods of %s have the role %q, want %q", name, got, want)
		}
	}
}

// Who has not said it is told so, by a line that names the word.
func TestRoleIsMissed(t *testing.T) {
	for _, component := range []string{"eks-irsa", "kube2iam"} {
		memory := overlay(t, withComponents(component))
		if err := memory.WriteFile("manifests/settings.env", []byte("CLUSTER_NAME=c\n")); err != nil {
			t.Fatal(err)
		}
		_, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "overlay")
		if err == nil || !strings.Contains(err.Error(), "SCALER_ROLE_ARN") {
			t.Errorf("%s without a role: %v, want an error that names SCALER_ROLE_ARN", component, err)
		}
	}
}

// A scaler whose own role is missing must not act with that of its node.
func TestNoRoleOfTheNode(t *testing.T) {
	for _, component := range []string{"eks-irsa", "eks-pod-identity"} {
		env := renderOverlay(t, withComponents(component)).workloads()[contract.AppScaler].template.Spec.Containers[0].Env
		if want := (corev1.EnvVar{Name: "AWS_EC2_METADATA_DISABLED", Value: "true"}); !slices.Contains(env, want) {
			t.Errorf("%s: the scaler's environment is %v, want %v in it", component, env, want)
		}
	}
}

// Agents open no port.
func TestPodMonitorFindsWhatServesMetrics(t *testing.T) {
	o := renderOverlay(t, withComponents("notifications", "prometheus"))
	for _, program := range []string{contract.AppScaler, contract.AppNotifier} {
		found(t, o, program)
	}
	if len(o.podMonitors) != 1 || len(o.alertRules) != 1 {
		t.Errorf("%d monitors and %d objects with rules, want one of each", len(o.podMonitors), len(o.alertRules))
	}
}

func found(t *testing.T, o objects, program string) {
	t.Helper()
	scaler := o.workloads()[program].template
	for _, monitor := range o.podMonitors {
		if monitor.Namespace != "elsewhere" {
			t.Errorf("the monitor is in namespace %q, and selects in that one only", monitor.Namespace)
		}
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(scaler.Labels)) {
			t.Errorf("it selects %v, %v; the pods of %s are labelled %v", selector, err, program, scaler.Labels)
		}
		for _, endpoint := range monitor.Spec.Endpoints {
			if !slices.ContainsFunc(scaler.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == endpoint.Port }) {
				t.Errorf("it asks port %q, which the pods of %s do not have", endpoint.Port, program)
			}
		}
	}
}

// The network policy is about the scaler's and the notifier's pods, which are reached at their metrics port and
// from labelled namespaces only; agents, on their host's network, would have none of it.
func TestNetworkPolicy(t *testing.T) {
	o := renderOverlay(t, withComponents("network-policy", "notifications"))
	if len(o.networks) != 1 {
		t.Fatalf("%d network policies", len(o.networks))
	}
	policy := o.networks[0]
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range o.workloads() {
		if got, want := selector.Matches(labels.Set(w.template.Labels)), !w.template.Spec.HostNetwork; got != want {
			t.Errorf("it is about the pods of %s: %v", name, got)
		}
	}
	if want := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}; !slices.Equal(policy.Spec.PolicyTypes, want) || policy.Namespace != "elsewhere" {
		t.Errorf("types %v in namespace %s", policy.Spec.PolicyTypes, policy.Namespace)
	}
	if len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].Ports) != 1 || len(policy.Spec.Ingress[0].From) != 1 {
		t.Fatalf("ingress %v", policy.Spec.Ingress)
	}
	for _, program := range []string{contract.AppScaler, contract.AppNotifier} {
		ports := o.workloads()[program].template.Spec.Containers[0].Ports
		if in := policy.Spec.Ingress[0]; len(ports) != 1 || in.Ports[0].Port.String() != ports[0].Name || in.From[0].NamespaceSelector == nil || len(in.From[0].NamespaceSelector.MatchLabels) == 0 {
			t.Errorf("ingress %v, and the ports of %s are %v", in, program, ports)
		}
	}
	for _, out := range policy.Spec.Egress {
		if len(out.Ports) == 0 {
			t.Errorf("all ports of %v may be reached", out.To)
		}
	}
}

func TestDashboardIsFoundByTheSidecar(t *testing.T) {
	for _, m := range renderOverlay(t, withComponents("grafana")).configMaps {
		if m.Labels["grafana_dashboard"] == "1" && strings.HasPrefix(m.Data["windlass.json"], "{") {
			return
		}
	}
	t.Error("no ConfigMap has the dashboard and the label grafana_dashboard=1")
}

// A balloon for each zone, and pods as confined as our own.
func TestBalloonsByZone(t *testing.T) {
	o := renderOverlay(t, withComponents("balloon"))
	i := slices.IndexFunc(o.priorities, func(p schedulingv1.PriorityClass) bool { return p.Value == -5 })
	if i < 0 {
		t.Fatalf("no class of priority -5 in %v", o.priorities)
	}
	balloon := o.workloads()["balloon"].template
	if balloon.Spec.PriorityClassName != o.priorities[i].Name {
		t.Errorf("balloons are of class %q", balloon.Spec.PriorityClassName)
	}
	if broken := violations(t, balloon); len(broken) != 0 {
		t.Errorf("balloons break Pod Security: %v", broken)
	}
	d := o.deployments[slices.IndexFunc(o.deployments, func(d appsv1.Deployment) bool { return d.Name == "balloon" })]
	if *d.Spec.Replicas != 3 {
		t.Errorf("%d balloons, want one for each of three zones", *d.Spec.Replicas)
	}
}

// The guide's table of components has them all, and no other.
func TestInstallNamesTheComponents(t *testing.T) {
	guide, err := os.ReadFile("../docs/operate/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(guide), "| component | for |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for line := range strings.Lines(table) {
		named = append(named, strings.Split(line, "`")[1])
	}
	slices.Sort(named)
	want := slices.Sorted(slices.Values(components(t)))
	if !slices.Equal(named, want) {
		t.Errorf("install.md names %v; there are %v", named, want)
	}
}
