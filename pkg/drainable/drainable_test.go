package drainable_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

var now = time.Date(2025, 1, 1, 10, 0, 0, 0, time.UTC)

// web is a pod that every rule lets go; a test changes one thing about it.
func web(change ...func(*fleet.Pod)) *fleet.Pod {
	p := &fleet.Pod{
		Namespace: "shop", Name: "web-1", Created: fleet.SecondOf(now.Add(-10 * time.Minute)),
		Labels: map[string]string{"app": "web"}, Annotations: map[string]string{},
		Owner: &metav1.OwnerReference{Kind: "ReplicaSet", Name: "web"},
		Node:  "n", Spec: &corev1.PodSpec{}, Phase: fleet.PodRunning, Ready: true,
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func annotated(key, value string) func(*fleet.Pod) {
	return func(p *fleet.Pod) { p.Annotations[key] = value }
}

func ownedBy(kind string) func(*fleet.Pod) {
	return func(p *fleet.Pod) { p.Owner = &metav1.OwnerReference{Kind: kind} }
}

func deletedAt(t time.Time) func(*fleet.Pod) {
	return func(p *fleet.Pod) { p.Deleted = fleet.SecondOf(t) }
}
func naked(p *fleet.Pod)        { p.Owner = nil }
func inKubeSystem(p *fleet.Pod) { p.Namespace = "kube-system" }
func unready(p *fleet.Pod)      { p.Ready = false }

func phase(ph fleet.Phase) func(*fleet.Pod) { return func(p *fleet.Pod) { p.Phase = ph } }

func emptyDir(name string, medium corev1.StorageMedium) func(*fleet.Pod) {
	return func(p *fleet.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}})
	}
}

func hostPath(p *fleet.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "host", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var"}}})
}

func budget(name string, allowed int32, change ...func(*fleet.Budget)) fleet.Budget {
	b := fleet.Budget{
		Namespace: "shop", Name: name, Allowed: allowed, Healthy: 2, Desired: 2,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}
	for _, c := range change {
		c(&b)
	}
	return b
}

func belowDesired(b *fleet.Budget)    { b.Healthy = 1 }
func alwaysUnhealthy(b *fleet.Budget) { b.AlwaysAllowUnhealthy = true }
func everyPod(b *fleet.Budget)        { b.Selector = &metav1.LabelSelector{} }
func noPod(b *fleet.Budget)           { b.Selector = nil }

