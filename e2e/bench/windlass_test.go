package bench

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
)

// BenchmarkLastPodGoneToComplete: Auto Scaling terminates an instance that our
// hook holds; the time from when its last pod is gone until the lifecycle
// action is completed.
func BenchmarkLastPodGoneToComplete(b *testing.B) {
	const samples = 10
	hook := fakeaws.Hook{Name: "windlass", Transition: "terminate", HeartbeatSeconds: 300, Default: "CONTINUE"}
	var spec world.Spec
	for i := range samples {
		spec.Cloud.Groups = append(spec.Cloud.Groups, groupOf(numbered("hook", i), "m5.large", 1, 1, hook))
	}
	t := start(b, spec)
	var took []time.Duration
	once(b, func() {
		for i := range samples {
			name := numbered("hook", i)
			instance := t.instance(name)
			t.deploy(name, 1)
			if err := t.AWS.Terminate(instance.ID, false); err != nil {
				b.Fatal(err)
			}
			completed := t.call("CompleteLifecycleAction", fakeaws.ForInstance(instance.ID)).Time
			t.await("the watch to see it", func() bool { return t.pods.count(name, gone) == 1 })
			took = append(took, completed.Sub(t.pods.last(name, gone)))
			t.undeploy(name)
		}
	})
	report(b, "gone-to-complete", took)
}

func unschedulable(s seen) time.Time { return s.unschedulable }
func ready(s seen) time.Time         { return s.ready }
func evicted(s seen) time.Time       { return s.evicted }
func gone(s seen) time.Time          { return s.gone }

func numbered(name string, i int) string { return fmt.Sprintf("%s-%02d", name, i) }

// pause lets some time go by that is part of how a sample is taken.
func (t *bed) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-t.ctx.Done():
	}
}

func podFor(group string) *corev1.Pod {
	template := templateFor(group)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: group, Labels: template.Labels}, Spec: template.Spec}
}

// templateFor is a small pod that only the nodes of a group take.
func templateFor(group string) corev1.PodTemplateSpec {
	grace := int64(1)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": group}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{labelGroup: group},
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "app", Image: "app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
				}},
			}},
		},
	}
}

// deploy runs so many pods on the nodes of a group and waits until all are
// Ready.
func (t *bed) deploy(group string, pods int) {
	t.b.Helper()
	replicas := int32(pods)
	template := templateFor(group)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
	}
	if _, err := t.Client.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.ctx, d, metav1.CreateOptions{}); err != nil {
		t.b.Fatal(err)
	}
	t.await(fmt.Sprintf("%d pods of %s", pods, group), func() bool { return t.pods.count(group, ready) == pods })
}

// undeploy takes the pods away that still wait for a place, so that they are
// no part of the next sample.
func (t *bed) undeploy(group string) {
	t.b.Helper()
	foreground := metav1.DeletePropagationForeground
	if err := t.Client.AppsV1().Deployments(metav1.NamespaceDefault).Delete(t.ctx, group, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.b.Fatal(err)
	}
}
