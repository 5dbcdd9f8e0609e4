package fit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"windlass.dev/windlass/scaler/fit/upstream"
)

// Volumes, claims and devices are asked of kube-scheduler's own plugins, pod by
// pod and place by place.

// route makes every place a host to the plugins.
func (c *Cluster) route() {
	c.routed = true
	for _, p := range c.places {
		if p != nil && !p.expected {
			p.settle()
		}
	}
}

// settle makes the place a host to the plugins.
func (p *Place) settle() {
	var csi *storagev1.CSINode
	if p.opened > 0 && len(p.template.drivers) > 0 {
		csi = &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: p.template.drivers}}
	}
	p.host = p.cluster.lore.filters.NewHost(p.node(), csi, p.template.slices)
}

// delegates reports whether a resource is for DynamicResources to judge: the place has none
// of it by a device plugin, and a device class serves it.
// https://github.com/kubernetes/enhancements/issues/5004
func (c *Cluster) delegates(m *member, p *Place, resource int) bool {
	return m.own != nil && c.lore.serves(c.lore.names.names[resource]) && p.template.has.at(resource) <= 0
}

// refusals are what volumes and devices have against a place.
func (c *Cluster) refusals(m *member, p *Place) []upstream.Refusal {
	list, steps := c.lore.filters.Refusals(m.own, p.host)
	c.steps += steps
	return list
}

// routes returns what volumes and devices have against a place.
func (c *Cluster) routes(m *member, p *Place) Reasons {
	if m.own == nil {
		return nil
	}
	var why Reasons
	for _, refusal := range c.refusals(m, p) {
		if elsewhere := c.elsewhere(m.own, p); refusal.Plugin == string(RuleVolumeBinding) && elsewhere != "" {
			why = append(why, Reason{Rule: RuleVolumeBinding, What: elsewhere, Found: p.template.labels[corev1.LabelTopologyZone]})
			continue
		}
		why = append(why, theirs(refusal))
	}
	return why
}

// theirs is a refusal in the plugin's own words.
func theirs(refusal upstream.Refusal) Reason {
	return Reason{Rule: Rule(refusal.Plugin), What: strings.Join(refusal.Reasons, "; ")}
}

// elsewhere names the first volume of a pod that is in another zone than the place.
func (c *Cluster) elsewhere(pod *corev1.Pod, p *Place) string {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := slices.IndexFunc(c.world.Storage.Claims, func(o *corev1.PersistentVolumeClaim) bool {
			return o.Namespace == pod.Namespace && o.Name == v.PersistentVolumeClaim.ClaimName
		})
		if claim < 0 {
			continue
		}
		volume := slices.IndexFunc(c.world.Storage.Volumes, func(o *corev1.PersistentVolume) bool {
			return o.Name == c.world.Storage.Claims[claim].Spec.VolumeName
		})
		if volume < 0 {
			continue
		}
		zones := zonesOf(c.world.Storage.Volumes[volume])
		if here := p.template.labels[corev1.LabelTopologyZone]; len(zones) > 0 && !slices.Contains(zones, here) {
			return fmt.Sprintf("volume %s is in %s", c.world.Storage.Volumes[volume].Name, strings.Join(zones, ", "))
		}
	}
	return ""
}

// zonesOf a volume, as far as it has them in the usual way.
func zonesOf(v *corev1.PersistentVolume) []string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var zones []string
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Operator == corev1.NodeSelectorOpIn && (e.Key == corev1.LabelTopologyZone || strings.HasSuffix(e.Key, "/zone")) {
				zones = append(zones, e.Values...)
			}
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
