package observe

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// requesting is a spec with a container that requests so much; nothing for nil.
func requesting(requests corev1.ResourceList) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}}
}

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// logsSet is a DaemonSet whose template, the second, requests half a CPU.
func logsSet() *daemonSet {
	return newDaemonSet(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "logs", UID: "set", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: requesting(cpus("500m"))}},
	})
}

// logsPod is a pod of it on a node, so many minutes old.
func logsPod(name string, minutes int, spec corev1.PodSpec) *fleet.Pod {
	return &fleet.Pod{
		Namespace: "ops", Name: name, UID: types.UID(name), Node: "n1", Created: fleet.SecondOf(time.Unix(100_000, 0).Add(-time.Duration(minutes) * time.Minute)),
		Labels: map[string]string{templateGeneration: "2"}, Owner: &metav1.OwnerReference{Kind: "DaemonSet", Name: "logs", UID: "set"}, Spec: &spec,
	}
}

func TestDaemonSetsAsAdmissionMakesThem(t *testing.T) {
	of := func(change func(*fleet.Pod)) *fleet.Pod {
		p := logsPod("b", 1, requesting(cpus("2")))
		change(p)
		return p
	}
	overhead := requesting(cpus("500m"))
	overhead.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	nothing, beyond := requesting(nil), requesting(cpus("1e9999999"))
	older := logsPod("a", 2, requesting(cpus("700m")))
	for _, tc := range []struct {
		name string
		pods []*fleet.Pod
		want corev1.ResourceList // the overhead
	}{
		{"without a pod", nil, nil},
		{"a LimitRange adds", []*fleet.Pod{older}, cpus("200m")},
		{"the overhead of a RuntimeClass", []*fleet.Pod{logsPod("b", 1, overhead)}, overhead.Overhead},
		{"another resource", []*fleet.Pod{logsPod("b", 1, requesting(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}))}, overhead.Overhead},
		{"no less than the template", []*fleet.Pod{logsPod("b", 1, requesting(cpus("100m")))}, nil},
		{"the least of the newest", []*fleet.Pod{older, of(func(p *fleet.Pod) {})}, cpus("200m")},
		{"of the newest alone", []*fleet.Pod{logsPod("c", 3, requesting(cpus("2"))), logsPod("d", 3, requesting(cpus("3"))), logsPod("e", 3, requesting(cpus("4"))), logsPod("f", 4, requesting(cpus("600m")))}, cpus("1500m")},
		{"of an earlier template", []*fleet.Pod{of(func(p *fleet.Pod) { p.Labels = map[string]string{templateGeneration: "1"} })}, nil},
		{"without a node", []*fleet.Pod{older, of(func(p *fleet.Pod) { p.Node = ""; p.Spec = &nothing })}, cpus("200m")},
		{"that ended", []*fleet.Pod{older, of(func(p *fleet.Pod) { p.Phase = fleet.PodFailed; p.Spec = &nothing })}, cpus("200m")},
		{"that goes", []*fleet.Pod{older, of(func(p *fleet.Pod) { p.Deleted = fleet.SecondOf(time.Unix(1, 0)); p.Spec = &nothing })}, cpus("200m")},
		{"of another DaemonSet", []*fleet.Pod{older, of(func(p *fleet.Pod) {
			p.Owner = &metav1.OwnerReference{Kind: "DaemonSet", Name: "logs", UID: "other"}
			p.Spec = &nothing
		})}, cpus("200m")},
		{"of another namespace", []*fleet.Pod{older, of(func(p *fleet.Pod) { p.Namespace = "tenant"; p.Spec = &nothing })}, cpus("200m")},
		{"of no DaemonSet", []*fleet.Pod{older, of(func(p *fleet.Pod) {
			p.Owner = &metav1.OwnerReference{Kind: "ReplicaSet", UID: "set"}
			p.Spec = &nothing
		})}, cpus("200m")},
		{"beyond counting", []*fleet.Pod{logsPod("b", 1, beyond)}, cpus("9223372036854775806500m")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s samples
			for _, p := range tc.pods {
				s.note(nil, nil, p)
			}
			got := s.admitted([]*daemonSet{logsSet()}, func() []*fleet.Pod { return tc.pods })
			if !fleet.Equal(got[0].Template.Spec.Overhead, tc.want) {
				t.Errorf("overhead %v, not %v", got[0].Template.Spec.Overhead, tc.want)
			}
			if diff := cmp.Diff(requesting(cpus("500m")).Containers, got[0].Template.Spec.Containers); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What comes off the wire has all that tells the pods of a DaemonSet, and of its template.
func TestDaemonSetsOffTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "logs", UID: "set", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}}}
		set.Spec.Template.Spec = requesting(cpus("500m"))
		o, client, _ := world(t, set, pod("logs-1", on("n1"), func(p *corev1.Pod) {
			p.Labels, p.Spec = map[string]string{templateGeneration: "2"}, requesting(cpus("2"))
			p.Spec.NodeName = "n1"
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "logs", UID: "set", Controller: ptr.To(true)}}
		}))
		for _, want := range []corev1.ResourceList{cpus("1500m"), nil} {
			s, _, err := o.Snapshot(time.Now(), fleet.State{})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.DaemonSets[0].Template.Spec.Overhead; !fleet.Equal(got, want) {
				t.Errorf("overhead %v, not %v", got, want)
			}
			if err := client.CoreV1().Pods("default").Delete(t.Context(), "logs-1", metav1.DeleteOptions{}); want != nil && err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}

// Whatever pods come, change and go, the DaemonSets are those that one makes who sees the pods that
// are left for the first time; and where none is another, the list is the same.
func TestDaemonSetsGoByThePodsThatAreThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s samples
		rows := []*daemonSet{logsSet()}
		pods := map[string]*fleet.Pod{}
		all := func() (list []*fleet.Pod) {
			for _, p := range pods {
				list = append(list, p)
			}
			return list
		}
		var before []fleet.DaemonSet
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			name := fmt.Sprint("p", rapid.IntRange(0, 6).Draw(t, "pod"))
			was := pods[name]
			var is *fleet.Pod
			if rapid.IntRange(0, 2).Draw(t, "gone") > 0 {
				is = logsPod(name, rapid.IntRange(0, 3).Draw(t, "minutes"), requesting(cpus(rapid.SampledFrom([]string{"0", "700m", "900m", "1"}).Draw(t, "cpus"))))
				is.Labels = map[string]string{templateGeneration: rapid.SampledFrom([]string{"1", "2", "2"}).Draw(t, "generation")}
				pods[name] = is
			} else {
				delete(pods, name)
			}
			if was == nil && is == nil {
				s.note(all, nil, nil) // a whole list
			} else {
				s.note(all, was, is)
			}
			got := s.admitted(rows, all)
			var fresh samples
			fresh.note(all, nil, nil)
			if want := fresh.admitted(rows, all); !fleet.Equal(want, got) {
				t.Fatalf("%v, not %v", got[0].Template.Spec.Overhead, want[0].Template.Spec.Overhead)
			}
			if same := s.admitted(rows, all); &same[0] != &got[0] {
				t.Fatal("nothing has changed, and the list is another one")
			}
			if before != nil && !fleet.Equal(before, got) && &before[0] == &got[0] {
				t.Fatal("the list that was handed out has changed")
			}
			before = slices.Clip(got)
		}
	})
}
