package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func snapshotOf(t *testing.T, o *Observer) (fleet.Snapshot, uint64) {
	t.Helper()
	s, version, err := o.Snapshot(time.Now(), fleet.State{})
	if err != nil {
		t.Fatal(err)
	}
	return s, version
}

// Of volumes and devices comes what kube-scheduler goes by, and nothing else.
func TestVolumesAndDevicesAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tell := map[string]string{"pv.kubernetes.io/bind-completed": "yes", "document": "long"}
		owner := []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}
		client := fake.NewClientset(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-blue"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Annotations: tell, Labels: tell, OwnerReferences: owner},
				Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}}},
			&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}, Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "vol-1", VolumeAttributes: tell}}}},
			&storagev1.StorageClass{ObjectMeta: named("gp3"), Provisioner: "ebs", Parameters: tell},
			&storagev1.CSIDriver{ObjectMeta: named("ebs")},
			&storagev1.CSINode{ObjectMeta: named("n1"), Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "ebs", NodeID: "i-1", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](25)}}}}},
			&storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c"}, StorageClassName: "gp3"},
			&storagev1.VolumeAttachment{ObjectMeta: named("va"), Spec: storagev1.VolumeAttachmentSpec{Attacher: "ebs", NodeName: "n1"}},
			&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gpu", OwnerReferences: owner}},
			&resourcev1.ResourceSlice{ObjectMeta: named("slice")},
			&resourcev1.DeviceClass{ObjectMeta: named("gpu")},
		)
		client.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
		s, _ := snapshotOf(t, watchOver(t, client))

		if diff := cmp.Diff(map[string]map[string]string{"kube-system": nil, "shop": {"team": "a"}}, s.Namespaces); diff != "" {
			t.Errorf("namespaces (-want +got):\n%s", diff)
		}
		if s.Cluster != "uid-blue" {
			t.Errorf("cluster %q", s.Cluster)
		}
		x, d := s.Storage, s.Devices
		for i, n := range []int{len(x.Claims), len(x.Volumes), len(x.Classes), len(x.Drivers), len(x.Nodes), len(x.Capacities), len(x.Attachments), len(d.Claims), len(d.Slices), len(d.Classes)} {
			if n != 1 {
				t.Fatalf("%d of list %d", n, i)
			}
		}
		claim := x.Claims[0]
		if want := map[string]string{"pv.kubernetes.io/bind-completed": "yes"}; !cmp.Equal(want, claim.Annotations) || claim.Labels != nil || len(claim.OwnerReferences) != 1 ||
			!cmp.Equal(claim.Status, corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}) || claim.Spec.VolumeName != "pv-1" {
			t.Errorf("claim %+v", claim)
		}
		if v := x.Volumes[0]; v.Labels[corev1.LabelTopologyZone] != "a" || !cmp.Equal(v.Spec.CSI, &corev1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "vol-1"}) {
			t.Errorf("volume %+v", v)
		}
		if driver := x.Nodes[0].Spec.Drivers[0]; driver.NodeID != "" || *driver.Allocatable.Count != 25 {
			t.Errorf("driver on the node %+v", driver)
		}
		if x.Classes[0].Parameters != nil || len(d.Claims[0].OwnerReferences) != 1 {
			t.Errorf("class %+v, resource claim %+v", x.Classes[0], d.Claims[0])
		}
	})
}

// served is an API server of a version that can be changed.
type served struct {
	kubernetes.Interface
	*discoveryfake.FakeDiscovery
	version atomic.Pointer[string]
	devices atomic.Bool
}

// IsWatchListSemanticsUnSupported is what the fake declares of itself.
func (s *served) IsWatchListSemanticsUnSupported() bool { return true }

func (s *served) Discovery() discovery.DiscoveryInterface { return s }
func (s *served) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: *s.version.Load()}, nil
}
func (s *served) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if !s.devices.Load() {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	return &metav1.APIResourceList{}, nil
}

