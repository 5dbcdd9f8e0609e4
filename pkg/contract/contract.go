// Package contract holds every annotation, label, taint and Event reason that
// Windlass writes or honours, with its parser and its printer.
//
// The agent and the scaler never call each other. They meet on the Node
// object, in the words of this package:
//
//	scaler, people ── drain-request ──▶ agent      please leave
//	agent ─────────── drain-report ───▶ scaler     how far it is
//	scaler ────────── drain-permit ───▶ agent      a drain without hurry may begin
//	scaler ────────── drain-not-yet ──▶ agent      it is not its turn, and I live
//	scaler ────────── terminating ────▶ everybody  the point of no return
//	agent ─────────── served, cordoned-by ─▶ agent its own memory over a restart
//
// Every value has a Parse function and a String method that round-trip.
// Unknown fields are ignored, so that agent and scaler may differ by a
// version. A report names the ids it answers, so that an old report never
// answers a new request. No other package spells the prefix.
package contract

// Prefix stands before every key of ours.
const Prefix = "windlass.dev/"

// TagHeadroom is a tag of an Auto Scaling group: how much room its nodes keep free for
// pods to come, such as 10 percent or pods=5 cpu=500m memory=1Gi; see fleet.Headroom.
const TagHeadroom = Prefix + "headroom"

// Annotations of a Node.
const (
	// AnnotationDrainRequest asks the agent to drain its node. Written by the
	// scaler and by people, read by the agent; see Request.
	AnnotationDrainRequest = Prefix + "drain-request"

	// AnnotationDrainReport says how far the drain is. Written by the agent,
	// renewed every ReportEvery, or CrowdedReportEvery, while a drain is open, deleted on
	// undo; read by the scaler and by people; see Report.
	AnnotationDrainReport = Prefix + "drain-report"

	// AnnotationDrainPermit holds the id of the drain that may begin. Written
	// by the scaler, for a retirement together with its request; drains without
	// hurry wait for it, for a bounded time.
	AnnotationDrainPermit = Prefix + "drain-permit"

	// AnnotationDrainNotYet says that a drain without hurry is to wait on, and since
	// when: the agent begins by itself where it is not renewed. Written by the scaler,
	// which takes it away with the permit; removed by the agent on undo; see NotYet.
	AnnotationDrainNotYet = Prefix + "drain-not-yet"

	// AnnotationTerminating holds the id of the request whose instance is
	// being terminated: the point of no return. Written by the scaler, with a
	// resourceVersion precondition, just before the AWS call. From then on
	// nobody takes the drain back.
	AnnotationTerminating = Prefix + "terminating"

	// AnnotationOutOfService says that the scaler has put OutOfServiceTaint on the node, and
	// for which instance that is down. Written and removed by the scaler with the taint; a
	// taint without it is somebody's and stays.
	AnnotationOutOfService = Prefix + "out-of-service"

	// AnnotationNotices lists the notices of the instance metadata that stand, also
	// those for which nothing is done yet; see Noticed. Written by the agent, read by
	// the scaler, the notifier and people; absent where none stands.
	AnnotationNotices = Prefix + "notices"

	// AnnotationDryRun says what the agent would do if it did not run with --dry-run; see
	// DryRun. Written by the agent, read by people, and by the agent, which goes on by it.
	AnnotationDryRun = Prefix + "dry-run"

	// AnnotationServed is the agent's memory of the notices that it served or
	// that were taken back; see Served.
	AnnotationServed = Prefix + "served"

	// AnnotationCordonedBy marks a cordon of ours; see Cordon. A human's
	// cordon has no such mark and is never undone.
	AnnotationCordonedBy = Prefix + "cordoned-by"

	// AnnotationExcluded marks that the label LabelExcludeFromLoadBalancers is
	// ours, with the id of the notice it was set for. A label without this
	// mark belongs to somebody else and is never removed.
	AnnotationExcluded = Prefix + "excluded-from-load-balancers"

	// AnnotationHold, with any value but "false", keeps a node from being
	// retired. Written by people, read by the scaler.
	AnnotationHold = Prefix + "hold"
)

