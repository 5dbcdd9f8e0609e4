// Package fleet holds the nouns of the scaler's decision: everything that is
// known about a cluster at one moment, as plain values.
//
// A Snapshot is observed, never asked back: it has no client, no clock and no
// lock. It can be written as YAML and read again, so every decision can be
// repeated on another machine.
package fleet

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
)

// Snapshot is everything the scaler knows at Now. Order carries no meaning. Pods,
// of which there are many, are shared from one snapshot to the next and never
// changed: another pointer means that something about the pod has changed.
type Snapshot struct {
	Now        time.Time   `json:"now"`
	Groups     []Group     `json:"groups,omitempty"`
	Nodes      []Node      `json:"nodes,omitempty"`
	Pods       []*Pod      `json:"pods,omitempty"`
	Budgets    []Budget    `json:"budgets,omitempty"`
	DaemonSets []DaemonSet `json:"daemonSets,omitempty"`
	// Owners are the ReplicaSets and ReplicationControllers by UID; nil where no rule
	// asks for them, or they may not be read.
	Owners map[types.UID]Owner `json:"owners,omitempty"`
	// Buffers are the CapacityBuffers, where the API server serves them.
	Buffers []Buffer `json:"buffers,omitempty"`
	// Quotas are the ResourceQuotas, where there are buffers and they may be read.
	Quotas []Quota `json:"quotas,omitempty"`
	// Kubernetes is the version of the API server, such as 1.36: kube-scheduler
	// follows different rules from one to the next. Empty counts as the newest
	// that is known.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Namespaces are the labels of each namespace, by name.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
	Storage    Storage                      `json:"storage,omitzero"`
	Devices    Devices                      `json:"devices,omitzero"`
	// Faults are sentences about what of the cluster may not be read, and what is
	// decided without it.
	Faults []string `json:"faults,omitempty"`
	// Outages are the latest times in which the API server was not heard, the oldest
	// first. One that lasts has Now as its end.
	Outages []Outage `json:"outages,omitempty"`
	// Leads is since when this process leads; zero where nobody leads, as in a plan.
	Leads time.Time `json:"leads,omitzero"`
	// Agents tells for each node name with an agent pod whether it is Ready.
	Agents map[string]bool `json:"agents,omitempty"`
	// Autoscalers are others of the cluster that renew a sign of life; NodePools are
	// Karpenter's. TerminationHandlers drain nodes, too.
	Autoscalers         []Autoscaler         `json:"otherAutoscalers,omitempty"`
	NodePools           []NodePool           `json:"nodePools,omitempty"`
	TerminationHandlers []TerminationHandler `json:"terminationHandlers,omitempty"`
	// Cluster is the UID of the namespace kube-system, which stands for the cluster; empty
	// where namespaces may not be read.
	Cluster types.UID `json:"cluster,omitempty"`
	// Machines is what EC2 said within a minute of instances whose nodes are not Ready and
	// have volumes, by instance id. One that is missing may run.
	Machines map[string]Machine `json:"machines,omitempty"`
	// Priorities is what the ConfigMap cluster-autoscaler-priority-expander says
	// under its key priorities, nil where there is none.
	Priorities *string `json:"priorities,omitempty"`
	// State is the scaler's memory, from the ConfigMap.
	State State `json:"state,omitzero"`
}

// Storage is all that says where a volume may be, as the API serves it but for
// what nobody asks. The objects are shared and never changed: another pointer
// means another version.
type Storage struct {
	Claims      []*corev1.PersistentVolumeClaim `json:"claims,omitempty"`
	Volumes     []*corev1.PersistentVolume      `json:"volumes,omitempty"`
	Classes     []*storagev1.StorageClass       `json:"classes,omitempty"`
	Drivers     []*storagev1.CSIDriver          `json:"drivers,omitempty"`
	Nodes       []*storagev1.CSINode            `json:"nodes,omitempty"`
	Capacities  []*storagev1.CSIStorageCapacity `json:"capacities,omitempty"`
	Attachments []*storagev1.VolumeAttachment   `json:"attachments,omitempty"`
}

// Devices is all that dynamic resource allocation goes by, shared and never
// changed like Storage. Slices and claims are empty on a server without the API.
// https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
type Devices struct {
	Claims  []*resourcev1.ResourceClaim `json:"claims,omitempty"`
	Slices  []*resourcev1.ResourceSlice `json:"slices,omitempty"`
	Classes []*resourcev1.DeviceClass   `json:"classes,omitempty"`
}

