package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ReadFile reads a file as the programs of a machine that is on see it, whose mounts are
// their own.
func (y *Yard) ReadFile(id, name string) ([]byte, error) {
	m, err := y.find(id)
	if err != nil {
		return nil, err
	}
	pid, err := m.pid()
	if err != nil {
		return nil, fmt.Errorf("reading %s on machine %s: %w", name, id, err)
	}
	return os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "root", name))
}

// pid is that of the machine's init.
func (m *machine) pid() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil {
		return 0, errors.New("it is off")
	}
	return m.now.cmd.Process.Pid, nil
}
