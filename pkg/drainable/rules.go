package drainable

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Annotations are those of a pod that the rules go by.
var Annotations = []string{
	contract.AnnotationSafeToEvict, contract.AnnotationForeignSafeToEvict, contract.AnnotationDoNotDisrupt, contract.AnnotationSafeLocalVolumes,
	contract.AnnotationDaemonSetPod, contract.AnnotationEvictDaemonSetPod, contract.AnnotationMirror,
}

// Outcome is what a drain does with a pod.
type Outcome string

const (
	// Skip: the pod does not hinder the drain and is not evicted.
	Skip Outcome = "Skip"
	// Leave: evict it.
	Leave Outcome = "Leave"
	// Wait: do not evict it; it will end by itself, and the drain waits for
	// that.
	Wait Outcome = "Wait"
	// Block: it may not be moved, and so the node cannot be emptied now.
	Block Outcome = "Block"
)

// Rule names the rule that gave an answer. Those that Cluster Autoscaler has
// too keep the words of its events and metrics.
type Rule string

// The rules, in the order in which they are asked.
const (
	RuleMirror          Rule = "Mirror"
	RuleLongTerminating Rule = "LongTerminating"
	RuleTerminating     Rule = "Terminating"
	RuleNoController    Rule = "ControllerNotFound"
	RuleMinReplicas     Rule = "MinReplicasReached"
	RuleDaemonSet       Rule = "DaemonSet"
	RuleEnded           Rule = "Terminal"
	RuleSafeToEvict     Rule = "SafeToEvict"
	RuleOnCompletion    Rule = "OnCompletion"
	RuleJob             Rule = "Job"
	RuleNotReplicated   Rule = "NotReplicated"
	RuleSystem          Rule = "UnmovableKubeSystemPod"
	RuleNotSafeToEvict  Rule = "NotSafeToEvictAnnotation"
	RuleLocalStorage    Rule = "LocalStorageRequested"
	RuleBudget          Rule = "NotEnoughPdb"
	// RuleNone: no rule has anything against it.
	RuleNone Rule = "Ordinary"
)

// Verdict is the answer for one pod, and the rule that gave it.
type Verdict struct {
	Outcome Outcome
	Rule    Rule
	// Reason is a sentence for people, without the pod's name.
	Reason string
	// Budget is the budget that forbids it, as namespace/name; for RuleBudget
	// only.
	Budget string
	// Lasting means that no disruption that comes free helps: the pod has two budgets.
	Lasting bool
	// Overrides is the rule that would have kept the pod, had there been time;
	// empty where none was overridden. Each override deserves an Event.
	Overrides Rule
}

// Policy says which rules are asked. The zero Policy is the one to act by: it
// honours what a pod says of itself (its annotations, that nobody would create
// it again) and leaves budgets to the eviction API. DefaultPolicy is the one to
// choose nodes by.
type Policy struct {
	// SkipSystemPods keeps nodes with pods of kube-system that no budget
	// guards. Flag --skip-nodes-with-system-pods.
	SkipSystemPods bool
	// SystemPodTimeout is the age from which such a pod blocks no more; 0
	// means never. Flag --blocking-system-pod-distruption-timeout.
	SystemPodTimeout time.Duration
	// SkipLocalStorage keeps nodes with pods that have a hostPath or emptyDir
	// volume. Flag --skip-nodes-with-local-storage.
	SkipLocalStorage bool
	// SkipCustomControllers keeps nodes with pods whose controller is none of
	// Kubernetes' own. Flag --skip-nodes-with-custom-controller-pods.
	SkipCustomControllers bool
	// MinReplicas keeps nodes with pods whose ReplicaSet or ReplicationController wants
	// fewer. Flag --min-replica-count.
	MinReplicas int
	// WaitForJobs waits for pods of Jobs to end by themselves, as if each bore the
	// annotation on-completion. Flag --wait-for-jobs.
	WaitForJobs bool
	// DaemonSets says which pods of DaemonSets are evicted. To choose nodes by, none:
	// they need no other place.
	DaemonSets DaemonSetEviction
}

