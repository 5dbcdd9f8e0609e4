package machine

import (
	"errors"
	"syscall"
	"time"
)

// patience is how long processes that were killed may take to let go of what is removed.
// The kernel tells nobody when they have.
const (
	patience = 15 * time.Second
	askAgain = 50 * time.Millisecond
)

// patiently removes something that dying processes may still be in, or still be writing to.
func patiently(remove func() error) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(askAgain) {
		err := remove()
		inUse := errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)
		if !inUse || time.Now().After(deadline) {
			return err
		}
	}
}
