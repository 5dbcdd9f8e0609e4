package upstream

import (
	"errors"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
)

// handle is the scheduler that the plugins think they run in. What they do not
// use has no implementation, and would panic.
type handle struct {
	fwk.Handle
	world *world
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.world.Factory }
func (h handle) SharedDRAManager() fwk.SharedDRAManager                 { return h.world.devices }
func (h handle) SnapshotSharedLister() fwk.SharedLister                 { return lister{world: h.world} }
func (h handle) ClientSet() kubernetes.Interface                        { return nil } // to bind with
func (h handle) SharedCSIManager() fwk.CSIManager {
	return nodevolumelimits.NewCSIManager(h.world.Factory.Storage().V1().CSINodes().Lister())
}

// lister lists what is on the nodes; the plugins here ask for claims only.
type lister struct {
	fwk.SharedLister
	world *world
}

func (l lister) StorageInfos() fwk.StorageInfoLister { return l }

func (l lister) IsPVCUsedByPods(key string) bool { return l.world.mounts[key] > 0 }

// silent is the context of calls: it never ends, and its logger is mute.
var silent = klog.NewContext(endless{}, klog.Logger{})

// endless is a context without end.
type endless struct{}

func (endless) Deadline() (time.Time, bool) { return time.Time{}, false }
func (endless) Done() <-chan struct{}       { return nil }
func (endless) Err() error                  { return nil }
func (endless) Value(any) any               { return nil }

// What a search for devices may cost, in its steps of about a microsecond: there may be exponentially
// many ways to allocate them, and whoever may make a claim can ask for such a search. kube-scheduler
// gives up after 10 s; steps are the same on every machine. A search in which nothing has to be taken
// back takes about a step for each device that it looks at.
const (
	// allPatience is what the searches for a pod on all nodes that have devices may take together, and
	// leastPatience and mostPatience what that on one node may.
	allPatience, leastPatience, mostPatience = 500_000, 1_000, 100_000
	// stepsOfSearch are the steps of package fit that one of these is, and usualSearch so many of them
	// as asking a node costs anyway.
	stepsOfSearch, usualSearch = 30, 100
)

var errPatience = errors.New("too many ways to allocate the devices")

// patienceFor is what the search on one node may take where so many nodes have devices.
func patienceFor(nodes int) int {
	return min(max(allPatience/max(1, nodes), leastPatience), mostPatience)
}

// limited is a silent context that ends when it was asked often enough.
type limited struct {
	endless
	left int
}

func (l *limited) Value(key any) any { return silent.Value(key) }

func (l *limited) Err() error {
	if l.left--; l.left < 0 {
		return errPatience
	}
	return nil
}
