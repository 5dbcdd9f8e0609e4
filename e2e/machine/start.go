package machine

import (
	"os/exec"
	"runtime"
)

// StartLasting starts cmd from a thread that lasts as long as we do: Linux sends a
// child its parent-death signal when the thread that started it ends, and the Go
// runtime ends threads as it likes, except one that a goroutine is locked to.
func StartLasting(cmd *exec.Cmd) error {
	result := make(chan error)
	starts <- func() { result <- cmd.Start() }
	return <-result
}

var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}
