package observe

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable"
	"windlass.dev/windlass/pkg/fleet"
)

// podAnnotations are those that decisions read. All others are dropped: some
// programs keep whole documents there.
var podAnnotations = append(slices.Clone(drainable.Annotations), contract.AnnotationPodScaleUpDelay, contract.AnnotationAllOrNothing, contract.AnnotationDisruptionCost)

// slimPod drops what neither placing a pod nor moving it depends on. It leaves
// the statuses of containers only where kube-scheduler counts by them.
func slimPod(p *corev1.Pod) {
	p.Spec = *fleet.Bounded(&p.Spec)
	p.Annotations = contract.Only(p.Annotations, podAnnotations)
	p.Finalizers, p.ManagedFields = nil, nil
	status := corev1.PodStatus{
		Phase: p.Status.Phase, Conditions: p.Status.Conditions, NominatedNodeName: p.Status.NominatedNodeName,
		ResourceClaimStatuses: p.Status.ResourceClaimStatuses, ExtendedResourceClaimStatus: p.Status.ExtendedResourceClaimStatus,
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for i := range all {
			all[i].AllocatedResources = fleet.BoundedList(all[i].AllocatedResources)
			boundResources(all[i].Resources)
		}
	}
	p.Status.AllocatedResources = fleet.BoundedList(p.Status.AllocatedResources)
	boundResources(p.Status.Resources)
	if allocated(p) != nil {
		status.ContainerStatuses, status.InitContainerStatuses = p.Status.ContainerStatuses, p.Status.InitContainerStatuses
		status.Resources, status.AllocatedResources = p.Status.Resources, p.Status.AllocatedResources
	}
	p.Status = status
	queue := queueOf(p)
	slimSpec(&p.Spec)
	if queue != nil {
		p.Spec.Containers[0].Env = queue
	}
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind == "DaemonSet" && p.Spec.NodeName != "" {
		slimPinned(&p.Spec)
	}
}

// boundResources cuts what a kubelet reports of a pod's resources, as fleet.BoundedList does.
func boundResources(r *corev1.ResourceRequirements) {
	if r != nil {
		r.Requests, r.Limits = fleet.BoundedList(r.Requests), fleet.BoundedList(r.Limits)
	}
}

// slimPinned drops the node affinity that the DaemonSet controller gives each of
// its pods, once the pod is where that puts it: such a pod never goes elsewhere, and
// without it the pods of one DaemonSet are equal.
func slimPinned(s *corev1.PodSpec) {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return
	}
	required := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return
	}
	for _, term := range required.NodeSelectorTerms {
		if !slices.ContainsFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
			return f.Key == metav1.ObjectNameField && slices.Equal(f.Values, []string{s.NodeName})
		}) {
			return
		}
	}
	affinity := *s.Affinity
	affinity.NodeAffinity = nil
	s.Affinity = &affinity
	if affinity.PodAffinity == nil && affinity.PodAntiAffinity == nil {
		s.Affinity = nil
	}
}

// allocated is what kube-scheduler counts for a pod where it is not what the
// spec requests: while a resize in place is under way, or was refused. The pod
// level status is only there where the server's features count by it.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/1287-in-place-update-pod-resources
func allocated(p *corev1.Pod) corev1.ResourceList {
	reported := func(s corev1.ContainerStatus) bool { return s.Resources != nil }
	if p.Status.Resources == nil && !slices.ContainsFunc(p.Status.ContainerStatuses, reported) && !slices.ContainsFunc(p.Status.InitContainerStatuses, reported) {
		return nil
	}
	counted := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	if fleet.Equal(counted, resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})) {
		return nil
	}
	return counted
}

// slimTemplateSpec is slimSpec for a template of pods, with what the API server gives to each pod
// that is made of it and to no template: requests where there are limits alone, and the host's ports
// in the host's network.
// https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/v1/defaults.go (SetDefaults_Pod)
func slimTemplateSpec(s *corev1.PodSpec) {
	slimSpec(s)
	*s = *fleet.Bounded(s) // to add or to compare what is beyond counting takes seconds
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Resources.Requests = withDefaults(c.Resources.Requests, c.Resources.Limits, func(corev1.ResourceName) bool { return true })
			for j := range c.Ports {
				if port := &c.Ports[j]; s.HostNetwork && port.HostPort == 0 {
					port.HostPort = port.ContainerPort
				}
			}
		}
	}
	if s.Resources != nil && len(s.Resources.Limits) > 0 {
		ofContainers := resourcehelper.AggregateContainerRequests(&corev1.Pod{Spec: *s}, resourcehelper.PodResourcesOptions{})
		requests := withDefaults(s.Resources.Requests, ofContainers, func(name corev1.ResourceName) bool {
			return resourcehelper.IsSupportedPodLevelResource(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		})
		s.Resources.Requests = withDefaults(requests, s.Resources.Limits, resourcehelper.IsSupportedPodLevelResource)
	}
	*s = *fleet.Bounded(s) // a sum may be, too
}

// withDefaults is a list with those entries of another that it lacks and may have.
func withDefaults(list, defaults corev1.ResourceList, may func(corev1.ResourceName) bool) corev1.ResourceList {
	for name, q := range defaults {
		if _, said := list[name]; said || !may(name) {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = q
	}
	return list
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

// slimNode drops the list of images, which is most of a Node. The volumes that are
// attached are only counted, so their names are not kept either.
func slimNode(n *corev1.Node) {
	n.Status.Images, n.Status.VolumesInUse, n.Status.Addresses = nil, nil, nil
	n.Finalizers = nil
}
