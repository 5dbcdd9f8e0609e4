package action

import (
	"fmt"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
)

// Cordon closes a node to new pods in place of its agent: unschedulable, tainted, out
// of the load balancers, each with our mark where it was not so before. It is done if
// the drain ID still stands on the node.
type Cordon struct {
	Group string
	Node  NodeRef
	ID    string
	Kind  contract.Kind
	// KubeProxy adds contract.KubeProxyTaint.
	KubeProxy bool
	// Why no agent does it.
	Why string
}

func (a Cordon) String() string {
	also := ""
	if a.KubeProxy {
		also = " and tell kube-proxy"
	}
	return fmt.Sprintf("cordon %s (%s)%s: %s", a.Node, a.Kind, also, a.Why)
}

// Evict evicts a pod of a node in place of its agent.
type Evict struct {
	Group string
	Node  NodeRef
	Pod   PodRef
	// Grace cuts the pod's grace period, in seconds; nil leaves it.
	Grace *int64
	// Overrides is the rule that would have blocked the pod's eviction, had there been time.
	Overrides drainable.Rule
	// Why no agent does it.
	Why string
}

func (a Evict) String() string {
	text := fmt.Sprintf("evict %s from %s", a.Pod, a.Node)
	if a.Grace != nil {
		text += fmt.Sprintf(" within %d s", *a.Grace)
	}
	if a.Overrides != "" {
		text += fmt.Sprintf(" against %s", a.Overrides)
	}
	return text + ": " + a.Why
}

// Drain is how a drain stands that the scaler carries on in place of an agent, which
// would have reported it.
type Drain struct {
	Node NodeRef
	// ID is that of the request or notice.
	ID    string
	Phase contract.Phase
	// Pauses: it waits before its first eviction, as for load balancers.
	Pauses bool
	// Message is a sentence for people.
	Message string
}
