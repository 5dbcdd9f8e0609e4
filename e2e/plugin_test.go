package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// windlass runs kubectl windlass as a person would; stdout and stderr can be matched afterwards:
//
//	[!] windlass ARGUMENT...           once
//	windlass await REGEXP ARGUMENT...  until what it prints matches
//	windlass follow REGEXP ARGUMENT... until a line matches, and then interrupts it
//	windlass type REGEXP KEYS [REGEXP KEYS]... -- ARGUMENT...
//	                                   in a terminal: types keys, such as q or \r, once the screen matches
func (s *session) windlass(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	plugin, err := buildPlugin()
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "type" && !neg {
		return s.typed(ts, plugin, args[1:])
	}
	if len(args) < 2 || args[0] != "await" && args[0] != "follow" {
		stdout, stderr, err := s.plugin(ts, plugin, args)
		fmt.Fprint(ts.Stdout(), stdout)
		fmt.Fprint(ts.Stderr(), stderr)
		if neg && err == nil {
			return errors.New("unexpected success")
		}
		if neg {
			return nil
		}
		return err
	}
	wanted, err := regexp.Compile("(?s)" + args[1])
	if neg || err != nil {
		return errors.Join(err, errors.New("usage: [!] windlass [await|follow REGEXP] ARGUMENT..."))
	}
	if args[0] == "follow" {
		return s.follow(ts, plugin, wanted, args[2:])
	}
	return s.awaitOutput(ts, args, wanted, func(args []string) (string, string, error) { return s.plugin(ts, plugin, args) })
}

// awaitOutput runs a program until what it prints matches: await REGEXP ARGUMENT...
func (s *session) awaitOutput(ts *testscript.TestScript, args []string, wanted *regexp.Regexp, run func(args []string) (stdout, stderr string, err error)) error {
	seen := ""
	return s.until(strings.Join(args, " "), func() (bool, string) {
		stdout, stderr, err := run(args[2:])
		if stdout+stderr != "" { // or the script's time was over meanwhile
			seen = stdout + stderr
		}
		if err != nil || !wanted.MatchString(stdout) {
			return false, seen
		}
		fmt.Fprint(ts.Stdout(), stdout)
		return true, ""
	})
}

func (s *session) plugin(ts *testscript.TestScript, plugin string, args []string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := s.w.KubectlCommand(s.ctx, filepath.Dir(plugin), slices.Concat([]string{"windlass"}, args)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), &out, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("kubectl windlass %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), errs.String(), err
}

func (s *session) follow(ts *testscript.TestScript, plugin string, wanted *regexp.Regexp, args []string) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	cmd := s.w.KubectlCommand(ctx, filepath.Dir(plugin), slices.Concat([]string{"windlass"}, args)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	seen := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		seen += lines.Text() + "\n"
		if !wanted.MatchString(lines.Text()) {
			continue
		}
		fmt.Fprint(ts.Stdout(), seen)
		cancel()
		if _, err := io.Copy(io.Discard, out); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("it was interrupted: %w", err)
		}
		return nil
	}
	return fmt.Errorf("waiting for a line of kubectl windlass %s: %w; it printed\n%s", strings.Join(args, " "), errors.Join(cmd.Wait(), context.Cause(ctx)), seen)
}

// typed is over when the program has ended, which the last keys are for.
func (s *session) typed(ts *testscript.TestScript, plugin string, args []string) error {
	dashes := slices.Index(args, "--")
	if dashes < 2 || dashes%2 != 0 {
		return errors.New("usage: windlass type REGEXP KEYS [REGEXP KEYS]... -- ARGUMENT...")
	}
	steps := args[:dashes]
	const width, height = 100, 30
	cmd := s.w.KubectlCommand(s.ctx, filepath.Dir(plugin), slices.Concat([]string{"windlass"}, args[dashes+1:])...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: width, Rows: height})
	if err != nil {
		return err
	}
	defer terminal.Close()
	screen := vt.NewEmulator(width, height)
	answers := make(chan error, 1)
	go func() { // what a terminal says when it is asked what it is
		_, err := io.Copy(terminal, screen)
		answers <- err
	}()
	seen, buffer := "", make([]byte, 4096)
	for {
		n, read := terminal.Read(buffer)
		if _, err := screen.Write(buffer[:n]); err != nil {
			return err
		}
		if read != nil { // a pseudo terminal whose program has ended
			break
		}
		seen = screen.String()
		if len(steps) == 0 {
			continue
		}
		matches, err := regexp.MatchString(steps[0], seen)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		fmt.Fprintln(ts.Stdout(), seen)
		keys, err := strconv.Unquote(`"` + steps[1] + `"`)
		if err != nil {
			return fmt.Errorf("keys %s: %w", steps[1], err)
		}
		if _, err := io.WriteString(terminal, keys); err != nil {
			return err
		}
		steps = steps[2:]
	}
	err = errors.Join(cmd.Wait(), screen.InputPipe().(io.Closer).Close(), <-answers)
	if len(steps) > 0 || err != nil {
		return fmt.Errorf("waiting for %q on the screen of kubectl windlass: %w; it showed\n%s", steps, cmp.Or(err, errors.New("it has ended")), seen)
	}
	return nil
}
