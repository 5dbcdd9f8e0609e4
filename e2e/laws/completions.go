package laws

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
)

// agentNode is where the API server writes on which node a token's holder runs.
const agentNode = "authentication.kubernetes.io/node-name"

// Completions finds hooks that were completed before a pod was gone which
// the agent of that node had evicted. Auto Scaling ends the instance then.
//
// An instance may leave several times, through a warm pool: an eviction is held
// against the first completion after it, or the last one if none came after. The
// pods of a Node that was deleted before that are the garbage collector's.
func Completions(audit []Request, calls []fakeaws.Call) []string {
	completed := completions(calls)
	nodes, removed := map[string]string{}, map[string]time.Time{} // instances, and the end of the Node, by node
	deletions := map[string][]time.Time{}
	for _, a := range audit {
		switch {
		case a.ObjectRef.Resource == "nodes" && a.RequestObject.Spec.ProviderID != "":
			nodes[a.ObjectRef.Name] = instanceOf(a.RequestObject.Spec.ProviderID)
		case a.ObjectRef.Resource == "nodes" && a.Verb == "delete" && a.ResponseStatus.Code == http.StatusOK:
			removed[a.ObjectRef.Name] = a.RequestReceivedTimestamp
		case a.ObjectRef.Resource == "pods" && a.Verb == "delete":
			deletions[a.pod()] = append(deletions[a.pod()], a.RequestReceivedTimestamp)
		}
	}
	var breaches []string
	for _, a := range audit {
		if a.ObjectRef.Subresource != "eviction" || a.ResponseStatus.Code != 201 {
			continue
		}
		for _, node := range a.User.Extra[agentNode] {
			instance := nodes[node]
			end, ok := endOf(completed[instance], a.RequestReceivedTimestamp)
			if at, was := removed[node]; was && at.Before(end) {
				continue
			}
			gone := func(at time.Time) bool { return at.Before(end) }
			if ok && !slices.ContainsFunc(deletions[a.pod()], gone) {
				breaches = append(breaches, fmt.Sprintf("the hook of %s was completed at %s, before its pod %s was gone", instance, stamp(end), a.pod()))
			}
		}
	}
	return breaches
}

// completions of hooks that AWS took, in their order, by instance.
func completions(calls []fakeaws.Call) map[string][]time.Time {
	all := map[string][]time.Time{}
	for _, c := range calls {
		if c.Operation == "CompleteLifecycleAction" && c.Error == "" {
			id := c.Params["InstanceId"]
			all[id] = append(all[id], c.Time)
		}
	}
	for _, times := range all {
		slices.SortFunc(times, time.Time.Compare)
	}
	return all
}

// endOf is the completion that an eviction at a moment is held against.
func endOf(completed []time.Time, evicted time.Time) (at time.Time, ok bool) {
	if len(completed) == 0 {
		return time.Time{}, false
	}
	for _, at := range completed {
		if at.After(evicted) {
			return at, true
		}
	}
	return completed[len(completed)-1], true
}

// pod names the pod that a request is about.
func (a Request) pod() string { return a.ObjectRef.Namespace + "/" + a.ObjectRef.Name }
