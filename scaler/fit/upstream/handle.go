package upstream

import (
	"time"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// handle is the scheduler that the plugins think they run in. What they do not
// use has no implementation, and would panic.
type handle struct {
	fwk.Handle
}

// silent is the context of every call: it never ends, and its logger is mute.
var silent = klog.NewContext(endless{}, klog.Logger{})

// endless is a context without end.
type endless struct{}

func (endless) Deadline() (time.Time, bool) { return time.Time{}, false }
func (endless) Done() <-chan struct{}       { return nil }
func (endless) Err() error                  { return nil }
func (endless) Value(any) any               { return nil }
