package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

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
	for _, b := range o.Binds {
		if err := bind(b); err != nil {
			return fmt.Errorf("laying %s over %s: %w", b.From, b.To, err)
		}
	}
	return nil
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

func bind(b machine.Bind) error {
	info, err := os.Stat(b.From)
	if err != nil {
		return err
	}
	if err := mountPoint(b.To, info.IsDir()); err != nil {
		return err
	}
	return syscall.Mount(b.From, b.To, "", syscall.MS_BIND, "")
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
