package migrate

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Values are those of Windlass's chart, with the report in their comments.
func (r Report) Values() (string, error) {
	s := r.Settings
	values := map[string]any{}
	put := func(path string, value any, is bool) {
		if !is {
			return
		}
		into := values
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			below, ok := into[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[key] = below
			}
			into = below
		}
		into[keys[len(keys)-1]] = value
	}
	scaler := argumentsOf(s.Scaler)
	if _, given := scaler["node-group-auto-discovery"]; s.replacesDiscovery() && !given {
		scaler["node-group-auto-discovery"] = []string{} // takes out the manifests'
	} else if own, is := scaler["node-group-auto-discovery"].([]string); is && s.UsualTags {
		scaler["node-group-auto-discovery"] = append([]string{strings.TrimPrefix(discovery, "--node-group-auto-discovery=")}, own...)
	}
	put("autoDiscovery.clusterName", s.Cluster, s.Cluster != "")
	put("awsRegion", s.Region, s.Region != "")
	put("roleArn", s.Role, s.Role != "")
	put("components.eksIrsa", true, s.RoleBy == EKSIRSA)
	put("components.kube2iam", true, s.RoleBy == Kube2iam)
	for _, name := range s.Components {
		put("components."+camel(name), true, true)
	}
	put("extraArgs", scaler, len(scaler) > 0)
	agent := argumentsOf(s.Agent)
	put("agent.extraArgs", agent, len(agent) > 0)
	put("metricsPort", s.Port, s.Port != 0)
	put("expanderPriorities", s.Priorities, s.Priorities != "")
	put("extraEnv", s.Variables, len(s.Variables) > 0)
	put("nodeSelector", s.Pod.NodeSelector, len(s.Pod.NodeSelector) > 0)
	put("tolerations", s.Pod.Tolerations, len(s.Pod.Tolerations) > 0)
	put("podAnnotations", s.Pod.Annotations, len(s.Pod.Annotations) > 0)
	put("podLabels", s.labels(), len(s.labels()) > 0)
	put("priorityClassName", s.Pod.Priority, s.Pod.Priority != "")
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("writing the values: %w", err)
	}
	return r.comments("helm install windlass charts/windlass --namespace windlass-system --create-namespace --values FILE, where FILE has this") + string(text), nil
}

// argumentsOf are flags as the chart has them: by name, with a list of what may be given several times,
// and numbers and switches as such.
func argumentsOf(settings []Setting) map[string]any {
	all := map[string]any{}
	for _, s := range settings {
		switch s.Kind {
		case list:
			values, _ := all[s.Flag].([]string)
			all[s.Flag] = append(values, s.Value)
		case boolean:
			all[s.Flag] = s.Value == "true"
		case integer, float:
			all[s.Flag] = json.Number(s.Value)
		default:
			all[s.Flag] = s.Value
		}
	}
	return all
}

// camel is the switch of a component: out-of-service-taint is outOfServiceTaint.
func camel(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
