package machine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile makes a file in memory, which is in no folder: its pages are charged to who
// writes them and are free when nobody has it open any more (memfd_create(2)).
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
