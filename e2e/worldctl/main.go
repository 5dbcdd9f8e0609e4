// Worldctl starts a world without Windlass's two programs, writes a file of
// variables that leads kubectl, the aws command line or another autoscaler into
// it, and runs until it is interrupted.
//
//	go run ./e2e/worldctl --nodes 3 --groups 2
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"windlass.dev/windlass/e2e/world"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "worldctl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := world.ServeOptions{Out: os.Stderr}
	f := flag.NewFlagSet("worldctl", flag.ContinueOnError)
	f.IntVar(&o.Nodes, "nodes", 3, "how many nodes there are at first")
	f.IntVar(&o.Groups, "groups", 2, "over how many groups they are spread")
	f.DurationVar(&o.Boot, "boot", 5*time.Second, "how long an instance takes to boot")
	f.StringVar(&o.Spec, "spec", "", "YAML of a world, instead of --nodes and --groups")
	f.StringVar(&o.Dir, "dir", "", "folder for keys, data and logs (default: a temporary one)")
	f.StringVar(&o.EnvFile, "env", "out/world.env", "file to write the variables to")
	f.BoolVar(&o.Programs, "windlass", false, "run Windlass's agents and scalers in it, too")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return world.Serve(ctx, o)
}
