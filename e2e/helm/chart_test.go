// Package helm holds charts/windlass against the manifests that it is made of, by Helm
// itself. It is a module of its own, so that what Helm is made of never mixes with what
// Windlass is made of; `go tool helm` in this folder is the same Helm.
package helm

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/cmd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chart = "../../charts/windlass"
	role  = "arn:aws:iam::111122223333:role/windlass-scaler"
)

// helm runs it as people do, and returns what it prints.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := tryHelm(args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func tryHelm(args ...string) (string, error) {
	var out bytes.Buffer
	root, err := cmd.NewRootCmd(&out, args, cmd.SetupLogging)
	if err != nil {
		return "", err
	}
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err = root.Execute()
	return out.String(), err
}

// rendered is what `helm template` makes of the chart, in a namespace.
func rendered(t *testing.T, namespace string, args ...string) map[string]unstructured.Unstructured {
	t.Helper()
	return objects(t, helm(t, append([]string{"template", "windlass", chart, "--namespace", namespace}, args...)...))
}

// objects are those of a stream of YAML, by kind and name. Helm orders them in its own way.
func objects(t *testing.T, text string) map[string]unstructured.Unstructured {
	t.Helper()
	out := map[string]unstructured.Unstructured{}
	for d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var o unstructured.Unstructured
		err := d.Decode(&o.Object)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.Object == nil {
			continue // comments alone
		}
		id := o.GetKind() + "/" + o.GetName()
		if _, twice := out[id]; twice {
			t.Errorf("%s is there twice", id)
		}
		out[id] = o
	}
}

// manifests are a copy of the manifests with such lines in their settings, and an overlay
// with some components in a namespace.
func manifests(t *testing.T, settings, namespace string, components ...string) (folder string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS("../../manifests")); err != nil {
		t.Fatal(err)
	}
	overlay := "resources: [../manifests]\nnamespace: " + namespace + "\ncomponents:\n"
	for _, name := range components {
		overlay += "  - ../manifests/components/" + name + "\n"
	}
	write(t, filepath.Join(dir, "manifests", "settings.env"), settings)
	write(t, filepath.Join(dir, "overlay", "kustomization.yaml"), overlay)
	return filepath.Join(dir, "overlay")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// kustomized is what `kubectl kustomize` makes of a folder: it is the same code.
func kustomized(t *testing.T, folder string) map[string]unstructured.Unstructured {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, string(text))
}

func compare(t *testing.T, manifests, chart map[string]unstructured.Unstructured) {
	t.Helper()
	if diff := cmp.Diff(manifests, chart); diff != "" {
		t.Errorf("(-kustomize +helm):\n%s", diff)
	}
}

// components are the names of all that the chart has, in an order in which kustomize takes them:
// what takes policies out is the last.
func components(t *testing.T) []string {
	t.Helper()
	folders, err := os.ReadDir("../../manifests/components")
	if err != nil {
		t.Fatal(err)
	}
	const last = "no-admission-policy"
	var names []string
	for _, folder := range folders {
		if folder.Name() != last {
			names = append(names, folder.Name())
		}
	}
	return append(names, last)
}

// switched is the argument that switches a component on.
func switched(component string) string {
	value := regexp.MustCompile(`-[a-z]`).ReplaceAllStringFunc(component, func(s string) string { return strings.ToUpper(s[1:]) })
	return "--set=components." + value + "=true"
}

// TestDefaults: as it comes, the chart is what the manifests are. The namespace is Helm's to
// make, or is made by the chart where that is asked for.
func TestDefaults(t *testing.T) {
	want := kustomized(t, "../../manifests")
	compare(t, want, rendered(t, "windlass-system", "--set=createNamespace=true"))
	delete(want, "Namespace/windlass-system")
	compare(t, want, rendered(t, "windlass-system"))
}

// TestComponents: each switch makes of the chart what the component makes of the manifests,
// and so do all of them together.
func TestComponents(t *testing.T) {
	names := components(t)
	sets := [][]string{names, names[:len(names)-1]}
	for _, name := range names {
		sets = append(sets, []string{name})
	}
	settings := "CLUSTER_NAME=main\nSCALER_ROLE_ARN=" + role + "\nAWS_REGION=eu-central-1\n"
	for _, set := range sets {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			args := []string{"--set=createNamespace=true", "--set=autoDiscovery.clusterName=main", "--set=roleArn=" + role, "--set=awsRegion=eu-central-1"}
			for _, name := range set {
				args = append(args, switched(name))
			}
			compare(t, kustomized(t, manifests(t, settings, "elsewhere", set...)), rendered(t, "elsewhere", args...))
		})
	}
}

