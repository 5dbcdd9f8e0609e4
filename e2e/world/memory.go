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
	// MemoryLimit is its container's, in bytes; 0 is none.
	MemoryLimit int64
}

// Processes returns the programs that run now, by the names of their pods; none of real
// machines, which hold them to their limits themselves.
func (w *World) Processes() []Process {
	if w.programs == nil {
		return nil
	}
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

// PeakOf is the most that a process has had in memory at once, in bytes, without what has a
// file behind it now.
// https://man7.org/linux/man-pages/man5/proc_pid_status.5.html
func PeakOf(pid int) (int64, error) {
	sizes, err := readSizes(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return sizes["VmHWM"] - sizes["RssFile"], nil
}

// MemoryOf asks the kernel, which must be Linux.
// https://www.kernel.org/doc/Documentation/ABI/testing/procfs-smaps_rollup
func MemoryOf(pid int) (Memory, error) {
	sizes, err := readSizes(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return Memory{Resident: sizes["Rss"], Anonymous: sizes["Anonymous"]}, nil
}

// readSizes reads the lines "name: number kB" of a file, in bytes.
func readSizes(file string) (map[string]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
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
	return sizes, lines.Err()
}
