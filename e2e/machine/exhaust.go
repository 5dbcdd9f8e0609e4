package machine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sharedMemory is a file system in memory, whose pages are charged to who wrote them.
const sharedMemory = "/dev/shm"

// spare is what is left to a container's limit by what is written on its account: less
// than any program needs.
const spare = 2 << 20

// Exhaust has the kernel kill a container's main process for its memory limit. What it
// lacks is written into a file in memory on the container's account, by a process so
// small that the kernel finds the program a better choice. id is the container's, as
// its status has it.
func (y *Yard) Exhaust(ctx context.Context, podUID, id string) error {
	m, group, err := y.host(podUID)
	if err != nil {
		return err
	}
	_, id, _ = strings.Cut(id, "://")
	group = filepath.Join(cgroupRoot, "memory", group, id)
	limit, err := readNumber(filepath.Join(group, "memory.limit_in_bytes"))
	if err != nil {
		return fmt.Errorf("exhausting a container on machine %s: %w", m.id, err)
	}
	file, err := os.CreateTemp(sharedMemory, "windlass-exhaust-")
	if err != nil {
		return fmt.Errorf("exhausting a container on machine %s: %w", m.id, err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	const script = `echo $$ >"$0/cgroup.procs" && exec head -c "$1" /dev/zero`
	cmd := exec.CommandContext(ctx, "sh", "-c", script, group, fmt.Sprint(limit-spare))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("exhausting a container on machine %s: %w: %s", m.id, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
