package world

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"windlass.dev/windlass/pkg/contract"
)

// runner runs the pods of the agent and of the scaler: as processes of this host
// beside simulated nodes, where it runs a stand-in for Cluster Autoscaler, too, or as the
// containers of real machines.
type runner interface {
	// run works until ctx ends, and leaves nothing running that is its own.
	run(ctx context.Context)
	// list returns the pods of a program, by name.
	list(app string) []placed
	// kill ends the process of a pod with SIGKILL, and revive runs it again.
	kill(ctx context.Context, pod string) error
	revive(ctx context.Context, pod string) error
	// exhaust ends the process of a pod as the kernel does for its memory limit.
	exhaust(ctx context.Context, pod string) error
	// get asks its HTTP server.
	get(ctx context.Context, pod, path string) (*http.Response, error)
	// log is all that it has written, over all its runs.
	log(pod string) ([]byte, error)
	// ends are the programs' ends that nobody asked for: their crashes.
	ends() []Exit
}

// placed is a pod on a node.
type placed struct{ pod, node string }

// Exit is a program's end that nobody asked for.
type Exit struct {
	Pod  string    // of which pod
	At   time.Time // when
	Err  error     // how; nil for exit status 0
	Said string    // the last line of its log, where it is a process
}

// followPods tells of the pods of the programs until ctx ends: of each that is there or
// changes, and of each that is no more.
func followPods(ctx context.Context, client kubernetes.Interface, observe, forget func(*corev1.Pod)) error {
	ofPrograms := func(o *metav1.ListOptions) {
		o.LabelSelector = contract.LabelAppName + " in (" + contract.AppAgent + "," + contract.AppScaler + "," + contract.AppClusterAutoscaler + ")"
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(ofPrograms))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { observe(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { observe(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			forget(o.(*corev1.Pod))
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}