// Annotations of the Events by which the agent speaks of a notice: NoticeReceived,
// DrainWaiting and DrainStarted. Programs read there what the message says to people. Written
// by the agent, read by nobody of ours.
const (
	// AnnotationEventKind is the notice's Kind, AnnotationEventID its id, and
	// AnnotationEventSource where it was read: a path of the instance metadata, or
	// "annotation" for a drain request.
	AnnotationEventKind   = Prefix + "kind"
	AnnotationEventID     = Prefix + "id"
	AnnotationEventSource = Prefix + "source"
	// AnnotationEventDeadline is when the instance goes, as Time; absent where nobody has
	// said.
	AnnotationEventDeadline = Prefix + "deadline"
	// AnnotationEventInstance is the id of the node's instance; absent where it is not known.
	AnnotationEventInstance = Prefix + "instance"
)

// AnnotationEventFacts, on Events about groups and scale-downs, says for programs what the
// message says to people; see Facts. Written by the scaler, read by the notifier and the plugin.
const AnnotationEventFacts = Prefix + "facts"

// Annotations of a Pod, written by people.
const (
	// AnnotationSafeToEvict is "true", "false" or "on-completion"; it wins
	// over Cluster Autoscaler's annotation of the same meaning.
	AnnotationSafeToEvict = Prefix + "safe-to-evict"
	// AnnotationDisruptionCost on a pod is what it costs to evict it, in dollars.
	AnnotationDisruptionCost = Prefix + "disruption-cost"
	// AnnotationAllOrNothing names a gang: pods of one namespace that carry the
	// same name bring nodes only if there is a place for every one of them that
	// waits. "true" stands for all pods of the same controller, such as a Job.
	AnnotationAllOrNothing = Prefix + "all-or-nothing"
)

// TagOwner on an Auto Scaling group is the UID of the namespace kube-system of the one
// cluster that may change it. Written by the scaler with --claim-groups, or by people; read
// by every scaler that finds the group.
const TagOwner = Prefix + "owner"

// TagMode on an Auto Scaling group says how far Windlass goes with it: ModeObserve has it decide, and
// do nothing; ModeAct is as without the tag. Written by people.
const (
	TagMode     = Prefix + "mode"
	ModeObserve = "observe"
	ModeAct     = "act"
)

// LabelExcludeFromLoadBalancers takes a node out of cloud load balancers.
// Its owner is Kubernetes: any value excludes.
// https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-exclude-from-external-load-balancers
const LabelExcludeFromLoadBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

// LabelAsAccount, "true", is on every Eviction that the agent asks for as its
// service account and not as its node: an admission policy looks at where the pod
// of such an eviction runs, which costs too much to be done for all.
const LabelAsAccount = Prefix + "as-account"

// Names of the ConfigMaps that the programs keep in their own namespace.
const (
	// ConfigMapState is the scaler's memory, written before the action that
	// it guards.
	ConfigMapState = "windlass-state"
	// ConfigMapStatus holds the verdicts, for people.
	ConfigMapStatus = "windlass-status"
	// ConfigMapNotifier is what the notifier has seen and sent; its own.
	ConfigMapNotifier = "windlass-notifier"
)

// AnnotationStatusWritten repeats, on the ConfigMap of Cluster Autoscaler's status,
// AnnotationLastUpdated as we wrote it: where the two differ, somebody else has written
// since.
const AnnotationStatusWritten = Prefix + "last-updated"

// LeaseScaler is the name of the Lease that the leading scaler holds, and LeaseNotifier of that
// of the notifier that sends.
const (
	LeaseScaler   = "windlass-scaler"
	LeaseNotifier = "windlass-notifier"
)

// LabelAppName and the names below tell our own pods from others.
const (
	LabelAppName = "app.kubernetes.io/name"
	AppAgent     = "windlass-agent"
	AppScaler    = "windlass-scaler"
	AppNotifier  = "windlass-notifier"
)
