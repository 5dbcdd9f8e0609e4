package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// registry is where runs are known on this host: a file each, that says which folder is
// the run's. Its owner holds a lock on it, which the kernel releases however the owner
// ends.
const registry = "/run/windlass-e2e"

// What a run's file is called tells what is removed after it, if its owner was killed.
const (
	runKind    = "run-"    // a yard: its cgroups, which have the file's name, and its disks
	folderKind = "folder-" // a temporary folder: all of it
)

// Own makes a temporary folder known as this process's own: if it is killed, the next yard
// that is opened on this host removes the folder and all that is in it. It must be root.
// The answer is closed when the folder has been removed.
func Own(dir string) (io.Closer, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	_, lock, err := register(folderKind, dir)
	if err != nil {
		return nil, fmt.Errorf("registering folder %s: %w", dir, err)
	}
	return lock, nil
}

// temporaryFolder makes a folder of our own, which end removes.
func temporaryFolder() (dir string, end func() error, err error) {
	if dir, err = os.MkdirTemp("", "windlass-machines-"); err != nil {
		return "", nil, err
	}
	owned, err := Own(dir)
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(dir))
	}
	end = func() error {
		if err := patiently(func() error { return os.RemoveAll(dir) }); err != nil {
			return err // and it stays known, so that the next yard tries again
		}
		return owned.Close()
	}
	return dir, end, nil
}

// register makes a new run known, whose folder is dir, until its lock is closed.
func register(kind, dir string) (run string, lock io.Closer, err error) {
	all, err := lockRegistry()
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	f, err := os.CreateTemp(registry, kind)
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

// lockRegistry keeps others from looking at a run that is half known, and from removing
// what is being removed, until the answer is closed.
func lockRegistry() (io.Closer, error) {
	if err := os.MkdirAll(registry, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.Open(registry)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// registration ends with the run's last trace.
type registration struct{ *os.File }

// Close makes the run unknown.
func (r registration) Close() error { return errors.Join(os.Remove(r.Name()), r.File.Close()) }

// removeLeftovers removes the cgroups and folders of runs whose owner lives no more. What
// else they had, the kernel has taken down with their processes.
func removeLeftovers() error {
	all, err := lockRegistry()
	if err != nil {
		return err
	}
	defer all.Close()
	// When a yard's cgroups are gone, nobody writes to the folder that it was in.
	for _, kind := range []string{runKind, folderKind} {
		files, err := filepath.Glob(filepath.Join(registry, kind+"*"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := removeLeftover(kind, file); err != nil {
				return fmt.Errorf("of %s: %w", file, err)
			}
		}
	}
	return nil
}

func removeLeftover(kind, file string) error {
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
	if len(dir) > 0 { // else it was killed as it registered, and had made nothing
		if err := removeWhatIsOf(kind, filepath.Base(file), string(dir)); err != nil {
			return err
		}
	}
	return os.Remove(file)
}

// removeWhatIsOf removes what a run of a kind has left. The logs of a yard stay, as Close
// leaves them: its folder may be one that somebody named to find them in.
func removeWhatIsOf(kind, run, dir string) error {
	if kind == folderKind {
		return patiently(func() error { return os.RemoveAll(dir) })
	}
	if err := (cgroups{run: run}).remove(""); err != nil {
		return err
	}
	machines, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, machine := range machines {
		disk := filepath.Join(dir, machine.Name(), diskFolder)
		if err := patiently(func() error { return os.RemoveAll(disk) }); err != nil {
			return err
		}
	}
	return nil
}
