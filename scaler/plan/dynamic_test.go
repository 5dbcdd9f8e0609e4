package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"windlass.dev/windlass/e2e/scenario"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/plan/policy"
)

const deviceDriver = "gpu.example.com"

// dynamic is a world in which a driver of dynamic resource allocation publishes the devices of
// nodes, two in each of the slices of a node's pool.
type dynamic struct {
	*scenario.World
	t *testing.T
}

func newDynamic(t *testing.T, text string) dynamic {
	t.Helper()
	w := scenario.NewWorld()
	if err := w.Apply(text); err != nil {
		t.Fatal(err)
	}
	w.Devices.Classes = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}}
	return dynamic{w, t}
}

// publish has the driver of a node publish some of the slices of its pool.
func (w dynamic) publish(node string, from, to, of int) {
	for i := from; i < to; i++ {
		w.Devices.Slices = append(w.Devices.Slices, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: deviceDriver, NodeName: &node,
				Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(of)},
				Devices: []resourcev1.Device{{Name: fmt.Sprintf("d%d", 2*i)}, {Name: fmt.Sprintf("d%d", 2*i+1)}},
			},
		})
	}
}

// claim has a pod ask for a device; where it is on a node it has one.
func (w dynamic) claim(pod string, device int) {
	w.t.Helper()
	i := slices.IndexFunc(w.Pods, func(p *fleet.Pod) bool { return p.Name == pod })
	if i < 0 {
		w.t.Fatalf("no pod %s", pod)
	}
	p := w.Pods[i]
	name := "claim-of-" + pod
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: types.UID(name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
	if p.Node != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "one", Driver: deviceDriver, Pool: p.Node, Device: fmt.Sprintf("d%d", device)},
		}}}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	}
	w.Devices.Claims = append(w.Devices.Claims, c)
}

func (w dynamic) decide(what string) string {
	got := render(plan.Decide(w.Snapshot, policy.DefaultPolicy()), []string{"node", "pod", "group"})
	w.t.Logf("%s:\n%s", what, got)
	return got
}

// Nodes that came for devices and have not published them yet have what their group's nodes have:
// nothing more is launched for the pods that wait for them, and they are not unneeded.
func TestDevicesOfYoungNodes(t *testing.T) {
	w := newDynamic(t, `group gpu desired=1 type=m5.xlarge template=lt-1:7
node gpu-1 group=gpu
pod on-1..4 on=gpu-1 cpu=100m
pod app-1..8 waiting cpu=100m`)
	w.publish("gpu-1", 0, 2, 2)
	for i := range 4 {
		w.claim(fmt.Sprintf("on-%d", i+1), i)
	}
	for i := range 8 {
		w.claim(fmt.Sprintf("app-%d", i+1), 0)
	}
	if got := w.decide("eight pods wait, four devices on each node"); !strings.Contains(got, "grow gpu 1→3") {
		t.Fatalf("want two nodes:\n%s", got)
	}

	if err := w.SetDesired("gpu", 1, 3); err != nil {
		t.Fatal(err)
	}
	w.Launch()
	w.Advance(time.Minute)
	w.Join()
	quiet := func(what string, coming int) {
		t.Helper()
		got := w.decide(what)
		if strings.Contains(got, "grow") || strings.Contains(got, "mark ") || strings.Contains(got, "NoNodeGroupFits") || strings.Count(got, "has yet to publish") != coming {
			t.Errorf("%s: want nothing to do, and %d nodes that are coming:\n%s", what, coming, got)
		}
	}
	quiet("the nodes are Ready, and nothing is published", 2)
	w.Advance(25 * time.Second)
	w.publish("gpu-new1", 0, 1, 2)
	quiet("one of two slices is published", 2)
	w.publish("gpu-new1", 1, 2, 2)
	quiet("one pool is complete", 1)
	w.publish("gpu-new2", 0, 2, 2)
	quiet("both are", 0)
}

// A node whose devices are all in use is not unneeded, however little else is requested of it.
func TestDevicesInUse(t *testing.T) {
	w := newDynamic(t, `group gpu desired=2 type=m5.xlarge template=lt-1:7
node gpu-1..2 group=gpu
pod on-1..2 on=gpu-1 cpu=100m
pod on-3 on=gpu-2 cpu=100m`)
	w.publish("gpu-1", 0, 1, 1)
	w.publish("gpu-2", 0, 2, 2)
	for i := range 3 {
		w.claim(fmt.Sprintf("on-%d", i+1), i%2)
	}
	got := w.decide("two of two devices, and one of four")
	if !strings.Contains(got, "node gpu-1: Needed: 100% of it is requested") || strings.Contains(got, "node gpu-2: Needed") {
		t.Error(got)
	}
}

// Admin access to the devices of a node uses none of them.
func TestDevicesWatched(t *testing.T) {
	w := newDynamic(t, `group gpu desired=2 type=m5.xlarge template=lt-1:7
node gpu-1..2 group=gpu
pod monitor on=gpu-1 cpu=10m owner=DaemonSet/monitor`)
	w.publish("gpu-1", 0, 1, 1)
	w.claim("monitor", 0)
	all, admin := w.Devices.Claims[0].Status.Allocation, true
	all.Devices.Results[0].AdminAccess = &admin
	second := all.Devices.Results[0]
	second.Device = "d1"
	all.Devices.Results = append(all.Devices.Results, second)
	if got := w.decide("a monitor has access to both devices"); !strings.Contains(got, "mark gpu-1 unneeded") {
		t.Error(got)
	}
}