// DefaultPolicy has Cluster Autoscaler's defaults.
func DefaultPolicy() Policy {
	return Policy{
		SkipSystemPods:        true,
		SystemPodTimeout:      time.Hour,
		SkipLocalStorage:      true,
		SkipCustomControllers: true,
	}
}

// Question is one pod, and what the rules may know about the world.
type Question struct {
	Pod *fleet.Pod
	Now time.Time
	// Budgets are those of the cluster, nil where they are not known: the
	// eviction API then is the one that refuses.
	Budgets *Budgets
	// Owners are the ReplicaSets and ReplicationControllers by UID, nil where they are
	// not known.
	Owners  map[types.UID]fleet.Owner
	Policy  Policy
	Urgency Urgency
}

// rule answers or passes the question on by an empty Outcome.
type rule struct {
	name Rule
	ask  func(*Question) (o Outcome, why string)
	// unguarded rules let a pod go without asking its budgets: it is not
	// evicted at all, or the eviction API does not count it either.
	unguarded bool
	// firm rules answer whatever the urgency.
	firm bool
}

// rules in Cluster Autoscaler's order: the first that answers decides. What
// differs from it on purpose: nothing goes past a budget (safe-to-evict=true
// and old kube-system pods do in its simulation); an old kube-system pod still
// has its annotation and its local storage looked at; ended pods are left
// alone, and so stand before safe-to-evict=true; a pod that is being deleted
// is waited for, whatever else is true of it; its rule ReplicaCount, two of ours, knows
// fewer kinds of owners (owners.go).
var rules = []rule{
	{name: RuleMirror, ask: mirror, unguarded: true},
	{name: RuleLongTerminating, ask: longTerminating, unguarded: true},
	{name: RuleTerminating, ask: terminating, unguarded: true, firm: true},
	{name: RuleNoController, ask: controllerNotFound},
	{name: RuleMinReplicas, ask: minReplicas},
	{name: RuleDaemonSet, ask: daemonSet},
	{name: RuleEnded, ask: ended, unguarded: true},
	{name: RuleSafeToEvict, ask: safeToEvict},
	{name: RuleOnCompletion, ask: onCompletion, unguarded: true},
	{name: RuleJob, ask: job, unguarded: true},
	{name: RuleNotReplicated, ask: notReplicated},
	{name: RuleSystem, ask: system},
	{name: RuleNotSafeToEvict, ask: notSafeToEvict},
	{name: RuleLocalStorage, ask: localStorage},
}

// Judge asks the rules.
func Judge(q Question) Verdict { return q.Judge() }

// Judge asks the rules. One Question may ask for many pods, one after the other: that
// costs less than the function of that name.
func (q *Question) Judge() Verdict {
	kept := Rule("")
	for i := range rules {
		r := &rules[i]
		outcome, why := r.ask(q)
		if outcome == "" {
			continue
		}
		if !r.firm && q.Urgency.overrides(outcome) {
			kept = first(kept, r.name)
			continue
		}
		v := Verdict{Outcome: outcome, Rule: r.name, Reason: why, Overrides: kept}
		if outcome != Leave || r.unguarded {
			return v
		}
		return guarded(q, v)
	}
	return guarded(q, Verdict{Outcome: Leave, Rule: RuleNone, Overrides: kept})
}

// guarded lets v stand if the pod's budgets do.
func guarded(q *Question, v Verdict) Verdict {
	refused := q.Budgets.refuses(q.Pod)
	if refused.Outcome == "" {
		return v
	}
	refused.Overrides = v.Overrides
	return refused
}

func first(a, b Rule) Rule {
	if a != "" {
		return a
	}
	return b
}

func mirror(q *Question) (Outcome, string) {
	if !IsMirror(q.Pod) {
		return "", ""
	}
	return Skip, "it is a static pod, which leaves with its node"
}

