package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/contract"
)

// Place is where Windlass goes.
type Place struct {
	// Namespace of Windlass, and Manifests as the overlay refers to the folder.
	Namespace, Manifests string
}

// baseNamespace is the one that the manifests say.
const baseNamespace = "windlass-system"

// What the manifests give the scaler as arguments, and where. A test holds this.
const (
	discoveryAt  = 3
	discovery    = "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/$(CLUSTER_NAME)"
	addressAt    = 2
	usualAddress = "--metrics-address=:8085"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

type (
	kustomization struct {
		APIVersion string      `json:"apiVersion"`
		Kind       string      `json:"kind"`
		Namespace  string      `json:"namespace"`
		Resources  []string    `json:"resources"`
		Components []string    `json:"components,omitempty"`
		ConfigMaps []generator `json:"configMapGenerator,omitempty"`
		Patches    []patch     `json:"patches,omitempty"`
	}
	generator struct {
		Name      string    `json:"name"`
		Namespace string    `json:"namespace"`
		Behavior  string    `json:"behavior,omitempty"`
		Literals  []string  `json:"literals"`
		Options   *genOwner `json:"options,omitempty"`
	}
	genOwner struct {
		Labels       map[string]string `json:"labels"`
		WithoutAHash bool              `json:"disableNameSuffixHash"`
	}
	patch struct {
		Target target `json:"target"`
		Patch  string `json:"patch"`
	}
	target struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	}
)

// Overlay is a kustomization.yaml of its own folder, with the report in its comments.
func (r Report) Overlay(to Place) (string, error) {
	s := r.Settings
	k := kustomization{
		APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization",
		Namespace: to.Namespace, Resources: []string{to.Manifests},
	}
	for _, name := range s.Components {
		k.Components = append(k.Components, to.Manifests+"/components/"+name)
	}
	if literals := s.literals(); len(literals) > 0 {
		k.ConfigMaps = append(k.ConfigMaps, generator{Name: "windlass-settings", Namespace: baseNamespace, Behavior: "merge", Literals: literals})
	}
	if s.Priorities != "" {
		k.ConfigMaps = append(k.ConfigMaps, generator{
			Name: contract.ConfigMapPriorities, Namespace: baseNamespace,
			Literals: []string{contract.PrioritiesKey + "=" + strings.TrimSpace(s.Priorities) + "\n"},
			Options:  &genOwner{WithoutAHash: true, Labels: map[string]string{"app.kubernetes.io/name": contract.AppScaler, "app.kubernetes.io/part-of": "windlass"}},
		})
	}
	var err error
	add := func(kind, name string, body any, any bool) {
		if !any || err != nil {
			return
		}
		var text []byte
		text, err = yaml.Marshal(body)
		k.Patches = append(k.Patches, patch{target{kind, name}, string(text)})
	}
	operations := s.scalerOperations()
	add("Deployment", contract.AppScaler, operations, len(operations) > 0)
	merged, is := s.podPatch()
	add("Deployment", contract.AppScaler, merged, is)
	leases := s.right("cluster-autoscaler-lease", "coordination.k8s.io", "leases", "list", "watch")
	add("ClusterRole", contract.AppScaler, leases, len(leases) > 0)
	status := s.right("status-config-map-name", "", "configmaps", "get", "update", "delete")
	add("Role", contract.AppScaler, status, len(status) > 0)
	agent := flagOperations(s.Agent)
	add("DaemonSet", contract.AppAgent, agent, len(agent) > 0)
	add("ServiceAccount", contract.AppScaler, map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": map[string]any{"name": contract.AppScaler, "annotations": map[string]string{contract.AnnotationRoleIRSA: s.Role}},
	}, s.RoleBy == EKSIRSA)
	if err != nil {
		return "", fmt.Errorf("writing a patch: %w", err)
	}
	text, err := yaml.Marshal(k)
	return r.comments("kubectl apply -k FOLDER, where FOLDER has this as kustomization.yaml") + string(text), err
}

// literals are what the cluster says of itself.
func (s Settings) literals() []string {
	var all []string
	for _, l := range [][2]string{{"CLUSTER_NAME", s.Cluster}, {"AWS_REGION", s.Region}, {"SCALER_ROLE_ARN", s.Role}} {
		if l[1] != "" {
			all = append(all, l[0]+"="+l[1])
		}
	}
	return all
}

// scalerOperations change its arguments and its environment. What they take out they test before, so
// that manifests of another version are refused and not changed in the wrong place.
func (s Settings) scalerOperations() []operation {
	const container = "/spec/template/spec/containers/0"
	var all []operation
	at := func(list string, i int) string { return container + "/" + list + "/" + strconv.Itoa(i) }
	if s.replacesDiscovery() {
		all = append(all, operation{"test", at("args", discoveryAt), discovery}, operation{Op: "remove", Path: at("args", discoveryAt)})
	}
	if s.Port != 0 {
		all = append(all, operation{"test", at("args", addressAt), usualAddress},
			operation{"replace", at("args", addressAt), "--metrics-address=:" + strconv.Itoa(s.Port)},
			operation{"replace", container + "/ports/0/containerPort", s.Port})
	}
	all = append(all, flagOperations(s.Scaler)...)
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	add := func(name, value string) {
		all = append(all, operation{"add", container + "/env/-", variable{name, value}})
	}
	if s.RoleBy == EKSIRSA {
		add("AWS_EC2_METADATA_DISABLED", "true") // as the component of that name does
	}
	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		add(name, s.Variables[name])
	}
	return all
}

// replacesDiscovery reports whether the groups are found otherwise than by the manifests' tags.
func (s Settings) replacesDiscovery() bool {
	return !s.UsualTags && slices.ContainsFunc(s.Scaler, func(s Setting) bool { return s.Flag == "nodes" || s.Flag == "node-group-auto-discovery" })
}

// right adds the one to the objects that a flag of the scaler names, as the chart does.
func (s Settings) right(flag, group, resource string, verbs ...string) []operation {
	var names []string
	for _, s := range s.Scaler {
		if s.Flag == flag {
			names = append(names, s.Value)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []operation{{"add", "/rules/-", map[string][]string{"apiGroups": {group}, "resources": {resource}, "resourceNames": names, "verbs": verbs}}}
}

func flagOperations(settings []Setting) []operation {
	var all []operation
	for _, s := range settings {
		all = append(all, operation{"add", "/spec/template/spec/containers/0/args/-", "--" + s.Flag + "=" + s.Value})
	}
	return all
}

// podPatch is merged into the scaler's pod template.
func (s Settings) podPatch() (merged map[string]any, is bool) {
	p := s.Pod
	annotations := maps.Clone(p.Annotations)
	if s.RoleBy == Kube2iam {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[contract.AnnotationRoleKube2iam] = s.Role
	}
	metadata, spec := map[string]any{}, map[string]any{}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if labels := s.labels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(p.NodeSelector) > 0 {
		spec["nodeSelector"] = p.NodeSelector
	}
	if len(p.Tolerations) > 0 {
		spec["tolerations"] = p.Tolerations
	}
	if p.Priority != "" {
		spec["priorityClassName"] = p.Priority
	}
	template := map[string]any{}
	if len(metadata) > 0 {
		template["metadata"] = metadata
	}
	if len(spec) > 0 {
		template["spec"] = spec
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": contract.AppScaler},
		"spec": map[string]any{"template": template},
	}, len(template) > 0
}

// labels are those of pods but for the one that selects them, which is Windlass's.
func (s Settings) labels() map[string]string {
	labels := maps.Clone(s.Pod.Labels)
	delete(labels, "app.kubernetes.io/name")
	return labels
}
