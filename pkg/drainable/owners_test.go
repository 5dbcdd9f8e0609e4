package drainable_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

func ownedAs(version, kind, name string) func(*fleet.Pod) {
	return func(p *fleet.Pod) {
		p.Owner = &metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name)}
	}
}

// The cases that Cluster Autoscaler tests its rules with, by their names there, and what
// it answers: the reason that blocks, or what becomes of the pod. Where ours is another,
// same is false, and the case says why in its comment.
// https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/simulator/drainability/rules
func TestCasesOfClusterAutoscaler(t *testing.T) {
	const same = ""
	long := func(p *fleet.Pod) { p.Created = fleet.SecondOf(now.Add(-90 * time.Minute)) }
	lacking := func(p *fleet.Pod) { p.Owner.Name, p.Owner.UID = "missing", "missing" }
	rs, rc := ownedAs("apps/v1", "ReplicaSet", "rs"), ownedAs("v1", "ReplicationController", "rc")
	safe, unsafe := annotated(contract.AnnotationForeignSafeToEvict, "true"), annotated(contract.AnnotationForeignSafeToEvict, "false")
	critical := []fleet.Budget{budget("web", 0)}
	system := func(b *fleet.Budget) { b.Namespace = "kube-system" }
	for _, tc := range []struct {
		name         string
		pod          *fleet.Pod
		budgets      []fleet.Budget
		theirs, ours string
	}{
		// mirror
		{"mirror pod", web(naked, annotated(contract.AnnotationMirror, "something")), nil, "Skip", same},

		// longterminating
		{"long terminating pod with 0 grace period", web(rs, deletedAt(now.Add(-time.Minute))), nil, "Skip", same},
		// Not evicted, but waited for: its grace period runs.
		{"pod terminating within its grace period", web(rs, deletedAt(now.Add(-time.Second))), nil, "Leave", "Wait"},

		// replicacount
		{"RC-managed pod", web(rc), nil, "Leave", same},
		{"RC-managed pod with missing reference", web(rc, lacking), nil, "ControllerNotFound", same},
		{"RC-managed pod with too few replicas", web(ownedAs("v1", "ReplicationController", "few")), nil, "MinReplicasReached", same},
		{"RS-managed pod", web(rs), nil, "Leave", same},
		{"RS-managed pod with missing reference", web(rs, lacking), nil, "ControllerNotFound", same},
		{"RS-managed pod that is being deleted", web(rs, deletedAt(now.Add(-time.Hour))), nil, "Skip", same},
		{"RS-managed pod with too few replicas, safe to evict", web(ownedAs("apps/v1", "ReplicaSet", "few"), safe), nil, "MinReplicasReached", same},
		{"DS-managed pod", web(ownedAs("apps/v1", "DaemonSet", "ds")), nil, "Skip", same},
		// It leaves with its node in any case.
		{"DS-managed pod with missing reference", web(ownedAs("apps/v1", "DaemonSet", "missing")), nil, "ControllerNotFound", "Skip"},
		{"DS-managed pod by a custom API Group with missing reference", web(ownedAs("crd/v1", "DaemonSet", "missing")), nil, "Skip", same},
		{"DS-managed pod by a custom Daemonset", web(ownedAs("crd/v1", "CustomDaemonSet", "ds"), annotated(contract.AnnotationDaemonSetPod, "true")), nil, "Skip", same},
		{"Job-managed pod", web(ownedAs("batch/v1", "Job", "job")), nil, "Leave", same},
		// The garbage collector ends it; nobody has to keep its node for that.
		{"Job-managed pod with missing reference", web(ownedAs("batch/v1", "Job", "missing")), nil, "ControllerNotFound", "Leave"},
		{"SS-managed pod", web(ownedAs("apps/v1", "StatefulSet", "ss")), nil, "Leave", same},
		// Likewise.
		{"SS-managed pod with missing reference", web(ownedAs("apps/v1", "StatefulSet", "missing")), nil, "ControllerNotFound", "Leave"},
		{"SS-managed pod by a custom API Group", web(ownedAs("kruise/v1", "StatefulSet", "ss")), nil, "Leave", same},

		// safetoevict, notsafetoevict
		{"naked pod with PodSafeToEvict annotation", web(naked, safe), nil, "Leave", same},
		{"kube-system pod with PodSafeToEvict annotation", web(rs, inKubeSystem, safe), nil, "Leave", same},
		{"pod with PodSafeToEvict annotation and local storage", web(rs, emptyDir("scratch", ""), safe), nil, "Leave", same},
		{"RS-managed pod with PodSafeToEvict=false annotation", web(rs, unsafe), nil, "NotSafeToEvictAnnotation", same},
		{"naked pod with PodSafeToEvict=false annotation", web(naked, unsafe), nil, "NotReplicated", same},
		// Never past a budget: its eviction would be refused for as long.
		{"pod with PodSafeToEvict annotation and an exhausted PDB", web(rs, safe), critical, "Leave", "NotEnoughPdb"},

		// terminal; it holds nothing, so nobody evicts it
		{"failed pod", web(naked, phase(fleet.PodFailed)), nil, "Leave", "Skip"},
		{"succeeded pod", web(naked, phase(fleet.PodSucceeded)), nil, "Leave", "Skip"},

		// replicated
		{"naked pod", web(naked), nil, "NotReplicated", same},
		{"custom-controller-managed blocking pod", web(ownedAs("sparkle.x-k8s.io/v1", "Sparkle", "foo")), nil, "NotReplicated", same},

		// system
		{"kube-system pod", web(rs, inKubeSystem), nil, "UnmovableKubeSystemPod", same},
		{"kube-system PDB with matching kube-system pod", web(rs, inKubeSystem), []fleet.Budget{budget("web", 1, system)}, "Leave", same},
		{"kube-system PDB with non-matching kube-system pod", web(rs, inKubeSystem), []fleet.Budget{budget("other", 1, system, noPod)}, "UnmovableKubeSystemPod", same},
		{"default PDB with non-matching kube-system pod", web(rs, inKubeSystem), []fleet.Budget{budget("web", 1)}, "UnmovableKubeSystemPod", same},
		{"kube-system pod older than the timeout", web(rs, inKubeSystem, long), nil, "Leave", same},
		// Its age ends this rule's say, and no other's.
		{"kube-system pod older than the timeout, not safe to evict", web(rs, inKubeSystem, long, unsafe), nil, "Leave", "NotSafeToEvictAnnotation"},

		// localstorage
		{"pod with EmptyDir", web(rs, emptyDir("scratch", "")), nil, "LocalStorageRequested", same},
		{"pod with HostPath", web(rs, hostPath), nil, "LocalStorageRequested", same},
		{"pod with EmptyDir in memory", web(rs, emptyDir("scratch", corev1.StorageMediumMemory)), nil, "Leave", same},
		{"pod with EmptyDir and SafeToEvictLocalVolumesKey annotation", web(rs, emptyDir("scratch", ""), annotated(contract.AnnotationSafeLocalVolumes, "scratch")), nil, "Leave", same},
		{"pod with EmptyDir and SafeToEvictLocalVolumesKey annotation with empty value", web(rs, emptyDir("scratch", ""), annotated(contract.AnnotationSafeLocalVolumes, "")), nil, "LocalStorageRequested", same},
		{"pod with EmptyDir and SafeToEvictLocalVolumesKey annotation with non-matching value", web(rs, emptyDir("scratch", ""), annotated(contract.AnnotationSafeLocalVolumes, "other")), nil, "LocalStorageRequested", same},
		{"pod with several EmptyDirs, one of them unmatched", web(rs, emptyDir("a", ""), emptyDir("b", ""), annotated(contract.AnnotationSafeLocalVolumes, "a,c")), nil, "LocalStorageRequested", same},

		// pdb
		{"pdb blocking", web(rs), critical, "NotEnoughPdb", same},
		{"pdb allowing", web(rs), []fleet.Budget{budget("web", 1)}, "Leave", same},
		{"pdb that guards another namespace", web(rs), []fleet.Budget{budget("web", 0, system)}, "Leave", same},

		// The order of the table.
		{"mirror before everything", web(naked, annotated(contract.AnnotationMirror, "x"), unsafe, emptyDir("a", "")), critical, "Skip", same},
		{"daemon set before the annotation", web(ownedBy("DaemonSet"), unsafe), nil, "Skip", same},
		{"on completion before not replicated", web(naked, annotated(contract.AnnotationForeignSafeToEvict, "on-completion")), nil, "Wait", same},
		{"not replicated before system", web(naked, inKubeSystem), nil, "NotReplicated", same},
		{"system before local storage", web(rs, inKubeSystem, emptyDir("a", "")), nil, "UnmovableKubeSystemPod", same},
		{"annotation before local storage", web(rs, unsafe, emptyDir("a", "")), nil, "NotSafeToEvictAnnotation", same},
		{"local storage before pdb", web(rs, emptyDir("a", "")), critical, "LocalStorageRequested", same},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy := drainable.DefaultPolicy()
			policy.MinReplicas = 3
			v := drainable.Judge(drainable.Question{
				Pod: tc.pod, Now: now, Budgets: drainable.NewBudgets(tc.budgets), Policy: policy,
				Owners: map[types.UID]fleet.Owner{"rs": {Replicas: 5}, "rc": {Replicas: 5}, "few": {Replicas: 2}},
			})
			got, want := string(v.Outcome), tc.ours
			if v.Outcome == drainable.Block {
				got = string(v.Rule)
			}
			if want == same {
				want = tc.theirs
			}
			if got != want {
				t.Errorf("%s (%s), want %s", got, v.Reason, want)
			}
		})
	}
}

