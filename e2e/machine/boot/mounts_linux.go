package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"windlass.dev/windlass/e2e/machine"
)

// mounts gives the machine its own processes and its own files, which nobody else sees.
func mounts(o machine.Order) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to this machine: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	sources, err := open(o.Binds)
	if err != nil {
		return err
	}
	defer closeAll(sources)
	for _, dir := range o.Run {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("emptying %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/etc", "/var"} {
		if err := cover(dir); err != nil {
			return fmt.Errorf("covering %s: %w", dir, err)
		}
	}
	for i, b := range o.Binds {
		if err := bind(sources[i], b.To); err != nil {
			return fmt.Errorf("laying %s over %s: %w", b.From, b.To, err)
		}
	}
	return nil
}

// open opens what will be bound, wherever it is on the host: below a folder that is then
// emptied or covered, nothing is found by its path any more.
func open(binds []machine.Bind) ([]*os.File, error) {
	var sources []*os.File
	for _, b := range binds {
		fd, err := unix.Open(b.From, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(sources)
			return nil, fmt.Errorf("opening %s, which is to be %s: %w", b.From, b.To, err)
		}
		sources = append(sources, os.NewFile(uintptr(fd), b.From))
	}
	return sources, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // O_PATH: nothing was written
	}
}

// cover lays a layer in memory over one of the host's folders: what is made in it, such as
// a place to mount something, is the machine's alone.
func cover(dir string) error {
	layer := filepath.Join("/run/cover", dir)
	upper, work := filepath.Join(layer, "upper"), filepath.Join(layer, "work")
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	return syscall.Mount("overlay", dir, "overlay", 0, "lowerdir="+dir+",upperdir="+upper+",workdir="+work)
}

func bind(from *os.File, to string) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := mountPoint(to, info.IsDir()); err != nil {
		return err
	}
	return syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", from.Fd()), to, "", syscall.MS_BIND, "")
}

// mountPoint makes what is mounted over, where the host has no such file or folder.
func mountPoint(path string, folder bool) error {
	if folder {
		return os.MkdirAll(path, 0o755)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