// TestMigrated: what windlass-scaler migrate makes of public manifests as an overlay and as values
// renders the same.
func TestMigrated(t *testing.T) {
	overlays, err := filepath.Glob("../../scaler/migrate/testdata/public/*.overlay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(overlays) < 15 {
		t.Fatalf("%d overlays, want those of all cases", len(overlays))
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "windlass", "manifests"), os.DirFS("../../manifests")); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range overlays {
		stem := strings.TrimSuffix(overlay, ".overlay.yaml")
		t.Run(filepath.Base(stem), func(t *testing.T) {
			text, err := os.ReadFile(overlay)
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(dir, filepath.Base(stem))
			write(t, filepath.Join(folder, "kustomization.yaml"), string(text))
			compare(t, kustomized(t, folder), rendered(t, "windlass-system", "--set=createNamespace=true", "--values="+stem+".values.yaml"))
		})
	}
}

// TestEveryComponentHasASwitch: and there is no other.
func TestEveryComponentHasASwitch(t *testing.T) {
	var values struct{ Components map[string]bool }
	if err := yaml.Unmarshal([]byte(helm(t, "show", "values", chart)), &values); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range components(t) {
		want = append(want, strings.TrimSuffix(strings.TrimPrefix(switched(name), "--set=components."), "=true"))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(values.Components))); diff != "" {
		t.Errorf("switches (-manifests +chart):\n%s", diff)
	}
}

