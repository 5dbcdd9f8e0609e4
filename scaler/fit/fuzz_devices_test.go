package fit_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const deviceDriver = "gpu.example.com"

// hardware makes the devices of the nodes, their classes, and claims to share.
func (g *generator) hardware() {
	gpu := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	if g.chance(70) {
		gpu.Spec.ExtendedResourceName = ptr.To(string(served))
	}
	big := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example.com"].big`}},
	}}}
	g.Devices.Classes = []*resourcev1.DeviceClass{gpu, big}
	for _, n := range g.Nodes {
		if g.chance(60) {
			g.Devices.Slices = append(g.Devices.Slices, g.slice(n.Name))
		}
	}
	for _, namespace := range namespaces {
		for i := range 3 {
			g.deviceClaim(namespace, fmt.Sprint("d", i))
		}
	}
}

func (g *generator) slice(node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: deviceDriver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: times(g.between(1, 3), func(i int) resourcev1.Device {
				return resourcev1.Device{
					Name:       fmt.Sprint("gpu-", i),
					Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"big": {BoolValue: ptr.To(g.chance(50))}},
				}
			}),
		},
	}
}

func (g *generator) deviceReference(i int) corev1.PodResourceClaim {
	r := corev1.PodResourceClaim{Name: fmt.Sprint("r", i)}
	if g.chance(50) {
		r.ResourceClaimTemplateName = ptr.To("template")
	} else {
		r.ResourceClaimName = ptr.To(one(g.dice, "d0", "d1", "d2", "missing"))
	}
	return r
}

// deviceClaim makes a claim, perhaps with a device of a node.
func (g *generator) deviceClaim(namespace, name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("devices-" + namespace + "-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "request",
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: one(g.dice, "gpu", "gpu", "big", "unknown"), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(g.between(1, 2)),
			},
		}}}},
	}
	if g.chance(15) {
		c.Spec.Devices.Requests[0].Exactly.AllocationMode, c.Spec.Devices.Requests[0].Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if g.chance(15) && len(g.Devices.Slices) > 0 {
		g.allocate(c, one(g.dice, g.Devices.Slices...))
	}
	if g.chance(4) {
		c.DeletionTimestamp = &metav1.Time{Time: dawn}
	}
	g.Devices.Claims = append(g.Devices.Claims, c)
	return c
}

// allocate gives a device to a claim, if no other claim has it.
func (g *generator) allocate(c *resourcev1.ResourceClaim, s *resourcev1.ResourceSlice) {
	device := one(g.dice, s.Spec.Devices...).Name
	for _, other := range g.Devices.Claims {
		if a := other.Status.Allocation; a != nil && a.Devices.Results[0].Pool == s.Spec.Pool.Name && a.Devices.Results[0].Device == device {
			return
		}
	}
	c.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
			Request: "request", Driver: deviceDriver, Pool: s.Spec.Pool.Name, Device: device,
		}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{*s.Spec.NodeName}},
		}}}},
	}
	if g.chance(50) {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "somebody", UID: "somebody"}}
	}
}

// use has a pod that is on a node use its claims.
func (g *generator) use(pod *corev1.Pod) {
	for _, r := range pod.Spec.ResourceClaims {
		name := pod.Name + "-" + r.Name
		if r.ResourceClaimName != nil {
			name = *r.ResourceClaimName
		}
		for _, c := range g.Devices.Claims {
			if c.Namespace == pod.Namespace && c.Name == name && c.Status.Allocation != nil {
				c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
			}
		}
	}
}
