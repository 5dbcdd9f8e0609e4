// Soak plays a random life in a world and holds the laws against it: notices of
// every kind, people with kubectl and the console, deaths of programs and of the
// API server.
//
//	go run ./e2e/soak                              # ten minutes of a new seed
//	go run ./e2e/soak -duration 30m -seed 7 -dir out/soak
//	go run ./e2e/soak -duration 3m -only foreign-group,flap
//	go run ./e2e/soak -nodes 1000                  # in a large cluster
//	go run ./e2e/soak -autoscaler                  # beside a Cluster Autoscaler with a group of its own
//	go run ./e2e/soak -dry-run                     # beside one that has all groups: Windlass changes nothing
//
// A seed repeats the stream of disturbances, not the world's timing. It goes by
// rounds: some minutes of disturbance, then everything is put right, and the world
// must come to rest with nothing left over. It ends with status 1 if a law was
// broken, or a program's memory grew.
//
//	stream.go   which disturbances come, and when: the seed's
//	kinds.go    what they are: kinds_aws.go at AWS, kinds_kube.go in the cluster,
//	            kinds_programs.go deaths of programs, kinds_outages.go of the API server,
//	            kinds_strangers.go machines of others, kinds_tenants.go pods of tenants
//	book.go     what must hold of instances that are not recognised, and of hooks
//	scene.go    the world in which they happen, bystanders.go what makes it large
//	soak.go     the rounds
//	watch.go    what must never be seen
//	rest.go     what must hold when all is over
//	memory.go   whether the programs grow
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"windlass.dev/windlass/e2e/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// plan is what the flags say.
type plan struct {
	duration, round time.Duration
	pause           time.Duration // between two disturbances, on average
	seed            uint64
	dir             string
	// only are the kinds of disturbances that come; empty for all.
	only string
	// tenantPods is how many pods a tenant makes at once.
	tenantPods int
	// nodes are those of the bystanders.
	nodes int
	// autoscaler: a stand-in for Cluster Autoscaler scales a group of its own.
	autoscaler bool
	// dryRun: that has all groups, and Windlass changes nothing.
	dryRun bool
	// hasty leaves out the rest after the last disturbance.
	hasty bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	p := plan{}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.DurationVar(&p.duration, "duration", 10*time.Minute, "how long to disturb, the rests between the rounds included; a world at rest comes before it and after it")
	flags.DurationVar(&p.round, "round", 3*time.Minute, "how long to disturb until the world must come to rest")
	flags.DurationVar(&p.pause, "pause", usualPause, "how long a disturbance comes after the one before, on average")
	flags.Uint64Var(&p.seed, "seed", uint64(time.Now().UnixNano()), "of the stream of disturbances")
	flags.StringVar(&p.dir, "dir", "", "folder that keeps the logs of all programs; empty for none")
	flags.StringVar(&p.only, "only", "", "kinds of disturbances, with commas between them: no others come (kinds.go names them)")
	flags.IntVar(&p.tenantPods, "tenant-pods", usualTenantPods, "how many pods a tenant makes at once")
	flags.IntVar(&p.nodes, "nodes", 0, "how many nodes there are beside those that are disturbed, with ten pods each")
	flags.BoolVar(&p.autoscaler, "autoscaler", false, "a stand-in for Cluster Autoscaler scales a group of its own beside Windlass")
	flags.BoolVar(&p.dryRun, "dry-run", false, "a stand-in for Cluster Autoscaler scales all groups, and Windlass runs beside it with --dry-run: that it writes nothing else is the law; only disturbances of both come, and no rests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if p.dryRun && p.only == "" {
		p.only = ofDryRuns
	}
	if _, err := chosen(p.only); err != nil {
		return err
	}
	programs, end, err := build(ctx, p.autoscaler || p.dryRun)
	if err != nil {
		return err
	}
	return errors.Join(p.play(ctx, programs, out), end())
}

// build builds what a world runs, into a folder that end removes.
func build(ctx context.Context, autoscaler bool) (programs world.Programs, end func() error, err error) {
	dir, err := os.MkdirTemp("", "windlass-soak-")
	if err != nil {
		return programs, nil, err
	}
	end = func() error { return os.RemoveAll(dir) }
	if programs, err = world.BuildWithClocks(ctx, dir, os.Stderr); err != nil {
		return programs, nil, errors.Join(err, end())
	}
	if autoscaler {
		if programs.Autoscaler, err = world.BuildAutoscaler(ctx, dir, os.Stderr); err != nil {
			return programs, nil, errors.Join(err, end())
		}
	}
	return programs, end, nil
}

// play starts the world, lives through it and says what came of it.
func (p plan) play(ctx context.Context, programs world.Programs, out io.Writer) (err error) {
	w, err := world.Start(ctx, world.Config{Spec: scene(p.nodes, p.autoscaler, p.dryRun), Programs: programs, Dir: p.dir, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	s, err := newSoak(ctx, w, p, programs.Clocks, out)
	if err != nil {
		return err
	}
	defer s.watch.stop()
	if err := s.live(); err != nil {
		return err
	}
	return s.judge()
}
