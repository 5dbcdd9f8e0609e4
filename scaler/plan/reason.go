package plan

// Reason is a verdict in one word, for metrics, Events and tests.
type Reason string

// Reasons of waiting pods.
const (
	// PodGetsNode: a group grows for it now.
	PodGetsNode Reason = "GetsNode"
	// PodFitsComing: a node that is on its way has room for it.
	PodFitsComing Reason = "FitsComingNode"
	// PodFitsFree: a node has room; kube-scheduler will place it.
	PodFitsFree Reason = "FitsNode"
	// PodFitsNothing: no group's node could take it.
	PodFitsNothing Reason = "FitsNoGroup"
	// PodGroupsFull: groups that could take it are at max or in back-off.
	PodGroupsFull Reason = "GroupsUnavailable"
	// PodGated: it has scheduling gates.
	PodGated Reason = "SchedulingGated"
)

// Reasons of nodes.
const (
	NodeNeeded      Reason = "Needed"         // used above the threshold
	NodeNoPlace     Reason = "NoPlaceForPods" // some pod has no other place
	NodeBlocked     Reason = "BlockedByPod"   // a pod's rule forbids it
	NodeHeld        Reason = "Held"           // people keep it
	NodeWaiting     Reason = "Waiting"        // unneeded, its clock runs
	NodeMinSize     Reason = "GroupAtMin"     // its group may not shrink
	NodeRetiring    Reason = "Retiring"       // drained for us, now or soon
	NodeKept        Reason = "RetirementTakenBack"
	NodeLeaving     Reason = "Leaving"     // Auto Scaling or EC2 takes it
	NodeTerminating Reason = "Terminating" // past the point of no return
	NodeComing      Reason = "Coming"      // registered, not Ready yet
	NodeUnready     Reason = "Unready"
	NodeNotOurs     Reason = "NotInAnyGroup"
)

// Reasons of groups.
const (
	GroupGrows       Reason = "Grows"
	GroupSteady      Reason = "Steady"
	GroupComing      Reason = "NodesComing"
	GroupAtMax       Reason = "AtMax"
	GroupBackOff     Reason = "InBackOff"
	GroupUnfulfilled Reason = "Unfulfilled"
	GroupFaulty      Reason = "Faulty"          // its definition cannot be used
	GroupRivalled    Reason = "RivalAutoscaler" // a Cluster Autoscaler is alive
)
