package observe

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/status/cas"
)

// leaseServer selects leases by their names, and answers that the accounts that are strong
// may change Nodes.
type leaseServer struct {
	*fake.Clientset
	asked     []string
	forbidden atomic.Bool
	// away: leases cannot be read; watches are those of them that were opened.
	away    atomic.Bool
	mu      sync.Mutex
	watches []watch.Interface
}

// leave ends all watches of leases, and lets nobody read them until it is called off.
func (s *leaseServer) leave(away bool) {
	s.away.Store(away)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

func newLeaseServer(strong []string, objects ...apiruntime.Object) *leaseServer {
	s := &leaseServer{Clientset: fake.NewClientset(objects...)}
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	s.PrependReactor("list", "leases", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		if s.away.Load() {
			return true, nil, errors.New("connection refused")
		}
		all, err := s.Tracker().List(leases, coordinationv1.SchemeGroupVersion.WithKind("Lease"), "")
		if err != nil {
			return true, nil, err
		}
		list := all.(*coordinationv1.LeaseList)
		list.Items = slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool {
			return !selects(a.(clienttesting.ListAction).GetListRestrictions().Fields, &l)
		})
		return true, list, nil
	})
	s.PrependWatchReactor("leases", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if s.away.Load() {
			return true, nil, errors.New("connection refused")
		}
		w, err := s.Tracker().Watch(leases, "")
		if err != nil {
			return true, nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches = append(s.watches, w)
		return true, watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
			return e, selects(a.(clienttesting.WatchAction).GetWatchRestrictions().Fields, e.Object.(*coordinationv1.Lease))
		}), nil
	})
	s.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		if s.forbidden.Load() {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no"))
		}
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		what := review.Spec.ResourceAttributes
		s.asked = append(s.asked, review.Spec.User+" "+what.Verb+" "+what.Resource)
		review.Status.Allowed = slices.Contains(strong, review.Spec.User)
		return true, review, nil
	})
	return s
}

func selects(by fields.Selector, l *coordinationv1.Lease) bool {
	return by.Matches(fields.Set{"metadata.name": l.Name, "metadata.namespace": l.Namespace})
}

func (s *leaseServer) renew(t *testing.T, l *coordinationv1.Lease) {
	t.Helper()
	l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(l.Spec.RenewTime.Add(2 * time.Second)))
	s.update(t, l)
}

func (s *leaseServer) update(t *testing.T, l *coordinationv1.Lease) {
	t.Helper()
	if _, err := s.CoordinationV1().Leases(l.Namespace).Update(t.Context(), l.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * autoscalersRest)
	synctest.Wait()
}

func leaseOf(namespace, name, holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(renewed.Add(-time.Hour).Truncate(time.Second))},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder), RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
	}
}

// chartPod is that of Cluster Autoscaler's chart with the release name ca.
func chartPod(namespace, name string) *corev1.Pod {
	return pod(name, on("n1"), func(p *corev1.Pod) {
		p.Namespace, p.Labels = namespace, map[string]string{contract.LabelAppName: "aws-cluster-autoscaler", "app.kubernetes.io/instance": "ca"}
		p.Spec.ServiceAccountName = "ca-aws-cluster-autoscaler"
	})
}

const chartAccount = "system:serviceaccount:money:ca-aws-cluster-autoscaler"

// signsOf are the autoscalers of a snapshot, in short.
func signsOf(t *testing.T, o *Observer) []string {
	t.Helper()
	s, _, err := o.Snapshot(time.Now(), fleet.State{})
	if err != nil {
		t.Fatal(err)
	}
	var short []string
	for _, a := range s.Autoscalers {
		text := a.String()
		if a.Powerless {
			text += " powerless"
		}
		if a.Younger {
			text += " younger"
		}
		short = append(short, text)
	}
	slices.Sort(short)
	return short
}

