package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Programs are paths of what a world runs.
type Programs struct {
	Supervisor string // of the control plane
	Agent      string // "" leaves the agents out
	Scaler     string // "" leaves the scalers out
}

// Build builds the supervisor and both programs from the checkout that the
// working directory is in, into dir, and the control plane's programs into
// their cache. It tells progress what is left to do.
func Build(ctx context.Context, dir string, progress io.Writer) (Programs, error) {
	root, err := Root(ctx)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{Agent: filepath.Join(dir, "windlass-agent"), Scaler: filepath.Join(dir, "windlass-scaler")}
	if err := goBuild(ctx, progress, root, "./agent", p.Agent); err != nil {
		return Programs{}, err
	}
	if err := goBuild(ctx, progress, root, "./scaler", p.Scaler); err != nil {
		return Programs{}, err
	}
	plane, err := BuildControlPlane(ctx, dir, progress)
	p.Supervisor = plane.Supervisor
	return p, err
}

// BuildControlPlane builds what a world without agents and scalers needs.
func BuildControlPlane(ctx context.Context, dir string, progress io.Writer) (Programs, error) {
	root, err := Root(ctx)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{Supervisor: filepath.Join(dir, "controlplane")}
	if err := goBuild(ctx, progress, filepath.Join(root, "e2e", "controlplane"), ".", p.Supervisor); err != nil {
		return Programs{}, err
	}
	cmd := exec.CommandContext(ctx, p.Supervisor, "build")
	// Asked politely, it ends the go command that it runs.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	cmd.Stderr = progress
	if err := cmd.Run(); err != nil {
		return Programs{}, fmt.Errorf("building the control plane: %w", err)
	}
	return p, nil
}

func goBuild(ctx context.Context, progress io.Writer, module, pkg, target string) error {
	began := time.Now()
	fmt.Fprintf(progress, "building %s\n", filepath.Base(target))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "PWD="+module)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(target), err, out)
	}
	fmt.Fprintf(progress, "building %s took %s\n", filepath.Base(target), time.Since(began).Round(time.Second/10))
	return nil
}

// Root finds the folder of the module that the working directory is in.
func Root(ctx context.Context) (string, error) {
	out, err := output(exec.CommandContext(ctx, "go", "env", "GOMOD"))
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	mod := string(bytes.TrimSpace(out))
	if !strings.HasSuffix(mod, "go.mod") {
		return "", fmt.Errorf("the working directory is in no Go module")
	}
	return filepath.Dir(mod), nil
}
