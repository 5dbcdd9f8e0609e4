package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"windlass.dev/windlass/pkg/fleet"
)

// watched is one kind of object that is watched.
type watched struct {
	// what it is, for people.
	what string
	// refused is never believed of what is vital: without nodes, pods, budgets or
	// DaemonSets nothing can be decided without harm, so that the scaler waits for
	// its right. Everything else only some pods ask for: without it those have no
	// place anywhere, or kube-scheduler knows better, and all others are served.
	refused *refusal
	// devices are watched only where the server serves them.
	devices bool
	// sign is a watch of those of other autoscalers.
	sign   bool
	run    func(context.Context)
	synced func() bool
}

// notEnded leaves out pods that hold nothing any more.
const notEnded = "status.phase!=Succeeded,status.phase!=Failed"

// What is decided without something that may not be read.
const (
	withoutNamespaces = "terms with a namespace selector are judged as if no namespace had labels"
	withoutVolumes    = "no pod with a volume claim is given a place"
	withoutLimits     = "limits and capacities of volumes are not heeded"
	withoutDevices    = "no pod with a resource claim is given a place"
)

func (o *Observer) allWatches() []watched {
	c, x := o.config.Client, o.others
	core, storage, resource := c.CoreV1(), c.StorageV1(), c.ResourceV1()
	return []watched{
		vital(o, "nodes", core.Nodes(), "", o.nodes),
		vital(o, "pods", core.Pods(""), notEnded, o.pods),
		vital(o, "poddisruptionbudgets", c.PolicyV1().PodDisruptionBudgets(""), "", o.budgets),
		vital(o, "daemonsets", c.AppsV1().DaemonSets(""), "", o.daemonSets),
		useful(o, "namespaces", withoutNamespaces, core.Namespaces(), x.namespaces),
		useful(o, "persistentvolumeclaims", withoutVolumes, core.PersistentVolumeClaims(""), x.claims),
		useful(o, "persistentvolumes", withoutVolumes, core.PersistentVolumes(), x.volumes),
		useful(o, "storageclasses", withoutVolumes, storage.StorageClasses(), x.classes),
		useful(o, "csidrivers", withoutLimits, storage.CSIDrivers(), x.drivers),
		useful(o, "csinodes", withoutLimits, storage.CSINodes(), x.csiNodes),
		useful(o, "csistoragecapacities", withoutLimits, storage.CSIStorageCapacities(""), x.capacities),
		useful(o, "volumeattachments", withoutLimits, storage.VolumeAttachments(), x.attachments),
		device(useful(o, "resourceclaims", withoutDevices, resource.ResourceClaims(""), x.resourceClaims)),
		device(useful(o, "resourceslices", withoutDevices, resource.ResourceSlices(), x.slices)),
		device(useful(o, "deviceclasses", withoutDevices, resource.DeviceClasses(), x.deviceClasses)),
	}
}

func vital[O object, T any, L runtime.Object](o *Observer, what string, api lister[L], fields string, into *table[O, T]) watched {
	into.asked, into.listed = func() { o.outage.asks(what) }, func() {
		o.outage.listed(what)
		o.tellHealth()
	}
	report := func(err error) {
		o.outage.heard(what, err)
		o.report(err)
		o.tellHealth()
	}
	return watched{
		what: what, refused: &refusal{}, synced: into.hasSynced,
		run: func(ctx context.Context) { follow(ctx, o.config.Client, api, fields, into, mostBackOff, report) },
	}
}

// useful is a watch without which much can still be decided.
func useful[O object, T any, L runtime.Object](o *Observer, what, without string, api lister[L], into *table[O, T]) watched {
	return selected(o, o.config.Client, what, "", without, api, into, o.report)
}

// selected is useful, of the objects that a field selector selects. client is the clientset
// that api comes from; report takes the outcome of every call but refusals.
func selected[O object, T any, L runtime.Object](o *Observer, client any, what, fields, without string, api lister[L], into *table[O, T], report func(error)) watched {
	refused := o.refusal("list and watch "+what, without)
	report = refused.before(report)
	return watched{
		what: what, refused: refused, synced: into.hasSynced,
		run: func(ctx context.Context) { follow(ctx, client, api, fields, into, mostBackOffElse, report) },
	}
}

func device(w watched) watched {
	w.devices = true
	return w
}

func (o *Observer) refusal(what, without string) *refusal {
	return &refusal{what: what, without: without, logger: o.config.Logger, changed: func() { o.news(later) }}
}

// report takes the outcome of every call that a watch consists of.
func (o *Observer) report(err error) {
	if err != nil {
		o.server.watchBroke()
		o.config.Trouble(err)
	}
}

func (o *Observer) tellHealth() {
	o.reporting.Lock()
	defer o.reporting.Unlock()
	o.config.Report(o.outage.why())
}

// others is what only some pods ask for.
type others struct {
	namespaces *table[*corev1.Namespace, corev1.Namespace]

	claims      *table[*corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaim]
	volumes     *table[*corev1.PersistentVolume, corev1.PersistentVolume]
	classes     *table[*storagev1.StorageClass, storagev1.StorageClass]
	drivers     *table[*storagev1.CSIDriver, storagev1.CSIDriver]
	csiNodes    *table[*storagev1.CSINode, storagev1.CSINode]
	capacities  *table[*storagev1.CSIStorageCapacity, storagev1.CSIStorageCapacity]
	attachments *table[*storagev1.VolumeAttachment, storagev1.VolumeAttachment]

	resourceClaims *table[*resourcev1.ResourceClaim, resourcev1.ResourceClaim]
	slices         *table[*resourcev1.ResourceSlice, resourcev1.ResourceSlice]
	deviceClasses  *table[*resourcev1.DeviceClass, resourcev1.DeviceClass]
}

func newOthers(changed func()) *others {
	return &others{
		namespaces:     newObjects(slimNamespace, changed),
		claims:         newObjects(slimClaim, changed),
		volumes:        newObjects(slimVolume, changed),
		classes:        newObjects(slimClass, changed),
		drivers:        newObjects(slimDriver, changed),
		csiNodes:       newObjects(slimCSINode, changed),
		capacities:     newObjects(slimCapacity, changed),
		attachments:    newObjects(slimAttachment, changed),
		resourceClaims: newObjects(slimResourceClaim, changed),
		slices:         newObjects(slimSlice, changed),
		deviceClasses:  newObjects(slimDeviceClass, changed),
	}
}

func (x *others) storage() fleet.Storage {
	return fleet.Storage{
		Claims:      x.claims.snapshot(),
		Volumes:     x.volumes.snapshot(),
		Classes:     x.classes.snapshot(),
		Drivers:     x.drivers.snapshot(),
		Nodes:       x.csiNodes.snapshot(),
		Capacities:  x.capacities.snapshot(),
		Attachments: x.attachments.snapshot(),
	}
}

func (x *others) devices() fleet.Devices {
	return fleet.Devices{Claims: x.resourceClaims.snapshot(), Slices: x.slices.snapshot(), Classes: x.deviceClasses.snapshot()}
}

func (x *others) forgetDevices() {
	x.resourceClaims.clear()
	x.slices.clear()
	x.deviceClasses.clear()
}