// Each row is a pod and what is known of owners: whether it is kept for that.
func TestOwners(t *testing.T) {
	known := map[types.UID]fleet.Owner{"two": {Replicas: 2}}
	young := func(p *fleet.Pod) { p.Created = fleet.SecondOf(now.Add(-59 * time.Second)) }
	for _, tc := range []struct {
		name   string
		pod    *fleet.Pod
		owners map[types.UID]fleet.Owner
		least  int
		custom bool
		want   drainable.Rule
	}{
		{"enough", web(ownedAs("apps/v1", "ReplicaSet", "two")), known, 2, true, drainable.RuleNone},
		{"too few", web(ownedAs("apps/v1", "ReplicaSet", "two")), known, 3, true, drainable.RuleMinReplicas},
		{"too few, any controller will do", web(ownedAs("apps/v1", "ReplicaSet", "two")), known, 3, false, drainable.RuleMinReplicas},
		{"gone", web(ownedAs("apps/v1", "ReplicaSet", "gone")), known, 1, true, drainable.RuleNoController},
		{"gone, any controller will do", web(ownedAs("apps/v1", "ReplicaSet", "gone")), known, 1, false, drainable.RuleNone},
		{"perhaps not seen yet", web(ownedAs("apps/v1", "ReplicaSet", "gone"), young), known, 1, true, drainable.RuleNone},
		{"nobody knows", web(ownedAs("apps/v1", "ReplicaSet", "gone")), nil, 1, true, drainable.RuleNone},
		{"a namesake in another API group", web(ownedAs("example.com/v1", "ReplicaSet", "two")), known, 3, false, drainable.RuleNone},
	} {
		v := drainable.Judge(drainable.Question{
			Pod: tc.pod, Now: now, Owners: tc.owners,
			Policy: drainable.Policy{MinReplicas: tc.least, SkipCustomControllers: tc.custom},
		})
		if v.Rule != tc.want {
			t.Errorf("%s: %s (%s), want %s", tc.name, v.Rule, v.Reason, tc.want)
		}
	}
}
