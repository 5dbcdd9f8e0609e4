package story

import (
	"strings"
	"time"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/verdict"
)

// Group is an Auto Scaling group as AWS shows it.
type Group struct {
	Name              string
	Min, Desired, Max int
	Instances         []Instance
}

// Instance is a member of a group.
type Instance struct {
	ID, Zone, Type string
	// Node is the name that its Node has or will have.
	Node string
	// State is the lifecycle state as Auto Scaling spells it.
	State string
	// Up means that its operating system runs. An instance that was up and is
	// not any more has ended whatever ran on it.
	Up bool
	// Hooks are the lifecycle hooks that it waits for.
	Hooks []string
}

func (i Instance) leaving() bool { return strings.HasPrefix(i.State, fleet.Terminating) }

// Node is a Kubernetes node, with Windlass's annotations read.
type Node struct {
	Name, Instance, Zone, Type string
	Created                    time.Time
	Ready, Unschedulable       bool
	// System marks the fixed nodes of no group, which no picture shows.
	System bool
	// Draining is the kind of its draining taint, "" without one.
	Draining contract.Kind
	// Unneeded means that it has that taint.
	Unneeded bool
	// Terminating means that the point of no return is passed.
	Terminating bool
	// Report is the agent's, nil without one.
	Report *contract.Report
}

// Pod is a Kubernetes pod.
type Pod struct {
	Namespace, Name, UID string
	// Workload is what the pod is one of: its app label or its owner's name.
	Workload string
	Node     string
	// DaemonSet pods belong to their node and are not counted.
	DaemonSet bool
	Running   bool
	Ready     bool
	Ended     bool
	// Leaving means that somebody deletes it; Disrupted is the reason of its
	// DisruptionTarget condition, "" where its owner deletes it.
	Leaving   bool
	Disrupted string
	// Until is when its grace period ends; zero while nobody deletes it.
	Until time.Time
}

// Reasons of the condition DisruptionTarget.
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions
const evictedByAPI = "EvictionByEvictionAPI"

// waits reports whether the pod has no node yet.
func (p Pod) waits() bool { return p.Node == "" && !p.Leaving && !p.Ended }

// serves reports whether the pod does its work and will go on doing it.
func (p Pod) serves() bool { return p.Ready && !p.Leaving && !p.Ended }

// Workload is a Deployment: how many pods it wants.
type Workload struct {
	Name     string
	Replicas int
}

// Budget is a PodDisruptionBudget over the pods of one workload.
type Budget struct {
	Workload string
	// Desired is how many of them must serve when an eviction has been granted.
	Desired int
}

// Verdict is one of the scaler's, as it publishes them.
type Verdict struct {
	Of   verdict.SubjectKind `json:"of"`
	Name string              `json:"name"`
	// Count is how many subjects the verdict is about; Name is one of them.
	Count   int            `json:"count,omitempty"`
	Reason  verdict.Reason `json:"reason"`
	Message string         `json:"message"`
}

// Event is a Kubernetes Event of Windlass's.
type Event struct {
	// Source is the program that wrote it.
	Source  string
	Kind    string // Pod, Node, ...
	Subject string
	Reason  string
	Message string
}

// Call is a request that reached AWS.
type Call struct {
	At        time.Time
	Operation string
	// Group and Instance are what it is about, "" where it has none.
	Group, Instance string
	// Detail is the parameter that matters, e.g. "desired 4".
	Detail string
	// Grows means that it raises a group's desired capacity.
	Grows bool
	// Decrements means that it terminates an instance that is not to be replaced.
	Decrements bool
	Error      string
}

// Reads reports whether the call changed nothing.
func (c Call) Reads() bool {
	return strings.HasPrefix(c.Operation, "Describe") || strings.HasPrefix(c.Operation, "Get")
}
