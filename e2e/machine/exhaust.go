package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// spare is what is left to a container's limit by what is written on its account: less
// than any program needs.
const spare = 2 << 20

// Exhaust has the kernel kill a container's main process for its memory limit. What it
// lacks is written into a file in memory on the container's account, by a process so
// small that the kernel finds the program a better choice. id is the container's, as
// its status has it. A container without a limit is refused: it would be the host's
// memory that is exhausted.
func (y *Yard) Exhaust(ctx context.Context, podUID, id string) error {
	m, pod, err := y.host(podUID)
	if err != nil {
		return err
	}
	_, id, _ = strings.Cut(id, "://")
	group := filepath.Join(cgroupRoot, "memory", pod, id)
	if err := exhaust(ctx, group, m.memory()); err != nil {
		return fmt.Errorf("exhausting container %s on machine %s: %w", id, m.id, err)
	}
	return nil
}

// exhaust does so to the processes of a memory cgroup, on a machine of so many bytes.
func exhaust(ctx context.Context, group string, machine int64) error {
	limit, err := readNumber(filepath.Join(group, "memory.limit_in_bytes"))
	if err != nil {
		return err
	}
	if limit > machine {
		return fmt.Errorf("it has no memory limit, or one above the %d MiB of its machine; give it one", machine>>20)
	}
	before, err := killedForMemory(group)
	if err != nil {
		return err
	}
	// Nobody else can open it, and it ends with those who have it open.
	file, err := memoryFile("exhaust")
	if err != nil {
		return err
	}
	defer file.Close()
	const script = `echo $$ >"$0/cgroup.procs" && exec head -c "$1" /dev/zero`
	cmd := exec.CommandContext(ctx, "sh", "-c", script, group, fmt.Sprint(max(0, limit-spare)))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &said
	if err := cmd.Run(); err != nil && !othersKilled(group, before) {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// othersKilled reports whether a writer that has failed was the second to be killed: the
// kernel does not always wait until the first has given back its memory. Who finds no
// cgroup any more comes after the whole container's end.
func othersKilled(group string, before int64) bool {
	now, err := killedForMemory(group)
	return errors.Is(err, fs.ErrNotExist) || err == nil && now > before+1
}

// killedForMemory counts the processes of a cgroup that the kernel has killed for its limit.
func killedForMemory(group string) (int64, error) {
	state, err := readNumbers(filepath.Join(group, "memory.oom_control"))
	return state["oom_kill"], err
}
