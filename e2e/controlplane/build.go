package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The pins travel inside the supervisor, so that it can build from any working
// directory and without its source tree.
var (
	//go:embed go.mod
	goMod []byte
	//go:embed go.sum
	goSum []byte
	//go:embed plane/main.go
	planeMain []byte
)

// kubernetesVersion is the version of k8s.io/kubernetes in go.mod. The programs
// must be told: feature gates and version skew checks read it at run time.
const kubernetesVersion = "v1.36.3"

// plane is the program that all of planeNames are: whichever it is called by.
const plane = "plane"

// packages names the main package of every program that can be built.
var packages = map[string]string{
	plane:        "windlass.dev/windlass/e2e/controlplane/plane",
	"kubectl":    "k8s.io/kubernetes/cmd/kubectl",
	"kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
	"kubelet":    "k8s.io/kubernetes/cmd/kubelet",
}

var planeNames = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// defaultPrograms is what a control plane with simulated nodes needs. What runs
// on real ones, kubelet and kube-proxy, is built by name only.
var defaultPrograms = []string{plane, "kubectl"}

// progressEvery bounds the silence of a long build.
const progressEvery = 10 * time.Second

// builder builds programs into a directory of the user's cache that is named
// by everything the result depends on, so that a program found there is the
// right one.
type builder struct {
	dir   string // <cache>/controlplane/<hash>
	flags []string
	out   io.Writer // progress, one line at a time
}

// newBuilder finds the cache. WINDLASS_CACHE overrides the user's cache folder.
func newBuilder(ctx context.Context, out io.Writer) (*builder, error) {
	root := os.Getenv("WINDLASS_CACHE")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache folder (set WINDLASS_CACHE): %w", err)
		}
		root = filepath.Join(cache, "windlass")
	}
	b := &builder{flags: buildFlags(), out: out}
	// go.mod's go line may select another toolchain than the one in PATH, so
	// the version is asked for where the build will run.
	b.dir = filepath.Join(root, "controlplane")
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the build cache: %w", err)
	}
	version, err := b.goVersion(ctx)
	if err != nil {
		return nil, err
	}
	b.dir = filepath.Join(b.dir, b.key(version))
	return b, nil
}

// buildFlags are, as far as they matter to the compiler, those that our programs are built with: what
// they share with the control plane's is compiled once.
func buildFlags() []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	ldflags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		ldflags = append(ldflags,
			"-X "+pkg+".gitVersion="+kubernetesVersion,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor,
			"-X "+pkg+".gitTreeState=clean")
	}
	return []string{"-tags=plane", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=" + strings.Join(ldflags, " ")}
}

// key hashes everything the programs depend on.
func (b *builder) key(goVersion string) string {
	h := sha256.New()
	for _, part := range [][]byte{goMod, goSum, planeMain, []byte(goVersion), []byte(runtime.GOOS + "/" + runtime.GOARCH), []byte(strings.Join(b.flags, "\n"))} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// path is where the named program is, once it has been built.
func (b *builder) path(name string) string { return filepath.Join(b.dir, name) }

// build makes sure that the named programs are in the cache. Two processes may
// call it at once: the second waits for the first and finds its work done.
func (b *builder) build(ctx context.Context, names []string) error {
	for _, name := range names {
		if packages[name] == "" {
			return fmt.Errorf("unknown program %q", name)
		}
	}
	if len(b.missing(names)) == 0 {
		return nil
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return fmt.Errorf("creating the build cache: %w", err)
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	missing := b.missing(names)
	if len(missing) == 0 {
		return nil
	}
	return b.buildMissing(ctx, missing)
}

func (b *builder) missing(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(b.path(name))
		return err == nil
	})
}

func (b *builder) buildMissing(ctx context.Context, names []string) error {
	module, err := os.MkdirTemp("", "controlplane-build-")
	if err != nil {
		return fmt.Errorf("creating the build folder: %w", err)
	}
	defer os.RemoveAll(module)
	if err := os.Mkdir(filepath.Join(module, plane), 0o755); err != nil {
		return fmt.Errorf("creating the build folder: %w", err)
	}
	for file, content := range map[string][]byte{"go.mod": goMod, "go.sum": goSum, "plane/main.go": planeMain} {
		if err := os.WriteFile(filepath.Join(module, file), content, 0o644); err != nil {
			return fmt.Errorf("writing the build's %s: %w", file, err)
		}
	}

	fmt.Fprintf(b.out, "controlplane: building %s into %s (once; minutes when the Go build cache is cold)\n", strings.Join(names, ", "), b.dir)
	p := &progress{out: b.out, began: time.Now(), programs: len(names)}
	p.packages, err = b.stalePackages(ctx, module, names)
	if err != nil {
		return err
	}
	for i, name := range names {
		p.start(i+1, name)
		if err := b.buildOne(ctx, module, name, p); err != nil {
			return err
		}
		p.done()
	}
	return nil
}

