package laws

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/pkg/contract"
)

func TestDryRun(t *testing.T) {
	request := func(user, verb, resource, name, object string) Request {
		var r Request
		r.User.Username, r.Verb, r.ObjectRef.Resource, r.ObjectRef.Name = user, verb, resource, name
		if object != "" {
			if err := json.Unmarshal([]byte(object), &r.RequestObject); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	write := func(path string) string {
		return fmt.Sprintf(`{"op":"add","path":"/metadata/annotations/%s","value":"x"}`, strings.ReplaceAll(path, "/", "~1"))
	}
	patch := func(ops ...string) string {
		return `[{"op":"test","path":"/metadata/uid","value":"u"},` + strings.Join(ops, ",") + "]"
	}
	said := write(contract.AnnotationDryRun)
	const ofVersion = `{"op":"test","path":"/metadata/resourceVersion","value":"7"}`
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
		{"an agent's annotation", request(agent, "patch", "nodes", "n1", patch(said)), 0},
		{"the first annotation of a Node", request(agent, "patch", "nodes", "n1", patch(ofVersion, `{"op":"add","path":"/metadata/annotations","value":{"`+contract.AnnotationDryRun+`":"x"}}`)), 0},
		{"in place of all annotations", request(agent, "patch", "nodes", "n1", patch(`{"op":"add","path":"/metadata/annotations","value":{"`+contract.AnnotationDryRun+`":"x"}}`)), 1},
		{"moved from another", request(agent, "patch", "nodes", "n1", patch(strings.Replace(said, `"op":"add"`, `"op":"move","from":"/metadata/annotations/a"`, 1))), 1},
		{"the first two", request(agent, "patch", "nodes", "n1", patch(ofVersion, `{"op":"add","path":"/metadata/annotations","value":{"a":"b","`+contract.AnnotationDryRun+`":"x"}}`)), 1},
		{"all annotations anew", request(agent, "patch", "nodes", "n1", patch(`{"op":"replace","path":"/metadata/annotations","value":{"`+contract.AnnotationDryRun+`":"x"}}`)), 1},
		{"all annotations gone", request(agent, "patch", "nodes", "n1", patch(said, `{"op":"remove","path":"/metadata/annotations"}`)), 1},
		{"the same with a taint", request(agent, "patch", "nodes", "n1", patch(said, `{"op":"add","path":"/spec/taints","value":[]}`)), 1},
		{"the same with a cordon", request(agent, "patch", "nodes", "n1", patch(said, `{"op":"replace","path":"/spec/unschedulable","value":true}`)), 1},
		{"the same without a label", request(agent, "patch", "nodes", "n1", patch(said, `{"op":"remove","path":"/metadata/labels/a"}`)), 1},
		{"the annotation in a patch of another kind", request(agent, "patch", "nodes", "n1", `{"metadata":{"annotations":{"`+contract.AnnotationDryRun+`":"x"}},"spec":{"unschedulable":true}}`), 1},
		{"its Lease", request(scaler, "update", "leases", contract.LeaseScaler, ""), 0},
		{"a Lease of others", request(scaler, "update", "leases", contract.LeaseClusterAutoscaler, ""), 1},
		{"a ConfigMap of others", request(scaler, "update", "configmaps", "kube-root-ca.crt", ""), 1},
		{"a CapacityBuffer", request(scaler, "patch", "capacitybuffers", "b", ""), 1},
		{"a ConfigMap without a name", request(scaler, "create", "configmaps", "", ""), 1},
		{"an agent's report", request(agent, "patch", "nodes", "n1", patch(write(contract.AnnotationDrainReport))), 1},
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
