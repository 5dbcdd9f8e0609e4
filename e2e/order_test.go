package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
)

// agentNode is where the API server writes on which node a token's holder runs.
const agentNode = "authentication.kubernetes.io/node-name"

// earlyCompletions finds hooks that were completed before a pod was gone which
// the agent of that node had evicted. Auto Scaling ends the instance then.
func earlyCompletions(audit []audited, calls []fakeaws.Call) []string {
	nodes := map[string]string{}            // of instances
	evicted := map[string][]string{}        // pods, by node
	deletions := map[string]([]time.Time){} // by pod
	for _, a := range audit {
		pod := a.ObjectRef.Namespace + "/" + a.ObjectRef.Name
		switch {
		case a.ObjectRef.Resource == "nodes" && a.RequestObject.Spec.ProviderID != "":
			id := a.RequestObject.Spec.ProviderID
			nodes[id[strings.LastIndexByte(id, '/')+1:]] = a.ObjectRef.Name
		case a.ObjectRef.Subresource == "eviction" && a.ResponseStatus.Code == 201:
			for _, node := range a.User.Extra[agentNode] {
				evicted[node] = append(evicted[node], pod)
			}
		case a.ObjectRef.Resource == "pods" && a.Verb == "delete":
			deletions[pod] = append(deletions[pod], a.RequestReceivedTimestamp)
		}
	}
	var breaches []string
	for _, c := range calls {
		if c.Operation != "CompleteLifecycleAction" || c.Error != "" {
			continue
		}
		instance := c.Params["InstanceId"]
		for _, pod := range evicted[nodes[instance]] {
			if !slices.ContainsFunc(deletions[pod], func(at time.Time) bool { return at.Before(c.Time) }) {
				breaches = append(breaches, fmt.Sprintf("the hook of %s was completed at %s, before its pod %s was gone", instance, c.Time.Format("15:04:05.000"), pod))
			}
		}
	}
	return breaches
}

func TestEarlyCompletions(t *testing.T) {
	const log = `
{"verb":"create","objectRef":{"resource":"nodes","name":"n1"},"requestObject":{"spec":{"providerID":"aws:///eu-west-1a/i-1"}}}
{"verb":"create","user":{"extra":{"authentication.kubernetes.io/node-name":["n1"]}},"objectRef":{"resource":"pods","subresource":"eviction","namespace":"default","name":"web-1"},"responseStatus":{"code":201}}
{"verb":"delete","user":{"username":"kwok"},"objectRef":{"resource":"pods","namespace":"default","name":"web-1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-08-01T12:00:05Z"}`
	var audit []audited
	for _, line := range strings.Split(strings.TrimSpace(log), "\n") {
		var a audited
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		audit = append(audit, a)
	}
	for _, c := range []struct {
		reason           string
		second           int
		instance, failed string
		want             int
	}{
		{"after the pod", 6, "i-1", "", 0},
		{"before the pod", 4, "i-1", "", 1},
		{"before the pod, and refused", 4, "i-1", "ValidationError", 0},
		{"another instance", 4, "i-2", "", 0},
	} {
		call := fakeaws.Call{Operation: "CompleteLifecycleAction", Time: time.Date(2026, 8, 1, 12, 0, c.second, 0, time.UTC), Error: c.failed, Params: map[string]string{"InstanceId": c.instance}}
		if got := earlyCompletions(audit, []fakeaws.Call{call}); len(got) != c.want {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
}
