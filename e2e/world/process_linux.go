package world

import "syscall"

// childAttributes: a process group of its own, and death with us however we end.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