func wantSigns(t *testing.T, o *Observer, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, signsOf(t, o)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// Cluster Autoscaler as its chart installs it, in a namespace of its own, is alive while its
// lease is renewed, and a minute longer; one that gives its lease up is not, at once.
func TestClusterAutoscalerInItsOwnNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := leaseOf("money", contract.LeaseClusterAutoscaler, "ca-0", time.Now())
		s := newLeaseServer([]string{chartAccount}, lease, chartPod("money", "ca-0"))
		o := watchOver(t, s)
		const alive = "lease money/cluster-autoscaler, held by ca-0"
		wantSigns(t, o, "at first", alive)
		for range 60 {
			s.renew(t, lease)
		}
		wantSigns(t, o, "renewed for two minutes", alive)
		if want := []string{chartAccount + " update nodes"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked %v, want once %v", s.asked, want)
		}
		drain(o)
		if took := nudgedAfter(t, o); took > time.Minute+autoscalersEvery {
			t.Errorf("its end is told of after %s", took)
		}
		wantSigns(t, o, "renewed no more")

		s.renew(t, lease)
		wantSigns(t, o, "again", alive)
		lease.Spec.HolderIdentity = ptr.To("")
		s.update(t, lease)
		wantSigns(t, o, "given up")
	})
}

// What cannot be seen for a while has not ended: who was alive before counts until signs are seen
// again, and as long afterwards as ever. What was dead before is not raised.
func TestOutageEndsNoAutoscaler(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		lease := leaseOf("kube-system", contract.LeaseClusterAutoscaler, "ca-0", time.Now())
		dead := leaseOf("money", contract.LeaseClusterAutoscaler, "ca-1", time.Now())
		s := newLeaseServer([]string{chartAccount}, lease, dead, chartPod("money", "ca-1"))
		o := watchOver(t, s)
		for range 60 {
			s.renew(t, lease)
		}
		const alive = "lease kube-system/cluster-autoscaler, held by ca-0"
		wantSigns(t, o, "renewed for two minutes", alive)
		s.leave(true)
		time.Sleep(3 * time.Minute)
		wantSigns(t, o, "away", alive)
		s.leave(false)
		time.Sleep(2 * mostBackOffElse)
		wantSigns(t, o, "seen again", alive)
		s.renew(t, lease)
		time.Sleep(time.Minute + 2*autoscalersEvery)
		wantSigns(t, o, "renewed no more")
		s.leave(true)
		time.Sleep(3 * time.Minute)
		wantSigns(t, o, "dead before the second outage")
	})
}

// Whether a lease is alive is seen, not reckoned: clocks differ, and a lease that was left
// behind stops no scaler.
func TestLeasesByRenewalNotByClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := leaseOf("kube-system", contract.LeaseClusterAutoscaler, "ca-0", time.Now().Add(3*time.Hour))
		s := newLeaseServer(nil, ahead)
		o := watchOver(t, s)
		wantSigns(t, o, "not seen to be renewed")
		s.renew(t, ahead)
		wantSigns(t, o, "renewed, by a clock that is three hours ahead", "lease kube-system/cluster-autoscaler, held by ca-0")
		time.Sleep(time.Minute + autoscalersEvery)
		synctest.Wait()
		wantSigns(t, o, "renewed no more, with a date to come")
		if len(s.asked) != 0 {
			t.Errorf("asked %v; who writes to kube-system needs no proof", s.asked)
		}
	})
}

// A tenant renews leases in his namespace: no account there may change Nodes, whomever he
// names as the holder.
func TestTenantsLeaseHasNoPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeaseServer([]string{chartAccount},
			leaseOf("team-a", contract.LeaseClusterAutoscaler, "ca-0", time.Now()), chartPod("team-a", "mine"),
			leaseOf("team-b", contract.LeaseScaler, "nobody", time.Now()), chartPod("money", "ca-0"))
		o := watchOver(t, s)
		wantSigns(t, o, "tenants", "lease team-a/cluster-autoscaler, held by ca-0 powerless", "lease team-b/windlass-scaler, held by nobody powerless")
	})
}

