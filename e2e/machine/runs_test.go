//go:build linux

package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Of runs that have died, what takes space is removed, and no log; those that live keep
// all that they have.
func TestRemoveLeftovers(t *testing.T) {
	needMachines(t)
	dir := t.TempDir()
	for _, name := range []string{"dead/i-1/disk/layer", "dead/i-1/logs/boot.log", "temporary/program", "live/i-1/disk/layer"} {
		if err := write(filepath.Join(dir, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	dead := []string{
		die(t, runKind, filepath.Join(dir, "dead")),
		die(t, runKind, filepath.Join(dir, "never made")),
		die(t, runKind, ""), // before it had said what its folder is
		die(t, folderKind, filepath.Join(dir, "temporary")),
	}
	live, lock, err := register(runKind, filepath.Join(dir, "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := removeLeftovers(); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(dead, filepath.Join(dir, "dead/i-1/disk"), filepath.Join(dir, "temporary")) {
		if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", name, err)
		}
	}
	for _, name := range []string{filepath.Join(registry, live), filepath.Join(dir, "live/i-1/disk/layer"), filepath.Join(dir, "dead/i-1/logs/boot.log")} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// die registers a run as one that is killed does, whose locks the kernel releases.
func die(t *testing.T, kind, dir string) (file string) {
	t.Helper()
	run, lock, err := register(kind, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.(registration).File.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(registry, run)
}