// Each row says of one pod what the scaler foresees, and what a drain does that
// has until a deadline (hurried) or two minutes (pressing).
func TestJudge(t *testing.T) {
	chosen := drainable.DefaultPolicy()
	acting, waiting := drainable.Policy{}, drainable.Policy{WaitForJobs: true}
	for _, tc := range []struct {
		name     string
		pod      *fleet.Pod
		budgets  []fleet.Budget
		policy   drainable.Policy
		patient  string
		hurried  string
		pressing string
	}{
		{"ordinary", web(), nil, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"static", web(naked, annotated(contract.AnnotationMirror, "x")), nil, chosen, "Skip Mirror", "Skip Mirror", "Skip Mirror"},
		{"deleted long ago", web(deletedAt(now.Add(-30 * time.Second))), nil, chosen, "Skip LongTerminating", "Skip LongTerminating", "Skip LongTerminating"},
		{"being deleted", web(naked, deletedAt(now.Add(20*time.Second))), nil, chosen, "Wait Terminating", "Wait Terminating", "Wait Terminating"},
		{"daemon", web(ownedBy("DaemonSet")), nil, chosen, "Skip DaemonSet", "Skip DaemonSet", "Skip DaemonSet"},
		{"daemon by annotation", web(naked, annotated(contract.AnnotationDaemonSetPod, "true")), nil, chosen, "Skip DaemonSet", "Skip DaemonSet", "Skip DaemonSet"},
		{"daemon being deleted", web(ownedBy("DaemonSet"), deletedAt(now)), nil, chosen, "Skip DaemonSet", "Skip DaemonSet", "Skip DaemonSet"},
		{"succeeded", web(naked, phase(fleet.PodSucceeded)), nil, chosen, "Skip Terminal", "Skip Terminal", "Skip Terminal"},
		{"ended and being deleted", web(naked, phase(fleet.PodSucceeded), deletedAt(now.Add(20*time.Second))), nil, chosen, "Wait Terminating", "Wait Terminating", "Wait Terminating"},
		{"failed and safe", web(annotated(contract.AnnotationSafeToEvict, "true"), phase(fleet.PodFailed)), nil, chosen, "Skip Terminal", "Skip Terminal", "Skip Terminal"},

		{"safe beats naked", web(naked, annotated(contract.AnnotationSafeToEvict, "true")), nil, chosen, "Leave SafeToEvict", "Leave SafeToEvict", "Leave SafeToEvict"},
		{"safe does not beat a budget", web(annotated(contract.AnnotationSafeToEvict, "true")), []fleet.Budget{budget("web", 0)}, chosen,
			"Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web"},
		{"unsafe", web(annotated(contract.AnnotationForeignSafeToEvict, "false")), nil, acting,
			"Block NotSafeToEvictAnnotation", "Leave Ordinary over NotSafeToEvictAnnotation", "Leave Ordinary over NotSafeToEvictAnnotation"},
		{"do not disrupt", web(annotated(contract.AnnotationDoNotDisrupt, "true")), nil, acting,
			"Block NotSafeToEvictAnnotation", "Leave Ordinary over NotSafeToEvictAnnotation", "Leave Ordinary over NotSafeToEvictAnnotation"},
		{"on completion", web(annotated(contract.AnnotationSafeToEvict, "on-completion")), nil, acting,
			"Wait OnCompletion", "Wait OnCompletion", "Leave Ordinary over OnCompletion"},

		{"job", web(ownedBy("Job")), nil, acting, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"job, waited for", web(ownedBy("Job")), []fleet.Budget{budget("web", 0)}, waiting, "Wait Job", "Wait Job", "Block NotEnoughPdb shop/web over Job"},
		{"job that is safe", web(ownedBy("Job"), annotated(contract.AnnotationSafeToEvict, "true")), nil, waiting, "Leave SafeToEvict", "Leave SafeToEvict", "Leave SafeToEvict"},
		{"job that has ended", web(ownedBy("Job"), phase(fleet.PodSucceeded)), nil, waiting, "Skip Terminal", "Skip Terminal", "Skip Terminal"},
		{"no job", web(), nil, waiting, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},

		{"naked", web(naked), nil, acting, "Block NotReplicated", "Leave Ordinary over NotReplicated", "Leave Ordinary over NotReplicated"},
		{"custom controller, choosing", web(ownedBy("Sparkle")), nil, chosen, "Block NotReplicated", "Leave Ordinary over NotReplicated", "Leave Ordinary over NotReplicated"},
		{"custom controller, acting", web(ownedBy("Sparkle")), nil, acting, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},

		{"kube-system", web(inKubeSystem), nil, chosen, "Block UnmovableKubeSystemPod", "Leave Ordinary over UnmovableKubeSystemPod", "Leave Ordinary over UnmovableKubeSystemPod"},
		{"kube-system, acting", web(inKubeSystem), nil, acting, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"kube-system for over an hour", web(inKubeSystem, func(p *fleet.Pod) { p.Created = fleet.SecondOf(now.Add(-time.Hour)) }), nil, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"kube-system with a budget", web(inKubeSystem), []fleet.Budget{budget("web", 1, func(b *fleet.Budget) { b.Namespace = "kube-system" })}, chosen,
			"Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},

		{"emptyDir", web(emptyDir("tmp", "")), nil, chosen, "Block LocalStorageRequested", "Leave Ordinary over LocalStorageRequested", "Leave Ordinary over LocalStorageRequested"},
		{"hostPath", web(hostPath), nil, chosen, "Block LocalStorageRequested", "Leave Ordinary over LocalStorageRequested", "Leave Ordinary over LocalStorageRequested"},
		{"emptyDir in memory", web(emptyDir("tmp", corev1.StorageMediumMemory)), nil, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"emptyDir called safe", web(emptyDir("tmp", ""), annotated(contract.AnnotationSafeLocalVolumes, "cache,tmp")), nil, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"one of two called safe", web(emptyDir("tmp", ""), emptyDir("data", ""), annotated(contract.AnnotationSafeLocalVolumes, "tmp")), nil, chosen,
			"Block LocalStorageRequested", "Leave Ordinary over LocalStorageRequested", "Leave Ordinary over LocalStorageRequested"},

		{"budget with room", web(), []fleet.Budget{budget("web", 1)}, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"budget spent", web(), []fleet.Budget{budget("web", 0)}, chosen, "Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web"},
		{"unsafe behind a spent budget", web(annotated(contract.AnnotationSafeToEvict, "false")), []fleet.Budget{budget("web", 0)}, acting,
			"Block NotSafeToEvictAnnotation", "Block NotEnoughPdb shop/web over NotSafeToEvictAnnotation", "Block NotEnoughPdb shop/web over NotSafeToEvictAnnotation"},
		{"two budgets", web(), []fleet.Budget{budget("web", 9), budget("all", 9, everyPod)}, chosen,
			"Block NotEnoughPdb shop/all", "Block NotEnoughPdb shop/all", "Block NotEnoughPdb shop/all"},
		{"budget that selects nothing", web(), []fleet.Budget{budget("web", 0, noPod)}, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"not started", web(phase(fleet.PodPending), unready), []fleet.Budget{budget("web", 0, belowDesired)}, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"unready, the others suffice", web(unready), []fleet.Budget{budget("web", 0)}, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
		{"unready, too few others", web(unready), []fleet.Budget{budget("web", 0, belowDesired)}, chosen,
			"Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web", "Block NotEnoughPdb shop/web"},
		{"unready, always allowed", web(unready), []fleet.Budget{budget("web", 0, belowDesired, alwaysUnhealthy)}, chosen, "Leave Ordinary", "Leave Ordinary", "Leave Ordinary"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ask := func(u drainable.Urgency) string {
				v := drainable.Judge(drainable.Question{
					Pod: tc.pod, Now: now, Budgets: drainable.NewBudgets(tc.budgets), Policy: tc.policy, Urgency: u,
				})
				text := string(v.Outcome) + " " + string(v.Rule)
				if v.Budget != "" {
					text += " " + v.Budget
				}
				if v.Overrides != "" {
					text += " over " + string(v.Overrides)
				}
				if v.Outcome == drainable.Block && v.Reason == "" {
					t.Errorf("%s says no reason", text)
				}
				return text
			}
			got := []string{ask(drainable.Patient), ask(drainable.Hurried), ask(drainable.Pressing)}
			want := []string{tc.patient, tc.hurried, tc.pressing}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("patient, hurried, pressing (-want +got):\n%s", diff)
			}
		})
	}
}

