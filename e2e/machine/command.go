package machine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// run runs a command to its end and gives it stdin; the error carries what it said.
func run(ctx context.Context, stdin, name string, args ...string) error {
	return runCommand(exec.CommandContext(ctx, name, args...), stdin)
}

func runCommand(cmd *exec.Cmd, stdin string) error {
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &said, &said
	if err := StartLasting(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