// Many such tenants cost a bounded number of questions at a time, and hide no sign that was
// there before them.
func TestTenantsLeasesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := leaseOf("money", contract.LeaseClusterAutoscaler, "ca-0", time.Now())
		old.CreationTimestamp = metav1.NewTime(time.Now().Add(-24 * time.Hour))
		objects := []apiruntime.Object{old, chartPod("money", "ca-0")}
		for i := range 3 * maxQuestions {
			namespace := fmt.Sprintf("a-team-%d", i)
			objects = append(objects, leaseOf(namespace, contract.LeaseClusterAutoscaler, "ca-0", time.Now()), chartPod(namespace, "ca-0"))
		}
		s := newLeaseServer([]string{chartAccount}, objects...)
		w := New(Config{Client: s, Namespace: ours, Logger: quiet(), Groups: &groups{}}).otherAutoscalers
		for _, l := range w.o.watches {
			go l.run(t.Context())
		}
		synctest.Wait()
		if w.round(t.Context()) {
			t.Error("all of them were asked for at once")
		}
		if list, _ := w.latest(); len(s.asked) != maxQuestions || len(list) != maxQuestions || list[0].Namespace != "money" || list[0].Powerless {
			t.Errorf("%d questions, %d signs, the first %+v", len(s.asked), len(list), list[0])
		}
		for !w.round(t.Context()) {
		}
		if list, known := w.latest(); len(list) != 3*maxQuestions+1 || !known || len(s.asked) != 3*maxQuestions+1 {
			t.Errorf("%d signs after %d questions, known %v", len(list), len(s.asked), known)
		}
		for q, p := range w.powers {
			w.powers[q] = power{p.may, p.at.Add(-powersEvery)}
		}
		for range 3 {
			if !w.round(t.Context()) {
				t.Error("what was answered is taken for not answered")
			}
			if list, _ := w.latest(); len(list) != 3*maxQuestions+1 {
				t.Errorf("%d signs while answers are asked for anew", len(list))
			}
		}
		if want := 6*maxQuestions + 1; len(s.asked) != want {
			t.Errorf("%d questions, want %d: all but one anew, so many at a time", len(s.asked), want)
		}
		clear(w.powers)
		if w.round(t.Context()) {
			t.Error("all of them were asked for at once")
		}
		if list, _ := w.latest(); len(list) != 3*maxQuestions+1 || list[0].Powerless || !list[1].Powerless {
			t.Errorf("%d signs, the first %+v", len(list), list[0])
		}
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Without the right to ask, whoever renews a sign is believed, and a fault names the right.
func TestSignsAreBelievedWithoutTheRightToAsk(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		lease := leaseOf("money", contract.LeaseClusterAutoscaler, "ca-0", time.Now())
		s := newLeaseServer(nil, lease, chartPod("money", "ca-0"))
		s.forbidden.Store(true)
		o := watchOver(t, s)
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); !errors.Is(err, ErrNotYet) {
			t.Errorf("decided by a refusal that has not lasted: %v", err)
		}
		time.Sleep(2 * refusalLasts)
		synctest.Wait()
		wantSigns(t, o, "refused", "lease money/cluster-autoscaler, held by ca-0")
		snapshot, _ := snapshotOf(t, o)
		if faults := strings.Join(snapshot.Faults, "; "); !strings.Contains(faults, "subjectaccessreviews") {
			t.Errorf("faults %q", faults)
		}
	})
}

// Without the right to see leases nothing is decided until the refusal has lasted; then a
// fault says what is not seen.
func TestLeasesMayNotBeSeen(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("no"))
		})
		o := watchOver(t, client, func(c *Config) { c.AutoscalerLeases = []string{"autoscaler"} })
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); !errors.Is(err, ErrNotYet) {
			t.Errorf("a refusal is believed at once: %v", err)
		}
		time.Sleep(10 * refusalLasts)
		synctest.Wait()
		snapshot, _ := snapshotOf(t, o)
		for _, name := range []string{"cluster-autoscaler", "windlass-scaler", "autoscaler"} {
			if !slices.ContainsFunc(snapshot.Faults, func(f string) bool { return strings.Contains(f, "leases named "+name+":") }) {
				t.Errorf("no fault names %s: %v", name, snapshot.Faults)
			}
		}
	})
}

