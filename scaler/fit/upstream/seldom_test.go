package upstream_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream"
)

const driver = "ebs.csi.aws.com"

func node(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelTopologyZone: zone,
	}}}
}

// mounting is a pod with these claims.
func mounting(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	for _, c := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return pod
}

func claim(name, class, volume string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("claim-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &class, VolumeName: volume,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if volume != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return c
}

func volume(name, class, zone string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("volume-" + name)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
}

func class(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode}
}

func limit(name string, n int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
		Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &n},
	}}}}
}

// taken is a volume that a claim has.
func taken(v *corev1.PersistentVolume, claim string) *corev1.PersistentVolume {
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim, UID: types.UID("claim-" + claim)}
	v.Status.Phase = corev1.VolumeBound
	return v
}

// storage has a bound claim in zone a, a claim that no volume was found for, and
// two claims that wait for a pod with one volume in zone a for both.
func storage() fleet.Storage {
	return fleet.Storage{
		Claims: []*corev1.PersistentVolumeClaim{
			claim("bound", "disks", "vol-bound"), claim("stuck", "at-once", ""),
			claim("early", "disks", ""), claim("late", "disks", ""), claim("new", "made", ""), claim("new2", "made", ""),
			claim("alone", "made", "vol-alone", corev1.ReadWriteOncePod),
		},
		Volumes: []*corev1.PersistentVolume{taken(volume("vol-bound", "disks", "a"), "bound"), volume("vol-free", "disks", "a"), taken(volume("vol-alone", "made", "a"), "alone")},
		Classes: []*storagev1.StorageClass{
			class("disks", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer),
			class("made", driver, storagev1.VolumeBindingWaitForFirstConsumer),
			class("at-once", driver, storagev1.VolumeBindingImmediate),
		},
		Nodes: []*storagev1.CSINode{limit("a1", 1)},
	}
}

func check(t *testing.T, f *upstream.Filters, pod *corev1.Pod, h *upstream.Host, want ...string) {
	t.Helper()
	got, _ := f.Refusals(pod, h)
	if diff := cmp.Diff(want, plugins(got)); diff != "" {
		t.Errorf("refusing %s (-want +got):\n%s\n%v", pod.Name, diff, got)
	}
	if again, _ := f.Refusals(pod.DeepCopy(), h); !cmp.Equal(got, again) {
		t.Errorf("asked twice about %s: %v, then %v", pod.Name, got, again)
	}
}

// Volumes hold pods to their zone, go to one claim only, count against the limit
// of a node, and come back when a seat is undone.
func TestVolumes(t *testing.T) {
	f := filters(t, "1.36")
	f.Sync(nil, storage(), fleet.Devices{})
	a1, a2, b1 := f.NewHost(node("a1", "a"), nil, nil), f.NewHost(node("a2", "a"), nil, nil), f.NewHost(node("b1", "b"), nil, nil)

	check(t, f, mounting("p", "bound"), a1)
	check(t, f, mounting("p", "bound"), b1, "VolumeBinding")
	check(t, f, mounting("p", "stuck"), a1, "VolumeBinding", "VolumeZone")
	check(t, f, mounting("p", "missing"), a1, "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")

	undo := f.Seat(mounting("first", "early"), a1)
	check(t, f, mounting("second", "late"), a2, "VolumeBinding")
	check(t, f, mounting("again", "early"), a2)
	undoShared := f.Seat(mounting("again", "early"), a2)
	undoShared()
	check(t, f, mounting("second", "late"), a2, "VolumeBinding") // the first has it still
	undo()
	check(t, f, mounting("second", "late"), a2)

	undo = f.Put(mounting("there", "bound"), a1)
	check(t, f, mounting("full", "new"), a1, "NodeVolumeLimits")
	check(t, f, mounting("full", "bound"), a1) // counted already
	undo()
	undo = f.Seat(mounting("one", "new"), a1)
	check(t, f, mounting("two", "new2"), a1, "NodeVolumeLimits")
	check(t, f, mounting("same", "new"), a2, "VolumeBinding") // it will be made for a1
	undo()

	undo = f.Put(mounting("owner", "alone"), a1)
	check(t, f, mounting("other", "alone"), a2, "VolumeRestrictions")
	unremove := f.Remove(mounting("owner", "alone"), a1)
	check(t, f, mounting("other", "alone"), a2)
	unremove()
	check(t, f, mounting("other", "alone"), a2, "VolumeRestrictions")
	undo()

	coming := f.NewHost(node("new", "a"), limit("template", 0), nil)
	check(t, f, mounting("full", "new"), coming, "NodeVolumeLimits")
	f.Drop(coming)
	check(t, f, mounting("full", "new"), f.NewHost(node("new", "a"), nil, nil))
}

// Whatever changes from one evaluation to the next is seen, and what was assumed in the last
// one is forgotten.
func TestSyncByDifference(t *testing.T) {
	f := filters(t, "1.36")
	s := storage()
	f.Sync(nil, s, fleet.Devices{})
	f.Seat(mounting("first", "early"), f.NewHost(node("a1", "a"), nil, nil))

	f.Sync(nil, s, fleet.Devices{})
	a1, b1 := f.NewHost(node("a1", "a"), nil, nil), f.NewHost(node("b1", "b"), nil, nil)
	check(t, f, mounting("second", "late"), a1)

	s.Volumes = []*corev1.PersistentVolume{taken(volume("vol-bound", "disks", "b"), "bound"), s.Volumes[2]}
	f.Sync(nil, s, fleet.Devices{})
	check(t, f, mounting("p", "bound"), b1)
	check(t, f, mounting("p", "bound"), a1, "VolumeBinding")
	check(t, f, mounting("second", "late"), a1, "VolumeBinding")
}

