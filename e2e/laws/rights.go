package laws

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Span is a time from one moment to another.
type Span struct{ From, To time.Time }

// Holds reports whether a moment is within.
func (s Span) Holds(t time.Time) bool { return !t.Before(s.From) && !t.After(s.To) }

// Rights finds what our programs were forbidden. An API server that is not ready,
// away says when, forbids what it has not read the rules of yet: that is no breach,
// if the same right was granted at another time. Nor is it one if the server had not
// heard yet where a pod has been bound a moment before, and let it be evicted later, or
// somebody else deleted it.
func Rights(audit []Request, away []Span) []string {
	granted, left := map[string]bool{}, map[string]bool{}
	for _, a := range audit {
		if a.ResponseStatus.Code/100 != 2 {
			continue
		}
		granted[a.right()] = true
		if a.ObjectRef.Subresource == "eviction" || a.ObjectRef.Resource == "pods" && a.Verb == "delete" {
			left[a.pod()] = true
		}
	}
	var breaches []string
	for _, a := range audit {
		if !strings.HasPrefix(a.User.Username, ours) || a.ResponseStatus.Code != 403 || a.ofGoing() {
			continue
		}
		unready := slices.ContainsFunc(away, func(s Span) bool { return s.Holds(a.RequestReceivedTimestamp) })
		if unready && granted[a.right()] || a.tooYoung() && left[a.pod()] {
			continue
		}
		breaches = append(breaches, fmt.Sprintf("%s, which it tried at %s", a.right(), stamp(a.RequestReceivedTimestamp)))
	}
	return breaches
}

// ofGoing reports whether the request was forbidden because its namespace is being
// deleted, which forbids it to everybody.
func (r Request) ofGoing() bool {
	return slices.ContainsFunc(r.ResponseStatus.Details.Causes, func(c cause) bool {
		return c.Reason == corev1.NamespaceTerminatingCause
	})
}

// tooYoung reports whether an agent was forbidden to evict a pod for not being its node's: by
// the admission plugin NodeRestriction, or where the agent asks as its account by our
// own policy. Both go by what the API server has heard of its own pods.
func (r Request) tooYoung() bool {
	return strings.Contains(r.ResponseStatus.Message, "can only evict pods with spec.nodeName set to itself") ||
		strings.Contains(r.ResponseStatus.Message, "only pods of the Node that the token is bound to may be evicted")
}

// right is what a request needed, in words that say it is missing.
func (r Request) right() string {
	what := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	if r.ObjectRef.Namespace != "" {
		what += " in " + r.ObjectRef.Namespace
	}
	return fmt.Sprintf("%s has no right to %s %s", strings.TrimPrefix(r.User.Username, ours), r.Verb, what)
}
