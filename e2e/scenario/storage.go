package scenario

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/pkg/fleet"
)

// volumeDraft is what a line says of a volume.
type volumeDraft struct{ claim, zone string }

var volumeWords = table[volumeDraft]{
	"claim": setter(text, func(d *volumeDraft, v string) { d.claim = v }),
	"zone":  setter(text, func(d *volumeDraft, v string) { d.zone = v }),
}

// volume NAME claim=[NAMESPACE/]NAME: of that claim, which is bound to it; anywhere
// unless zone= is said.
func volume(w *World, l line) error {
	d := volumeDraft{claim: l.name}
	if err := volumeWords.apply(&d, l.words); err != nil {
		return err
	}
	if slices.ContainsFunc(w.Storage.Volumes, func(v *corev1.PersistentVolume) bool { return v.Name == l.name }) {
		return fmt.Errorf("it is there already, and does not change")
	}
	namespace, name, _ := strings.Cut(podKey(d.claim), "/")
	uid := types.UID("uid-claim-" + namespace + "/" + name)
	w.Storage.Volumes = append(w.Storage.Volumes, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: l.name},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}, NodeAffinity: inZone(d.zone),
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	})
	w.Storage.Claims = append(w.Storage.Claims, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: uid,
			Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}, // without it nobody takes it for bound
		},
		Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: l.name},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	return nil
}

func inZone(zone string) *corev1.VolumeNodeAffinity {
	if zone == "" {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}

// claims adds the volume of a claim to a pod.
func (d *podDraft) claims(name string) {
	d.Spec.Volumes = append(d.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}})
}

// storage prints volumes.
func (p *printer) storage(s fleet.Storage) {
	each(s.Volumes, func(v *corev1.PersistentVolume) string { return v.Name }, func(v *corev1.PersistentVolume) {
		claim := ""
		if r := v.Spec.ClaimRef; r != nil {
			claim = strings.TrimPrefix(r.Namespace+"/"+r.Name, metav1.NamespaceDefault+"/")
		}
		p.line("volume", v.Name, other("claim", claim, v.Name), said("zone", zoneOf(v.Spec.NodeAffinity)))
	})
}

// zoneOf is the inverse of inZone.
func zoneOf(a *corev1.VolumeNodeAffinity) string {
	if a == nil || a.Required == nil {
		return ""
	}
	for _, term := range a.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelTopologyZone {
				return strings.Join(e.Values, ",")
			}
		}
	}
	return ""
}

func claimWords(spec *corev1.PodSpec) []string {
	var words []string
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			words = append(words, said("claim", v.PersistentVolumeClaim.ClaimName))
		}
	}
	return words
}
