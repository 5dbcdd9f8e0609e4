package observe

import (
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/pkg/contract"
)

// podAnnotations are those that decisions read. All others are dropped: some
// programs keep whole documents there.
var podAnnotations = []string{
	contract.AnnotationSafeToEvict, contract.AnnotationForeignSafeToEvict, contract.AnnotationSafeLocalVolumes,
	contract.AnnotationDaemonSetPod,
	contract.AnnotationDoNotDisrupt, contract.AnnotationMirror,
}

// slimPod drops what neither placing a pod nor moving it depends on.
func slimPod(p *corev1.Pod) {
	p.Annotations = only(p.Annotations, podAnnotations)
	p.Finalizers = nil
	slimSpec(&p.Spec)
	p.Status = corev1.PodStatus{
		Phase: p.Status.Phase, Conditions: p.Status.Conditions, NominatedNodeName: p.Status.NominatedNodeName,
	}
}

func only(all map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		value, ok := all[key]
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}

func slimSpec(s *corev1.PodSpec) {
	s.SecurityContext, s.ImagePullSecrets, s.HostAliases, s.DNSConfig, s.ReadinessGates = nil, nil, nil, nil, nil
	s.Volumes = slimVolumes(s.Volumes)
	s.EphemeralContainers = nil
	for i := range s.Containers {
		slimContainer(&s.Containers[i])
	}
	for i := range s.InitContainers {
		slimContainer(&s.InitContainers[i])
	}
}

// slimVolumes drops what every node has. The token's volume also has a name of
// its own in every pod, so that without it pods of one template are equal.
func slimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range volumes {
		if v.Projected == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil {
			out = append(out, v)
		}
	}
	return out
}

func slimContainer(c *corev1.Container) {
	*c = corev1.Container{
		Name:               c.Name,
		Ports:              c.Ports,
		Resources:          c.Resources,
		ResizePolicy:       c.ResizePolicy,
		RestartPolicy:      c.RestartPolicy,
		RestartPolicyRules: c.RestartPolicyRules,
		VolumeDevices:      c.VolumeDevices,
	}
}

// slimNode drops the list of images, which is most of a Node.
func slimNode(n *corev1.Node) {
	n.Status.Images, n.Status.VolumesInUse, n.Status.VolumesAttached, n.Status.Addresses = nil, nil, nil, nil
	n.Finalizers = nil
}