// A second Windlass is recognised by its namespace; of two the one with the older lease
// goes on. That ours is renewed tells us nothing; nothing is decided until it is known how old it is.
func TestSecondWindlass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := leaseOf(ours, contract.LeaseScaler, "windlass-scaler-0", time.Now())
		older, younger := leaseOf("one", contract.LeaseScaler, "windlass-scaler-1", time.Now()), leaseOf("two", contract.LeaseScaler, "windlass-scaler-2", time.Now())
		older.CreationTimestamp = metav1.NewTime(us.CreationTimestamp.Add(-time.Second))
		younger.CreationTimestamp = metav1.NewTime(us.CreationTimestamp.Add(time.Second))
		running := func(namespace, name string) *corev1.Pod {
			return pod(name, on("n1"), func(p *corev1.Pod) { p.Namespace, p.Spec.ServiceAccountName = namespace, contract.AppScaler })
		}
		s := newLeaseServer([]string{"system:serviceaccount:one:windlass-scaler", "system:serviceaccount:two:windlass-scaler"},
			us, older, younger, running("one", "windlass-scaler-1"), running("two", "windlass-scaler-2"))
		var refuse atomic.Bool
		refuse.Store(true)
		read := 0
		s.PrependReactor("list", "leases", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
			if a.GetNamespace() != ours {
				return false, nil, nil
			}
			read++
			if refuse.Load() {
				return true, nil, errors.New("connection refused")
			}
			return false, nil, nil
		})
		o := watchOver(t, s)
		time.Sleep(3 * autoscalersEvery)
		synctest.Wait()
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); !errors.Is(err, ErrNotYet) {
			t.Errorf("ours cannot be read: %v", err)
		}

		refuse.Store(false)
		read = 0
		for range 5 {
			s.renew(t, us)
		}
		wantSigns(t, o, "two beside us", "lease one/windlass-scaler, held by windlass-scaler-1", "lease two/windlass-scaler, held by windlass-scaler-2 younger")
		if read != 1 {
			t.Errorf("our own lease was read %d times", read)
		}

		refuse.Store(true)
		time.Sleep(2 * powersEvery)
		s.renew(t, older)
		s.renew(t, younger)
		wantSigns(t, o, "ours cannot be read any more", "lease one/windlass-scaler, held by windlass-scaler-1", "lease two/windlass-scaler, held by windlass-scaler-2 younger")
	})
}

// A status that is renewed is a sign where no lease is held; one that a Windlass wrote is
// none. Of ConfigMaps nothing but metadata are asked for.
func TestStatusIsASign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		status := func(namespace string, at time.Time, own bool) *metav1.PartialObjectMetadata {
			text := at.Format(cas.TimeFormat)
			o := &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.ConfigMapClusterAutoscalerStatus, Annotations: map[string]string{contract.AnnotationLastUpdated: text}},
			}
			if own {
				o.Annotations[contract.AnnotationStatusWritten] = text
			}
			return o
		}
		meta := metadatafake.NewSimpleMetadataClient(scheme, status("money", time.Now(), false), status(ours, time.Now(), true))
		s := newLeaseServer([]string{chartAccount}, chartPod("money", "ca-0"))
		o := watchOver(t, s, func(c *Config) { c.Metadata = meta })
		const alive = "config map money/cluster-autoscaler-status"
		wantSigns(t, o, "at first", alive)

		// In our own namespace somebody else writes ours.
		resource := corev1.SchemeGroupVersion.WithResource("configmaps")
		theirs := status(ours, time.Now().Add(time.Second), false)
		theirs.Annotations[contract.AnnotationStatusWritten] = "before"
		if err := meta.Tracker().Update(resource, theirs, ours); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * autoscalersRest)
		synctest.Wait()
		wantSigns(t, o, "ours is written by somebody", alive, "config map "+ours+"/cluster-autoscaler-status powerless")
		time.Sleep(2*time.Minute + autoscalersEvery)
		synctest.Wait()
		wantSigns(t, o, "renewed no more")
	})
}

