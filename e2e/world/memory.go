package world

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Process is a run of one of the two programs.
type Process struct {
	Pod, App, Node string
	PID            int
	Started        time.Time
}

// Processes returns the programs that run now, by the names of their pods.
func (w *World) Processes() []Process {
	var all []Process
	for _, p := range w.programs.find(func(p *programPod) bool { return p.runs.Load() != nil }) {
		if now := p.runs.Load(); now != nil {
			all = append(all, *now)
		}
	}
	return all
}

// Memory is what of a process is in memory, in bytes.
type Memory struct {
	// Resident is all of it, Anonymous what has no file behind it: heap and stacks.
	Resident, Anonymous int64
}

// MemoryOf asks the kernel, which must be Linux.
// https://www.kernel.org/doc/Documentation/ABI/testing/procfs-smaps_rollup
func MemoryOf(pid int) (Memory, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	defer f.Close()
	sizes := map[string]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
			sizes[name] = kib << 10
		}
	}
	if err := lines.Err(); err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return Memory{Resident: sizes["Rss"], Anonymous: sizes["Anonymous"]}, nil
}
