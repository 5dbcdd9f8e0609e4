package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"windlass.dev/windlass/e2e/world"
)

// page does what a section of a page tells people to do with kubectl, windlass-scaler and aws, word by
// word, at the root of the checkout: page FILE HEADING [PLACEHOLDER=WORD...].
func (s *session) page(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) < 2 {
		return errors.New("usage: page FILE HEADING [PLACEHOLDER=WORD...]")
	}
	placeholders := map[string]string{}
	for _, pair := range args[2:] {
		key, value, _ := strings.Cut(pair, "=")
		placeholders[key] = value
	}
	root, err := world.Root(s.ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, args[0]))
	if err != nil {
		return err
	}
	commands := commandsOf(string(text), args[1])
	if len(commands) == 0 {
		return fmt.Errorf("%s has no command under %q", args[0], args[1])
	}
	for _, command := range commands {
		ts.Logf("$ %s", command)
		words := strings.Fields(command)
		for i, word := range words {
			if value, is := placeholders[word]; is {
				words[i] = value
			}
		}
		out, err := s.shown(words, root)
		ts.Logf("%s", out)
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

// person is a command as a person runs it who may do everything, in the cluster and at AWS.
func (s *session) person(program string, args []string) (*exec.Cmd, error) {
	path := s.w.Plane.Kubectl
	if program == scalerProgram {
		programs, err := buildAll()
		if err != nil {
			return nil, err
		}
		path = programs.Scaler
	}
	cmd := exec.CommandContext(s.ctx, path, args...)
	cmd.Env = append(append(os.Environ(), s.w.Environment()...), "HOME="+s.w.Dir)
	return cmd, nil
}

const kubectlProgram, scalerProgram = "kubectl", "windlass-scaler"

// scaler runs windlass-scaler as a person would; stdout and stderr can be matched afterwards:
// [!] windlass-scaler ARGUMENT..., or windlass-scaler await REGEXP ARGUMENT... until it matches.
func (s *session) scaler(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	run := func(args []string) (stdout, stderr string, err error) {
		cmd, err := s.person(scalerProgram, args)
		if err != nil {
			return "", "", err
		}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		err = cmd.Run()
		return out.String(), errs.String(), err
	}
	if len(args) > 1 && args[0] == "await" && !neg {
		wanted, err := regexp.Compile("(?s)" + args[1])
		if err != nil {
			return err
		}
		return s.awaitOutput(ts, args, wanted, run)
	}
	stdout, stderr, err := run(args)
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

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	codeBlock = regexp.MustCompile(`(?m)^    +(\S.*)$`)
)

// commandsOf are those that a section of a document in Markdown has in code spans and blocks.
func commandsOf(document, heading string) []string {
	section := ""
	for _, level := range []string{"\n## ", "\n### "} {
		if _, after, is := strings.Cut(document, level+heading+"\n"); is {
			section, _, _ = strings.Cut(after, "\n## ")
			if level == "\n### " {
				section, _, _ = strings.Cut(section, level)
			}
		}
	}
	var commands []string
	for _, line := range strings.SplitAfter(section, "\n") {
		for _, code := range append(codeSpan.FindAllStringSubmatch(line, -1), codeBlock.FindAllStringSubmatch(line, -1)...) {
			if program, _, has := strings.Cut(code[1], " "); has && (program == kubectlProgram || program == scalerProgram || program == awsProgram) {
				commands = append(commands, code[1])
			}
		}
	}
	return commands
}

func TestCommandsOf(t *testing.T) {
	const document = "# A\n`kubectl get a`\n\n## Install it\n\n1. `make` and `kubectl apply -k b`,\n   `--dry-run` or not\n2. `kubectl get c`\n\n## Use it\n\n`kubectl get d`\n\n    kubectl get e\n    windlass-scaler uninstall --plan\n    windlass-scaler\n\n   `kubectl get f`\n\n## Last\n\n### First part\n\n    aws autoscaling x\n\n### Second part\n\n    kubectl get g\n"
	for heading, want := range map[string][]string{
		"Install it": {"kubectl apply -k b", "kubectl get c"},
		"Use it":     {"kubectl get d", "kubectl get e", "windlass-scaler uninstall --plan", "kubectl get f"},
		"Install":    nil,
		"First part": {"aws autoscaling x"},
		"Last":       {"aws autoscaling x", "kubectl get g"},
	} {
		if diff := cmp.Diff(want, commandsOf(document, heading)); diff != "" {
			t.Errorf("%s: %s", heading, diff)
		}
	}
}

// TestReadmeInstallsAsTheGuideDoes: what README shows of the way is what a script plays of
// the guide.
func TestReadmeInstallsAsTheGuideDoes(t *testing.T) {
	commands := func(file, heading string) []string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return commandsOf(string(text), heading)
	}
	short, played := commands("../README.md", "Install"), commands("../docs/operate/install.md", "Install it")
	if len(short) == 0 {
		t.Error("README has no kubectl command under Install")
	}
	for _, command := range short {
		if !slices.Contains(played, command) {
			t.Errorf("README has %q, which the guide does not: %q", command, played)
		}
	}
}
