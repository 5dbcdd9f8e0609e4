package observe

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
)

// bufferServer serves CapacityBuffers when somebody has installed their definition.
type bufferServer struct {
	*dynamicfake.FakeDynamicClient
	core               *fake.Clientset
	missing, forbidden atomic.Bool
	// watch is the latest of buffers.
	watch watch.Interface
}

func newBufferServer(objects ...apiruntime.Object) *bufferServer {
	kinds := map[schema.GroupVersionResource]string{BufferResource: "CapacityBufferList", NodePoolResource: "NodePoolList"}
	s := &bufferServer{FakeDynamicClient: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(), kinds), core: fake.NewClientset(objects...)}
	s.PrependReactor("*", "capacitybuffers", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		switch {
		case s.forbidden.Load():
			return true, nil, apierrors.NewForbidden(BufferResource.GroupResource(), "", nil)
		case s.missing.Load():
			return true, nil, apierrors.NewNotFound(BufferResource.GroupResource(), "")
		}
		return false, nil, nil
	})
	s.PrependWatchReactor("capacitybuffers", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if s.missing.Load() {
			return true, nil, apierrors.NewNotFound(BufferResource.GroupResource(), "")
		}
		var err error
		s.watch, err = s.Tracker().Watch(BufferResource, a.GetNamespace())
		return true, s.watch, err
	})
	return s
}

// watched starts an Observer over the server.
func (s *bufferServer) watched(t *testing.T) *Observer {
	t.Helper()
	return watchOver(t, s.core, func(c *Config) { c.Custom = s })
}

// create makes a buffer with that spec.
func (s *bufferServer) create(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": BufferResource.GroupVersion().String(), "kind": "CapacityBuffer",
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": "uid-" + name}, "spec": spec,
	}}
	if _, err := s.Resource(BufferResource).Namespace("shop").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// calls counts the calls of a client for a resource.
func calls(actions []clienttesting.Action, verb, of string) int {
	n := 0
	for _, a := range actions {
		if a.Matches(verb, of) {
			n++
		}
	}
	return n
}

func buffersOf(t *testing.T, o *Observer) []fleet.Buffer {
	t.Helper()
	s, _ := snapshotOf(t, o)
	slices.SortFunc(s.Buffers, func(a, b fleet.Buffer) int { return strings.Compare(a.Name, b.Name) })
	return s.Buffers
}

func inShop(name string, generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: generation}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"document": "long"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
	}
}

func slimmed() *corev1.PodTemplateSpec {
	t := template("")
	return slimTemplate(&t)
}

// A buffer is seen with what it refers to: a PodTemplate with its generation, a scalable
// object with how many pods it has.
func TestBuffersAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := template("app:1")
		s := newBufferServer(
			&corev1.PodTemplate{ObjectMeta: inShop("spare", 3), Template: made},
			&appsv1.Deployment{ObjectMeta: inShop("web", 1), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(9)), Template: made}, Status: appsv1.DeploymentStatus{Replicas: 7}},
			&batchv1.Job{ObjectMeta: inShop("task", 1), Spec: batchv1.JobSpec{Parallelism: ptr.To(int32(4)), Template: made}},
			&appsv1.StatefulSet{ObjectMeta: inShop("db", 1), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2)), Template: made}},
			&appsv1.ReplicaSet{ObjectMeta: inShop("set", 1), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(5)), Template: made}},
			&corev1.ReplicationController{ObjectMeta: inShop("old", 1), Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To(int32(6)), Template: &made}},
		)
		refer := func(name, group, kind, to string) {
			s.create(t, name, map[string]any{"scalableRef": map[string]any{"apiGroup": group, "kind": kind, "name": to}, "percentage": int64(20)})
		}
		s.create(t, "a", map[string]any{"podTemplateRef": map[string]any{"name": "spare"}, "replicas": int64(2), "limits": map[string]any{"cpu": "3", "memory": int64(1024)}, "provisioningStrategy": fleet.ActiveCapacity})
		refer("b", "apps", "Deployment", "web")
		refer("c", "batch", "Job", "task")
		refer("d", "apps", "StatefulSet", "db")
		refer("e", "apps", "ReplicaSet", "set")
		refer("f", "core", "ReplicationController", "old")
		refer("g", "apps", "Deployment", "gone")
		o := s.watched(t)

		want := []fleet.Buffer{{
			Name: "a", Strategy: fleet.ActiveCapacity, Template: "spare", Replicas: ptr.To(int32(2)),
			Limits: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("1024")},
			Pods:   &fleet.BufferPods{Template: slimmed(), Generation: ptr.To(int64(3))},
		}}
		for _, x := range []struct {
			name, group, kind, to string
			has                   int32
		}{{"b", "apps", "Deployment", "web", 7}, {"c", "batch", "Job", "task", 4}, {"d", "apps", "StatefulSet", "db", 2}, {"e", "apps", "ReplicaSet", "set", 5}, {"f", "core", "ReplicationController", "old", 6}} {
			want = append(want, fleet.Buffer{
				Name: x.name, Scalable: &fleet.Scalable{Group: x.group, Kind: x.kind, Name: x.to}, Percentage: ptr.To(int32(20)),
				Pods: &fleet.BufferPods{Template: slimmed(), Replicas: ptr.To(x.has)},
			})
		}
		want = append(want, fleet.Buffer{Name: "g", Scalable: &fleet.Scalable{Group: "apps", Kind: "Deployment", Name: "gone"}, Percentage: ptr.To(int32(20))})
		for i := range want {
			want[i].Namespace, want[i].UID = "shop", types.UID("uid-"+want[i].Name)
		}
		got := buffersOf(t, o)
		for i := range got {
			got[i].Version = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// ResourceQuotas are watched while there are buffers: of what they bound, requests.
func TestQuotasAreSeenBesideBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("9"), "requests.memory": resource.MustParse("8Gi")},
			Used: corev1.ResourceList{"cpu": resource.MustParse("1"), "pods": resource.MustParse("3")},
		}
		s := newBufferServer(
			&corev1.PodTemplate{ObjectMeta: inShop("spare", 3), Template: template("app:1")},
			&corev1.ResourceQuota{ObjectMeta: inShop("small", 1), Status: status, Spec: corev1.ResourceQuotaSpec{
				Scopes:        []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort},
				ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"low"}}}},
			}},
		)
		o := s.watched(t)
		if got, _ := snapshotOf(t, o); len(got.Quotas) > 0 || calls(s.core.Actions(), "list", "resourcequotas") > 0 {
			t.Errorf("without buffers quotas are read: %v", got.Quotas)
		}
		s.create(t, "a", map[string]any{"podTemplateRef": map[string]any{"name": "spare"}, "replicas": int64(2)})
		nudgedAfter(t, o)
		synctest.Wait()
		got, _ := snapshotOf(t, o)
		want := []fleet.Quota{{
			Namespace: "shop", Name: "small",
			Hard: corev1.ResourceList{"cpu": resource.MustParse("4"), "requests.memory": resource.MustParse("8Gi")},
			Used: corev1.ResourceList{"cpu": resource.MustParse("1"), "requests.memory": {}},
			Scopes: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopeNotBestEffort, Operator: corev1.ScopeSelectorOpExists},
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"low"}},
			},
		}}
		if diff := cmp.Diff(want, got.Quotas); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// Whoever makes the first buffer halts nothing, though what bounds it cannot be listed: buffers are as they
