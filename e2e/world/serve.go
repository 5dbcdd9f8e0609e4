package world

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// ServeOptions say what world Serve is to start for people.
type ServeOptions struct {
	// Nodes are spread evenly over Groups groups. Spec wins over both.
	Nodes, Groups int
	// Boot is how long an instance takes to boot.
	Boot time.Duration
	// Spec is a file as ParseSpec reads it.
	Spec string
	// Dir is the world's folder, EnvFile the file of variables that leads tools
	// into the world; "" is world.env in that folder.
	Dir, EnvFile string
	// Programs starts agents and scalers, too.
	Programs bool
	// Out is where it says what it does.
	Out io.Writer
}

// Serve builds what is missing, starts a world and runs it until ctx ends. The
// env file is rewritten as instances come and go.
func Serve(ctx context.Context, o ServeOptions) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "windlass-bin-")
	if err != nil {
		return fmt.Errorf("making a folder for the programs: %w", err)
	}
	defer os.RemoveAll(bin)
	build := BuildControlPlane
	if o.Programs {
		build = Build
	}
	programs, err := build(ctx, bin, o.Out)
	if err != nil {
		return err
	}
	w, err := Start(ctx, Config{Spec: spec, Programs: programs, Dir: o.Dir, Progress: o.Out})
	if err != nil {
		return err
	}
	defer func() {
		if err := w.Close(); err != nil {
			fmt.Fprintln(o.Out, "ending the world:", err)
		}
	}()
	file := o.EnvFile
	if file == "" {
		file = filepath.Join(w.Dir, "world.env")
	}
	if err := w.writeEnvironment(file); err != nil {
		return err
	}
	defer os.Remove(file)
	fmt.Fprintf(o.Out, "The world is there. To work in it:\n\n  set -a; . %s; set +a\n  \"$KUBECTL\" get nodes\n\nIt runs until it is interrupted.\n", file)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.joiner.changed:
			if err := w.writeEnvironment(file); err != nil {
				return err
			}
		}
	}
}

// writeEnvironment writes the env file as a whole, so that nobody reads half.
func (w *World) writeEnvironment(file string) error {
	var b strings.Builder
	for _, v := range w.Environment() {
		b.WriteString(v + "\n")
	}
	partial := file + ".partial"
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing the env file: %w", err)
	}
	if err := os.WriteFile(partial, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("writing the env file: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("writing the env file: %w", err)
	}
	return nil
}

// groupTypes are the types of generated groups, in turn.
var groupTypes = []string{"m5.large", "c5.xlarge", "r5.xlarge", "m5.2xlarge"}

func (o ServeOptions) spec() (Spec, error) {
	if o.Spec != "" {
		content, err := os.ReadFile(o.Spec)
		if err != nil {
			return Spec{}, fmt.Errorf("reading the world's YAML: %w", err)
		}
		spec, err := ParseSpec(content)
		spec.NoPrograms = spec.NoPrograms || !o.Programs
		return spec, err
	}
	if o.Groups < 1 || o.Nodes < 0 {
		return Spec{}, fmt.Errorf("%d nodes in %d groups: want one group at least, and no negative number", o.Nodes, o.Groups)
	}
	spec := Spec{NoPrograms: !o.Programs, Cloud: cloud.Spec{Timing: cloud.Timing{Boot: cloud.Duration(o.Boot)}}}
	for i := range o.Groups {
		desired := o.Nodes / o.Groups
		if i < o.Nodes%o.Groups {
			desired++
		}
		spec.Cloud.Groups = append(spec.Cloud.Groups, cloud.Group{
			Name: fmt.Sprintf("group-%d", i+1), Type: groupTypes[i%len(groupTypes)],
			Max: max(10, 2*desired), Desired: &desired,
			Zones: []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"},
		})
	}
	return spec, nil
}
