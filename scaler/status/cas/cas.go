// Package cas puts what the scaler sees in the words of Cluster Autoscaler's status,
// for tools that read the ConfigMap cluster-autoscaler-status.
//
//	cas.go   the status as it stands in the ConfigMap
//	of.go    from a snapshot and a plan to a status
//	nodes.go who counts as what among nodes
//
// The names of the fields are Cluster Autoscaler's.
// https://github.com/kubernetes-sigs/cluster-autoscaler/blob/main/pkg/clusterstate/api/types.go
package cas

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Running is the AutoscalerStatus of one that works.
const Running = "Running"

// Conditions of health.
const (
	Healthy   = "Healthy"
	Unhealthy = "Unhealthy"
)

// Conditions of growing. A group that is unhealthy is Unhealthy here, too.
const (
	NoActivity = "NoActivity"
	InProgress = "InProgress"
	Backoff    = "Backoff"
)

// Conditions of shrinking.
const (
	CandidatesPresent = "CandidatesPresent"
	NoCandidates      = "NoCandidates"
)

// Status is the whole.
type Status struct {
	// Time is when it was written, as TimeFormat has it.
	Time             string `json:"time,omitempty"`
	AutoscalerStatus string `json:"autoscalerStatus,omitempty"`
	// Message is what else people should know, such as what found no room.
	Message     string      `json:"message,omitempty"`
	ClusterWide ClusterWide `json:"clusterWide"`
	NodeGroups  []NodeGroup `json:"nodeGroups,omitempty"`
}

// TimeFormat is that of Status.Time and of the annotation with when a status was
// written.
const TimeFormat = "2006-01-02 15:04:05.999999999 -0700 MST"

// ClusterWide is what holds for all nodes of the cluster.
type ClusterWide struct {
	Health    ClusterHealth `json:"health"`
	ScaleUp   Condition     `json:"scaleUp"`
	ScaleDown ScaleDown     `json:"scaleDown"`
}

// NodeGroup is what holds for a group.
type NodeGroup struct {
	Name      string      `json:"name,omitempty"`
	Health    GroupHealth `json:"health"`
	ScaleUp   ScaleUp     `json:"scaleUp"`
	ScaleDown ScaleDown   `json:"scaleDown"`
}

// Condition is a word for how something is.
type Condition struct {
	Status string `json:"status,omitempty"`
	// LastProbeTime is when that was seen last, LastTransitionTime since when it is so.
	LastProbeTime      metav1.Time `json:"lastProbeTime"`
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}

// ClusterHealth is whether too many nodes are unready.
type ClusterHealth struct {
	Condition
	NodeCounts NodeCounts `json:"nodeCounts"`
}

// GroupHealth is ClusterHealth of a group, with its size.
type GroupHealth struct {
	Condition
	NodeCounts NodeCounts `json:"nodeCounts"`
	// CloudProviderTarget is the desired capacity.
	CloudProviderTarget int `json:"cloudProviderTarget"`
	MinSize             int `json:"minSize"`
	MaxSize             int `json:"maxSize"`
}

// ScaleUp is whether a group grows, or why it may not.
type ScaleUp struct {
	Condition
	BackoffInfo BackoffInfo `json:"backoffInfo"`
}

// BackoffInfo is the cause of a group's back-off.
type BackoffInfo struct {
	ErrorCode    string `json:"errorCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
}

// ScaleDown counts the unneeded nodes.
type ScaleDown struct {
	Condition
	Candidates int `json:"candidates,omitempty"`
}

// NodeCounts counts nodes, and instances that are none yet.
type NodeCounts struct {
	Registered Registered `json:"registered"`
	// LongUnregistered have had more than --max-node-provision-time to register.
	LongUnregistered int `json:"longUnregistered"`
	Unregistered     int `json:"unregistered"`
}

// Registered counts nodes; each is in one of the others.
type Registered struct {
	Total      int `json:"total"`
	Ready      int `json:"ready"`
	NotStarted int `json:"notStarted"`
	// Suspended are switched off on purpose: their instances stand in a warm pool.
	Suspended int `json:"suspended"`
	// BeingDeleted do not count in the size of their group any more.
	BeingDeleted int     `json:"beingDeleted,omitempty"`
	Unready      Unready `json:"unready"`
}

// Unready counts nodes that were up, or should long be.
type Unready struct {
	Total int `json:"total"`
	// ResourceUnready of them lack a device. We call such a node unready only if it is
	// not Ready, so that there are none.
	ResourceUnready int `json:"resourceUnready"`
}

// Parse reads what stands in the ConfigMap. Unknown fields are ignored.
func Parse(text string) (Status, error) {
	var s Status
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		return Status{}, fmt.Errorf("reading a status of Cluster Autoscaler: %w", err)
	}
	return s, nil
}

// Encode is what stands in the ConfigMap.
func (s Status) Encode() (string, error) {
	text, err := yaml.Marshal(s)
	return string(text), err
}

// Probed is the status as it is if nothing has changed until then: still so.
func (s Status) Probed(at time.Time) Status {
	probe := metav1.NewTime(at.UTC().Truncate(time.Second))
	c := &s.ClusterWide
	c.Health.LastProbeTime, c.ScaleUp.LastProbeTime, c.ScaleDown.LastProbeTime = probe, probe, probe
	groups := make([]NodeGroup, len(s.NodeGroups))
	for i, g := range s.NodeGroups {
		g.Health.LastProbeTime, g.ScaleUp.LastProbeTime, g.ScaleDown.LastProbeTime = probe, probe, probe
		groups[i] = g
	}
	s.NodeGroups = groups
	return s
}
