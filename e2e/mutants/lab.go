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
	"strings"
	"time"
)

var (
	errNotCompiled = errors.New("the mutant does not compile")
	errNoticed     = errors.New("the tests notice it")
	errTooLong     = errors.New("the tests take too long with it")
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

// calibrate runs the judges' tests on the code as it is: they must pass, and how long they
// take says how long they may take with a mutant.
func (l lab) calibrate(ctx context.Context, judges []judge) ([]time.Duration, error) {
	var patience []time.Duration
	for _, j := range judges {
		binary, err := l.compile(ctx, j.folder, "")
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := l.test(ctx, j, binary, 10*time.Minute); err != nil {
			return nil, fmt.Errorf("the tests of %s fail without any edit: %w", j.folder, err)
		}
		patience = append(patience, max(l.least, patienceFactor*time.Since(began)))
	}
	return patience, nil
}

// try says how the judges take an edit; nil if none notices it.
func (l lab) try(ctx context.Context, e edit, t target, patience []time.Duration) error {
	overlay, err := l.overlay(e)
	if err != nil {
		return err
	}
	if _, err := output(exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+t.folder)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errNotCompiled
	}
	for i, j := range t.judges {
		binary, err := l.compile(ctx, j.folder, overlay)
		if err != nil {
			return err
		}
		if err := l.test(ctx, j, binary, patience[i]); err != nil {
			return err
		}
	}
	return nil
}

// overlay writes the mutant and the file that tells the compiler of it.
func (l lab) overlay(e edit) (string, error) {
	original, err := filepath.Abs(e.file)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("making a mutant: %w", err)
	}
	mutant, overlay := filepath.Join(l.dir, "mutant.go"), filepath.Join(l.dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutant}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(mutant, e.apply(source), 0o600), os.WriteFile(overlay, text, 0o600))
}

func (l lab) compile(ctx context.Context, folder, overlay string) (binary string, err error) {
	binary = filepath.Join(l.dir, "mutant.test")
	_, err = output(exec.CommandContext(ctx, "go", "test", "-c", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, "./"+folder))
	return binary, err
}

// test runs a test binary where `go test` would.
func (l lab) test(ctx context.Context, j judge, binary string, patience time.Duration) error {
	inTime, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, mostMemory), binary, "-test.short", "-test.failfast"}, j.args...)
	cmd := exec.CommandContext(inTime, "sh", args...)
	cmd.Dir, cmd.WaitDelay = j.folder, time.Second
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
