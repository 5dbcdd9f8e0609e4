//go:build unix

// Pause is the first process of every pod on a real machine of the tests: it
// keeps the pod's namespaces while containers come and go, and reaps what they
// leave behind where they share its process namespace. It is small because its
// memory counts for the pod.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	// The first process of a process namespace gets no signal that it does not
	// ask for.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	pause(signals)
}

// pause reaps at every SIGCHLD and returns at any other signal.
func pause(signals <-chan os.Signal) {
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap collects every child that has ended; one SIGCHLD may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return // no child is left, or none that has ended
		}
	}
}
