package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	errNoticed = errors.New("the tests notice it")
	errTooLong = errors.New("the tests take too long with it")
)

const (
	// patienceFactor is how many times as long as without it tests may take with a mutant.
	patienceFactor = 4
	// mostMemory is the address space, in KiB, that tests may take with a mutant, which may
	// never stop to allocate.
	mostMemory = 16 << 20
)

// lab is where mutants are tried.
type lab struct {
	dir string
	out io.Writer
	// least is how long tests may take with a mutant, however quick they are without.
	least time.Duration
}

// sources lists the files of a target that are compiled here, without its tests.
func sources(ctx context.Context, t target) ([]string, error) {
	pattern := "./" + t.folder
	if t.rooms {
		pattern += "/..."
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	out, err := output(exec.CommandContext(ctx, "go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pattern))
	if err != nil {
		return nil, err
	}
	files := strings.Fields(out)
	for i := range files {
		if files[i], err = filepath.Rel(here, files[i]); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// calibrate runs the judges' tests while no mutant acts: they must pass, and how long they
// take says how long they may take with a mutant.
func (l lab) calibrate(ctx context.Context, b *build, judges []judge) ([]time.Duration, error) {
	var patience []time.Duration
	for _, j := range judges {
		binary, err := b.binary(ctx, j.folder)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := l.test(ctx, j, binary, 0, 10*time.Minute); err != nil {
			return nil, fmt.Errorf("the tests of %s fail without any edit: %w", j.folder, err)
		}
		patience = append(patience, max(l.least, patienceFactor*time.Since(began)))
	}
	return patience, nil
}

// try says how the judges take an edit, by its number in a build; nil if none notices it.
func (l lab) try(ctx context.Context, b *build, number int, judges []judge, patience []time.Duration) error {
	for i, j := range judges {
		if j.own && j.folder != filepath.Dir(b.edits[number-1].file) {
			continue
		}
		binary, err := b.binary(ctx, j.folder)
		if err != nil {
			return err
		}
		if err := l.test(ctx, j, binary, number, patience[i]); err != nil {
			return err
		}
	}
	return nil
}

// build is edits that are compiled together: none acts but the one whose number the tests are
// given. One that is in no function is alone, and acts always.
type build struct {
	edits    []edit
	dir      string
	binaries map[string]string // of folders
}

// builds finds the first edits that compile, and puts them together.
func (l lab) builds(ctx context.Context, folder string, edits []edit, count int) ([]*build, error) {
	together, all := l.build(), []*build(nil)
	if err := together.overlay(); err != nil {
		return nil, err
	}
	for n := 0; n < count && len(edits) > 0; n = len(together.edits) + len(all) {
		next := edits[:min(len(edits), count-n)]
		edits = edits[len(next):]
		for _, e := range next {
			if e.in != nil {
				together.edits = append(together.edits, e)
				continue
			}
			alone := l.build(e)
			if wrong, err := alone.compile(ctx, folder); err != nil {
				return nil, err
			} else if len(wrong) == 0 {
				all = append(all, alone)
			}
		}
		for wrong := []int{0}; len(wrong) > 0; {
			var err error
			if wrong, err = together.compile(ctx, folder); err != nil {
				return nil, err
			}
			for _, number := range slices.Backward(wrong) {
				together.edits = slices.Delete(together.edits, number-1, number)
			}
		}
	}
	return append([]*build{together}, all...), nil
}

func (l lab) build(edits ...edit) *build {
	b := &build{edits: edits, binaries: map[string]string{}}
	b.dir = filepath.Join(l.dir, fmt.Sprintf("build-%p", b))
	return b
}

var named = regexp.MustCompile(`(?m)mutant-(\d+):\d+`)

// compile lists the numbers of edits that do not compile, not always all at once.
func (b *build) compile(ctx context.Context, folder string) ([]int, error) {
	if err := b.overlay(); err != nil {
		return nil, err
	}
	out, failed := output(exec.CommandContext(ctx, "go", "build", "-overlay", b.file(), "./"+folder))
	switch {
	case failed == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(b.edits) == 1:
		return []int{1}, nil
	}
	var wrong []int
	for _, found := range named.FindAllStringSubmatch(out, -1) {
		number, err := strconv.Atoi(found[1])
		if err != nil {
			return nil, fmt.Errorf("reading what the compiler says: %w", err)
		}
		wrong = append(wrong, number)
	}
	if len(wrong) == 0 {
		return nil, failed
	}
	slices.Sort(wrong)
	return slices.Compact(wrong), nil
}

// overlay writes the mutants and the file that tells the compiler of them.
func (b *build) overlay() error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return fmt.Errorf("making mutants: %w", err)
	}
	byFile := map[string]map[int]edit{}
	for i, e := range b.edits {
		if byFile[e.file] == nil {
			byFile[e.file] = map[int]edit{}
		}
		byFile[e.file][i+1] = e
	}
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		place, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[place] = filepath.Join(b.dir, strings.ReplaceAll(name, "/", "-"))
		return os.WriteFile(replace[place], text, 0o600)
	}
	for name, mutants := range byFile {
		source, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("making mutants: %w", err)
		}
		for _, e := range mutants {
			if e.in == nil {
				source = e.apply(source)
				break
			}
			file, text := chooser(e.in.of)
			if err := put(filepath.Join(filepath.Dir(name), file), []byte(text)); err != nil {
				return err
			}
			source = twins(source, mutants)
			break
		}
		if err := put(name, source); err != nil {
			return err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(b.file(), text, 0o600)
}

func (b *build) file() string { return filepath.Join(b.dir, "overlay.json") }

// binary is a folder's tests, compiled.
func (b *build) binary(ctx context.Context, folder string) (string, error) {
	if at, ok := b.binaries[folder]; ok {
		return at, nil
	}
	at := filepath.Join(b.dir, strings.ReplaceAll(folder, "/", "-")+".test")
	_, err := output(exec.CommandContext(ctx, "go", "test", "-c", "-ldflags", "-s -w", "-overlay", b.file(), "-o", at, "./"+folder))
	b.binaries[folder] = at
	return at, err
}

// test runs a test binary where `go test` would.
func (l lab) test(ctx context.Context, j judge, binary string, number int, patience time.Duration) error {
	inTime, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, mostMemory), binary, "-test.short", "-test.failfast"}, j.args...)
	cmd := exec.CommandContext(inTime, "sh", args...)
	cmd.Dir, cmd.WaitDelay = j.folder, time.Second
	cmd.Env = append(cmd.Environ(), fmt.Sprintf("%s=%d", mutantVariable, number))
	out, err := output(cmd)
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case inTime.Err() != nil:
		return errTooLong
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %s", errNoticed, last(out))
	}
	return err
}

// last is the end of what a failed test printed.
func last(out string) string {
	const most = 2000
	return out[max(0, len(out)-most):]
}

// output is what a command prints, with its errors.
func output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String() + errs.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, last(errs.String()))
	}
	return out.String(), nil
}
