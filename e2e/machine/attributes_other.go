//go:build !linux

package machine

import "syscall"

// initAttributes are never used: Enter fails, and with it all that follows.
func initAttributes() *syscall.SysProcAttr { return nil }
