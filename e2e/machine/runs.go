package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// registry is where runs are known on this host: a file each, named by the run, that
// says which folder is the run's. Its owner holds a lock on it, which the kernel
// releases however the owner ends.
const registry = "/run/windlass-e2e"

// register makes a new run known, whose folder is dir, until its lock is closed.
func register(dir string) (run string, lock io.Closer, err error) {
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp(registry, "run-")
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteString(dir); err != nil {
		return "", nil, errors.Join(err, f.Close())
	}
	return filepath.Base(f.Name()), registration{f}, nil
}

// registration ends with the run's last trace.
type registration struct{ *os.File }

// Close makes the run unknown.
func (r registration) Close() error { return errors.Join(os.Remove(r.Name()), r.File.Close()) }

// removeLeftovers removes the cgroups and folders of runs whose owner lives no more. What
// else they had, the kernel has taken down with their processes.
func removeLeftovers() error {
	files, err := filepath.Glob(filepath.Join(registry, "run-*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := removeLeftover(file); err != nil {
			return fmt.Errorf("of run %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

func removeLeftover(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just closed
	}
	if err != nil {
		return err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // it lives
	}
	if err != nil {
		return err
	}
	dir, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has closed since we opened the file
	}
	if err != nil {
		return err
	}
	if err := (cgroups{run: filepath.Base(file)}).remove(""); err != nil {
		return err
	}
	if len(dir) == 0 {
		// Either it died in the middle of register, or it is there.
		return nil
	}
	if err := os.RemoveAll(strings.TrimSpace(string(dir))); err != nil {
		return err
	}
	return os.Remove(file)
}