// stalePackages counts what the go command will have to compile.
func (b *builder) stalePackages(ctx context.Context, module string, names []string) (int, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, b.flags...)
	for _, name := range names {
		args = append(args, packages[name])
	}
	var stderr bytes.Buffer
	cmd := goCommand(ctx, module, args...)
	cmd.Stderr = io.MultiWriter(&stderr, &downloads{out: b.out})
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("listing the packages to build: %w\n%s", err, stderr.Bytes())
	}
	return bytes.Count(out, []byte("\n")), nil
}

// buildOne builds beside the final place and renames, so that a program that
// exists is whole.
func (b *builder) buildOne(ctx context.Context, module, name string, p *progress) error {
	partial := filepath.Join(b.dir, "."+name+".partial")
	defer os.Remove(partial) // after the rename it is gone already
	args := append([]string{"build", "-v", "-o", partial}, b.flags...)
	cmd := goCommand(ctx, module, append(args, packages[name])...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	problems := p.follow(stderr)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("building %s: %w", name, ctx.Err())
		}
		return fmt.Errorf("building %s: %w\n%s", name, err, strings.Join(problems, "\n"))
	}
	if name == plane {
		if err := b.nameParts(); err != nil {
			return err
		}
	}
	if err := os.Rename(partial, b.path(name)); err != nil {
		return fmt.Errorf("building %s: %w", name, err)
	}
	return nil
}

// nameParts makes the names that plane is called by, before it is there itself.
func (b *builder) nameParts() error {
	for _, name := range planeNames {
		if err := os.Symlink(plane, b.path(name)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("naming what %s is: %w", plane, err)
		}
	}
	return nil
}

// lock waits for other builders of the same programs. The kernel releases the
// lock with the process, however it ends.
func (b *builder) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(b.dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the build cache: %w", err)
	}
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking the build cache: %w", err)
		}
		if !waiting {
			fmt.Fprintln(b.out, "controlplane: another process is building; waiting for it")
		}
		// flock has no form that both waits and can be cancelled.
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (b *builder) goVersion(ctx context.Context) (string, error) {
	out, err := goCommand(ctx, b.dir, "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goCommand is one run of the go command. A caller's workspace or flags must
// not leak into a build whose result is shared.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// As for Windlass's programs, the compiler collects its garbage less often.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOGC=400", "GOWORK=off", "GOFLAGS=", "PWD="+dir)
	// Ending go politely lets it end its compilers and remove its work folder.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// progress tells what is built and what is left, in lines that read well in a
// log too.
type progress struct {
	out                io.Writer
	began, said        time.Time
	programs, packages int // in all
	program, compiled  int // so far
	name               string
	linking            bool
}

func (p *progress) start(program int, name string) {
	p.program, p.name, p.linking = program, name, false
	p.say()
}

func (p *progress) done() {
	fmt.Fprintf(p.out, "controlplane: [%d/%d] %s built, %s so far\n", p.program, p.programs, p.name, p.elapsed())
}

func (p *progress) say() {
	p.said = time.Now()
	what := fmt.Sprintf("compiling, %d of %d packages", p.compiled, p.packages)
	if p.linking {
		what = "linking"
	}
	fmt.Fprintf(p.out, "controlplane: [%d/%d] %s: %s, %s so far\n", p.program, p.programs, p.name, what, p.elapsed())
}

func (p *progress) elapsed() time.Duration { return time.Since(p.began).Round(time.Second) }

// follow reads what "go build -v" says, which is one line per package it
// compiles, until its end. It returns the lines that are something else.
func (p *progress) follow(r io.Reader) (problems []string) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return problems
			}
			if strings.ContainsAny(line, " \t") {
				problems = append(problems, line)
				break
			}
			p.compiled++
			p.linking = line == packages[p.name]
		case <-tick.C:
			p.say()
		}
	}
}

// downloads passes on the go command's "go: downloading …" lines, but no more
// often than progress is due.
type downloads struct {
	out   io.Writer
	said  time.Time
	count int
}

func (d *downloads) Write(b []byte) (int, error) {
	d.count += bytes.Count(b, []byte("go: downloading "))
	if d.count > 0 && time.Since(d.said) >= progressEvery {
		d.said = time.Now()
		fmt.Fprintf(d.out, "controlplane: downloading modules, %d so far\n", d.count)
	}
	return len(b), nil
}
