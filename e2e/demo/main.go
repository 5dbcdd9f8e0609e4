// Demo shows Windlass at work on this machine: a real control plane, a fake
// AWS, two Auto Scaling groups, and a day in a minute.
//
//	go run ./e2e/demo            plays the day and ends
//	go run ./e2e/demo --keep     leaves the world running until interrupted
//	go run ./e2e/demo --world    only a world, without Windlass, until interrupted
//
// In a terminal it is kubectl windlass top with captions, elsewhere a log. It
// exits with an error if anything that was promised does not come true.
//
//	story/   what a viewer wants to know, pure    screen/  captions and log, pure
//	watch/   the living world → story             play/    the script
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// options are the flags.
type options struct {
	keep bool // leave the world running after the play
	log  bool // a log also in a terminal

	world         bool // only a world, without Windlass
	groups, nodes int  // of that world
}

func parse(args []string, env func(string) string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.BoolVar(&o.keep, "keep", truth(env("KEEP")), "leave the world running after the play, until interrupted (also: KEEP=1)")
	flags.BoolVar(&o.log, "log", false, "write a log even in a terminal")
	flags.BoolVar(&o.world, "world", false, "start a world without Windlass's programs and keep it until interrupted")
	flags.IntVar(&o.groups, "groups", 2, "Auto Scaling groups of --world")
	flags.IntVar(&o.nodes, "nodes", 3, "nodes of --world, over all groups")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(errs, err)
		return options{}, err
	}
	if o.groups < 1 || o.nodes < 0 {
		err := fmt.Errorf("--groups=%d --nodes=%d: want at least one group and no negative number", o.groups, o.nodes)
		fmt.Fprintln(errs, err)
		return options{}, err
	}
	return o, nil
}

// truth reads KEEP=1 as make passes it on.
func truth(s string) bool { return s != "" && s != "0" && s != "false" && s != "no" }

func main() {
	o, err := parse(os.Args[1:], os.Getenv, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	o.log = o.log || !term.IsTerminal(int(os.Stdout.Fd()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
