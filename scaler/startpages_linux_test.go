package main

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// The program goes on, and of its file no more is mapped than it uses.
func TestDropStartPages(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	const populateRead = 22 // MADV_POPULATE_READ of Linux 5.14
	for _, m := range unwritten(string(smaps), own) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, populateRead); errno != 0 {
			t.Skipf("this kernel does not map all of a file: %v", errno)
		}
	}
	before := memoryOf(t, os.Getpid())["RssFile"]
	if err := dropStartPages(); err != nil {
		t.Fatal(err)
	}
	if after := memoryOf(t, os.Getpid())["RssFile"]; after > before/2 {
		t.Errorf("%.1f MiB of the file are mapped, before %.1f", after, before)
	}
}

// Only what the file still has is given up: not what is written, and not what was relocated.
func TestGivenUpIsInTheFile(t *testing.T) {
	const smaps = `00400000-01c68000 r-xp 00000000 fe:00 10404383                           /bin/the program
Size:              24992 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
01c68000-035f4000 r--p 01868000 fe:00 10404383                           /bin/the program
Anonymous:             4 kB
Swap:                  0 kB
035f4000-036cb000 rw-p 031f4000 fe:00 10404383                           /bin/the program
Anonymous:             0 kB
Swap:                  0 kB
036ca000-036cb000 r--p 031f4000 fe:00 10404383                           /bin/the program
Anonymous:             0 kB
Swap:                  4 kB
036cb000-036cc000 r--p 031f4000 fe:00 10404383                           /bin/another program
Anonymous:             0 kB
Swap:                  0 kB
036cc000-036cd000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
036cd000-036ce000 r--p 03200000 fe:00 10404383                           /bin/the program
Anonymous:             0 kB
Swap:                  0 kB
`
	want := []mapping{{0x400000, 0x1c68000}, {0x36cd000, 0x36ce000}}
	if got := unwritten(smaps, "/bin/the program"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