func slice(node string, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}},
	}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	return s
}

func deviceClaim(name string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("claim-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name:    "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
}

func using(name, claim string) *corev1.Pod {
	pod := mounting(name)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	return pod
}

func wanting(name string, gpus string) *corev1.Pod {
	pod := mounting(name)
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse(gpus)}}}}
	return pod
}

// A device goes to one claim, a claim's pods go where its device is, and extended
// resources that a class serves take devices too.
func TestDevices(t *testing.T) {
	f := filters(t, "1.36")
	f.Sync(nil, fleet.Storage{}, fleet.Devices{
		Claims:  []*resourcev1.ResourceClaim{deviceClaim("x"), deviceClaim("y"), deviceClaim("z")},
		Slices:  []*resourcev1.ResourceSlice{slice("a1", "gpu-0")},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")}}},
	})
	a1, a2 := f.NewHost(node("a1", "a"), nil, nil), f.NewHost(node("a2", "a"), nil, []*resourcev1.ResourceSlice{slice("template", "gpu-0")})
	empty := f.NewHost(node("a3", "a"), nil, nil)

	check(t, f, using("p", "x"), a1)
	check(t, f, using("p", "x"), empty, "DynamicResources")
	check(t, f, using("p", "missing"), a1, "DynamicResources")

	undo := f.Seat(using("p", "x"), a1)
	check(t, f, using("q", "y"), a1, "DynamicResources")
	check(t, f, using("q", "y"), a2)
	check(t, f, using("shares", "x"), a1)
	check(t, f, using("shares", "x"), a2, "DynamicResources")
	unshare := f.Seat(using("shares", "x"), a1)
	unremove := f.Remove(using("p", "x"), a1)
	check(t, f, using("q", "y"), a1, "DynamicResources")
	unremoveShares := f.Remove(using("shares", "x"), a1)
	check(t, f, using("q", "y"), a1) // no pod uses x
	unremoveShares()
	unremove()
	unshare()
	check(t, f, wanting("e", "1"), a1, "DynamicResources")
	undo()
	check(t, f, using("q", "y"), a1)

	if !f.Concerns(wanting("e", "1")) || !f.Delegated(wanting("e", "1"), "example.com/gpu", node("a1", "a")) {
		t.Error("the class does not serve the extended resource")
	}
	check(t, f, wanting("e", "2"), a1, "DynamicResources")
	undo = f.Seat(wanting("e", "1"), a1)
	check(t, f, using("q", "y"), a1, "DynamicResources")
	check(t, f, wanting("e", "1"), a1, "DynamicResources")
	undo()
	check(t, f, wanting("e", "1"), a1)

	f = filters(t, "1.33")
	f.Sync(nil, fleet.Storage{}, fleet.Devices{Claims: []*resourcev1.ResourceClaim{deviceClaim("x")}})
	check(t, f, using("p", "x"), f.NewHost(node("a1", "a"), nil, nil)) // it did not check claims by default
}

// A pod may name one claim twice. What it was given is free again when it is deleted.
func TestClaimNamedTwice(t *testing.T) {
	f := filters(t, "1.36")
	d := fleet.Devices{
		Claims:  []*resourcev1.ResourceClaim{deviceClaim("x"), deviceClaim("y"), deviceClaim("z")},
		Slices:  []*resourcev1.ResourceSlice{slice("a1", "gpu-0", "gpu-1")},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}},
	}
	twice := using("p", "x")
	twice.Spec.ResourceClaims = append(twice.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "again", ResourceClaimName: ptr.To("x")})
	both := using("q", "y")
	both.Spec.ResourceClaims = append(both.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "too", ResourceClaimName: ptr.To("z")})

	f.Sync(nil, fleet.Storage{}, d)
	h := f.NewHost(node("a1", "a"), nil, nil)
	f.Seat(twice, h)
	check(t, f, both, h, "DynamicResources")
	f.Remove(twice, h)
	check(t, f, both, h)
}

// A device that went from one claim to another between two evaluations is taken, in
// whatever order the claims are shown.
func TestDeviceChangesHands(t *testing.T) {
	f := filters(t, "1.36")
	d := fleet.Devices{
		Slices:  []*resourcev1.ResourceSlice{slice("a1", "gpu-0")},
		Classes: []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}},
	}
	holding := func(name string) *resourcev1.ResourceClaim {
		c := deviceClaim(name)
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.example.com", Pool: "a1", Device: "gpu-0"},
		}}}
		return c
	}
	for range 20 { // maps are walked in any order
		for _, claims := range [][]*resourcev1.ResourceClaim{
			{holding("x"), deviceClaim("y"), deviceClaim("z")},
			{deviceClaim("x"), holding("y"), deviceClaim("z")},
			{holding("w"), deviceClaim("z")},
		} {
			d.Claims = claims
			f.Sync(nil, fleet.Storage{}, d)
			check(t, f, using("p", "z"), f.NewHost(node("a1", "a"), nil, nil), "DynamicResources")
		}
	}
}
