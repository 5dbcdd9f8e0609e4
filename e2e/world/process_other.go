//go:build !linux

package world

import "syscall"

// childAttributes: a process group of its own. Without Linux's parent-death
// signal a child outlives us if we are killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