// TestValues: what each value does that is no component's.
func TestValues(t *testing.T) {
	container := []string{"spec", "template", "spec", "containers", "0"}
	args, env := append(slices.Clone(container), "args"), append(slices.Clone(container), "env")
	for name, tt := range map[string]struct {
		values string
		object string
		path   []string
		want   any
	}{
		"flags replace the manifests'": {
			`extraArgs: {log-format: text, max-nodes-total: 5000000, scale-down-enabled: false, nodes: ["1:3:a", "0:9:b"]}`,
			"Deployment/windlass-scaler", args,
			[]any{"run", "--metrics-address=:8085",
				"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/$(CLUSTER_NAME)",
				"--log-format=text", "--max-nodes-total=5000000", "--nodes=1:3:a", "--nodes=0:9:b", "--scale-down-enabled=false"},
		},
		"tags of one's own": {
			`extraArgs: {node-group-auto-discovery: ["asg:tag=mine"]}`,
			"Deployment/windlass-scaler", args, []any{"run", "--log-format=json", "--metrics-address=:8085", "--node-group-auto-discovery=asg:tag=mine"},
		},
		"no tags": {
			`extraArgs: {node-group-auto-discovery: [], nodes: ["1:3:a"]}`,
			"Deployment/windlass-scaler", args, []any{"run", "--log-format=json", "--metrics-address=:8085", "--nodes=1:3:a"},
		},
		"a flag that a component sets as well": {
			"components: {outOfServiceTaint: true}\nextraArgs: {out-of-service-taint: false, node-group-auto-discovery: [], log-format: text}",
			"Deployment/windlass-scaler", args, []any{"run", "--metrics-address=:8085", "--log-format=text", "--out-of-service-taint=false"},
		},
		"another port in the flag": {
			`metricsPort: 9000`, "Deployment/windlass-scaler", append(slices.Clone(args), "2"), "--metrics-address=:9000",
		},
		"another port of the container that probes ask by its name": {
			`metricsPort: 9000`, "Deployment/windlass-scaler", []string{"spec", "template", "spec", "containers", "0", "ports"},
			[]any{map[string]any{"name": "metrics", "containerPort": float64(9000)}},
		},
		"the collector follows the memory": {
			`resources: {limits: {memory: 2Gi}}`, "Deployment/windlass-scaler", append(slices.Clone(env), "2", "value"), "1536MiB",
		},
		"the collector where there is no limit": {
			`agent: {resources: {limits: null}}`, "DaemonSet/windlass-agent", append(slices.Clone(env), "3", "value"), "off",
		},
		"environment": {
			`extraEnv: {AWS_MAX_ATTEMPTS: 5}`, "Deployment/windlass-scaler", append(slices.Clone(env), "3"), map[string]any{"name": "AWS_MAX_ATTEMPTS", "value": "5"},
		},
		"labels that select stay": {
			`podLabels: {team: platform, app.kubernetes.io/name: mine}`, "Deployment/windlass-scaler", []string{"spec", "template", "metadata", "labels"},
			map[string]any{"app.kubernetes.io/name": "windlass-scaler", "team": "platform"},
		},
		"affinity": {
			`affinity: {nodeAffinity: {}}`, "Deployment/windlass-scaler", []string{"spec", "template", "spec", "affinity"}, map[string]any{"nodeAffinity": map[string]any{}},
		},
		"an image by its digest": {
			`image: {digests: {windlass-agent: "sha256:00", windlass-scaler: "sha256:11"}, tag: v9}`,
			"DaemonSet/windlass-agent", []string{"spec", "template", "spec", "containers", "0", "image"}, "windlass-agent:v9@sha256:00",
		},
		"larger balloons": {
			"components: {balloon: true}\nballoon: {replicas: 5, image: pause:mine, resources: {requests: {cpu: '3'}}}",
			"Deployment/balloon", []string{"spec", "template", "spec", "containers", "0", "resources"},
			map[string]any{"requests": map[string]any{"cpu": "3", "memory": "4Gi"}},
		},
		"a role that an annotation names as well": {
			"components: {eksIrsa: true}\nroleArn: " + role + "\nrbac: {serviceAccount: {annotations: {eks.amazonaws.com/role-arn: other}}}",
			"ServiceAccount/windlass-scaler", []string{"metadata", "annotations"}, map[string]any{"eks.amazonaws.com/role-arn": role},
		},
		"priorities as text": {
			"expanderPriorities: |\n  10:\n  - .*\n",
			"ConfigMap/cluster-autoscaler-priority-expander", []string{"data", "priorities"}, "10:\n- .*\n",
		},
		"flags of the agent": {
			`agent: {extraArgs: {notice-policy: ["rebalance=drain"], termination-drain-time: 5m}}`,
			"DaemonSet/windlass-agent", args, []any{"--log-format=json", "--notice-policy=rebalance=drain", "--termination-drain-time=5m"},
		},
		"images of a registry": {
			`image: {registry: registry.example.com/windlass/, tag: v9}`,
			"DaemonSet/windlass-agent", []string{"spec", "template", "spec", "containers", "0", "image"}, "registry.example.com/windlass/windlass-agent:v9",
		},
		"secrets of a registry": {
			`image: {pullSecrets: [mine], pullPolicy: Always}`,
			"Deployment/windlass-scaler", []string{"spec", "template", "spec", "imagePullSecrets"}, []any{map[string]any{"name": "mine"}},
		},
		"a role beside another annotation": {
			"components: {eksIrsa: true}\nroleArn: " + role + "\nrbac: {serviceAccount: {annotations: {team: platform}}}",
			"ServiceAccount/windlass-scaler", []string{"metadata", "annotations"},
			map[string]any{"eks.amazonaws.com/role-arn": role, "team": "platform"},
		},
		"priorities": {
			`expanderPriorities: {10: [".*"], 50: [".*spot.*"]}`,
			"ConfigMap/cluster-autoscaler-priority-expander", []string{"data", "priorities"}, "\"10\":\n- .*\n\"50\":\n- .*spot.*\n",
		},
		"volumes": {
			`extraVolumes: [{name: prices, configMap: {name: prices}}]`,
			"Deployment/windlass-scaler", []string{"spec", "template", "spec", "volumes"},
			[]any{map[string]any{"name": "prices", "configMap": map[string]any{"name": "prices"}}},
		},
		"labels for Prometheus": {
			"components: {prometheus: true}\nprometheus: {additionalLabels: {release: mine}}",
			"PrometheusRule/windlass", []string{"metadata", "labels", "release"}, "mine",
		},
		"resources are merged": {
			`resources: {limits: {memory: 1Gi}}`,
			"Deployment/windlass-scaler", []string{"spec", "template", "spec", "containers", "0", "resources"},
			map[string]any{"requests": map[string]any{"cpu": "50m", "memory": "128Mi"}, "limits": map[string]any{"memory": "1Gi"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			write(t, file, tt.values)
			o, is := rendered(t, "elsewhere", "--values", file)[tt.object]
			if !is {
				t.Fatalf("there is no %s", tt.object)
			}
			if diff := cmp.Diff(tt.want, at(t, o.Object, tt.path)); diff != "" {
				t.Errorf("(-want +rendered):\n%s", diff)
			}
		})
	}
}

// TestNamesOfFlags: who gives an object another name by a flag gets the right to it.
func TestNamesOfFlags(t *testing.T) {
	objects := rendered(t, "elsewhere", "--set-json", `extraArgs={"cluster-autoscaler-lease": ["a", "b"], "status-config-map-name": "mine"}`)
	for object, want := range map[string]map[string]any{
		"ClusterRole/windlass-scaler": {"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "resourceNames": []any{"a", "b"}, "verbs": []any{"list", "watch"}},
		"Role/windlass-scaler":        {"apiGroups": []any{""}, "resources": []any{"configmaps"}, "resourceNames": []any{"mine"}, "verbs": []any{"get", "update", "delete"}},
	} {
		rules := objects[object].Object["rules"].([]any)
		if !slices.ContainsFunc(rules, func(rule any) bool { return cmp.Equal(rule, any(want)) }) {
			t.Errorf("%s has not %v, but %v", object, want, rules)
		}
	}
}

// at is what an object has at a path, in which numbers are those of items.
func at(t *testing.T, value any, path []string) any {
	t.Helper()
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			value = v[step[0]-'0']
		default:
			t.Fatalf("there is nothing at %v", path)
		}
	}
	return value
}

