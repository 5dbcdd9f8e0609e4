// Boot is the init of a test machine: it runs as process 1 in namespaces that package
// machine made, makes of them what an instance's own system is to a kubelet, and starts
// what runs there. Killing it is pulling the plug: the kernel ends all that it started.
//
// It is two processes. The first only reaps, as process 1 has to: processes whose parents
// have ended become its own, and waiting for any child would take the ends of those that
// os/exec waits for. The second, its one child, does the work.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"windlass.dev/windlass/e2e/machine"
)

// work is the argument of the second process.
const work = "work"

func main() {
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "boot:", err)
		status = 1
	}
	os.Exit(status)
}

func run() (status int, err error) {
	switch {
	case os.Getpid() == 1:
		return reap()
	case os.Getppid() == 1 && len(os.Args) == 2 && os.Args[1] == work:
		return 0, obey(context.Background(), os.Stdin, os.Stdout)
	}
	return 0, errors.New("this is the init of a test machine; package machine starts it, as process 1 of its own namespaces")
}

// reap starts the second process and waits for every process until that one has ended.
func reap() (status int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	child, err := os.StartProcess(self, []string{self, work}, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}
	for {
		var ended syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ended, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("waiting for processes: %w", err)
		}
		if pid == child.Pid {
			return ended.ExitStatus(), nil
		}
	}
}

// obey carries out the order, then commands until there are no more.
func obey(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return lines.Err()
	}
	var order machine.Order
	if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	answers := json.NewEncoder(out)
	s, err := boot(ctx, order)
	if err := answers.Encode(answer(err)); err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	if err != nil {
		return err
	}
	for lines.Scan() {
		if err := answers.Encode(answer(s.do(lines.Text()))); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return lines.Err()
}

func answer(err error) machine.Answer {
	if err != nil {
		return machine.Answer{Error: err.Error()}
	}
	return machine.Answer{}
}
