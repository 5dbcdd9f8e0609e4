package fit_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	csiDriver = "ebs.csi.aws.com"
	inTree    = "kubernetes.io/aws-ebs"
)

// Storage classes: one whose volumes are made where the pod goes, one likewise but
// in some zones only, one whose volumes exist, one that does not wait for pods.
const (
	made    = "made"
	zoned   = "zoned"
	static  = "static"
	atOnce  = "at-once"
	migrant = "in-tree"
)

func (g *generator) storage() {
	waiting, immediate := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	storageClass := func(name, provisioner string, mode *storagev1.VolumeBindingMode) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: mode}
	}
	inZones := storageClass(zoned, csiDriver, &waiting)
	inZones.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: corev1.LabelTopologyZone, Values: zones[:g.between(1, 2)]},
	}}}
	g.Storage.Classes = []*storagev1.StorageClass{
		storageClass(made, csiDriver, &waiting), inZones,
		storageClass(static, "kubernetes.io/no-provisioner", &waiting),
		storageClass(atOnce, csiDriver, &immediate), storageClass(migrant, inTree, &waiting),
	}
	if g.chance(50) {
		g.Storage.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: csiDriver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(g.chance(50))}}}
		g.Storage.Capacities = times(g.between(0, 3), g.capacity)
	}
	for _, n := range g.Nodes {
		if g.chance(60) {
			g.Storage.Nodes = append(g.Storage.Nodes, g.csiNode(n.Name))
		}
	}
	for _, namespace := range namespaces {
		for i := range 5 {
			g.claim(namespace, fmt.Sprint("v", i))
		}
	}
	for range g.between(0, 3) {
		g.volume(static, "", "")
	}
	for range g.between(0, 2) {
		g.attachment()
	}
}

func (g *generator) limit() *int32 {
	if g.chance(20) {
		return nil
	}
	return ptr.To(int32(g.between(0, 2)))
}

func (g *generator) csiNode(name string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: csiDriver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: g.limit()}},
	}}}
	if g.chance(50) {
		n.Annotations = map[string]string{corev1.MigratedPluginsAnnotationKey: inTree}
	}
	return n
}

func (g *generator) capacity(i int) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprint("capacity-", i)},
		StorageClassName: one(g.dice, made, zoned),
		NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: one(g.dice, zones...)}},
		Capacity:         ptr.To(resource.MustParse(one(g.dice, "1Gi", "10Gi"))),
	}
}

// claim makes a claim, with its volume if it is bound.
func (g *generator) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	class := one(g.dice, made, zoned, static, static, atOnce, migrant)
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), Annotations: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{one(g.dice, corev1.ReadWriteOnce, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(one(g.dice, "1Gi", "5Gi"))}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	switch {
	case g.chance(45):
		c.Spec.VolumeName = g.volume(class, namespace, name)
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		c.Status.Phase = corev1.ClaimBound
	case g.chance(5):
		c.Spec.VolumeName = "gone"
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	case g.chance(5):
		c.Spec.VolumeName = "not-yet-bound"
	case g.chance(5):
		c.Annotations["volume.kubernetes.io/selected-node"] = one(g.dice, g.Nodes...).Name
	case g.chance(5):
		c.Status.Phase = corev1.ClaimLost
	case g.chance(5):
		c.DeletionTimestamp = &metav1.Time{Time: dawn}
	}
	g.Storage.Claims = append(g.Storage.Claims, c)
	return c
}

// volume makes a volume, free if no claim is named. No two are of one size: which
// of equals a claim gets is for kube-scheduler to say, and it throws dice.
func (g *generator) volume(class, namespace, claim string) string {
	i := len(g.Storage.Volumes)
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("volume-", i), UID: types.UID(fmt.Sprint("volume-", i))},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(1<<30+int64(g.IntN(8))<<30+int64(i), resource.BinarySI)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: fmt.Sprint("handle-", i)}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if class == migrant {
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: fmt.Sprint("vol-", i)}}
	}
	zone := one(g.dice, zones...)
	if g.chance(60) {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
	if g.chance(30) {
		v.Labels = map[string]string{one(g.dice, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone): one(g.dice, zone, "a__b")}
	}
	if claim != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim, UID: types.UID(namespace + "-" + claim)}
		v.Status.Phase = corev1.VolumeBound
	}
	g.Storage.Volumes = append(g.Storage.Volumes, v)
	return v.Name
}

func (g *generator) attachment() {
	if len(g.Storage.Volumes) == 0 {
		return
	}
	g.Storage.Attachments = append(g.Storage.Attachments, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("attachment-", len(g.Storage.Attachments))},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: csiDriver, NodeName: one(g.dice, g.Nodes...).Name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(one(g.dice, g.Storage.Volumes...).Name)},
		},
	})
}

// mount gives volumes and device claims to a template.
func (g *generator) mount(t *template) {
	if g.with(volumes) && g.chance(40) {
		t.spec.Volumes = times(g.between(1, 2), g.mounted)
	}
	if g.with(devices) && g.chance(20) {
		t.spec.ResourceClaims = times(g.between(1, 2), g.deviceReference)
	}
}

func (g *generator) mounted(i int) corev1.Volume {
	v := corev1.Volume{Name: fmt.Sprint("m", i)}
	switch g.IntN(10) {
	case 0:
		v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
	case 1:
		v.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: one(g.dice, "vol-x", "vol-y")}
	case 2:
		v.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: "disk", ReadOnly: g.chance(50)}
	case 3:
		v.CSI = &corev1.CSIVolumeSource{Driver: csiDriver}
	default:
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: one(g.dice, "v0", "v1", "v2", "v3", "v4", "v4", "missing")}
	}
	return v
}

// ownClaims makes the claims that controllers make for a pod.
func (g *generator) ownClaims(pod *corev1.Pod) {
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil && g.chance(90) {
			c := g.claim(pod.Namespace, pod.Name+"-"+v.Name)
			if g.chance(90) {
				c.OwnerReferences = owner
			}
		}
	}
	for _, r := range pod.Spec.ResourceClaims {
		if r.ResourceClaimTemplateName != nil && g.chance(90) {
			c := g.deviceClaim(pod.Namespace, pod.Name+"-"+r.Name)
			if g.chance(90) {
				c.OwnerReferences = owner
			}
			pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: r.Name, ResourceClaimName: &c.Name})
		}
	}
}
