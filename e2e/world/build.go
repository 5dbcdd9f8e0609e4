package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Programs are paths of what a world runs.
type Programs struct {
	Supervisor string // of the control plane
	Agent      string // "" leaves the agents out
	Scaler     string // "" leaves the scalers out
	// Autoscaler stands in for Cluster Autoscaler; "" leaves it out.
	Autoscaler string

	// Clocks: the scaler is one whose clock can be set.
	Clocks bool

	// What real machines run, besides: their init, and archives of images.
	Boot, Kubelet, KubeProxy string
	Images                   []string
}

// What is built, as progress calls it.
const (
	builtAgent      = "windlass-agent"
	builtScaler     = "windlass-scaler"
	builtPlugin     = "kubectl-windlass"
	builtAutoscaler = "cluster-autoscaler"
	builtSupervisor = "controlplane"
	builtPlane      = "the control plane's programs"
	builtBoot       = "machine-boot"
	builtKubelet    = "kubelet and kube-proxy"
	builtImages     = "the images"
)

// Build builds the supervisor and both programs from the checkout that the
// working directory is in, into dir, and the control plane's programs into
// their cache. It tells progress what is left to do.
func Build(ctx context.Context, dir string, out io.Writer) (Programs, error) {
	return build(ctx, dir, out)
}

func build(ctx context.Context, dir string, out io.Writer, ofScaler ...string) (Programs, error) {
	root, err := Root(ctx)
	if err != nil {
		return Programs{}, err
	}
	p := newProgress(out, builtAgent, builtScaler, builtSupervisor, builtPlane)
	programs := Programs{Agent: filepath.Join(dir, builtAgent), Scaler: filepath.Join(dir, builtScaler)}
	if err := goBuild(ctx, p, root, "./agent", programs.Agent); err != nil {
		return Programs{}, err
	}
	if err := goBuild(ctx, p, root, "./scaler", programs.Scaler, ofScaler...); err != nil {
		return Programs{}, err
	}
	programs.Supervisor, err = buildControlPlane(ctx, p, root, dir)
	return programs, err
}

// BuildControlPlane builds what a world without agents and scalers needs.
func BuildControlPlane(ctx context.Context, dir string, out io.Writer) (Programs, error) {
	root, err := Root(ctx)
	if err != nil {
		return Programs{}, err
	}
	supervisor, err := buildControlPlane(ctx, newProgress(out, builtSupervisor, builtPlane), root, dir)
	return Programs{Supervisor: supervisor}, err
}

// BuildPlugin builds the plugin of kubectl into dir.
func BuildPlugin(ctx context.Context, dir string, out io.Writer) (plugin string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	plugin = filepath.Join(dir, builtPlugin)
	return plugin, goBuild(ctx, newProgress(out, builtPlugin), root, "./cli", plugin)
}

// BuildAutoscaler builds the stand-in for Cluster Autoscaler into dir.
func BuildAutoscaler(ctx context.Context, dir string, out io.Writer) (autoscaler string, err error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	autoscaler = filepath.Join(dir, builtAutoscaler)
	return autoscaler, goBuild(ctx, newProgress(out, builtAutoscaler), root, "./e2e/autoscaler", autoscaler)
}

// BuildMachines builds what a world of real machines needs: the images that users get,
// and those of the tests, by the Makefile.
func BuildMachines(ctx context.Context, dir string, out io.Writer) (Programs, error) {
	root, err := Root(ctx)
	if err != nil {
		return Programs{}, err
	}
	p := newProgress(out, builtSupervisor, builtPlane, builtBoot, builtKubelet, builtImages)
	programs := Programs{Boot: filepath.Join(dir, builtBoot)}
	if programs.Supervisor, err = buildControlPlane(ctx, p, root, dir); err != nil {
		return Programs{}, err
	}
	if err := goBuild(ctx, p, root, "./e2e/machine/boot", programs.Boot); err != nil {
		return Programs{}, err
	}
	if err := buildNode(ctx, p, &programs); err != nil {
		return Programs{}, err
	}
	programs.Images, err = buildImages(ctx, p, root, dir)
	return programs, err
}