// TestSchema: what is misspelt is refused by its name, and so is what is of another type.
func TestSchema(t *testing.T) {
	for values, names := range map[string]string{
		"extraArgs.scale-down-unneded-time=5m":   "scale-down-unneded-time",
		"extraArgs.scale-down-unneeded-time=5":   "scale-down-unneeded-time",
		"extraArgs.max-nodes-total=many":         "max-nodes-total",
		"agent.extraArgs.consolidate=off":        "consolidate",
		"extraArgs.namespace=elsewhere":          "namespace",
		"extraArgs.metrics-address=:9000":        "metrics-address",
		"image.pullSecrets[0].name=mine":         "pullSecrets",
		"resources.limits.memory=512M":           "goMemLimit",
		"autodiscovery.clusterName=main":         "autodiscovery",
		"components.prometheus.enabled=true":     "prometheus",
		"rbac.serviceAccount.annotations=string": "annotations",
	} {
		out, err := tryHelm("template", "windlass", chart, "--set", values)
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("--set %s: %v, want an error that names %s\n%.200s", values, err, names, out)
		}
	}
	for _, values := range []string{"extraArgs.scale-down-unneeded-time=1h30m", "extraArgs.scale-down-utilization-threshold=0.5", "extraArgs.expander=priority", "global.team=platform", "enabled=true"} {
		helm(t, "template", "windlass", chart, "--set", values)
	}
	for _, component := range []string{"eks-irsa", "kube2iam"} {
		if _, err := tryHelm("template", "windlass", chart, switched(component)); err == nil || !strings.Contains(err.Error(), "roleArn") {
			t.Errorf("%s without a role: %v, want an error that names roleArn", component, err)
		}
	}
}

func TestLint(t *testing.T) {
	args := []string{"lint", chart, "--strict", "--set=roleArn=" + role}
	for _, name := range components(t) {
		args = append(args, switched(name))
	}
	if out := helm(t, args...); !strings.Contains(out, "0 chart(s) failed") {
		t.Error(out)
	}
}

// TestChart: Artifact Hub reads what it is told in the types that it knows.
func TestChart(t *testing.T) {
	var metadata struct{ Annotations map[string]string }
	if err := yaml.Unmarshal([]byte(helm(t, "show", "chart", chart)), &metadata); err != nil {
		t.Fatal(err)
	}
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	var changes []struct{ Kind, Description string }
	for key, list := range map[string]any{"artifacthub.io/images": &images, "artifacthub.io/changes": &changes} {
		if err := yaml.UnmarshalStrict([]byte(metadata.Annotations[key]), list); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	asked := map[string]bool{}
	for _, o := range rendered(t, "elsewhere", switched("notifications")) {
		if containers, is, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers"); is {
			asked[fmt.Sprint(containers[0].(map[string]any)["image"])] = true
		}
	}
	named := map[string]bool{}
	for _, image := range images {
		named[image.Image] = true
	}
	if diff := cmp.Diff(asked, named); diff != "" {
		t.Errorf("images (-asked for +named):\n%s", diff)
	}
	for _, change := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || change.Description == "" {
			t.Errorf("change %v", change)
		}
	}
}

// TestHelmfile: the example names this chart, and values that it has.
func TestHelmfile(t *testing.T) {
	const file = "../../charts/examples/helmfile.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var example struct {
		Releases []struct {
			Name, Namespace, Chart string
			CreateNamespace, Wait  bool
			Timeout                int
			Values                 []map[string]any
		}
	}
	if err := yaml.UnmarshalStrict(text, &example); err != nil {
		t.Fatal(err)
	}
	for _, release := range example.Releases {
		if got, want := filepath.Join(filepath.Dir(file), release.Chart), filepath.Clean(chart); got != want {
			t.Errorf("it installs %s", got)
		}
		for _, values := range release.Values {
			body, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			write(t, file, string(body))
			account := rendered(t, release.Namespace, "--values", file)["ServiceAccount/windlass-scaler"]
			if got := account.GetAnnotations()["eks.amazonaws.com/role-arn"]; got != role {
				t.Errorf("the scaler has the role %q", got)
			}
		}
	}
	if len(example.Releases) == 0 {
		t.Error("it has no releases")
	}
}