// An upgrade of the server is seen within ten minutes, and what it serves since
// then; a server that does not know of devices is no error.
func TestUpgradeIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&resourcev1.DeviceClass{ObjectMeta: named("gpu")})
		api := &served{Interface: client, FakeDiscovery: client.Discovery().(*discoveryfake.FakeDiscovery)}
		api.version.Store(ptr.To("v1.33.4"))
		o := watchOver(t, api)
		s, before := snapshotOf(t, o)
		if s.Kubernetes != "v1.33.4" || len(s.Devices.Classes) != 0 || len(s.Faults) != 0 {
			t.Errorf("version %q, devices %v, faults %q", s.Kubernetes, s.Devices, s.Faults)
		}
		api.version.Store(ptr.To("v1.34.1"))
		api.devices.Store(true)
		time.Sleep(serverEvery + time.Second)
		s, after := snapshotOf(t, o)
		if s.Kubernetes != "v1.34.1" || len(s.Devices.Classes) != 1 || after == before {
			t.Errorf("version %q, devices %v; change %d to %d", s.Kubernetes, s.Devices, before, after)
		}
		api.version.Store(ptr.To("v1.33.5"))
		api.devices.Store(false)
		o.report(errors.New("connection refused")) // an API server that went away may be another one
		time.Sleep(2 * time.Second)
		if s, _ = snapshotOf(t, o); s.Kubernetes != "v1.33.5" || len(s.Devices.Classes) != 0 {
			t.Errorf("version %q, devices %v", s.Kubernetes, s.Devices)
		}
	})
}

// withoutErrorHandlers takes out what client-go does about errors: one of its
// handlers sleeps by the clock outside of the bubble, which is decades ahead.
func withoutErrorHandlers(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// Without the right to see volumes the scaler works on, with a fault; without
// the right to see nodes it waits.
func TestMissingRights(t *testing.T) {
	withoutErrorHandlers(t)
	refuse := func(client *fake.Clientset, resource string, yes *atomic.Bool) {
		no := func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return yes.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
		}
		client.PrependReactor("list", resource, no)
		client.PrependWatchReactor(resource, func(a clienttesting.Action) (bool, watch.Interface, error) {
			handled, _, err := no(a)
			return handled, nil, err
		})
	}
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}})
		var refused atomic.Bool
		refused.Store(true)
		refuse(client, "persistentvolumeclaims", &refused)
		var troubles atomic.Int32
		o := watchOver(t, client, func(c *Config) {
			c.Report = func(err error) {
				if err != nil {
					troubles.Add(1)
				}
			}
		})
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); !errors.Is(err, ErrNotYet) || !strings.Contains(fmt.Sprint(err), "persistentvolumeclaims") {
			t.Errorf("a refusal is believed at once: %v", err)
		}
		for {
			if _, _, err := o.Snapshot(time.Now(), fleet.State{}); err == nil {
				break
			}
			nudgedAfter(t, o) // it wakes whoever waits
		}
		s, _ := snapshotOf(t, o)
		if len(s.Faults) != 1 || !strings.Contains(s.Faults[0], "persistentvolumeclaims") || !strings.Contains(s.Faults[0], withoutVolumes) {
			t.Errorf("faults %q", s.Faults)
		}
		if n := troubles.Load(); n != 0 {
			t.Errorf("%d troubles with a server that is well", n)
		}
		refused.Store(false)
		time.Sleep(2 * mostBackOffElse)
		if s, _ = snapshotOf(t, o); len(s.Faults) != 0 || len(s.Storage.Claims) != 1 {
			t.Errorf("after the right was given: faults %q, %d claims", s.Faults, len(s.Storage.Claims))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var refused atomic.Bool
		refused.Store(true)
		refuse(client, "nodes", &refused)
		o := watchOver(t, client)
		time.Sleep(time.Minute)
		if _, _, err := o.Snapshot(time.Now(), fleet.State{}); !errors.Is(err, ErrNotYet) || !strings.Contains(fmt.Sprint(err), "nodes") {
			t.Errorf("error %v", err)
		}
	})
}

// What is reported is whether all that is vital is seen: neither a watch that works makes up for one that
// does not, nor does one that is not vital count.
func TestReportIsOfAllThatIsVital(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var broken atomic.Pointer[string]
		fails := func(a clienttesting.Action) bool {
			is := broken.Load()
			return is != nil && *is == a.GetResource().Resource
		}
		client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, apiruntime.Object, error) {
			return fails(a), nil, errors.New("internal error")
		})
		var last atomic.Pointer[error]
		o := watchOver(t, client, func(c *Config) { c.Report = func(err error) { last.Store(&err) } })
		for _, what := range []string{"persistentvolumeclaims", "pods"} {
			broken.Store(&what)
			for _, w := range o.watches {
				if w.what == what {
					go w.run(t.Context()) // once more, as after its watch has ended
				}
			}
			time.Sleep(time.Second)
			o.outage.heard("nodes", nil) // which works
			o.tellHealth()
			if err := *last.Load(); (err == nil) != (what != "pods") {
				t.Errorf("%s are not seen, and what is reported is %v", what, err)
			}
		}
		broken.Store(nil)
		time.Sleep(time.Minute)
		if err := *last.Load(); err != nil {
			t.Errorf("all is well, and what is reported is %v", err)
		}
	})
}

