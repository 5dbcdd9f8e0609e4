package main

import "syscall"

// childAttributes: a group of its own, so that an interrupt typed in the
// terminal reaches the supervisor alone, which then ends its children in order;
// and death with the supervisor, even if that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
