//go:build !linux

package main

import "syscall"

// childAttributes: a group of its own, so that an interrupt typed in the
// terminal reaches the supervisor alone, which then ends its children in order.
// Without Linux's parent-death signal they outlive a supervisor that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