// Group is an Auto Scaling group, or one of a provider of one's own (External).
type Group struct {
	Name string `json:"name"`
	// External means that the machines are those of a provider that is asked by gRPC. It has no
	// lifecycle hooks and no activities, chooses the zones of new machines, and makes the group
	// smaller with each machine that it is told to end. It ends no machine that was not named.
	External bool `json:"external,omitempty"`
	// Held is why nothing of the group is changed: what its provider answers contradicts itself, or it has
	// not been read for long. Empty where it may be.
	Held string `json:"held,omitempty"`
	// Unread says that it is held because it has not been read for long: that ends by itself.
	Unread bool `json:"unread,omitempty"`
	// GPULabel is the label that the provider puts on nodes with GPUs; empty where there is none.
	GPULabel string `json:"gpuLabel,omitempty"`
	ARN      string `json:"arn,omitempty"`
	// Owner is the cluster whose group it is, by the tag contract.TagOwner; empty where
	// nobody has claimed it. See Snapshot.Cluster.
	Owner types.UID `json:"owner,omitempty"`
	// Observed means that nothing is done with the group, by the tag contract.TagMode: a shadow
	// decides what would be.
	Observed bool `json:"observed,omitempty"`
	// Min and Max bound what we set: the group's own figures, or those of an
	// explicit --nodes flag as far as they lie within.
	Min     int      `json:"min"`
	Max     int      `json:"max"`
	Desired int      `json:"desired"`
	Zones   []string `json:"zones,omitempty"`
	// NodeTemplates says what a new node looks like, one for each zone; empty where
	// it cannot be known, and then Faults says why.
	NodeTemplates []NodeTemplate `json:"shapes,omitempty"`
	// Uncountable means that the group's capacity is not counted in instances: it is not grown,
	// whatever its nodes look like.
	Uncountable bool       `json:"uncountable,omitempty"`
	Instances   []Instance `json:"instances,omitempty"`
	Hooks       []Hook     `json:"hooks,omitempty"`
	// HooksUnknown means that the hooks have not been read yet: there may be
	// some.
	HooksUnknown bool `json:"hooksUnknown,omitempty"`
	// HooksFault is why they could not be read; empty where nobody has tried yet.
	HooksFault string `json:"hooksFault,omitempty"`
	// Suspended names processes that Auto Scaling does not carry out now, such
	// as Launch, Terminate or AZRebalance.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html
	Suspended []string `json:"suspended,omitempty"`
	// Template is the launch template and version of the next instance, such as
	// lt-0123:7; empty for a launch configuration.
	Template string `json:"template,omitempty"`
	// Spot means that new instances are spot instances, Both that they may be spot or on demand.
	Spot bool `json:"spot,omitempty"`
	Both bool `json:"both,omitempty"`
	// Mixed means that the group has a mixed instances policy.
	Mixed bool `json:"mixed,omitempty"`
	// Synchronous means that LaunchInstances may launch for the group, in a zone of
	// our choice and with the answer at once: it has a launch template, and its
	// instances are all on demand or all spot.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-instances-synchronously.html
	Synchronous bool `json:"synchronous,omitempty"`
	// WarmPool is nil for a group without one. Its instances stand among
	// Instances, in the states Warmed:*.
	WarmPool *WarmPool `json:"warmPool,omitempty"`
	// Refresh is the instance refresh that is under way, nil without one.
	Refresh *Refresh `json:"refresh,omitempty"`
	// Replacement says that Auto Scaling replaces instances for a reason of its own, or
	// did a moment ago, as the group's activities tell; nil otherwise.
	Replacement *Replacement `json:"replacement,omitempty"`
	// Failures are failed launches that the group's activities tell of, the
	// newest first.
	Failures []Failure `json:"failures,omitempty"`
	// Faults are sentences about what is wrong with the group's definition: a
	// malformed tag, a missing launch template. A group with shapes and faults
	// still works.
	Faults []string `json:"faults,omitempty"`
	// ScaleDown overrides the policy for this group, from its tags.
	ScaleDown ScaleDownOptions `json:"scaleDown,omitzero"`
	// Headroom is kept free on the group's nodes, as its tag says.
	Headroom Headroom `json:"headRoom,omitzero"`
}

// Price is what a node of the group costs in an hour, in US dollars: that of its dearest node
// template, 0 where one is not known.
func (g *Group) Price() float64 {
	dearest := 0.0
	for i := range g.NodeTemplates {
		if g.NodeTemplates[i].PricePerHour <= 0 {
			return 0
		}
		dearest = max(dearest, g.NodeTemplates[i].PricePerHour)
	}
	return dearest
}

// WarmPool is a group's pool of instances that have booted once.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html
type WarmPool struct {
	// State is what pooled instances are kept in: Stopped, Running or Hibernated.
	State string `json:"state"`
	// Deleting means that the pool is being taken away.
	Deleting bool `json:"deleting,omitempty"`
}

// Refresh is an instance refresh: Auto Scaling replaces the group's instances
// by and by.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-instance-refresh.html
type Refresh struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// Replacement is that Auto Scaling replaces single instances of a group, by and by, and
// leaves the desired capacity as it is.
type Replacement struct {
	// Cause is ZoneRebalance or MaxLifetime.
	Cause string `json:"cause"`
	// Ended is when the last activity of it did; zero while one runs.
	Ended time.Time `json:"ended,omitzero"`
}

// Causes of replacements.
const (
	// ZoneRebalance: the group was not balanced between its zones.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/auto-scaling-benefits.html#AutoScalingBehavior.InstanceUsage
	ZoneRebalance = "AZRebalance"
	// MaxLifetime: an instance was older than the group allows.
	// https://docs.aws.amazon.com/autoscaling/ec2/userguide/asg-max-instance-lifetime.html
	MaxLifetime = "MaxInstanceLifetime"
)

// ScaleDownOptions are a group's own settings, nil where the tag is absent, or the answer of an
// external provider. MaxNodeProvisionTime is of the latter alone.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md
type ScaleDownOptions struct {
	UtilizationThreshold    *float64         `json:"utilizationThreshold,omitempty"`
	GPUUtilizationThreshold *float64         `json:"gpuUtilizationThreshold,omitempty"`
	UnneededTime            *metav1.Duration `json:"unneededTime,omitempty"`
	UnreadyTime             *metav1.Duration `json:"unreadyTime,omitempty"`
	IgnoreDaemonSets        *bool            `json:"ignoreDaemonSets,omitempty"`
	MaxNodeProvisionTime    *metav1.Duration `json:"maxNodeProvisionTime,omitempty"`
}

