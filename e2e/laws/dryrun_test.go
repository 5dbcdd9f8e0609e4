package laws

import (
	"testing"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
)

func TestDryRun(t *testing.T) {
	request := func(user, verb, resource, name, annotation string) Request {
		var r Request
		r.User.Username, r.Verb, r.ObjectRef.Resource, r.ObjectRef.Name = user, verb, resource, name
		if annotation != "" {
			r.RequestObject.Metadata.Annotations = map[string]string{annotation: "x"}
		}
		return r
	}
	const scaler, agent = ours + "windlass-scaler", ours + "windlass-agent"
	for _, c := range []struct {
		name    string
		request Request
		want    int
	}{
		{"it reads", request(scaler, "list", "nodes", "", ""), 0},
		{"its log", request(scaler, "update", "configmaps", "windlass-shadow-log-03", ""), 0},
		{"the state of a scaler that acts", request(scaler, "update", "configmaps", "windlass-state", ""), 1},
		{"a Node", request(scaler, "patch", "nodes", "n1", ""), 1},
		{"an eviction", request(agent, "create", "pods", "web", ""), 1},
		{"an agent's annotation", request(agent, "patch", "nodes", "n1", contract.AnnotationDryRun), 0},
		{"an agent's report", request(agent, "patch", "nodes", "n1", contract.AnnotationDrainReport), 1},
		{"somebody else", request("kubernetes-admin", "patch", "nodes", "n1", ""), 0},
	} {
		if got := DryRun([]Request{c.request}, nil); len(got) != c.want {
			t.Errorf("%s: %q, want %d", c.name, got, c.want)
		}
	}
	for operation, want := range map[string]int{"DescribeAutoScalingGroups": 0, "GetInstanceTypesFromInstanceRequirements": 0, "SetDesiredCapacity": 1, "CreateOrUpdateTags": 1} {
		if got := DryRun(nil, []fakeaws.Call{{Operation: operation}}); len(got) != want {
			t.Errorf("%s: %q, want %d", operation, got, want)
		}
	}
}