// were, and that is said.
func TestBufferHaltsNothing(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		s := newBufferServer(&corev1.PodTemplate{ObjectMeta: inShop("spare", 3), Template: template("app:1")})
		var away atomic.Bool
		away.Store(true)
		s.core.PrependReactor("list", "resourcequotas", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return away.Load(), nil, errors.New("an object cannot be decrypted")
		})
		o := s.watched(t)
		snapshotOf(t, o)
		s.create(t, "a", map[string]any{"podTemplateRef": map[string]any{"name": "spare"}, "replicas": int64(2)})
		time.Sleep(time.Minute)
		synctest.Wait()
		got, _ := snapshotOf(t, o)
		if len(got.Buffers) > 0 || !slices.ContainsFunc(got.Faults, func(f string) bool { return strings.Contains(f, "capacity buffers are as they were") }) {
			t.Errorf("buffers %v, faults %q", got.Buffers, got.Faults)
		}
		away.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, _ := snapshotOf(t, o); len(got.Buffers) != 1 || len(got.Faults) > 0 {
			t.Errorf("buffers %v, faults %q", got.Buffers, got.Faults)
		}
	})
}

// A Deployment that grows is seen within ten seconds. Its template is the same then, as
// long as it does not change.
func TestScalablesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &appsv1.Deployment{ObjectMeta: inShop("web", 1), Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(2)), Template: template("app:1")}}
		s := newBufferServer(web)
		s.create(t, "b", map[string]any{"scalableRef": map[string]any{"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "percentage": int64(20)})
		o := s.watched(t)
		before := buffersOf(t, o)[0].Pods
		web = web.DeepCopy()
		web.Status.Replicas = 10
		if _, err := s.core.AppsV1().Deployments("shop").Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := nudgedAfter(t, o); after > scalablesEvery+later {
			t.Errorf("it took %s", after)
		}
		after := buffersOf(t, o)[0].Pods
		if *after.Replicas != 10 || after.Template != before.Template {
			t.Errorf("%d pods, and the template is the same: %t", *after.Replicas, after.Template == before.Template)
		}
	})
}