// ProvisionTime is how long an instance may take from its launch to a registered node: the group's
// own time, or the usual one.
func (o ScaleDownOptions) ProvisionTime(usual time.Duration) time.Duration {
	if o.MaxNodeProvisionTime != nil {
		return o.MaxNodeProvisionTime.Duration
	}
	return usual
}

// NodeTemplate is what a new node of a group looks like in one zone.
type NodeTemplate struct {
	Zone         string              `json:"zone"`
	InstanceType string              `json:"instanceType,omitempty"`
	Capacity     corev1.ResourceList `json:"capacity,omitempty"`
	Allocatable  corev1.ResourceList `json:"allocatable"`
	// Largest is the capacity in cpu and memory that the node may have where several instance types may come:
	// Capacity is the least then. Empty where that is the same.
	Largest corev1.ResourceList `json:"largest,omitempty"`
	Labels  map[string]string   `json:"labels,omitempty"`
	Taints  []corev1.Taint      `json:"taints,omitempty"`
	// Image is the machine image, empty where it is not known.
	Image string `json:"image,omitempty"`
	// DeclaredFeatures, Drivers and Slices are taken over from a node of the same
	// template: what its kubelet declares, its CSINode's drivers with their attach
	// limits, its devices.
	DeclaredFeatures []string                    `json:"declaredFeatures,omitempty"`
	Drivers          []storagev1.CSINodeDriver   `json:"drivers,omitempty"`
	Slices           []*resourcev1.ResourceSlice `json:"slices,omitempty"`
	// PricePerHour is in US dollars, on demand or spot as the group launches; 0
	// where it is not known.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
}

