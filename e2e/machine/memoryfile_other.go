//go:build !linux

package machine

import "os"

// memoryFile is never asked for: there is no container.
func memoryFile(string) (*os.File, error) { return nil, errNotLinux }
