package machine

import "syscall"

// initAttributes make a process the first of a machine: it has processes, mounts, a
// network, a name and shared memory of its own, and dies with us.
func initAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // a terminal's interrupt is the test's affair
	}
}
