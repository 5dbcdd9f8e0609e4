// Command kubectl-windlass says what Windlass does in a cluster, and why. As a plugin of kubectl
// it is called kubectl windlass. It reads the API server alone: Nodes, Pods, Events and the
// ConfigMap windlass-status, and has no rights at AWS.
//
//	root.go      the command and its flags; completion.go what a shell completes
//	reader.go    what is read of the cluster
//	commands.go  status, why, cost and events
//	watch.go     -w
//	nodes.go     hold and unhold; which nodes are meant
//	drain.go     drain and undrain; wait.go --wait
//	output.go    -o
//	tables.go    each answer as a table
//	view/        what people ask for, made of what was read
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	// kubectl's own ways to log in.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if err := run(ctx, os.Args[1:], streams); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl-windlass:", err)
		os.Exit(1)
	}
}
