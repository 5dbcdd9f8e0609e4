package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Autoscaler is another program that scales the same nodes, as one object tells that it
// renews.
type Autoscaler struct {
	// Kind is ClusterAutoscaler or Windlass, Sign is SignLease or SignStatus.
	Kind      string `json:"kind"`
	Sign      string `json:"sign"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Holder is the lease's, as it names itself; empty for a status.
	Holder string `json:"holder,omitempty"`
	// Renewed is when we last saw the object change, by our clock.
	Renewed time.Time `json:"renewed"`
	// Powerless means that none of the pods that may be the holder may change Nodes, so
	// that anybody with rights in that namespace can have written the object.
	Powerless bool `json:"powerless,omitempty"`
	// Younger says of a second Windlass that its lease was made after ours.
	Younger bool `json:"younger,omitempty"`
	// Groups are those that a running Cluster Autoscaler names in its status; empty of a Lease,
	// and where the status was not read, is not understood, or names none.
	Groups []string `json:"groups,omitempty"`
}

// The kinds of Autoscaler, and the signs of life.
const (
	ClusterAutoscaler = "Cluster Autoscaler"
	Windlass          = "second Windlass"

	SignLease  = "lease"
	SignStatus = "config map"
)

const (
	// leaseAlive is how long after its last renewal a lease counts; the holder renews it
	// every few seconds, and another may take it after 15 s.
	leaseAlive = time.Minute
	// statusAlive is the same of a status, which is written at each scan interval.
	statusAlive = 2 * time.Minute
)

// AliveUntil is how long the sign counts if it is not renewed.
func (a Autoscaler) AliveUntil() time.Time {
	if a.Sign == SignStatus {
		return a.Renewed.Add(statusAlive)
	}
	return a.Renewed.Add(leaseAlive)
}

func (a Autoscaler) String() string {
	text := fmt.Sprintf("%s %s/%s", a.Sign, a.Namespace, a.Name)
	if a.Holder != "" {
		text += ", held by " + a.Holder
	}
	return text
}

// NodePool is what Karpenter makes nodes by.
// https://karpenter.sh/docs/concepts/nodepools/
type NodePool struct {
	Name string `json:"name"`
	// Taints are those of its template, without the startup taints.
	Taints []corev1.Taint `json:"taints,omitempty"`
	// Requirements are those of its template, with its labels among them.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
}

// TerminationHandler is an AWS Node Termination Handler, as its pods tell.
// https://github.com/aws/aws-node-termination-handler
type TerminationHandler struct {
	Namespace string `json:"namespace"`
	// Owner is what makes its pods, such as DaemonSet x.
	Owner string `json:"owner"`
	// Queue is the URL of the SQS queue that it reads; empty where it asks each node's
	// instance metadata.
	Queue string `json:"queue,omitempty"`
}
