// Package fleet holds the nouns of the scaler's decision: everything that is
// known about a cluster at one moment, as plain values.
//
// A Snapshot is observed, never asked back: it has no client, no clock and no
// lock. It can be written as YAML and read again, so every decision can be
// repeated on another machine.
package fleet

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is everything the scaler knows at Now. Order carries no meaning.
type Snapshot struct {
	Now        time.Time   `json:"now"`
	Groups     []Group     `json:"groups,omitempty"`
	Nodes      []Node      `json:"nodes,omitempty"`
	Pods       []Pod       `json:"pods,omitempty"`
	Budgets    []Budget    `json:"budgets,omitempty"`
	DaemonSets []DaemonSet `json:"daemonSets,omitempty"`
	// Agents tells for each node name with an agent pod whether it is Ready.
	Agents map[string]bool `json:"agents,omitempty"`
	// Rival is a Cluster Autoscaler that is alive beside us, nil without one.
	Rival *Rival `json:"rival,omitempty"`
	// State is the scaler's memory, from the ConfigMap.
	State State `json:"state,omitzero"`
}

// Rival is another autoscaler that holds its lease.
type Rival struct {
	Lease   string    `json:"lease"` // namespace/name
	Holder  string    `json:"holder,omitempty"`
	Renewed time.Time `json:"renewed,omitzero"`
}

// Group is an Auto Scaling group.
type Group struct {
	Name string `json:"name"`
	ARN  string `json:"arn,omitempty"`
	// Min and Max bound what we set: the group's own figures, or those of an
	// explicit --nodes flag as far as they lie within.
	Min     int      `json:"min"`
	Max     int      `json:"max"`
	Desired int      `json:"desired"`
	Zones   []string `json:"zones,omitempty"`
	// Shapes says what a new node looks like, one for each zone; empty where
	// it cannot be known, and then Faults says why.
	Shapes    []Shape    `json:"shapes,omitempty"`
	Instances []Instance `json:"instances,omitempty"`
	Hooks     []Hook     `json:"hooks,omitempty"`
	// HooksUnknown says that the hooks have not been read yet: there may be
	// some.
	HooksUnknown bool `json:"hooksUnknown,omitempty"`
	// Suspended names processes that Auto Scaling does not carry out now, such
	// as Launch, Terminate or AZRebalance.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
	Suspended []string `json:"suspended,omitempty"`
	// Failures are failed launches that the group's activities tell of, the
	// newest first.
	Failures []Failure `json:"failures,omitempty"`
	// Faults are sentences about what is wrong with the group's definition: a
	// malformed tag, a missing launch template. A group with shapes and faults
	// still works.
	Faults []string `json:"faults,omitempty"`
	// ScaleDown overrides the policy for this group, from its tags.
	ScaleDown ScaleDownOptions `json:"scaleDown,omitzero"`
}

// ScaleDownOptions are a group's own settings, nil where the tag is absent.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
type ScaleDownOptions struct {
	UtilizationThreshold *float64         `json:"utilizationThreshold,omitempty"`
	UnneededTime         *metav1.Duration `json:"unneededTime,omitempty"`
	UnreadyTime          *metav1.Duration `json:"unreadyTime,omitempty"`
}

