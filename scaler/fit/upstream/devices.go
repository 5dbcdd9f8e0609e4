package upstream

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"windlass.dev/windlass/scaler/fit/upstream/memory"
)

// devices is kube-scheduler's own bookkeeping of devices, but for two things. It
// lists slices in the order of their names. And an allocation that Reserve makes is not in
// flight until a server confirms that it was written: who seats a pod writes it at once.
type devices struct {
	*dynamicresources.DefaultDRAManager
	claims *claimTracker
	slices *memory.Informer
}

func newDevices(all *memory.Informers) *devices {
	known := assumecache.NewAssumeCache(klog.Logger{}, all.DeviceClaims, "ResourceClaim", "", nil)
	d := &devices{
		DefaultDRAManager: dynamicresources.NewDRAManager(silent, known, nil, all.Factory),
		slices:            all.Slices,
	}
	d.claims = &claimTracker{ResourceClaimTracker: d.DefaultDRAManager.ResourceClaims()}
	if classes := d.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); classes != nil { // nil without the feature
		all.DeviceClasses.Handle(classes)
	}
	return d
}

func (d *devices) ResourceClaims() fwk.ResourceClaimTracker { return d.claims }
func (d *devices) ResourceSlices() fwk.ResourceSliceLister  { return d }

// ListWithDeviceTaintRules lists the slices. Rules that taint devices are not known to this
// package; kube-scheduler does not read them by default.
func (d *devices) ListWithDeviceTaintRules() ([]*resourcev1.ResourceSlice, error) {
	objects := d.slices.GetStore().List()
	slices := make([]*resourcev1.ResourceSlice, len(objects))
	for i, o := range objects {
		slices[i] = o.(*resourcev1.ResourceSlice)
	}
	return slices, nil
}

// claimTracker keeps which claims Reserve allocated.
type claimTracker struct {
	fwk.ResourceClaimTracker
	allocated []*resourcev1.ResourceClaim
}

// SignalClaimPendingAllocation is called by Reserve for each claim that it
// allocates. A pod that names a claim twice gets it allocated twice; the first
// allocation stays.
func (t *claimTracker) SignalClaimPendingAllocation(_ types.UID, claim *resourcev1.ResourceClaim) error {
	if !slices.ContainsFunc(t.allocated, func(c *resourcev1.ResourceClaim) bool { return keyOf(c) == keyOf(claim) }) {
		t.allocated = append(t.allocated, claim)
	}
	return nil
}

// take returns what was allocated since the last call.
func (t *claimTracker) take() []*resourcev1.ResourceClaim {
	claims := t.allocated
	t.allocated = nil
	return claims
}