// longTerminating: its kubelet should have ended it by now and will not.
func longTerminating(q *Question) (Outcome, string) {
	if !IsLongTerminating(q.Pod, q.Now) {
		return "", ""
	}
	return Skip, "it is being deleted for longer than its grace period"
}

// terminating comes before DaemonSet in the table, so it passes those on that
// nobody waits for.
func terminating(q *Question) (Outcome, string) {
	if q.Pod.Deleted.IsZero() || !Occupies(q.Pod, q.Now) {
		return "", ""
	}
	return Wait, "it is being deleted, and its grace period runs"
}

func safeToEvict(q *Question) (Outcome, string) {
	if contract.SafeToEvictOf(q.Pod.Annotations) != contract.SafeYes {
		return "", ""
	}
	return Leave, "its safe-to-evict annotation is true"
}

// ended pods hold nothing; a drain leaves them to their owner.
func ended(q *Question) (Outcome, string) {
	if !q.Pod.Ended() {
		return "", ""
	}
	return Skip, "it has ended"
}

func onCompletion(q *Question) (Outcome, string) {
	if contract.SafeToEvictOf(q.Pod.Annotations) != contract.SafeOnCompletion {
		return "", ""
	}
	return Wait, "its safe-to-evict annotation is on-completion, and it has not ended"
}

func job(q *Question) (Outcome, string) {
	if !q.Policy.WaitForJobs || q.Pod.Owner == nil || q.Pod.Owner.Kind != "Job" {
		return "", ""
	}
	return Wait, "it is a pod of a Job, and has not ended"
}

// replicators are the controllers that Cluster Autoscaler trusts to create a
// pod again.
var replicators = []string{"ReplicationController", "ReplicaSet", "Job", "StatefulSet"}

func notReplicated(q *Question) (Outcome, string) {
	owner := q.Pod.Owner
	if owner == nil {
		return Block, "it has no controller that would create it again"
	}
	if q.Policy.SkipCustomControllers && !slices.Contains(replicators, owner.Kind) {
		return Block, fmt.Sprintf("its controller, of kind %s, is not known to create it again", owner.Kind)
	}
	return "", ""
}

func system(q *Question) (Outcome, string) {
	if !q.Policy.SkipSystemPods || q.Pod.Namespace != metav1.NamespaceSystem {
		return "", ""
	}
	if len(q.Budgets.Guarding(q.Pod)) > 0 {
		return "", ""
	}
	limit := q.Policy.SystemPodTimeout
	if limit > 0 && q.Now.Sub(q.Pod.Created.Time()) >= limit {
		return "", ""
	}
	return Block, "it is a pod of kube-system that no budget guards"
}

func notSafeToEvict(q *Question) (Outcome, string) {
	if contract.SafeToEvictOf(q.Pod.Annotations) != contract.SafeNo {
		return "", ""
	}
	return Block, "its safe-to-evict annotation is false"
}

func localStorage(q *Question) (Outcome, string) {
	if !q.Policy.SkipLocalStorage || q.Pod.Spec == nil {
		return "", ""
	}
	for i := range q.Pod.Spec.Volumes {
		if v := &q.Pod.Spec.Volumes[i]; isLocal(v) && !namedSafe(q.Pod, v) {
			return Block, fmt.Sprintf("its volume %s is local storage", v.Name)
		}
	}
	return "", ""
}

// isLocal reports whether a volume's content is lost with the node. An emptyDir in
// memory is lost with the pod anyway.
func isLocal(v *corev1.Volume) bool {
	if v.HostPath != nil {
		return true
	}
	return v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
}

// namedSafe reports whether the pod itself lets this volume be lost.
func namedSafe(p *fleet.Pod, v *corev1.Volume) bool {
	return slices.Contains(strings.Split(p.Annotations[contract.AnnotationSafeLocalVolumes], ","), v.Name)
}