// A version counts what a decision can see, and nothing else; what has not
// changed is the same value as before.
func TestVersionsCountChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, client, read := world(t, &corev1.Node{ObjectMeta: named("n1")}, pod("a", on("n1")), pod("b", on("n1")))
		s, first := snapshotOf(t, o)

		read.list = slices.Clone(read.list)
		touched := pod("a", on("n1"), func(p *corev1.Pod) { p.Annotations = map[string]string{"document": "long"} })
		update := func(p *corev1.Pod) {
			t.Helper()
			if _, err := client.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		update(touched)
		same, second := snapshotOf(t, o)
		if second != first || &same.Pods[0] != &s.Pods[0] || &same.Nodes[0] != &s.Nodes[0] {
			t.Errorf("nothing changed, and the version went from %d to %d", first, second)
		}

		touched.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		update(touched)
		other, third := snapshotOf(t, o)
		if third == second {
			t.Error("a change was not counted")
		}
		for _, p := range other.Pods {
			if kept := slices.Contains(s.Pods, p); kept != (p.Name == "b") {
				t.Errorf("pod %s is the same value: %t", p.Name, kept)
			}
		}

		read.list = []fleet.Group{{Name: "web", Desired: 1}}
		if _, fourth := snapshotOf(t, o); fourth == third {
			t.Error("another reading of the groups was not counted")
		}
	})
}

// While a vital watch is broken, and from then on, the snapshot has the outage: silence of
// others in that time means nothing.
func TestOutageIsSeen(t *testing.T) {
	withoutErrorHandlers(t)
	synctest.Test(t, func(t *testing.T) {
		well, _, _ := world(t)
		if s, _ := snapshotOf(t, well); !s.Back().IsZero() {
			t.Errorf("back at %s, and nothing has been away", s.Back())
		}

		client, away := fake.NewClientset(), atomic.Bool{}
		away.Store(true)
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
			return away.Load(), nil, errors.New("connection refused")
		})
		o := watchOver(t, client)
		time.Sleep(time.Minute)
		away.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		s, _ := snapshotOf(t, o)
		if ago := s.Now.Sub(s.Back()); ago < time.Minute-2*mostBackOff || ago > time.Minute {
			t.Errorf("the outage is said to be over for %s, want a minute less a pause", ago)
		}
		if len(s.Outages) != 1 || !s.Outages[0].From.IsZero() {
			t.Errorf("outages are %v, want one of which nobody knows when it began", s.Outages)
		}

		began := time.Now()
		o.outage.heard("nodes", errors.New("connection refused"))
		time.Sleep(time.Minute)
		if s, _ := snapshotOf(t, o); len(s.Outages) != 2 || !s.Outages[1].From.Equal(began) {
			t.Errorf("outages are %v, want two, the latter since %s", s.Outages, began)
		}
		if s, _ := snapshotOf(t, o); len(s.Faults) != 1 || !strings.Contains(s.Faults[0], "nodes are as they were at ") || !strings.Contains(s.Faults[0], "connection refused") {
			t.Errorf("faults are %q", s.Faults)
		}
		o.outage.heard("nodes", nil)
		o.outage.heard("pods", errors.New("the server restarts"))
		if s, _ := snapshotOf(t, o); len(s.Faults) > 0 {
			t.Errorf("faults of an outage that has just begun: %q", s.Faults)
		}
		o.outage.heard("pods", nil)
		o.outage.heard("nodes", errors.New("connection refused"))
		if s, _ := snapshotOf(t, o); !s.Back().Equal(s.Now) {
			t.Errorf("in an outage it was over at %s; now is %s", s.Back(), s.Now)
		}
	})
}

// A list that is asked for again and does not come is an outage, since it was asked for. One that is
// slow is none, nor is the first, before which nothing is known.
func TestListThatDoesNotComeIsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outage{now: time.Now}
		o.asks("pods")
		time.Sleep(time.Minute)
		if got := o.latest(time.Now()); len(got) > 0 {
			t.Errorf("before the first list there is an outage: %v", got)
		}
		o.listed("pods")
		o.asks("pods")
		o.heard("pods", nil) // the answer begins
		time.Sleep(listWithin)
		o.asks("pods")
		if got := o.latest(time.Now()); len(got) > 0 {
			t.Errorf("a slow list is an outage: %v", got)
		}
		asked := time.Now().Add(-listWithin)
		time.Sleep(time.Second)
		if got := o.latest(time.Now()); len(got) != 1 || !got[0].From.Equal(asked) || !got[0].Until.Equal(time.Now()) {
			t.Errorf("outages are %v, want one since %s", got, asked)
		}
		time.Sleep(time.Minute)
		if got := o.fault(time.Now()); !strings.Contains(got, "pods are as they were at ") || !strings.Contains(got, "does not come") {
			t.Errorf("the fault is %q", got)
		}
		o.listed("pods")
		over := time.Now()
		time.Sleep(time.Minute)
		if got := o.latest(time.Now()); len(got) != 1 || !got[0].Until.Equal(over) || o.fault(time.Now()) != "" {
			t.Errorf("outages are %v, want one until %s, and no fault: %q", got, over, o.fault(time.Now()))
		}
	})
}