// Node is a node of the template that has just become Ready, on an instance in a zone.
func (t *NodeTemplate) Node(name, zone, instance string, at time.Time) Node {
	labels := maps.Clone(t.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[corev1.LabelHostname], labels[corev1.LabelTopologyZone] = name, zone
	return Node{
		Name: name, UID: types.UID(name), ProviderID: "aws:///" + zone + "/" + instance, Created: at,
		Labels: labels, Taints: slices.Clone(t.Taints), Capacity: t.Capacity, Allocatable: t.Allocatable,
		Ready: true, ReadySince: at, DeclaredFeatures: t.DeclaredFeatures, BootID: instance,
	}
}

// TemplateIn is the node template of a zone, that of another zone where there is none, and an empty
// one where the group has none.
func (g *Group) TemplateIn(zone string) NodeTemplate {
	for _, t := range g.NodeTemplates {
		if t.Zone == zone {
			return t
		}
	}
	if len(g.NodeTemplates) == 0 {
		return NodeTemplate{}
	}
	return g.NodeTemplates[0]
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

	WarmedPending         = "Warmed:Pending"
	WarmedPendingWait     = "Warmed:Pending:Wait"
	WarmedTerminating     = "Warmed:Terminating"
	WarmedTerminatingWait = "Warmed:Terminating:Wait"
)

// Instance is one member of a group.
type Instance struct {
	ID   string `json:"id"`
	Zone string `json:"zone,omitempty"`
	Type string `json:"type,omitempty"`
	// State is the lifecycle state as Auto Scaling spells it.
	State     string `json:"state"`
	Unhealthy bool   `json:"unhealthy,omitempty"`
	// Template is the launch template and version that it was launched from, as in
	// Group.Template.
	Template string `json:"template,omitempty"`
	// Protected from scale-in.
	Protected bool `json:"protected,omitempty"`
	// PricePerHour is in US dollars. It is 0 where it is not known, as where spot and on demand may
	// have come, and in a group with one type, whose node templates have it, unless spot prices are
	// read, which differ by zone.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// TerminatingSince is when the terminating activity began, or the first moment
	// it was seen; zero while it does not leave.
	TerminatingSince time.Time `json:"leavingSince,omitzero"`
	// TerminatingExact means that this is when the activity began.
	TerminatingExact bool `json:"leavingExact,omitempty"`
	// Failed is the word of an external provider for why it cannot create the instance, and
	// FailedSince when that was first seen; empty where it can.
	Failed      string    `json:"failed,omitempty"`
	FailedSince time.Time `json:"failedSince,omitzero"`
}

// Terminating reports whether Auto Scaling is terminating the instance, in whatever
// step: it no longer counts as desired capacity.
func (i Instance) Terminating() bool {
	return strings.HasPrefix(i.State, Terminating) || i.State == Terminated
}

// Lists reports whether one of the groups has an instance that is live or, where it leaves, has it terminating.
func Lists(groups []Group, instance string, leaves bool) bool {
	return slices.ContainsFunc(groups, func(g Group) bool {
		return slices.ContainsFunc(g.Instances, func(i Instance) bool { return i.ID == instance && (leaves && i.Terminating() || !leaves && i.Live()) })
	})
}

// Retained reports whether a hook of the instance was abandoned and that its group keeps
// it for people to look at: it is paid for, and counts for nothing, until somebody
// calls TerminateInstanceInAutoScalingGroup for it.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/instance-lifecycle-policy.html
func (i Instance) Retained() bool { return strings.HasSuffix(i.State, ":Retained") }

// Warmed reports whether the instance stands in a warm pool and not in the group.
func (i Instance) Warmed() bool { return strings.HasPrefix(i.State, "Warmed:") }

// Live reports whether the instance counts towards the group's desired capacity.
// Standby, detaching and warm pool instances do not.
func (i Instance) Live() bool {
	switch i.State {
	case Pending, PendingWait, PendingProceed, InService:
		return true
	}
	return i.ReplacesRootVolume()
}

// ReplacesRootVolume reports whether an instance refresh gives the instance another root volume, and with
// that a restart.
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/replace-root-volume.html
func (i Instance) ReplacesRootVolume() bool {
	return strings.HasPrefix(i.State, "ReplacingRootVolume") || i.State == "RootVolumeReplaced"
}

// Machine is what EC2 says of an instance.
type Machine struct {
	// State is the instance's, as EC2 spells it.
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
	State string `json:"state"`
	// Group is the Auto Scaling group that launched it, by the tag that only AWS can write;
	// empty where there is none.
	Group string `json:"group,omitempty"`
	// Hibernates means that it may be hibernated: where it is stopped it may have kept its
	// memory, and with that the volumes that it had mounted.
	Hibernates bool `json:"hibernates,omitempty"`
}

// Down reports whether the machine is switched off for certain, and nothing of what it did goes
// on: stopped is after stopping, and terminated after shutting-down.
func (m Machine) Down() bool {
	return m.State == "terminated" || m.State == "stopped" && !m.Hibernates
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
	// Attached counts the volumes of status.volumesAttached.
	Attached int `json:"attached,omitempty"`
	// DeclaredFeatures are status.declaredFeatures.
	// https://github.com/kubernetes/enhancements/issues/5328
	DeclaredFeatures []string `json:"declaredFeatures,omitempty"`
}

// InstanceID is the id of the node's instance; see InstanceIDOf.
func (n Node) InstanceID() string { return InstanceIDOf(n.ProviderID) }

// schemeAWS is that of the provider ids of EC2.
const schemeAWS = "aws://"

// InstanceIDOf is the EC2 instance of a provider id such as aws:///eu-west-1a/i-0123, and a
// provider id of any other scheme as it is; empty for an AWS one without an instance.
func InstanceIDOf(providerID string) string {
	if !strings.HasPrefix(providerID, schemeAWS) {
		return providerID
	}
	id := providerID[strings.LastIndexByte(providerID, '/')+1:]
	if !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// NamesOther reports whether the node's provider id names a machine, of the same cloud as the
// instance: then it is another one, unless it is the instance's own.
func (n Node) NamesOther(instance string) bool {
	scheme := schemeAWS
	if at := strings.Index(instance, "://"); at >= 0 {
		scheme = instance[:at+len("://")]
	}
	return strings.HasPrefix(n.ProviderID, scheme)
}

// WeakIDs are the ids of the instances that a node names, though not by its provider id,
// among other words that look like one: its name or hostname has the instance id in it, as
// EC2's resource names do (i-0123.eu-west-1.compute.internal), or a provider id of another
// form does, or a CSI driver there calls the machine by it. The id of its provider id is
// not among them.
//
// That makes no instance the node's: hostnames are set at will, and machine images are
// copied with what stands in them. But as long as it is so the instance may serve as that
// node and must not be ended.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html
func (n *Node) WeakIDs() iter.Seq[string] {
	own := n.InstanceID()
	return func(yield func(string) bool) {
		for _, text := range []string{n.Name, n.Labels[corev1.LabelHostname], n.ProviderID, n.Annotations[contract.AnnotationCSINodeID]} {
			for id := range idsIn(text[:min(len(text), longestText)]) {
				if id != own && !yield(id) {
					return
				}
			}
		}
	}
}

// idsIn yields what may be an instance id in a text: whole words joined by dashes, from an
// i on. Of i-1-blue that is i-1 as well. EC2's ids have 19 characters.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html
func idsIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for start := range len(text) {
			if !strings.HasPrefix(text[start:], "i-") || start > 0 && isWord(text[start-1]) {
				continue
			}
			for end := start + 2; end < min(len(text), start+longestID) && (isWord(text[end]) || text[end] == '-'); end++ {
				last := end+1 == len(text) || !isWord(text[end+1])
				if isWord(text[end]) && last && !yield(text[start:end+1]) {
					return
				}
			}
		}
	}
}

// These bound what a text that somebody made for it can cost. What CSI drivers call a
// machine takes some dozens of bytes for each.
const (
	longestID   = 40
	longestText = 4096
)

func isWord(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// Zone is the node's availability zone.
func (n *Node) Zone() string { return n.Labels[corev1.LabelTopologyZone] }

// Scheduling is what kube-scheduler last said of a pod without a node.
type Scheduling uint8

const (
	// Unjudged: no PodScheduled condition yet.
	Unjudged Scheduling = iota
	// Unschedulable: PodScheduled is False with reason Unschedulable.
	Unschedulable
	// Gated: the pod has scheduling gates and does not want a node yet.
	Gated
	// Unbindable: PodScheduled is False with reason SchedulerError, as when binding fails.
	Unbindable
)

// schedulings are the reasons of the condition.
var schedulings = [...]string{Unschedulable: corev1.PodReasonUnschedulable, Gated: corev1.PodReasonSchedulingGated, Unbindable: corev1.PodReasonSchedulerError}

func (s Scheduling) String() string { return schedulings[s] }

// MarshalText writes it as the condition has it.
func (s Scheduling) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Scheduling) UnmarshalText(text []byte) error {
	known := slices.Index(schedulings[:], string(text))
	if known < 0 {
		return fmt.Errorf("%q is nothing that kube-scheduler says of a pod without a node", text)
	}
	*s = Scheduling(known)
	return nil
}