// What a status that is not understood, or of one that does not run yet, names is nothing.
func TestGroupsNamed(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil,
		"Cluster-autoscaler status at 2023-01-01 10:00:00\nCluster-wide:\n  Health: Healthy": nil,
		"autoscalerStatus: Running\n":                                         nil,
		"autoscalerStatus: Initializing\nnodeGroups: [{name: web}]":           nil,
		"nodeGroups: [{name: web}]":                                           nil,
		"autoscalerStatus: Running\nnodeGroups: [{name: web}, {name: batch}]": {"batch", "web"},
		"autoscalerStatus: Running\nnodeGroups: [{name: web}, {health: {}}]":  nil,
		"autoscalerStatus: Running\nnodeGroups: [{name: web}":                 nil,
		"autoscalerStatus: Running\nnodeGroups: [{name: web}, {name: web}]\n": {"web"},
	} {
		if got := groupsNamed(text); !slices.Equal(got, want) {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

// Node Termination Handlers are known by their pods, with the queue that they read.
func TestTerminationHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := func(name, kind, owner string, with func(*corev1.Container)) *corev1.Pod {
			return pod(name, on("n1"), func(p *corev1.Pod) {
				p.Labels = map[string]string{contract.LabelAppName: contract.AppTerminationHandler}
				p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: ptr.To(true)}}
				with(&p.Spec.Containers[0])
			})
		}
		o, client, _ := world(t,
			handler("a", "DaemonSet", "nth", func(*corev1.Container) {}), handler("b", "DaemonSet", "nth", func(*corev1.Container) {}),
			handler("c", "ReplicaSet", "nth-queue-5d8f", func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "SECRET", Value: "x"}, {Name: "QUEUE_URL", Value: "https://q/1"}}
			}),
			handler("d", "ReplicaSet", "nth-args-5d8f", func(c *corev1.Container) { c.Args = []string{"--node-name=n1", "--queue-url", "https://q/2"} }),
			pod("other", on("n1"), func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "QUEUE_URL", Value: "https://q/3"}}
			}),
		)
		s, _ := snapshotOf(t, o)
		want := []fleet.TerminationHandler{
			{Namespace: "default", Owner: "daemon set nth"},
			{Namespace: "default", Owner: "deployment nth-args", Queue: "https://q/2"},
			{Namespace: "default", Owner: "deployment nth-queue", Queue: "https://q/1"},
		}
		if diff := cmp.Diff(want, s.TerminationHandlers); diff != "" {
			t.Error(diff)
		}
		for _, p := range s.Pods {
			for _, e := range p.Spec.Containers[0].Env {
				if e.Name != "QUEUE_URL" || p.Name == "other" {
					t.Errorf("%s keeps its environment: %v", p.Name, e)
				}
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if err := client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s, _ := snapshotOf(t, o); len(s.TerminationHandlers) != 0 {
			t.Errorf("still there: %v", s.TerminationHandlers)
		}
	})
}

// NodePools are read where their definition is installed; labels of their nodes count as
// requirements.
func TestNodePools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := map[schema.GroupVersionResource]string{NodePoolResource: "NodePoolList", BufferResource: "CapacityBufferList"}
		custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(), kinds)
		var missing atomic.Bool
		missing.Store(true)
		custom.PrependReactor("list", "nodepools", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return missing.Load(), nil, apierrors.NewNotFound(NodePoolResource.GroupResource(), "")
		})
		o := watchOver(t, fake.NewClientset(), func(c *Config) { c.Custom = custom })
		if s, _ := snapshotOf(t, o); s.NodePools != nil {
			t.Errorf("node pools %v", s.NodePools)
		}
		pool := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "default"},
			"spec": map[string]any{"weight": int64(1), "template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"team": "a"}},
				"spec": map[string]any{
					"taints":       []any{map[string]any{"key": "gpu", "effect": "NoSchedule"}},
					"requirements": []any{map[string]any{"key": "kubernetes.io/arch", "operator": "In", "values": []any{"arm64"}, "minValues": int64(1)}},
				},
			}},
		}}
		if _, err := custom.Resource(NodePoolResource).Create(t.Context(), pool, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		missing.Store(false)
		time.Sleep(nodePoolsEvery)
		synctest.Wait()
		s, _ := snapshotOf(t, o)
		want := []fleet.NodePool{{
			Name: "default", Taints: []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}},
			Requirements: []corev1.NodeSelectorRequirement{
				{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}},
				{Key: "team", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
			},
		}}
		if diff := cmp.Diff(want, s.NodePools); diff != "" {
			t.Error(diff)
		}
	})
}
