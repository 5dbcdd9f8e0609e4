package world

import (
	"context"
	"encoding/binary"
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

// BuildWithClocks is Build with a scaler whose clock SetClock sets: the checkout's source
// with a standard library in which time.Now adds what a file says. A step of a host's
// clock is like that: it moves what the wall clock says, and no timer. The standard
// library is compiled for it once, into the cache of the go command.
func BuildWithClocks(ctx context.Context, dir string, out io.Writer) (Programs, error) {
	overlay, err := overlayClock(ctx, dir)
	if err != nil {
		return Programs{}, fmt.Errorf("making a clock that can be set: %w", err)
	}
	programs, err := build(ctx, dir, out, "-overlay="+overlay)
	programs.Clocks = true
	return programs, err
}

// overlayClock writes what replaces files of the standard library, and returns the list
// of them for the go command.
// https://pkg.go.dev/cmd/go#hdr-Compile_packages_and_dependencies
func overlayClock(ctx context.Context, dir string) (list string, err error) {
	root, err := output(exec.CommandContext(ctx, "go", "env", "GOROOT"))
	if err != nil {
		return "", err
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original, err := os.ReadFile(filepath.Join(src, "time.go"))
	if err != nil {
		return "", err
	}
	const read = "sec, nsec, mono := runtimeNow()"
	if strings.Count(string(original), read) != 1 {
		return "", fmt.Errorf("time.go does not read the clock once with %q", read)
	}
	replaced := map[string]string{"time.go": strings.Replace(string(original), read, "sec, nsec, mono := displacedNow()", 1), "displaced.go": displacedSource}
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for name, text := range replaced {
		file := filepath.Join(dir, "overlay-"+name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(src, name)] = file
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, text, 0o600)
}

// clockFile is the environment variable that names the file with a process's clock: by
// how many seconds it is ahead, as an int64 in the order of bytes of the processor.
const clockFile = "E2E_CLOCK"

// displacedSource is a file of package time. It maps the file into memory: time.Now is
// called too often to read it.
const displacedSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var displacement = mapDisplacement()

func mapDisplacement() *int64 {
	name, _ := syscall.Getenv("` + clockFile + `")
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return new(int64)
	}
	defer syscall.Close(fd)
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return new(int64)
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func displacedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	return sec + atomic.LoadInt64(displacement), nsec, mono
}
`

// SetClock puts the clock of a scaler's pod ahead, or back, by whole seconds against this
// host's; 0 puts it right. The programs must be of BuildWithClocks.
func (w *World) SetClock(pod string, ahead time.Duration) error {
	if w.programs == nil || !w.programs.clocks {
		return errors.New("the programs were built with the host's clock")
	}
	return w.programs.setClock(pod, ahead)
}

func (k *programs) clockOf(pod string) string { return filepath.Join(k.dir, "pods", pod, "clock") }

// setClock writes in place: processes have the file in their memory.
func (k *programs) setClock(pod string, ahead time.Duration) error {
	f, err := os.OpenFile(k.clockOf(pod), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("setting the clock of pod %s: %w", pod, err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)), 0); err != nil {
		return fmt.Errorf("setting the clock of pod %s: %w", pod, err)
	}
	return nil
}
