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

// patience is how many steps the search for devices may take for a pod on a node,
// which may be exponentially many. kube-scheduler gives up after 10 s; steps are
// the same on every machine.
const patience = 100_000

var errPatience = errors.New("too many ways to allocate the devices")

// limited is a silent context that ends when it was asked often enough.
type limited struct {
	endless
	left int
}

func bounded() *limited { return &limited{left: patience} }

func (l *limited) Value(key any) any { return silent.Value(key) }

func (l *limited) Err() error {
	if l.left--; l.left < 0 {
		return errPatience
	}
	return nil
}
