package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cgroupRoot is where cgroups of version 1 are mounted, one folder for each hierarchy,
// and cgroupPrefix how the names of ours begin there.
const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = "windlass-e2e-"
)

// systemGroup is the cgroup of a machine's own programs, beside the kubelet's for pods.
const systemGroup = "system"

// cgroups are those of one run. All machines share the host's hierarchies, in which each
// has a part of its own: windlass-e2e-RUN/MACHINE.
type cgroups struct{ run string }

// top holds those of all machines of the run.
func (c cgroups) top() string { return "/" + cgroupPrefix + c.run }

// root is what a machine's kubelet takes for the root of all cgroups.
func (c cgroups) root(machine string) string { return filepath.Join(c.top(), machine) }

// hierarchies are the folders of cgroupRoot that are hierarchies: those of version 1, and
// beside them that of version 2, which has no controllers then, where runc makes cgroups
// all the same. Names that are links lead to one of the others.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.procs")); err == nil {
		return nil, fmt.Errorf("%s is cgroup version 2; machines are made on version 1", cgroupRoot)
	}
	files, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, file := range files {
		dir := filepath.Dir(file)
		info, err := os.Lstat(dir)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			all = append(all, dir)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroup hierarchy of version 1 is mounted below %s", cgroupRoot)
	}
	return all, nil
}

// make makes a machine's cgroups, which the kubelet wants to find.
func (c cgroups) make(machine string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		group := hierarchy
		for _, name := range []string{c.top(), machine, systemGroup} {
			group = filepath.Join(group, name)
			if err := makeGroup(group); err != nil {
				return fmt.Errorf("making cgroup %s: %w", group, err)
			}
		}
	}
	return nil
}

// makeGroup makes one cgroup. Processors and memory nodes are not inherited in version 1,
// and without them no process can enter.
func makeGroup(group string) error {
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		parents, err := os.ReadFile(filepath.Join(filepath.Dir(group), file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another controller's
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, file), parents, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// system lists the files by which a process enters the cgroups of a machine's own programs.
func (c cgroups) system(machine string) ([]string, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, hierarchy := range all {
		files = append(files, filepath.Join(hierarchy, c.root(machine), systemGroup, "cgroup.procs"))
	}
	return files, nil
}

// remove removes a machine's cgroups, or the run's if no machine is named. Their
// processes have ended, or were killed and are about to.
func (c cgroups) remove(machine string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		if err := removeGroups(filepath.Join(hierarchy, c.root(machine))); err != nil {
			return err
		}
	}
	return nil
}

// removeGroups removes a cgroup and those below it, leaves first; the files in them are
// the kernel's.
func removeGroups(top string) error {
	var groups []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, group := range slices.Backward(groups) {
		err := patiently(func() error { return os.Remove(group) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing cgroup %s: %w", group, err)
		}
	}
	return nil
}

// pod finds the cgroup of a pod, below a hierarchy, if it runs on that machine. Pods of
// the Guaranteed class are beside the folders of the two others.
func (c cgroups) pod(machine, uid string) (group string, found bool) {
	for _, class := range []string{"", "burstable", "besteffort"} {
		group := filepath.Join(c.root(machine), "kubepods", class, "pod"+uid)
		if _, err := os.Stat(filepath.Join(cgroupRoot, "memory", group)); err == nil {
			return group, true
		}
	}
	return "", false
}

// usage reads what the processes of a cgroup and of those below it use.
// https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
func (c cgroups) usage(group string) (Usage, error) {
	memory := filepath.Join(cgroupRoot, "memory", group)
	all, err := readNumber(filepath.Join(memory, "memory.usage_in_bytes"))
	if err != nil {
		return Usage{}, err
	}
	parts, err := readNumbers(filepath.Join(memory, "memory.stat"))
	if err != nil {
		return Usage{}, err
	}
	cpu, err := readNumber(filepath.Join(cgroupRoot, "cpuacct", group, "cpuacct.usage"))
	if err != nil {
		return Usage{}, err
	}
	return Usage{
		MemoryBytes: all,
		WorkingSet:  max(0, all-parts["total_inactive_file"]),
		RSS:         parts["total_rss"],
		CPU:         time.Duration(cpu),
	}, nil
}

func readNumber(file string) (int64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
}

// readNumbers reads lines of a name and a number.
func readNumbers(file string) (map[string]int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	numbers := map[string]int64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if numbers[name], err = strconv.ParseInt(value, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return numbers, lines.Err()
}
