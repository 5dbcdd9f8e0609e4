package manifests

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// The notifier writes nothing but its own Lease and its own ConfigMap, which the component
// makes: it may create nothing.
func TestNotifierWritesItsOwnOnly(t *testing.T) {
	base, o := renderOverlay(t, "namespace: elsewhere\nresources: [../manifests]\n"), renderOverlay(t, withComponents("notifications"))
	added := slices.DeleteFunc(o.writes(), func(right string) bool { return slices.Contains(base.writes(), right) })
	want := []string{
		"windlass-notifier: update configmaps [windlass-notifier] in its namespace",
		"windlass-notifier: update leases.coordination.k8s.io [windlass-notifier] in its namespace",
	}
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("rights to write (-want +got):\n%s", diff)
	}
	made := slices.ContainsFunc(o.configMaps, func(m corev1.ConfigMap) bool {
		return m.Name == contract.ConfigMapNotifier && m.Namespace == "elsewhere" && len(m.Data) == 0
	})
	if !made || len(o.leases) != 1 || o.leases[0].Name != contract.LeaseNotifier || o.leases[0].Namespace != "elsewhere" || o.leases[0].Spec.HolderIdentity != nil {
		t.Errorf("its ConfigMap is made: %v; leases %v", made, o.leases)
	}
	for _, role := range o.roles {
		for _, rule := range role.Rules {
			if role.Name == contract.AppNotifier && len(rule.ResourceNames) == 0 {
				t.Errorf("a right in its namespace without a name: %v", rule)
			}
		}
	}
	subject := map[string]string{}
	for _, b := range o.bindings {
		subject["Role "+b.RoleRef.Name] = b.Subjects[0].Namespace + "/" + b.Subjects[0].Name
	}
	for _, b := range o.clusterBinds {
		subject["ClusterRole "+b.RoleRef.Name] = b.Subjects[0].Namespace + "/" + b.Subjects[0].Name
	}
	for _, role := range []string{"Role ", "ClusterRole "} {
		if got := subject[role+contract.AppNotifier]; got != "elsewhere/"+contract.AppNotifier {
			t.Errorf("%s is bound to %q", role, got)
		}
	}
}

// The overlay that the documentation shows gives the notifier the configuration of its component,
// whatever its namespace is.
func TestNotifierConfigurationIsReplaced(t *testing.T) {
	doc, err := os.ReadFile("../docs/operate/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(first string) string {
		_, text, found := strings.Cut(string(doc), "\n       "+first)
		if !found {
			t.Fatalf("the documentation has no %q", first)
		}
		text, _, _ = strings.Cut(text, "\n\n")
		return strings.ReplaceAll(first+text+"\n", "\n       ", "\n")
	}
	for namespace, line := range map[string]string{"windlass-system": "", "elsewhere": "namespace: elsewhere\n"} {
		files := overlay(t, line+block("resources:"))
		for name, text := range map[string]string{"kustomization.yaml": block("apiVersion: kustomize"), "config.yaml": "services: [{name: mine}]\n"} {
			if err := files.WriteFile("overlay/notifier/"+name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		o := render(t, files, "overlay")
		var mounted string
		for _, volume := range o.workloads()[contract.AppNotifier].template.Spec.Volumes {
			if volume.ConfigMap != nil {
				mounted = volume.ConfigMap.Name
			}
		}
		given := slices.ContainsFunc(o.configMaps, func(m corev1.ConfigMap) bool {
			return m.Name == mounted && m.Namespace == namespace && strings.Contains(m.Data["config.yaml"], "mine")
		})
		if mounted == "" || !given {
			t.Errorf("in %s it mounts %q, which is not the configuration", namespace, mounted)
		}
	}
}

// Two replicas, as confined as the scaler's, which find the settings, their configuration and
// their secrets.
func TestNotifierPods(t *testing.T) {
	o := renderOverlay(t, withComponents("notifications"))
	w, there := o.workloads()[contract.AppNotifier]
	if !there {
		t.Fatalf("workloads %v", slices.Collect(maps.Keys(o.workloads())))
	}
	if broken := violations(t, w.template); len(broken) != 0 {
		t.Errorf("Pod Security: %v", broken)
	}
	c := w.template.Spec.Containers[0]
	checkContainer(t, c)
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("it lacks a request or a memory limit: %v", c.Resources)
	}
	for _, d := range o.deployments {
		if d.Name == contract.AppNotifier && *d.Spec.Replicas != 2 {
			t.Errorf("%d replicas", *d.Spec.Replicas)
		}
	}
	if w.selector.MatchLabels[contract.LabelAppName] != contract.AppNotifier || w.template.Spec.ServiceAccountName != contract.AppNotifier {
		t.Errorf("selector %v, account %s", w.selector, w.template.Spec.ServiceAccountName)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(o.configMaps, func(m corev1.ConfigMap) bool { return m.Name == name })
	}
	if settings := c.EnvFrom[0].ConfigMapRef.Name; !named(settings) {
		t.Errorf("there is no ConfigMap %s of settings", settings)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("volume %s may be written", m.Name)
		}
		mounts[m.Name] = m.MountPath
	}
	for _, v := range w.template.Spec.Volumes {
		switch {
		case v.ConfigMap != nil && !named(v.ConfigMap.Name):
			t.Errorf("there is no ConfigMap %s", v.ConfigMap.Name)
		case v.ConfigMap != nil && !slices.Contains(c.Args, "--config="+mounts[v.Name]+"/config.yaml"):
			t.Errorf("the configuration is in %s, and not read there: %v", mounts[v.Name], c.Args)
		case v.Secret != nil && !slices.Contains(c.Args, "--secrets="+mounts[v.Name]):
			t.Errorf("secrets are in %s, and not read there: %v", mounts[v.Name], c.Args)
		}
	}
}
