package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"windlass.dev/windlass/e2e/demo/play"
	"windlass.dev/windlass/e2e/demo/screen"
	"windlass.dev/windlass/e2e/demo/story"
	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/telemetry"
)

// errEnough is that the viewer has closed the view.
var errEnough = errors.New("the viewer has seen enough")

// run does what the flags say, in a folder of its own. The folder stays only
// if something went wrong, for its logs.
func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "windlass-demo-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	if o.world {
		err = runBare(ctx, o, dir)
	} else {
		err = runDay(ctx, o, dir)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("%w\nThe logs of all programs are in %s", err, dir)
	}
	if err != nil {
		err = errors.New("interrupted")
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// runDay plays the day, sums up, and keeps the world for those who want it.
func runDay(ctx context.Context, o options, dir string) error {
	return inWorld(ctx, dir, daySpec(), os.Stdout, func(w *world.World) error {
		if err := perform(ctx, o, w); err != nil {
			return err
		}
		if o.keep {
			return keep(ctx, w, filepath.Join(dir, "world.env"), os.Stdout)
		}
		return nil
	})
}

// inWorld builds what a world runs, starts it, does something in it and ends it.
func inWorld(ctx context.Context, dir string, spec world.Spec, progress io.Writer, do func(*world.World) error) error {
	build := world.Build
	if spec.NoPrograms {
		build = world.BuildControlPlane
	}
	programs, err := build(ctx, filepath.Join(dir, "bin"), progress)
	if err != nil {
		return err
	}
	fmt.Fprintln(progress, "starting a control plane and a fake AWS")
	log, err := os.Create(filepath.Join(dir, "world.log"))
	if err != nil {
		return fmt.Errorf("making the world's log: %w", err)
	}
	defer log.Close()
	logger := slog.New(slog.NewTextHandler(log, nil))
	telemetry.SetDefault(logger) // what client-go says must not stand in the view
	began := time.Now()
	w, err := world.Start(ctx, world.Config{
		Spec: spec, Programs: programs, Dir: filepath.Join(dir, "world"),
		Progress: progress, Log: logger,
	})
	if err != nil {
		return fmt.Errorf("starting the world: %w", err)
	}
	fmt.Fprintf(progress, "started in %s\n", time.Since(began).Round(100*time.Millisecond))
	return errors.Join(do(w), w.Close())
}

const region = "eu-west-1"

var zones = []string{region + "a", region + "b"}

// daySpec is the world of the day.
func daySpec() world.Spec {
	hook := fakeaws.Hook{Name: "windlass", Transition: "terminate", HeartbeatSeconds: 600, Default: "CONTINUE"}
	return world.Spec{
		Cloud: fakeaws.Spec{
			Region: region,
			Groups: []fakeaws.Group{
				{Name: play.Web, Min: play.WebMin, Max: 6, Zones: zones, Type: "m5.large", Hooks: []fakeaws.Hook{hook}, Tags: role(play.Web, false)},
				// Of web, Auto Scaling itself takes an instance in the afternoon.
				{Name: play.Batch, Max: 5, Zones: zones, Type: "c6i.xlarge", Spot: true, ProtectNewInstances: true, Hooks: []fakeaws.Hook{hook}, Tags: role(play.Batch, true)},
			},
			// What takes AWS a minute takes eight seconds here. Pods leave at their own
			// pace, for which the spot notice of two minutes would not be enough.
			TimeScale: 8,
			Timing:    fakeaws.Timing{SpotNotice: fakeaws.Seconds(480)},
		},
		Settle: fakeaws.Seconds(1),
		// Ten minutes each where nothing is said, and pods that have run for minutes are not worth a move.
		Scaler: []string{"--consolidate=unneeded", "--scale-down-unneeded-time=10s", "--scale-down-delay-after-add=5s"},
	}
}

// role are the tags that tell the scaler which label, and which taint, the
// nodes of an empty group would have.
func role(name string, tainted bool) map[string]string {
	tags := map[string]string{contract.TagTemplateLabel + "role": name}
	if tainted {
		tags[contract.TagTemplateTaint+"role"] = name + ":NoSchedule"
	}
	return tags
}

// perform plays the day before the viewer's eyes and tells how it went.
func perform(ctx context.Context, o options, w *world.World) error {
	s, stopWatching, err := watched(ctx, w)
	if err != nil {
		return err
	}
	defer stopWatching()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop, err := show(o, s, func() { cancel(errEnough) })
	if err != nil {
		return err
	}
	err = play.Run(ctx, s, play.Day())
	if shown := stop(); shown != nil {
		return errors.Join(err, shown)
	}
	if context.Cause(ctx) == errEnough {
		return errEnough
	}
	if err != nil {
		return err
	}
	return sumUp(o, s, w)
}

// show begins to show the stage; the function that it returns ends that. Where the viewer has seen
// enough, left is called.
func show(o options, s *stage, left func()) (stop func() error, err error) {
	if !o.log {
		return live(s, os.Stdin, os.Stdout, left)
	}
	v := viewer{state: s.state, changed: s.Changed, draw: logger(os.Stdout), pause: 250 * time.Millisecond}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

// sumUp prints the summary; what was promised and not kept is an error.
func sumUp(o options, s *stage, w *world.World) error {
	var sum story.Summary
	s.Look(func(y *story.Story) { sum = y.Summary(time.Now()) })
	sum.Faults = append(sum.Faults, crashes(w.Exits())...)
	for _, line := range screen.Summary(sum) {
		if o.log || !colourful(os.Getenv) {
			fmt.Println(line)
			continue
		}
		fmt.Println(line.Coloured())
	}
	if len(sum.Faults) > 0 {
		return fmt.Errorf("%d promises were not kept", len(sum.Faults))
	}
	return nil
}

// crashes tells of programs that ended unasked, once for each pod.
func crashes(exits []world.Exit) []string {
	times := map[string]int{}
	last := map[string]error{}
	for _, exit := range exits {
		times[exit.Pod]++
		last[exit.Pod] = exit.Err
	}
	var faults []string
	for _, pod := range slices.Sorted(maps.Keys(times)) {
		faults = append(faults, fmt.Sprintf("the program of pod %s ended unasked %d times, at last with: %v", pod, times[pod], last[pod]))
	}
	return faults
}

// keep tells how to get into the world and waits for an interrupt.
func keep(ctx context.Context, w *world.World, file string, out io.Writer) error {
	if err := os.WriteFile(file, []byte(exports(w)), 0o600); err != nil {
		return fmt.Errorf("writing the environment: %w", err)
	}
	leader, err := w.Kubectl(ctx, nil, "get", "lease", contract.LeaseScaler, "-n", world.Namespace, "-o", "jsonpath={.spec.holderIdentity}")
	if err != nil {
		return fmt.Errorf("asking who leads: %w", err)
	}
	verdicts, err := w.Verdicts(leader)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
The world goes on until you interrupt it (Ctrl-C). Its kubeconfig is
%[1]s

In another terminal:
  . %[2]s
  $KUBECTL -n %[3]s scale deployment shop --replicas=12
  go build -o kubectl-windlass ./cli
  ./kubectl-windlass top
  # why, or why not
  ./kubectl-windlass why NODE
  # what the scaler would do with other flags; a real cluster needs no URL
  ./kubectl-windlass plan --set=scale-down-unneeded-time=1h --leader-url=%[4]s
  # ask for a drain; undrain takes it back
  ./kubectl-windlass drain NODE --reason=upgrade
`, w.Plane.Kubeconfig, file, play.Namespace, verdicts)
	<-ctx.Done()
	return nil
}
