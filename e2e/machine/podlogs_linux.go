package machine

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// podLogs keeps the logs of pods, which the kubelet removes with the pod and which go
// with a machine's disk. It hears of new files from the kernel (inotify(7)) and gives
// each a second name in another folder.
type podLogs struct {
	log    *slog.Logger
	fd     int
	events *os.File // the same, to be read

	mu     sync.Mutex
	places map[int32]place // by watch
}

// place is a folder that is watched, and where what appears in it is kept.
type place struct {
	root      string // of the machine that it is of
	dir, kept string
	depth     int // of folders below it
}

// depth is how many folders lead from a machine's folder of pods' logs to a file: pod and
// container.
const depth = 2

func newPodLogs(log *slog.Logger) (*podLogs, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching the logs of pods: %w", err)
	}
	// Not blocking, so that Close ends a Read; (*os.File).Fd would make it block.
	l := &podLogs{log: log, fd: fd, events: os.NewFile(uintptr(fd), "inotify"), places: map[int32]place{}}
	go l.listen()
	return l, nil
}

// keep keeps what appears below dir until leave.
func (l *podLogs) keep(dir, kept string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watch(place{root: dir, dir: dir, kept: kept, depth: depth})
}

// watch watches a folder and takes what is in it already; l.mu is held.
func (l *podLogs) watch(p place) error {
	id, err := syscall.InotifyAddWatch(l.fd, p.dir, syscall.IN_CREATE|syscall.IN_MOVED_TO|syscall.IN_ONLYDIR)
	if errors.Is(err, syscall.ENOENT) {
		return nil // gone before we came
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", p.dir, err)
	}
	l.places[int32(id)] = p
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := l.take(p, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

// take keeps a file, or watches a folder; l.mu is held.
func (l *podLogs) take(p place, name string) error {
	dir, kept := filepath.Join(p.dir, name), filepath.Join(p.kept, name)
	if p.depth == 0 {
		return link(dir, kept)
	}
	return l.watch(place{root: p.root, dir: dir, kept: kept, depth: p.depth - 1})
}

// leave takes what there is, of which the kernel may not have told us yet, and watches no
// more.
func (l *podLogs) leave(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.takeAll(dir)}
	for id, p := range l.places {
		if p.root != dir {
			continue
		}
		delete(l.places, id)
		// A folder that was removed is watched no more.
		if _, err := syscall.InotifyRmWatch(l.fd, uint32(id)); err != nil && !errors.Is(err, syscall.EINVAL) {
			errs = append(errs, fmt.Errorf("watching %s no more: %w", p.dir, err))
		}
	}
	return errors.Join(errs...)
}

// takeAll takes what is in a machine's folder, or in everybody's if none is named;
// l.mu is held.
func (l *podLogs) takeAll(root string) error {
	var errs []error
	for _, p := range slices.Collect(maps.Values(l.places)) {
		if p.dir == p.root && (root == "" || root == p.root) {
			errs = append(errs, l.watch(p))
		}
	}
	return errors.Join(errs...)
}

func (l *podLogs) close() error { return l.events.Close() }

// listen follows the kernel's events until close.
func (l *podLogs) listen() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.events.Read(buffer)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				l.log.Error("the logs of pods are not kept any more", "error", err)
			}
			return
		}
		for at := 0; at < n; {
			event := (*syscall.InotifyEvent)(unsafe.Pointer(&buffer[at]))
			at += syscall.SizeofInotifyEvent
			name := strings.TrimRight(string(buffer[at:at+int(event.Len)]), "\x00")
			at += int(event.Len)
			l.handle(event.Wd, event.Mask, name)
		}
	}
}

func (l *podLogs) handle(id int32, mask uint32, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mask&syscall.IN_Q_OVERFLOW != 0 {
		l.log.Warn("the kernel lost count of the logs of pods: all folders are read again; a log that was removed meanwhile is lost")
		if err := l.takeAll(""); err != nil {
			l.log.Error("logs of pods are not kept", "error", err)
		}
		return
	}
	p, watched := l.places[id]
	if mask&syscall.IN_IGNORED != 0 {
		delete(l.places, id)
		return
	}
	if !watched {
		return
	}
	if err := l.take(p, name); err != nil {
		l.log.Error("a pod's log is not kept", "log", filepath.Join(p.dir, name), "error", err)
	}
}
