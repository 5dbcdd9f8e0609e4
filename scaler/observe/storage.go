package observe

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
)

// Of volumes and devices the API's own objects are kept, without what none of
// kube-scheduler's filters reads. Owners and versions stay: whose claim it is
// and how new it is are among what they do read.

// Annotations that kube-scheduler's filters go by.
var (
	claimAnnotations = []string{
		"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node",
		corev1.BetaStorageClassAnnotation,
	}
	volumeAnnotations = []string{
		"pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to",
		corev1.BetaStorageClassAnnotation,
	}
	classAnnotations = []string{"storageclass.kubernetes.io/is-default-class"}
	nodeAnnotations  = []string{corev1.MigratedPluginsAnnotationKey}
	// The first marks a claim that kube-scheduler made for extended resources, the
	// second for which of the pod's claims another one was made.
	deviceAnnotations = []string{resourcev1.ExtendedResourceClaimAnnotation, resourcev1.PodResourceClaimAnnotation}
)

// slimMeta drops the metadata of an object beside name, owners and version.
func slimMeta(o object, annotations []string) {
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	o.SetLabels(nil)
	o.SetAnnotations(contract.Only(o.GetAnnotations(), annotations))
}

// slimNamespace leaves what is selected by.
func slimNamespace(n *corev1.Namespace) {
	labels := n.Labels
	slimMeta(n, nil)
	n.Labels, n.Spec, n.Status = labels, corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
}

func slimClaim(c *corev1.PersistentVolumeClaim) {
	slimMeta(c, claimAnnotations)
	c.Status = corev1.PersistentVolumeClaimStatus{Phase: c.Status.Phase}
}

// slimVolume leaves the labels: claims select by them, and old volumes have their
// zone there.
func slimVolume(v *corev1.PersistentVolume) {
	labels := v.Labels
	slimMeta(v, volumeAnnotations)
	v.Labels = labels
	v.Spec.MountOptions = nil
	if csi := v.Spec.CSI; csi != nil {
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	v.Status = corev1.PersistentVolumeStatus{Phase: v.Status.Phase}
}

func slimClass(c *storagev1.StorageClass) {
	slimMeta(c, classAnnotations)
	c.Parameters, c.MountOptions = nil, nil
}

func slimDriver(d *storagev1.CSIDriver) {
	slimMeta(d, nil)
	d.Spec.TokenRequests = nil
}

// slimCSINode drops the name that each driver has for the node.
func slimCSINode(n *storagev1.CSINode) {
	slimMeta(n, nodeAnnotations)
	n.OwnerReferences = nil
	for i := range n.Spec.Drivers {
		n.Spec.Drivers[i].NodeID = ""
	}
}

func slimCapacity(c *storagev1.CSIStorageCapacity) {
	slimMeta(c, nil)
	c.OwnerReferences = nil
}

func slimAttachment(a *storagev1.VolumeAttachment) {
	slimMeta(a, nil)
	a.Status = storagev1.VolumeAttachmentStatus{}
}

func slimResourceClaim(c *resourcev1.ResourceClaim) {
	slimMeta(c, deviceAnnotations)
	for i := range c.Status.Devices {
		c.Status.Devices[i].Data, c.Status.Devices[i].NetworkData = nil, nil
	}
}

func slimSlice(s *resourcev1.ResourceSlice) {
	slimMeta(s, nil)
	s.OwnerReferences = nil
}

func slimDeviceClass(c *resourcev1.DeviceClass) { slimMeta(c, nil) }

// newObjects is a table of the API's own objects. A new version that means the
// same is no change.
func newObjects[T any, O interface {
	*T
	object
}](slim func(O), changed func()) *table[O, T] {
	t := newTable(
		func(o O) *T { return o },
		func(row *T) types.NamespacedName { return keyOf(O(row)) },
		func(was, is *T) bool { return saysOther(O(was), O(is)) },
		func(_, _ *T) { changed() },
	)
	t.slim = func(o O) {
		slim(o)
		fleet.CutQuantities(o) // tenants and kubelets write them: to compare or add one may take seconds
	}
	return t
}

// saysOther compares two versions of an object by all but which version they
// are.
func saysOther[T any, O interface {
	*T
	object
}](was, is O) bool {
	a, b := *was, *is // copies: a row never changes
	O(&a).SetResourceVersion("")
	O(&b).SetResourceVersion("")
	O(&a).SetGeneration(0)
	O(&b).SetGeneration(0)
	return !fleet.Equal(a, b)
}