// Shape is what a new node of a group looks like in one zone.
type Shape struct {
	Zone         string              `json:"zone"`
	InstanceType string              `json:"instanceType,omitempty"`
	Capacity     corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable  corev1.ResourceList `json:"allocatable"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Taints       []corev1.Taint      `json:"taints,omitempty"`
}

// Lifecycle states of an instance that decisions ask for by name.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
const (
	Pending            = "Pending"
	PendingWait        = "Pending:Wait"
	PendingProceed     = "Pending:Proceed"
	InService          = "InService"
	Terminating        = "Terminating"
	TerminatingWait    = "Terminating:Wait"
	TerminatingProceed = "Terminating:Proceed"
	Terminated         = "Terminated"
)

// Instance is one member of a group.
type Instance struct {
	ID   string `json:"id"`
	Zone string `json:"zone,omitempty"`
	Type string `json:"type,omitempty"`
	// State is the lifecycle state as Auto Scaling spells it.
	State     string `json:"state"`
	Unhealthy bool   `json:"unhealthy,omitempty"`
	// Protected from scale-in.
	Protected bool `json:"protected,omitempty"`
	// LeavingSince is when the terminating activity began, or the first moment
	// it was seen; zero while it does not leave.
	LeavingSince time.Time `json:"leavingSince,omitzero"`
}

// Leaving says that Auto Scaling is terminating the instance, in whatever
// step: it no longer counts as desired capacity.
func (i Instance) Leaving() bool {
	return strings.HasPrefix(i.State, Terminating) || i.State == Terminated
}

// Warmed says that the instance stands in a warm pool and not in the group.
func (i Instance) Warmed() bool { return strings.HasPrefix(i.State, "Warmed:") }

// Live says that the instance counts towards the group's desired capacity.
// Standby, detaching and warm pool instances do not.
func (i Instance) Live() bool {
	switch i.State {
	case Pending, PendingWait, PendingProceed, InService:
		return true
	}
	return false
}

// Transitions of a lifecycle hook.
const (
	OnLaunch    = "autoscaling:EC2_INSTANCE_LAUNCHING"
	OnTerminate = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// Hook is a lifecycle hook of a group.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html
type Hook struct {
	Name       string `json:"name"`
	Transition string `json:"transition"`
	// Heartbeat is how long an instance waits without one, Global how long at
	// the most.
	Heartbeat metav1.Duration `json:"heartbeat"`
	Global    metav1.Duration `json:"global"`
	// Default is CONTINUE or ABANDON.
	Default string `json:"default,omitempty"`
}

// Failure is a failed launch.
type Failure struct {
	At   time.Time `json:"at"`
	Zone string    `json:"zone,omitempty"`
	// Cause is a word for the back-off, e.g. InsufficientInstanceCapacity;
	// Text is AWS's own message.
	Cause string `json:"cause"`
	Text  string `json:"text"`
}

// Node is a Kubernetes node.
type Node struct {
	Name          string              `json:"name"`
	UID           types.UID           `json:"uid,omitempty"`
	ProviderID    string              `json:"providerID,omitempty"`
	Created       time.Time           `json:"created,omitzero"`
	Labels        map[string]string   `json:"labels,omitempty"`
	Annotations   map[string]string   `json:"annotations,omitempty"`
	Taints        []corev1.Taint      `json:"taints,omitempty"`
	Unschedulable bool                `json:"unschedulable,omitempty"`
	Capacity      corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable   corev1.ResourceList `json:"allocatable,omitempty"`
	Ready         bool                `json:"ready"`
	// ReadySince is when Ready last changed, to either value.
	ReadySince time.Time `json:"readySince,omitzero"`
	BootID     string    `json:"bootID,omitempty"`
}

// InstanceID is the EC2 instance of a provider id such as
// aws:///eu-west-1a/i-0123; empty for a node of another provider.
func (n Node) InstanceID() string {
	if !strings.HasPrefix(n.ProviderID, "aws://") {
		return ""
	}
	id := n.ProviderID[strings.LastIndexByte(n.ProviderID, '/')+1:]
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// Zone is the node's availability zone.
func (n Node) Zone() string { return n.Labels[corev1.LabelTopologyZone] }

// Scheduling is what kube-scheduler last said of a pod without a node.
type Scheduling string

const (
	// Unjudged: no PodScheduled condition yet.
	Unjudged Scheduling = ""
	// Unschedulable: PodScheduled is False with reason Unschedulable.
	Unschedulable Scheduling = "Unschedulable"
	// Gated: the pod has scheduling gates and does not want a node yet.
	Gated Scheduling = "SchedulingGated"
)

// Pod is a Kubernetes pod.
type Pod struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	UID         types.UID         `json:"uid,omitempty"`
	Created     time.Time         `json:"created,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owner is the controlling owner, nil for a naked pod.
	Owner *metav1.OwnerReference `json:"owner,omitempty"`
	// Node is spec.nodeName, Nominated status.nominatedNodeName.
	Node      string `json:"node,omitempty"`
	Nominated string `json:"nominated,omitempty"`
	// Spec is as admitted but for nodeName, which is empty, so that pods of
	// one template can share it. Never changed.
	Spec       *corev1.PodSpec `json:"spec"`
	Phase      corev1.PodPhase `json:"phase,omitempty"`
	Ready      bool            `json:"ready,omitempty"`
	Scheduling Scheduling      `json:"scheduling,omitempty"`
	// Judged is when Scheduling last changed.
	Judged time.Time `json:"judged,omitzero"`
	// Deleted is the deletionTimestamp, zero while nobody deletes the pod.
	Deleted time.Time `json:"deleted,omitzero"`
}