// Budgets that nobody knows are the eviction API's business.
func TestJudgeWithoutBudgets(t *testing.T) {
	v := drainable.Judge(drainable.Question{Pod: web(), Now: now})
	if v.Outcome != drainable.Leave {
		t.Errorf("got %+v, want it to leave", v)
	}
}

// A budget that is spent may allow a disruption in a moment; two of them on a pod never will.
func TestLasting(t *testing.T) {
	for want, budgets := range map[bool][]fleet.Budget{
		false: {budget("a", 0)},
		true:  {budget("a", 5), budget("b", 5)},
	} {
		v := drainable.Judge(drainable.Question{Pod: web(), Now: now, Budgets: drainable.NewBudgets(budgets)})
		if v.Outcome != drainable.Block || v.Lasting != want {
			t.Errorf("with %d budgets: %+v, want it blocked, lasting %v", len(budgets), v, want)
		}
	}
}

// Two pods behind one disruption: the second is refused until the first is
// taken back.
func TestTake(t *testing.T) {
	budgets := drainable.NewBudgets([]fleet.Budget{budget("web", 1)})
	outcome := func() drainable.Outcome {
		return drainable.Judge(drainable.Question{Pod: web(), Now: now, Budgets: budgets}).Outcome
	}
	undo := budgets.Take(web())
	if got := outcome(); got != drainable.Block {
		t.Errorf("after one was taken: %s, want Block", got)
	}
	undo()
	if got := outcome(); got != drainable.Leave {
		t.Errorf("after it was taken back: %s, want Leave", got)
	}
	budgets.Take(web(phase(fleet.PodPending)))
	if got := outcome(); got != drainable.Leave {
		t.Errorf("after one that is not counted: %s, want Leave", got)
	}
}

func TestEmpty(t *testing.T) {
	for _, tc := range []struct {
		name            string
		pod             *fleet.Pod
		again, occupies bool
	}{
		{"ordinary", web(), true, true},
		{"static", web(annotated(contract.AnnotationMirror, "x")), false, false},
		{"daemon", web(ownedBy("DaemonSet")), false, false},
		{"ended", web(phase(fleet.PodFailed)), false, false},
		{"ended, and its kubelet clears up", web(phase(fleet.PodSucceeded), deletedAt(now.Add(time.Second))), false, true},
		{"ended, and held by somebody", web(phase(fleet.PodSucceeded), deletedAt(now.Add(-30*time.Second))), false, false},
		{"grace period runs", web(deletedAt(now.Add(time.Second))), false, true},
		{"grace period just over", web(deletedAt(now.Add(-29 * time.Second))), false, true},
		{"should have gone", web(deletedAt(now.Add(-30 * time.Second))), false, false},
	} {
		if got := drainable.MustBePlacedAgain(tc.pod); got != tc.again {
			t.Errorf("%s: MustBePlacedAgain = %v, want %v", tc.name, got, tc.again)
		}
		if got := drainable.Occupies(tc.pod, now); got != tc.occupies {
			t.Errorf("%s: Occupies = %v, want %v", tc.name, got, tc.occupies)
		}
	}
}

func TestUrgencyOf(t *testing.T) {
	for _, tc := range []struct {
		kind     contract.Kind
		deadline time.Time
		want     drainable.Urgency
	}{
		{contract.KindSpot, time.Time{}, drainable.Pressing},
		{contract.KindASG, time.Time{}, drainable.Hurried},
		{contract.KindScaleDown, time.Time{}, drainable.Patient},
		{contract.KindRequest, time.Time{}, drainable.Patient},
		{contract.KindRequest, now, drainable.Hurried},
	} {
		if got := drainable.UrgencyOf(tc.kind, tc.deadline); got != tc.want {
			t.Errorf("UrgencyOf(%s, %s) = %d, want %d", tc.kind, tc.deadline, got, tc.want)
		}
	}
}
