package observe

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

func controllerMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")}
}

func ownersOf(t *testing.T, o *Observer) (map[types.UID]fleet.Owner, uint64) {
	t.Helper()
	s, version, err := o.Snapshot(time.Now(), fleet.State{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Owners, version
}

// Of controllers it is seen that they are there and how many replicas they want. How many
// they have got is no news.
func TestOwnersAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &appsv1.ReplicaSet{ObjectMeta: controllerMeta("set"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(3))}}
		client := fake.NewClientset(set, &corev1.ReplicationController{ObjectMeta: controllerMeta("old")})
		o := watchOver(t, client, func(c *Config) { c.Owners = true })
		got, before := ownersOf(t, o)
		if diff := cmp.Diff(map[types.UID]fleet.Owner{"set-uid": {Replicas: 3}, "old-uid": {Replicas: 1}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}

		update := func(change func()) {
			set = set.DeepCopy()
			change()
			if _, err := client.AppsV1().ReplicaSets("default").Update(t.Context(), set, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		update(func() { set.Status.Replicas = 3 })
		if _, version := ownersOf(t, o); version != before {
			t.Error("how many pods a set has is news")
		}
		update(func() { set.Spec.Replicas = ptr.To(int32(1)) })
		if got, version := ownersOf(t, o); got["set-uid"].Replicas != 1 || version == before {
			t.Errorf("a set that wants one: %v, version %d after %d", got, version, before)
		}
		if err := client.AppsV1().ReplicaSets("default").Delete(t.Context(), "set", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, _ := ownersOf(t, o); len(got) != 1 {
			t.Errorf("after it has gone: %v", got)
		}
	})
}

// Without a rule that asks, there is no watch; without the right, no owner counts as deleted.
func TestOwnersAreNotSeen(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		asked := false
		client := fake.NewClientset()
		client.PrependReactor("list", "replicasets", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			asked = true
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "replicasets"}, "", errors.New("no rule"))
		})
		if got, _ := ownersOf(t, watchOver(t, client)); got != nil || asked {
			t.Errorf("without the rule: %v, asked %t", got, asked)
		}
		o := watchOver(t, client, func(c *Config) { c.Owners = true })
		time.Sleep(time.Minute)
		synctest.Wait()
		s, _, err := o.Snapshot(time.Now(), fleet.State{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Owners != nil || len(s.Faults) != 1 {
			t.Errorf("without the right: %v, faults %q", s.Owners, s.Faults)
		}
	})
}
