package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"windlass.dev/windlass/e2e/demo/play"
	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
)

// bareTypes are what the groups of a bare world launch, in turn.
var bareTypes = []string{"m5.large", "c6i.xlarge", "r5.large", "m6g.large", "c5.2xlarge", "t3.large"}

// bareSpec is a world without Windlass's programs: so many groups that share so
// many nodes, with room to grow.
func bareSpec(groups, nodes int) world.Spec {
	spec := world.Spec{Cloud: fakeaws.Spec{Region: region}, NoPrograms: true}
	for i := range groups {
		size := nodes / groups
		if i < nodes%groups {
			size++
		}
		spec.Cloud.Groups = append(spec.Cloud.Groups, fakeaws.Group{
			Name: fmt.Sprintf("group-%d", i+1), Max: size + 10, Desired: &size, Zones: zones, Type: bareTypes[i%len(bareTypes)],
		})
	}
	return spec
}

// runBare starts a bare world, waits for its nodes, writes the environment that
// leads into it, and keeps it until ctx ends.
func runBare(ctx context.Context, o options, dir string) error {
	spec := bareSpec(o.groups, o.nodes)
	return inWorld(ctx, dir, spec, os.Stdout, func(w *world.World) error {
		s, stopWatching, err := watched(ctx, w)
		if err != nil {
			return err
		}
		defer stopWatching()
		if err := play.Run(ctx, s, []play.Act{play.NodesCome(spec.Cloud.Groups)}); err != nil {
			return err
		}
		return keepBare(ctx, w, filepath.Join(dir, "world.env"), os.Stdout)
	})
}

// keepBare keeps the environment's file up to date until ctx ends: each instance
// has a metadata service of its own in it.
func keepBare(ctx context.Context, w *world.World, file string, out io.Writer) error {
	changed := make(chan struct{}, 1)
	w.AWS.OnInstance(func(fakeaws.Instance) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	return keepFile(ctx, file, changed, func() string { return exports(w) }, func() {
		fmt.Fprintf(out, `
The world goes on until you interrupt it (Ctrl-C). In another terminal:

  . %s
  $KUBECTL get nodes
  aws autoscaling describe-auto-scaling-groups

The file is written again when instances come or go: IMDS_<instance> are the
addresses of their metadata services.
`, file)
	})
}

// keepFile writes a file, tells that it is there, and writes it again after each
// change that makes its text another one, until ctx ends. Who reads it never
// sees half of it.
func keepFile(ctx context.Context, file string, changed <-chan struct{}, text func() string, there func()) error {
	written := ""
	for first := true; ; first = false {
		if now := text(); first || now != written {
			if err := replace(file, now); err != nil {
				return fmt.Errorf("writing the environment: %w", err)
			}
			written = now
		}
		if first {
			there()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func replace(file, text string) error {
	partial := file + ".partial"
	if err := os.WriteFile(partial, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, file)
}

// exports are lines for a shell that lead kubectl, the aws command line or
// another autoscaler into the world.
func exports(w *world.World) string {
	var lines strings.Builder
	for _, line := range w.Environment() {
		key, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&lines, "export %s='%s'\n", key, value)
	}
	return lines.String()
}