// Phase is a pod's status.phase.
type Phase uint8

const (
	// PodPhaseless: the status has none yet.
	PodPhaseless Phase = iota
	PodPending
	PodRunning
	PodSucceeded
	PodFailed
	// PodUnknown is also what no version of Kubernetes says that we know.
	PodUnknown
)

var phases = [...]corev1.PodPhase{
	PodPending: corev1.PodPending, PodRunning: corev1.PodRunning, PodSucceeded: corev1.PodSucceeded, PodFailed: corev1.PodFailed, PodUnknown: corev1.PodUnknown,
}

// PhaseOf is the phase of a status.
func PhaseOf(s corev1.PodPhase) Phase {
	if known := slices.Index(phases[:], s); known >= 0 {
		return Phase(known)
	}
	return PodUnknown
}

func (p Phase) String() string { return string(phases[p]) }

// MarshalText writes it as the status has it.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a phase as the status has it.
func (p *Phase) UnmarshalText(text []byte) error {
	*p = PhaseOf(corev1.PodPhase(text))
	return nil
}

// Pod is a Kubernetes pod. There may be a million of them, so what few have stands apart, and what
// has few values is small.
type Pod struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	UID         types.UID         `json:"uid,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Owner is the controlling owner, nil for a naked pod.
	Owner *metav1.OwnerReference `json:"owner,omitempty"`
	// Node is spec.nodeName.
	Node string `json:"node,omitempty"`
	// Spec is as admitted but for nodeName, which is empty, so that pods of
	// one template can share it. Never changed.
	Spec    *corev1.PodSpec `json:"spec"`
	Created Second          `json:"created,omitzero"`
	// Deleted is the deletionTimestamp, zero while nobody deletes the pod.
	Deleted Second `json:"deleted,omitzero"`
	// Judged is when Scheduling last changed.
	Judged     Second     `json:"judged,omitzero"`
	Phase      Phase      `json:"phase,omitempty"`
	Ready      bool       `json:"ready,omitempty"`
	Scheduling Scheduling `json:"scheduling,omitempty"`
	*Rare
}

// Rare is what few pods have; a Pod with nothing of it has none. It is never changed, as copies of a
// Pod share it. It is read by the methods of Pod, which hide its fields: a Pod without it has none.
type Rare struct {
	Nominated     string                                 `json:"nominated,omitempty"`
	Allocated     corev1.ResourceList                    `json:"allocated,omitempty"`
	Claims        []corev1.PodResourceClaimStatus        `json:"claims,omitempty"`
	ExtendedClaim *corev1.PodExtendedResourceClaimStatus `json:"extendedClaim,omitempty"`
}

// rare is a copy of what few pods have.
func (p *Pod) rare() Rare {
	if p.Rare == nil {
		return Rare{}
	}
	return *p.Rare
}

func (p *Pod) setRare(r Rare) {
	if r.Nominated == "" && r.Allocated == nil && len(r.Claims) == 0 && r.ExtendedClaim == nil {
		p.Rare = nil
		return
	}
	kept := r // r itself would be allocated at every call
	p.Rare = &kept
}

// Nominated is status.nominatedNodeName.
func (p *Pod) Nominated() string { return p.rare().Nominated }

// Nominate sets what Nominated is.
func (p *Pod) Nominate(node string) {
	r := p.rare()
	r.Nominated = node
	p.setRare(r)
}

// Allocated is what kube-scheduler counts for a pod on a node in place of what its spec requests,
// while a resize in place is under way; nil otherwise.
// https://github.com/kubernetes/enhancements/issues/1287
func (p *Pod) Allocated() corev1.ResourceList { return p.rare().Allocated }

// Allocate sets what Allocated is.
func (p *Pod) Allocate(counted corev1.ResourceList) {
	r := p.rare()
	r.Allocated = counted
	p.setRare(r)
}

// Claims are status.resourceClaimStatuses: the names of generated claims.
func (p *Pod) Claims() []corev1.PodResourceClaimStatus { return p.rare().Claims }

// ExtendedClaim is status.extendedResourceClaimStatus.
func (p *Pod) ExtendedClaim() *corev1.PodExtendedResourceClaimStatus { return p.rare().ExtendedClaim }

// Key is namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Ended reports whether the pod's containers are done for good.
func (p Pod) Ended() bool { return p.Phase == PodSucceeded || p.Phase == PodFailed }

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

// Matches reports whether the budget guards a pod. In policy/v1 an empty selector
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
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Template is that of its pods. What admission has a pod request beyond it, as far as
	// that is known, is in its Overhead.
	Template corev1.PodTemplateSpec `json:"template"`
}

// PodOn is a pod of the set that runs on a node since then.
func (d *DaemonSet) PodOn(node, name string, since time.Time) *Pod {
	controls := true
	return &Pod{
		Namespace: d.Namespace, Name: name, UID: types.UID(name), Created: SecondOf(since), Labels: d.Template.Labels, Annotations: d.Template.Annotations,
		Owner: &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: types.UID("DaemonSet/" + d.Name), Controller: &controls},
		Node:  node, Spec: &d.Template.Spec, Phase: PodRunning, Ready: true,
	}
}

// Owner is what creates pods, a ReplicaSet or a ReplicationController.
type Owner struct {
	// Replicas is spec.replicas.
	Replicas int32 `json:"replicas"`
}

// State is the scaler's memory that no other object of the cluster holds. It
// lives in a ConfigMap and is written before the action that it guards.
//
// Of each part it is said which room of scaler/plan writes it, when an entry is dropped, and
// what it costs if one is lost. Of actions that were not done plan.Settle puts back what was
// so before.
type State struct {
	// Heartbeats remembers when a hook's timer was last restarted, by
	// HeartbeatKey.
	// Writer: hooks. Dropped: when the instance does not wait for the hook any more.
	// Lost: the timer is restarted once more at once.
	Heartbeats map[string]time.Time `json:"heartbeats,omitempty"`
	// Completed remembers when a hook was completed for an instance that has
	// not moved on since, by HeartbeatKey.
	// Writer: hooks. Dropped: when the instance does not wait for the hook any more.
	// Lost: the hook is completed once more, which does nothing.
	Completed map[string]time.Time `json:"completed,omitempty"`
	// Held remembers since when this leader has seen an instance that a hook of ours holds, by
	// HeartbeatKey; zero once its completion is nobody's news: ours, or told.
	// Writer: hooks. Dropped: when the instance does not terminate any more.
	// Lost: that something else completes the hook is not noticed of this instance.
	Held map[string]time.Time `json:"held,omitempty"`
	// CutIn is the completion of a hook of ours by something else, by group: the first of an hour.
	// Writer: hooks. Dropped: after an hour, or when the group is gone. Lost: it is reported no more.
	CutIn map[string]CutIn `json:"cutIn,omitempty"`
	// Pooling remembers since when an instance has been seen on its way into a warm
	// pool, or out of one to its end, by instance id.
	// Writer: hooks, anew at each evaluation. Dropped: when the instance is on no such way.
	// Lost: its time on the way begins again.
	Pooling map[string]time.Time `json:"pooling,omitempty"`
	// Outlived remembers since when an instance has been seen out of service whose
	// node bears the mark of a termination that nobody carries out, by instance id:
	// it stands in a warm pool or in standby, or was detached.
	// Writer: hooks, anew at each evaluation. Dropped: when the mark is gone, or the instance
	// is on its way to its end.
	// Lost: an instance that is back in service is taken for one that is still to be terminated.
	Outlived map[string]time.Time `json:"outlived,omitempty"`
	// StandIns remembers the drains that the scaler carries on in place of an agent, by
	// node name.
	// Writer: standin, anew at each evaluation. Dropped: with the drain, and when drains
	// terminates the instance.
	// Lost: the drain waits once more for load balancers or volumes, and pods that came back
	// may be evicted once more.
	StandIns map[string]LoneDrain `json:"alone,omitempty"`
	// BackOffs says until when a group is not grown, by BackOffKey: one for each
	// zone and cause, because a zone without capacity says nothing of the others.
	// Writer: launch; Settle, for what AWS refused.
	// Dropped: --node-group-backoff-reset-timeout after its end.
	// Lost: a group whose launches fail is tried again at once, and pods wait for it meanwhile.
	BackOffs map[string]BackOff `json:"backOffs,omitempty"`
	// Launches are the launches by LaunchInstances whose answer has not been seen,
	// and the number of the last attempt, by LaunchKey: the same token is sent until
	// an answer came.
	// Writer: scaleup, before the call; Settle and launch, with the answer or without one for too
	// long. Dropped: when AWS forgets the token, or the group is gone.
	// Lost: what a call without an answer has launched is launched once more.
	Launches map[string]Launch `json:"launches,omitempty"`
	// Unsteered says until when a group is not launched for in zones of our choice,
	// and why, by group: a right is missing, or LaunchInstances is not for it.
	// Writer: Settle, for what AWS answered; launch, for no answer. Dropped: at its end, or
	// when the group is gone.
	// Lost: LaunchInstances is tried again at once.
	Unsteered map[string]BackOff `json:"unsteered,omitempty"`
	// Suspending remembers when we last asked Auto Scaling to suspend a group's
	// AZRebalance process, by group; zero once that was seen done: whoever lets it run
	// again wants it so.
	// Writer: scaledown. Dropped: when the group is gone.
	// Lost: a process that people have resumed is suspended again.
	Suspending map[string]time.Time `json:"suspending,omitempty"`
	// GrownAt remembers when each group was last grown, by group.
	// Writer: scaleup. Dropped: by drains, when neither a replacement nor a delay asks for it.
	// Lost: the group may shrink sooner, what it was asked for and does not get is not taken
	// back, a node that was replaced in advance is replaced twice, and an external provider that has
	// not shown its effect is asked for it again.
	GrownAt map[string]time.Time `json:"grownAt,omitempty"`
	// ShrunkAt remembers when each group was last made smaller by a scale-down, by group,
	// where something waits for that.
	// Writer: drains. Dropped: when the delay is over. Lost: a group may shrink sooner.
	ShrunkAt map[string]time.Time `json:"shrunkAt,omitempty"`
	// FailedAt remembers when a scale-down of a group failed, by group, where something
	// waits for that.
	// Writer: drains; Settle, for what AWS refused. Dropped: when the delay is over.
	// Lost: a group may shrink sooner.
	FailedAt map[string]time.Time `json:"failedAt,omitempty"`
	// Bursts counts how often a group was grown in the burst of pods that goes
	// on, by group.
	// Writer: scaleup. Dropped: by drains, when the burst is over.
	// Lost: the group grows once more at once, and then at short intervals again.
	Bursts map[string]int `json:"bursts,omitempty"`
	// GiveUps says until when a node is not drained again after a drain of it
	// was given up, by instance id: EC2 names nodes by their addresses, which come
	// again. Entries by name are of older versions and mean nobody.
	// Writer: drains; Settle, for instances that AWS refused to end. Dropped: a day after its end.
	// Lost: the node is drained again at once, perhaps in vain.
	GiveUps map[string]BackOff `json:"giveUps,omitempty"`
	// Unjoined remembers since when an instance of a group has been seen that has
	// not had a node yet that was Ready, by instance id; zero while it stands in a
	// warm pool, where its time has not begun.
	// Writer: launch, anew at each evaluation. Dropped: when its node was Ready, or it is gone.
	// Lost: its clock begins again, and one that never becomes a node is paid for longer.
	Unjoined map[string]time.Time `json:"unjoined,omitempty"`
	// Recognition is what is remembered of instances that no Node names.
	// Writer: recognition; scaleup and launch, with what they ask for, take back and end; Settle,
	// for what was not done.
	// Dropped: when the instance has joined or is gone, or its time is over; ends count for
	// ten minutes at least.
	// Lost: instances that were asked for count as not recognised, and more may be ended in
	// ten minutes than is allowed.
	Recognition Recognition `json:"recognition,omitzero"`
	// Deserted remembers since when an instance has been seen whose node is gone though
	// it served, as far as can be told, by instance id.
	// Writer: launch, anew at each evaluation. Dropped: when it has a node again, or is gone.
	// Lost: its group is backed off as for an instance that never joined.
	Deserted map[string]time.Time `json:"deserted,omitempty"`
	// Awaited remembers since when something is awaited that may never come: what
	// Auto Scaling owes a group, by OwedKey, and instances that a launch hook holds, by
	// instance id.
	// Writer: launch, anew at each evaluation. Dropped: when it has come, or nobody asks for it.
	// Lost: what never comes is waited for longer.
	Awaited map[string]time.Time `json:"awaited,omitempty"`
	// Returning remembers since when a node has been seen whose drain was taken
	// back and not undone yet, by node name.
	// Writer: hooks, anew at each evaluation. Dropped: when nothing of the drain is left there.
	// Lost: the agent has its time to undo the drain once more.
	Returning map[string]time.Time `json:"returning,omitempty"`
	// Promises remembers for which pods a group was grown, until a node has come that
	// takes them, and those that were not kept, by PromiseKey.
	// Writer: scaleup. Dropped: when it was kept, two hours after it was made or its distrust
	// has ended, when the group is gone; of too many the oldest go.
	// Lost: a group whose nodes do not take the pods they came for is grown for them again.
	Promises map[string]Promise `json:"promises,omitempty"`
	// Disputed remembers since when a pod has been seen that fits a node and that
	// kube-scheduler leaves waiting, by UID.
	// Writer: scaleup, anew at each evaluation. Dropped: when that is not so any more.
	// Lost: people are told five minutes later.
	Disputed map[string]time.Time `json:"disputed,omitempty"`
	// Replacement is that of nodes by a cheaper one which was found, or is under way; nil
	// without one. What it points to is never changed.
	// Writer: scaledown. Dropped: when it is done, given up, or nodes are not to be replaced.
	// Lost: the new node has come for nothing, and is scaled down as any other.
	Replacement *NodeReplacement `json:"swap,omitempty"`
	// ReplacementBackOffs says until when no node of a group is launched as a replacement, after
	// replacements that came to nothing, by group.
	// Writer: scaledown. Dropped: with a replacement that is done, a day after its end, or when nodes
	// are not to be replaced.
	// Lost: a replacement is tried again at once, perhaps in vain.
	ReplacementBackOffs map[string]BackOff `json:"swapPauses,omitempty"`
	// Steered is when nodes were last given another turn to be filled in.
	// Writer: scaledown. Dropped: never.
	// Lost: the next get theirs sooner.
	Steered time.Time `json:"steered,omitzero"`
	// OwnDrains remembers since when a node has drained of its own accord, by instance
	// id, and told that Auto Scaling terminates its instance, by contract.TerminateID,
	// while Auto Scaling has that in service: what that means for others goes by this
	// clock, and not by the node's.
	// Writer: cluster, anew at each evaluation. Dropped: a day after its beginning, once the
	// node does not tell it any more.
	// Lost: its clock begins again, and the drain takes turns and budgets from others for longer.
	OwnDrains map[string]time.Time `json:"ownDrains,omitempty"`
	// Seen is the memory that nodes really report, by SeenKey. Node templates go by it.
	// Writer: template. Dropped: of too many those that no group uses.
	// Lost: node templates go by their definition until a node teaches them.
	Seen map[string]resource.Quantity `json:"seen,omitempty"`
	// Lessons are what nodes of a group taught that its definition does not say, by group:
	// they hold while the group has no node.
	// Writer: template. Dropped: when the group's definition is another, or the group is gone.
	// Lost: node templates go by their definition until a node teaches them.
	Lessons map[string]Lesson `json:"lessons,omitempty"`
}

// CutIn is that something else completed a hook of ours.
type CutIn struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Hook     string    `json:"hook"`
}

// Lesson is a node template as nodes taught it.
type Lesson struct {
	// Of is a hash of the definition that the nodes came of.
	Of string `json:"of"`
	// Template says nothing of a zone, the instance type, the capacity, the image or the price.
	Template NodeTemplate `json:"shape"`
}

// LoneDrain is what an agent would have written down in its report, or remembered. A time is
// zero where it is not waited for.
type LoneDrain struct {
	// Excluded is since when load balancers are kept away from the node.
	Excluded time.Time `json:"excluded,omitzero"`
	// Emptied is since when no pod is left, and volumes are.
	Emptied time.Time `json:"emptied,omitzero"`
	// LastCalls are the last calls of the drain that have begun.
	LastCalls contract.LastCalls `json:"lastCalls,omitempty"`
	// Evicted are pods that left a moment ago and may come back, by who makes them: the last of
	// each, and few of them.
	Evicted map[string]LoneEviction `json:"evicted,omitempty"`
}

// IsZero reports whether there is nothing to remember.
func (d LoneDrain) IsZero() bool {
	return d.Excluded.IsZero() && d.Emptied.IsZero() && len(d.LastCalls)+len(d.Evicted) == 0
}

// LoneEviction is an eviction by the scaler.
type LoneEviction struct {
	// Pod is that of which it asked last.
	Pod types.UID `json:"pod,omitempty"`
	At  time.Time `json:"at"`
	// Left is when it was first seen that no pod of that maker is leaving any more; zero before.
	Left time.Time `json:"left,omitzero"`
}

// OwedKey names in State.Awaited that a group lacks n of the instances that it wants.
// A group's name has no colon.
func OwedKey(group string, n int) string { return fmt.Sprintf("%s:%d", group, n) }

// ParseOwedKey is the inverse of OwedKey; ok is false for an instance id.
func ParseOwedKey(key string) (group string, n int, ok bool) {
	group, count, ok := strings.Cut(key, ":")
	n, err := strconv.Atoi(count)
	return group, n, ok && err == nil
}

// SeenKey names the nodes of an instance type and machine image in State.Seen;
// image is empty where it is not known.
func SeenKey(instanceType, image string) string {
	if image == "" {
		return instanceType
	}
	return instanceType + "/" + image
}

// BackOff is a pause after failures.
type BackOff struct {
	Until time.Time `json:"until"`
	Count int       `json:"count"`
	Cause string    `json:"cause,omitempty"`
}

// Launch is one call of LaunchInstances. It is additive: what keeps it from being
// done twice is that its token is sent again.
type Launch struct {
	// Token is the client token, 32 hex digits.
	Token string `json:"token"`
	Count int    `json:"count"`
	// Desired is what the group's desired capacity was, and Had how many instances
	// it had in the zone, before this look's launches and with those of the looks
	// before.
	Desired int `json:"desired"`
	Had     int `json:"had,omitempty"`
	// Attempt is part of what the token is made of; it rises when an answer came.
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	// Answered means that the answer was seen, whatever it was; Came is how many
	// instances it named.
	Answered bool `json:"answered,omitempty"`
	Came     int  `json:"came,omitempty"`
	// Named is one of these instances: a reading of its group that lacks it may be older than the
	// launch. Empty where none came, or none is known.
	Named string `json:"named,omitempty"`
	// Shown means that as many as came were read with the group once, where none is Named: from then
	// on the readings alone say what is there.
	Shown bool `json:"shown,omitempty"`
}

// Promise is that a group's new nodes take pods of a class.
type Promise struct {
	// At is when the group grew for them, and Zones where.
	At    time.Time `json:"at"`
	Zones []string  `json:"zones,omitempty"`
	// Count is how often the nodes did not take them; after that the group is not
	// grown for them before Until. Why names a node and what it lacked.
	Count int       `json:"count,omitempty"`
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// PromiseKey names a promise in State.Promises: by the group, a hash of what its
// nodes are defined to be like, and one of the class of pods.
func PromiseKey(group, definition, class string) string {
	return group + ":" + definition + ":" + class
}

// ParsePromiseKey is the inverse of PromiseKey.
func ParsePromiseKey(key string) (group, definition, class string) {
	group, rest, _ := strings.Cut(key, ":")
	definition, class, _ = strings.Cut(rest, ":")
	return group, definition, class
}

// LaunchKey names a launch of a group in a zone in State.Launches. One call is for
// 100 instances at the most: part counts the calls of one look, from 0.
func LaunchKey(group, zone string, part int) string {
	if part == 0 {
		return group + ":" + zone
	}
	return group + ":" + zone + ":" + strconv.Itoa(part)
}

// ParseLaunchKey is the inverse of LaunchKey.
func ParseLaunchKey(key string) (group, zone string, part int) {
	group, rest, _ := strings.Cut(key, ":")
	zone, number, _ := strings.Cut(rest, ":")
	part, _ = strconv.Atoi(number) // none is 0
	return group, zone, part
}

// BackOffKey names a pause in State.BackOffs. Group names hold no colon. Zone is
// empty for the whole group.
func BackOffKey(group, zone, cause string) string { return group + ":" + zone + ":" + cause }

// ParseBackOffKey is the inverse of BackOffKey. A key that is only a group's name
// is a pause of the whole group.
func ParseBackOffKey(key string) (group, zone, cause string) {
	parts := strings.SplitN(key, ":", 3)
	for len(parts) < 3 {
		parts = append(parts, "")
	}
	return parts[0], parts[1], parts[2]
}

// HeartbeatKey names an instance's wait for a hook in State.Heartbeats.
func HeartbeatKey(instance, hook string) string { return instance + "/" + hook }
