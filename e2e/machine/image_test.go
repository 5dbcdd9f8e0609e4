//go:build linux

package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// cpWithoutDatabases is a cp that makes links and then has no space left.
const cpWithoutDatabases = `#!/bin/sh
case "$*" in *--link*) exec /bin/cp "$@";; esac
echo "No space left on device" >&2
exit 1
`

// A disk that could not be finished is none: the machine would write into the image's
// databases.
func TestUnfinishedDisk(t *testing.T) {
	y := &Yard{Config: Config{Dir: t.TempDir()}}
	m := &machine{yard: y, dir: filepath.Join(y.Dir, "i-1")}
	image := filepath.Join(y.Dir, imageName, diskFolder, "containerd")
	disk := m.path(diskFolder, "containerd")
	for _, name := range []string{"layers/blob", "meta/meta.db"} {
		if err := write(filepath.Join(image, name), []byte("unpacked")); err != nil {
			t.Fatal(err)
		}
	}
	path, failing := os.Getenv("PATH"), t.TempDir()
	if err := os.WriteFile(filepath.Join(failing, "cp"), []byte(cpWithoutDatabases), 0o755); err != nil {
		t.Fatal(err)
	}

	t.Setenv("PATH", failing+":"+path)
	if err := m.makeDisk(); err == nil {
		t.Error("a copy has failed, and the disk was made")
	}
	if _, err := os.Stat(disk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a disk is there (%v)", err)
	}

	t.Setenv("PATH", path)
	if err := m.makeDisk(); err != nil {
		t.Fatal(err)
	}
	if !sameFile(t, filepath.Join(image, "layers/blob"), filepath.Join(disk, "layers/blob")) {
		t.Error("what nobody writes to was copied")
	}
	if sameFile(t, filepath.Join(image, "meta/meta.db"), filepath.Join(disk, "meta/meta.db")) {
		t.Error("the machine has the image's database")
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Stat(b)
	if err != nil {
		t.Fatal(err)
	}
	return os.SameFile(one, other)
}