// Key is namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Ended says that the pod's containers are done for good.
func (p Pod) Ended() bool { return p.Phase == corev1.PodSucceeded || p.Phase == corev1.PodFailed }

// Priority is the pod's priority as admission resolved it; 0 where unset.
func (p Pod) Priority() int32 {
	if p.Spec == nil || p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	Namespace string                `json:"namespace"`
	Name      string                `json:"name"`
	Selector  *metav1.LabelSelector `json:"selector,omitempty"`
	// Allowed is status.disruptionsAllowed; 0 while the status is stale.
	Allowed int32 `json:"allowed"`
	// Healthy and Desired are status.currentHealthy and status.desiredHealthy.
	Healthy int32 `json:"healthy"`
	Desired int32 `json:"desired"`
	// AlwaysAllowUnhealthy is the unhealthyPodEvictionPolicy AlwaysAllow.
	// https://github.com/kubernetes/enhancements/issues/3017
	AlwaysAllowUnhealthy bool `json:"alwaysAllowUnhealthy,omitempty"`
}

// Key is namespace/name.
func (b Budget) Key() string { return b.Namespace + "/" + b.Name }

// Matches says whether the budget guards a pod. In policy/v1 an empty selector
// guards every pod of the namespace and an absent one guards none; a selector
// that does not parse guards none.
func (b Budget) Matches(p Pod) bool {
	if b.Namespace != p.Namespace || b.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// DaemonSet is a DaemonSet, for the room that its pods take on a new node.
type DaemonSet struct {
	Namespace string                 `json:"namespace"`
	Name      string                 `json:"name"`
	Template  corev1.PodTemplateSpec `json:"template"`
}

// State is the scaler's memory that no other object of the cluster holds. It
// lives in a ConfigMap and is written before the action that it guards.
type State struct {
	// Heartbeats remembers when a hook's timer was last restarted, by
	// HeartbeatKey.
	Heartbeats map[string]time.Time `json:"heartbeats,omitempty"`
	// Completed remembers when a hook was completed for an instance that has
	// not moved on since, by HeartbeatKey.
	Completed map[string]time.Time `json:"completed,omitempty"`
	// BackOffs says until when a group is not grown, by group.
	BackOffs map[string]BackOff `json:"backOffs,omitempty"`
	// GrownAt remembers when each group was last grown, by group.
	GrownAt map[string]time.Time `json:"grownAt,omitempty"`
	// Bursts counts how often a group was grown in the burst of pods that goes
	// on, by group.
	Bursts map[string]int `json:"bursts,omitempty"`
	// GiveUps says until when a node is not drained again after a drain of it
	// was given up, by node name.
	GiveUps map[string]BackOff `json:"giveUps,omitempty"`
	// Unjoined remembers since when an instance of a group has been seen without
	// a node, by instance id.
	Unjoined map[string]time.Time `json:"unjoined,omitempty"`
	// Returning remembers since when a node has been seen whose drain was taken
	// back and not undone yet, by node name.
	Returning map[string]time.Time `json:"returning,omitempty"`
	// Refused says until when no further node is launched for a pod for which
	// one came in vain, by the pod's UID.
	Refused map[string]BackOff `json:"refused,omitempty"`
	// Seen is the memory, in bytes, that nodes of an instance type really
	// report. Shapes go by it; so far people put it there, and no plan.
	Seen map[string]resource.Quantity `json:"seen,omitempty"`
}

// BackOff is a pause after failures.
type BackOff struct {
	Until time.Time `json:"until"`
	Count int       `json:"count"`
	Cause string    `json:"cause,omitempty"`
}

// HeartbeatKey names an instance's wait for a hook in State.Heartbeats.
func HeartbeatKey(instance, hook string) string { return instance + "/" + hook }
