//go:build linux

package machine

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A machine loses its power before anybody has heard of what its pods wrote last.
func TestPodLogsAtTheEnd(t *testing.T) {
	l, disk, kept := deafPodLogs(t)
	if err := l.keep(disk, kept); err != nil {
		t.Fatal(err)
	}
	files := writePodLogs(t, disk)
	if err := l.leave(disk); err != nil {
		t.Fatal(err)
	}
	wantKept(t, kept, files)
	if len(l.places) > 0 {
		t.Errorf("these are still watched: %v", l.places)
	}
}

// Where the kernel has lost count of what happened, nothing that is there gets lost, on
// no machine.
func TestPodLogsTooMany(t *testing.T) {
	l, disk, kept := deafPodLogs(t)
	other, otherKept := t.TempDir(), t.TempDir()
	for from, to := range map[string]string{disk: kept, other: otherKept} {
		if err := l.keep(from, to); err != nil {
			t.Fatal(err)
		}
	}
	files, others := writePodLogs(t, disk), writePodLogs(t, other)
	l.handle(-1, syscall.IN_Q_OVERFLOW, "")
	wantKept(t, kept, files)
	wantKept(t, otherKept, others)
}

// deafPodLogs never hears from the kernel, and so has to look.
func deafPodLogs(t *testing.T) (l *podLogs, disk, kept string) {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return &podLogs{log: slog.New(slog.DiscardHandler), fd: fd, places: map[int32]place{}}, t.TempDir(), t.TempDir()
}

// writePodLogs writes logs as a kubelet does, and tells their names.
func writePodLogs(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for n := range 3 {
		file := filepath.Join(fmt.Sprintf("ns_web-%d_uid%d", n, n), "main", "0.log")
		if err := write(filepath.Join(dir, file), []byte("said\n")); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func wantKept(t *testing.T, kept string, files []string) {
	t.Helper()
	for _, file := range files {
		if content, err := os.ReadFile(filepath.Join(kept, file)); err != nil || string(content) != "said\n" {
			t.Errorf("of %s was kept %q (%v)", file, content, err)
		}
	}
}