// A broken watch lists everything again, which is no news if all is as before.
func TestListAgainIsNoNews(t *testing.T) {
	told := 0
	node := func(n *corev1.Node) *fleet.Node { row := fleet.NodeFrom(n); return &row }
	table := newTable(node, nodeName, differ[fleet.Node], func(_, _ *fleet.Node) { told++ })
	list := func(labels ...string) []any {
		var out []any
		for i, label := range labels {
			out = append(out, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"l": label}}})
		}
		return out
	}
	for _, step := range []struct {
		list []any
		want int // signalled so far
		kept int // rows that are the same value
	}{
		{list("a", "b"), 1, 0},
		{list("a", "b"), 1, 2},
		{list("a", "c"), 2, 1},
		{list("a"), 3, 1},
		{nil, 4, 0},
		{nil, 4, 0},
	} {
		before := table.snapshot()
		if err := table.Replace(step.list, ""); err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, row := range table.snapshot() {
			if slices.Contains(before, row) {
				kept++
			}
		}
		if told != step.want || kept != step.kept {
			t.Errorf("told %d times, want %d; %d rows kept, want %d", told, step.want, kept, step.kept)
		}
	}
}

// While a resize in place is under way, or after it was refused, kube-scheduler
// counts by what the kubelet reports.
func TestAllocated(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	for _, c := range []struct {
		name                      string
		spec, allocated, actuated string
		infeasible                bool
		want                      string
	}{
		{"at rest", "1", "1", "1", false, ""},
		{"going up", "2", "1", "1", false, ""},
		{"going down", "1", "2", "2", false, "2"},
		{"down, allocated, not done", "1", "1", "2", false, "2"},
		{"up, refused", "4", "1", "1", true, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod("a", on("n1"), func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = cpu(c.spec)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: cpu(c.allocated), Resources: &corev1.ResourceRequirements{Requests: cpu(c.actuated)}}}
				if c.infeasible {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
				}
			})
			slimPod(p)
			got := (&Observer{share: newSharer()}).pod(p).Allocated()
			var want corev1.ResourceList
			if c.want != "" {
				want = cpu(c.want)
			}
			if !fleet.Equal(want, got) {
				t.Errorf("counted %v, want %v", got, want)
			}
			if kept := len(p.Status.ContainerStatuses) > 0; kept != (c.want != "") {
				t.Errorf("statuses of containers are kept: %t", kept)
			}
		})
	}
}

// Pods of one owner share what they have in common. A DaemonSet's pods share
// their spec too, once each is where its affinity sends it; other pods keep such
// an affinity, for another node is looked for when they must leave.
func TestPodsOfOneOwnerShare(t *testing.T) {
	pinned := func(node, kind string) *fleet.Pod {
		p := pod("p-"+node, on(node), func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "log"}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "log", Controller: ptr.To(true)}}
			p.Spec.Containers[0].Env = nil
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
		})
		slimPod(p)
		converted := fleet.PodFrom(p)
		return &converted
	}
	s := newSharer()
	for kind, wantShared := range map[string]bool{"DaemonSet": true, "ReplicaSet": false} {
		a, b := pinned("n1", kind), pinned("n2", kind)
		s.pod(a)
		s.pod(b)
		if a.Owner != b.Owner {
			t.Errorf("%s: owners are kept twice", kind)
		}
		a.Labels["probe"] = kind // the one map of both
		if b.Labels["probe"] != kind {
			t.Errorf("%s: labels are kept twice", kind)
		}
		if (a.Spec == b.Spec) != wantShared {
			t.Errorf("%s: one spec for both: %t", kind, a.Spec == b.Spec)
		}
	}
}

// The annotations that decisions read reach them.
func TestAnnotationsOfPodsAreKept(t *testing.T) {
	for _, key := range []string{contract.AnnotationPodScaleUpDelay, contract.AnnotationAllOrNothing} {
		p := pod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{key: "1"} })
		slimPod(p)
		if p.Annotations[key] != "1" {
			t.Errorf("%s is dropped", key)
		}
	}
}
