package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropStartPages gives up the pages of the program's own file that are mapped: to start has used most of
// them, and the kernel maps those around each, too. What is used from then on it maps again from its page
// cache; the others it can drop from there at once where memory is short.
func dropStartPages() error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program's file: %w", err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("reading what is mapped: %w", err)
	}
	mapped := unwritten(string(smaps), own)
	if len(mapped) == 0 {
		return fmt.Errorf("%s is not among what is mapped", own)
	}
	for _, m := range mapped {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("giving up the pages of %s: %w", own, errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unwritten are the mappings of a file that nobody can write to, and nobody has: what the dynamic linker
// has relocated cannot be read from the file again. smaps is as in
// https://docs.kernel.org/filesystems/proc.html
func unwritten(smaps, file string) (found []mapping) {
	var at mapping
	candidate := false
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if start, end, isRange := strings.Cut(fields[0], "-"); isRange {
			from, startErr := strconv.ParseUint(start, 16, 64)
			to, endErr := strconv.ParseUint(end, 16, 64)
			at = mapping{uintptr(from), uintptr(to)}
			candidate = startErr == nil && endErr == nil && !strings.Contains(fields[1], "w") && strings.HasSuffix(strings.TrimSpace(line), " "+file)
			continue
		}
		switch fields[0] { // in this order
		case "Anonymous:":
			candidate = candidate && fields[1] == "0"
		case "Swap:":
			if candidate && fields[1] == "0" {
				found = append(found, at)
			}
		}
	}
	return found
}
