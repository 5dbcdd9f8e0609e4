package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// imageName is the machine from whose disk all others get theirs, as an AMI is made of
// an instance: importing the images of containers takes longer than all the rest of a boot.
const imageName = "image"

// makeImage boots that machine for as long as the import takes.
func (y *Yard) makeImage(ctx context.Context) error {
	m := &machine{yard: y, id: imageName, dir: filepath.Join(y.Dir, imageName)}
	o, err := m.system()
	if err != nil {
		return err
	}
	for i, archive := range y.Images {
		o.Images = append(o.Images, o.lend(archive, fmt.Sprintf("images/%d-%s", i, filepath.Base(archive))))
	}
	o.AlsoCalled = alsoCalled
	now, err := m.startInit()
	if err != nil {
		return err
	}
	return errors.Join(now.order(ctx, o), now.kill())
}

// makeDisk gives the machine what its containerd shall have, if it has no disk. What
// containerd has unpacked it never writes to again, so that machines can share it, by
// links; its databases are the machine's own. The disk gets its name when it is whole.
func (m *machine) makeDisk() error {
	disk := m.path(diskFolder, "containerd")
	if _, err := os.Stat(disk); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := disk + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.MkdirAll(m.path(diskFolder), 0o755); err != nil {
		return err
	}
	if err := copyDisk(filepath.Join(m.yard.Dir, imageName, diskFolder, "containerd"), unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, disk)
}

func copyDisk(from, to string) error {
	if err := runCommand(exec.Command("cp", "--archive", "--link", from, to), ""); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".db" {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return runCommand(exec.Command("cp", "--archive", "--remove-destination", path, filepath.Join(to, name)), "")
	})
}
