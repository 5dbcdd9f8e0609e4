package laws

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
)

// agentNode is where the API server writes on which node a token's holder runs.
const agentNode = "authentication.kubernetes.io/node-name"

// Completions finds hooks that were completed before a pod was gone which
// the agent of that node had evicted. Auto Scaling ends the instance then.
func Completions(audit []Request, calls []fakeaws.Call) []string {
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
