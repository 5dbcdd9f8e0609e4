package drainable_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// Each row is a pod, and what a drain does with it as people say how drains are done.
func TestManner(t *testing.T) {
	plain := drainable.DefaultManner()
	daemons, jobs, storage := plain, plain, plain
	daemons.EvictDaemonSets, jobs.WaitForJobs, storage.KeepLocalStorage = true, true, true
	daemon, asks := ownedBy("DaemonSet"), annotated(contract.AnnotationEvictDaemonSetPod, "true")
	for _, tc := range []struct {
		name         string
		pod          *fleet.Pod
		manner       drainable.Manner
		chosen, late bool
		want         drainable.Outcome
	}{
		{"ordinary", web(), plain, false, false, drainable.Leave},
		{"daemon", web(daemon), plain, false, false, drainable.Skip},
		{"daemon that asks", web(daemon, asks), plain, false, false, drainable.Leave},
		{"daemon that asks, too late", web(daemon, asks), plain, false, true, drainable.Skip},
		{"daemon, all are evicted", web(daemon), daemons, false, false, drainable.Leave},
		{"daemon, all are evicted, too late", web(daemon), daemons, false, true, drainable.Skip},
		{"others are not late", web(), daemons, false, true, drainable.Leave},
		{"job", web(ownedBy("Job")), plain, false, false, drainable.Leave},
		{"job, waited for", web(ownedBy("Job")), jobs, false, false, drainable.Wait},
		{"local storage", web(emptyDir("tmp", "")), plain, false, false, drainable.Leave},
		{"local storage, kept", web(emptyDir("tmp", "")), storage, false, false, drainable.Block},
		{"local storage, kept, but chosen for scale-down", web(emptyDir("tmp", "")), storage, true, false, drainable.Leave},
	} {
		rules := tc.manner.Rules(tc.pod, tc.chosen, tc.late)
		if got := drainable.Judge(drainable.Question{Pod: tc.pod, Now: now, Policy: rules}).Outcome; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestVolumesInUse(t *testing.T) {
	claim := func(name string) func(*fleet.Pod) {
		return func(p *fleet.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		}
	}
	own := func(p *fleet.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	}
	for _, tc := range []struct {
		name string
		pods []*fleet.Pod
		want int
	}{
		{"none", nil, 0},
		{"no volumes", []*fleet.Pod{web(hostPath, emptyDir("tmp", ""))}, 0},
		{"two pods of one claim", []*fleet.Pod{web(claim("data")), web(claim("data"))}, 1},
		{"two claims, and one of its own", []*fleet.Pod{web(claim("a"), claim("b"), own)}, 3},
		{"ended", []*fleet.Pod{web(claim("a"), phase(fleet.PodSucceeded))}, 0},
		{"nothing known of it", []*fleet.Pod{{Name: "bare"}}, 0},
	} {
		if got := drainable.VolumesInUse(slices.Values(tc.pods)); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}
