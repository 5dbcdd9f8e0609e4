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
//	plan.go      plan; forward.go the way to the leader
//	check.go     check
//	output.go    -o
//	top.go       top, and what it writes
//	view/        what people ask for, made of what was read
//	table/       each answer as a table
//	top/         the live view; top/feed keeps it up to date
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	// kubectl's own ways to log in.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"windlass.dev/windlass/pkg/contract"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if err := run(ctx, os.Args[1:], streams); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl-windlass:", printable(err))
		if with := (statusError{}); errors.As(err, &with) {
			os.Exit(with.status)
		}
		os.Exit(1)
	}
}

// printable is an error for a terminal, one line for each that errors.Join has put together: others have
// written what is in it, and must not make lines of their own.
func printable(err error) string {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return contract.OneLine(err.Error())
	}
	var own, lines []string
	for _, e := range joined.Unwrap() {
		own, lines = append(own, e.Error()), append(lines, printable(e))
	}
	if strings.Join(own, "\n") != err.Error() {
		return contract.OneLine(err.Error()) // a sentence about several
	}
	return strings.Join(lines, "\n")
}