// buildNode builds what the control plane's module has for a node.
func buildNode(ctx context.Context, p *progress, programs *Programs) error {
	const kubelet, kubeProxy = "kubelet", "kube-proxy"
	p.next()
	cmd := politely(exec.CommandContext(ctx, programs.Supervisor, "build", kubelet, kubeProxy))
	cmd.Stderr = p.out // it has a progress of its own
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", builtKubelet, err)
	}
	where, err := output(exec.CommandContext(ctx, programs.Supervisor, "where"))
	if err != nil {
		return fmt.Errorf("finding %s: %w", builtKubelet, err)
	}
	cache := string(bytes.TrimSpace(where))
	programs.Kubelet, programs.KubeProxy = filepath.Join(cache, kubelet), filepath.Join(cache, kubeProxy)
	p.done()
	return nil
}

// NextVersion is what a second build of both programs calls itself, and its images' tag.
const NextVersion = "next"

// buildImages builds the images for this host's architecture alone.
func buildImages(ctx context.Context, p *progress, root, dir string) ([]string, error) {
	p.next()
	images := filepath.Join(dir, "images")
	for _, args := range [][]string{
		{"images", "VERSION=" + NextVersion, "IMAGES=" + filepath.Join(images, NextVersion)},
		{"images", "e2e-images", "IMAGES=" + images},
	} {
		cmd := politely(exec.CommandContext(ctx, "make", append([]string{"-s", "-C", root, "ARCHITECTURES=" + runtime.GOARCH, "BINARIES=bin/linux/world", "PROGRAMS=agent scaler"}, args...)...))
		if _, err := output(cmd); err != nil {
			return nil, fmt.Errorf("building the images: %w", err)
		}
	}
	var archives []string
	for _, folder := range []string{images, filepath.Join(images, NextVersion)} {
		found, err := filepath.Glob(filepath.Join(folder, "*.tar"))
		if err != nil {
			return nil, err
		}
		archives = append(archives, found...)
	}
	p.done()
	return archives, nil
}

func buildControlPlane(ctx context.Context, p *progress, root, dir string) (supervisor string, err error) {
	supervisor = filepath.Join(dir, builtSupervisor)
	if err := goBuild(ctx, p, filepath.Join(root, "e2e", "controlplane"), ".", supervisor); err != nil {
		return "", err
	}
	p.next()
	cmd := politely(exec.CommandContext(ctx, supervisor, "build"))
	cmd.Stderr = p.out // it has a progress of its own
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the control plane: %w", err)
	}
	p.done()
	return supervisor, nil
}

// goBuild builds a program as the next step.
func goBuild(ctx context.Context, p *progress, module, pkg, target string, more ...string) error {
	p.next()
	name := filepath.Base(target)
	flags := append([]string{"-tags=grpcnotrace", "-trimpath", "-gcflags=all=-dwarf=false", "-gcflags=github.com/aws/aws-sdk-go-v2/service/ec2=-dwarf=false -l", "-ldflags=-s -w"}, more...)
	stale, err := runGo(ctx, p, module, append(append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, flags...), pkg)...)
	if err != nil {
		return fmt.Errorf("listing the packages of %s: %w", name, err)
	}
	p.planned(strings.Fields(stale))
	if _, err := runGo(ctx, p, module, append(append([]string{"build", "-v", "-o", target}, flags...), pkg)...); err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	p.done()
	return nil
}

// runGo runs the go command and follows what it says on standard error.
func runGo(ctx context.Context, p *progress, module string, args ...string) (stdout string, err error) {
	cmd := politely(exec.CommandContext(ctx, "go", args...))
	cmd.Dir = module
	// The compiler collects its garbage less often than it would: a tenth of its time, for half as much memory again.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400", "PWD="+module)
	var out strings.Builder
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	problems := p.follow(stderr)
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, strings.Join(problems, "\n"))
	}
	return out.String(), nil
}

// politely lets a command that is interrupted end what it runs itself.
func politely(cmd *exec.Cmd) *exec.Cmd {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	return cmd
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
