package upstream

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/fit/upstream/memory"
)

// world is what the plugins for volumes and devices see of the cluster.
type world struct {
	*memory.Informers
	devices *devices

	claims       shelf[*corev1.PersistentVolumeClaim]
	volumes      shelf[*corev1.PersistentVolume]
	classes      shelf[*storagev1.StorageClass]
	drivers      shelf[*storagev1.CSIDriver]
	nodes        shelf[*storagev1.CSINode]
	capacities   shelf[*storagev1.CSIStorageCapacity]
	attachments  shelf[*storagev1.VolumeAttachment]
	deviceClaims shelf[*resourcev1.ResourceClaim]
	slices       shelf[*resourcev1.ResourceSlice]
	deviceClass  shelf[*resourcev1.DeviceClass]

	// mounts counts for each claim, namespace/name, the pods that mount it.
	mounts map[string]int
	// patience is what the search for devices on one node may take.
	patience int
	// revision is the last resource version that was given to a claim for devices.
	revision int
}

func newWorld() *world {
	w := &world{Informers: memory.NewInformers(), mounts: map[string]int{}, patience: mostPatience}
	w.devices = newDevices(w.Informers)
	w.claims.informer = w.Claims
	w.volumes.informer = w.Volumes
	w.classes.informer = w.Classes
	w.drivers.informer = w.Drivers
	w.nodes.informer = w.CSINodes
	w.capacities.informer = w.Capacities
	w.attachments.informer = w.Attachments
	w.deviceClaims.informer = w.DeviceClaims
	w.slices.informer = w.Slices
	w.deviceClass.informer = w.DeviceClasses
	// What watches claims for devices goes by their versions, which must rise even
	// where a change is only simulated, or undone.
	w.deviceClaims.told = func(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim { return w.revised(c) }
	return w
}

// revised is a claim as of now.
func (w *world) revised(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	revised := *c
	w.revision++
	revised.ResourceVersion = strconv.Itoa(w.revision)
	return &revised
}

func (w *world) sync(s fleet.Storage, d fleet.Devices) {
	clear(w.mounts)
	w.claims.sync(s.Claims)
	w.volumes.sync(s.Volumes)
	w.classes.sync(s.Classes)
	w.drivers.sync(s.Drivers)
	w.nodes.sync(s.Nodes)
	w.capacities.sync(s.Capacities)
	w.attachments.sync(s.Attachments)
	w.deviceClaims.sync(d.Claims)
	w.slices.sync(d.Slices)
	w.deviceClass.sync(d.Classes)
	w.patience = patienceFor(nodesWithDevices(s, d))
}

// nodesWithDevices is how many nodes there are to search for devices.
func nodesWithDevices(s fleet.Storage, d fleet.Devices) int {
	named := map[string]bool{}
	for _, slice := range d.Slices {
		if slice.Spec.NodeName == nil {
			return max(len(s.Nodes), len(d.Slices)) // its devices may be had on any
		}
		named[*slice.Spec.NodeName] = true
	}
	return len(named)
}

// shelf holds the objects of a kind: those that were synced, and what is thought
// of beside or instead of them until the next sync.
type shelf[T interface {
	comparable
	runtime.Object
	metav1.Object
}] struct {
	informer *memory.Informer
	synced   map[string]T
	thought  map[string]T
	// told is what is shown of an object; nil for the object itself.
	told func(T) T
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// sync makes these the objects that there are. What changed is taken away before
// anything is shown: a device may have gone from one claim to another, and whoever
// counts devices must not see it given before it is free.
func (s *shelf[T]) sync(objects []T) {
	now := make(map[string]T, len(objects))
	for _, o := range objects {
		now[keyOf(o)] = o
	}
	for key, o := range s.thought {
		s.informer.Delete(o)
		delete(s.synced, key)
	}
	for key, o := range s.synced {
		if now[key] != o {
			s.informer.Delete(o)
		}
	}
	for key, o := range now {
		if s.synced[key] != o {
			s.show(o)
		}
	}
	s.synced, s.thought = now, nil
}

func (s *shelf[T]) show(o T) {
	if s.told != nil {
		o = s.told(o)
	}
	s.informer.Set(o)
}

// get finds what there is by that key, simulated or real.
func (s *shelf[T]) get(key string) (T, bool) {
	if o, ok := s.thought[key]; ok {
		return o, true
	}
	o, ok := s.synced[key]
	return o, ok
}

// think has another object instead of what there is by that name, or beside all
// others.
func (s *shelf[T]) think(o T) (undo func()) {
	key := keyOf(o)
	before, had := s.thought[key]
	if s.thought == nil {
		s.thought = map[string]T{}
	}
	s.thought[key] = o
	s.show(o)
	return func() {
		if had {
			s.thought[key] = before
			s.show(before)
			return
		}
		delete(s.thought, key)
		if real, ok := s.synced[key]; ok {
			s.show(real)
			return
		}
		s.informer.Delete(o)
	}
}

// count adds to how many pods mount the claims of a pod. No other pod mounts volumes with a
// claim of their own.
func (w *world) count(pod *corev1.Pod, n int) {
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			w.mounts[pod.Namespace+"/"+claim.ClaimName] += n
		}
	}
}