// However many objects a tenant's buffers refer to, few of them are read in one go, all of them in turn,
// and those of others as soon as without him.
func TestReadsOfScalablesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBufferServer()
		o := s.watched(t)
		w := o.spare
		var list []scalable
		for i := range 5 * mostScalablesOfNamespace {
			list = append(list, scalable{"greedy", fleet.Scalable{Group: "apps", Kind: "Deployment", Name: fmt.Sprintf("d%02d", i)}})
		}
		modest := scalable{"modest", fleet.Scalable{Group: "apps", Kind: "Deployment", Name: "d"}}
		list = append(list, modest)
		read := map[string]int{}
		for round := range 5 {
			s.core.ClearActions()
			w.readScalables(t.Context(), slices.Clone(list))
			n := 0
			for _, a := range s.core.Actions() {
				if a.Matches("get", "deployments") {
					n++
					read[a.GetNamespace()+"/"+a.(clienttesting.GetAction).GetName()]++
				}
			}
			if n != mostScalablesOfNamespace+1 || read["modest/d"] != round+1 {
				t.Fatalf("round %d: %d reads, of the other tenant's %d", round, n, read["modest/d"])
			}
			time.Sleep(time.Second)
		}
		if len(read) != len(list) {
			t.Errorf("%d of %d were read in five rounds", len(read), len(list))
		}
	})
}

// Where the definition is not installed, that costs a question a minute. It is seen
// when it comes, and forgotten when it goes.
func TestDefinitionOfBuffersComesAndGoes(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		s := newBufferServer(&corev1.PodTemplate{ObjectMeta: inShop("spare", 1), Template: template("app:1")})
		s.create(t, "a", map[string]any{"podTemplateRef": map[string]any{"name": "spare"}, "replicas": int64(2)})
		s.missing.Store(true)
		o := s.watched(t)
		if got := buffersOf(t, o); got != nil {
			t.Errorf("seen before there are any: %v", got)
		}
		s.ClearActions()
		time.Sleep(10 * time.Minute)
		if n := calls(s.Actions(), "list", "capacitybuffers"); n > 11 {
			t.Errorf("%d questions in ten minutes", n)
		}
		if n := calls(s.core.Actions(), "list", "podtemplates"); n > 0 {
			t.Errorf("PodTemplates listed %d times, and no buffer refers to one", n)
		}

		s.missing.Store(false)
		time.Sleep(buffersEvery + time.Second)
		synctest.Wait()
		if got := buffersOf(t, o); len(got) != 1 || got[0].Pods == nil {
			t.Errorf("after the definition came: %v", got)
		}

		s.missing.Store(true)
		s.watch.Stop() // as the API server does
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := buffersOf(t, o); got != nil {
			t.Errorf("after the definition went: %v", got)
		}
	})
}

// A buffer of another strategy is left to others. That is logged once of each, also of one
// that was there before the scaler; nothing is kept of those that are deleted, so that one
// which comes back is news.
func TestBuffersLeftToOthersAreToldOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		s := newBufferServer()
		theirs := map[string]any{"provisioningStrategy": "best-effort"}
		s.create(t, "before", theirs)
		watchOver(t, s.core, func(c *Config) { c.Custom, c.Logger = s, slog.New(slog.NewTextHandler(&told, nil)) })
		s.create(t, "after", theirs)
		s.create(t, "ours", map[string]any{"replicas": int64(2)})
		api := s.Resource(BufferResource).Namespace("shop")
		for range 3 {
			synctest.Wait()
			if err := api.Delete(t.Context(), "after", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			s.create(t, "after", theirs)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for name, times := range map[string]int{"before": 1, "after": 4, "ours": 0} {
			if n := strings.Count(told.String(), "left to others\" buffer=shop/"+name); n != times {
				t.Errorf("%d times told of %s, want %d\n%s", n, name, times, &told)
			}
		}
	})
}

// A limit that takes for ever to compute with, which the definition of buffers allows, stops nothing:
// its buffer is left to others, and the log names it.
func TestBufferWithALimitBeyondAllQuantities(t *testing.T) {
	for _, limit := range []string{"1e-999999999", "1e999999999", strings.Repeat("9", 65)} {
		synctest.Test(t, func(t *testing.T) {
			var told strings.Builder
			s := newBufferServer()
			o := watchOver(t, s.core, func(c *Config) { c.Custom, c.Logger = s, slog.New(slog.NewTextHandler(&told, nil)) })
			s.create(t, "bad", map[string]any{"replicas": int64(2), "limits": map[string]any{"memory": "1Gi", "cpu": limit}})
			s.create(t, "good", map[string]any{"replicas": int64(2)})
			if got := buffersOf(t, o); len(got) != 2 || got[0].Active() || len(got[0].Limits) > 0 || !got[1].Active() {
				t.Errorf("%s: %+v, want only the second to be ours", limit, got)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, want := range []string{`buffer=shop/bad strategy="(unreadable: spec.limits.cpu: \"` + limit[:11], "is beyond all quantities"} {
				if !strings.Contains(told.String(), want) {
					t.Errorf("the log has no %s:\n%s", want, &told)
				}
			}
		})
	}
}

// Without the right to see buffers all else goes on, with a fault.
func TestBuffersMayNotBeSeen(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		s := newBufferServer()
		s.forbidden.Store(true)
		o := s.watched(t)
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); err == nil {
			t.Error("a refusal is believed at once")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got, _ := snapshotOf(t, o)
		if !slices.ContainsFunc(got.Faults, func(f string) bool { return strings.Contains(f, "capacitybuffers") && strings.Contains(f, "no room") }) {
			t.Errorf("faults: %v", got.Faults)
		}
	})
}
