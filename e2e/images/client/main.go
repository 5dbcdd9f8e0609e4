// Client is what stands before a service of the tests and notices every failure:
// some of its workers open a connection for each request, others keep theirs.
// With --await it asks until there is an answer instead, and with --probe it asks
// the instance metadata for a token, once, as a program in a pod would that looks
// for the node's rights.
//
//	main.go     flags
//	traffic.go  the workers
//	tally.go    what became of the requests
//	probe.go    the metadata
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	var (
		t        traffic
		report   = flags.Duration("report", 10*time.Second, "how often to print a summary")
		awaits   = flags.Bool("await", false, "ask until there is an answer, and end")
		asksIMDS = flags.Bool("probe", false, "ask the instance metadata at the given address for a token, tell what came, and end")
	)
	flags.IntVar(&t.fresh, "workers", 4, "how many workers open a connection for each request")
	flags.IntVar(&t.kept, "keep-alive", 2, "how many workers keep their connection")
	flags.DurationVar(&t.interval, "interval", 20*time.Millisecond, "how long a worker waits between an answer and its next request")
	flags.DurationVar(&t.timeout, "timeout", 5*time.Second, "how long an answer may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	t.url = flags.Arg(0)
	if *asksIMDS {
		if t.url == "" {
			t.url = metadata
		}
		return probe(ctx, t.url, t.timeout, out)
	}
	if t.url == "" || flags.NArg() > 1 {
		return fmt.Errorf("want one address, such as http://echo.default.svc; got %q", flags.Args())
	}
	if *awaits {
		return t.await(ctx)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	defer signal.Stop(asked)
	tally := newTally(out)
	reports, end := context.WithCancel(context.Background())
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		tally.summarize(reports, *report, asked)
	}()
	t.run(ctx, tally)
	end()
	<-reported
	return tally.verdict()
}
