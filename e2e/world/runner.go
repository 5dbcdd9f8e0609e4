package world

import (
	"context"
	"net/http"
	"time"
)

// runner runs the pods of the agent and of the scaler: as processes of this host
// beside simulated nodes, or as the containers of real machines.
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
	Pod string    // of which pod
	At  time.Time // when
	Err error     // how; nil for exit status 0
}
