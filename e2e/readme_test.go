package e2e

import (
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

// page does what a section of a page tells people to do with kubectl, word by word, at the
// root of the checkout: page FILE HEADING.
func (s *session) page(ts *testscript.TestScript, neg bool, args []string) error {
	if s.w == nil {
		return errNoWorld
	}
	if neg || len(args) != 2 {
		return errors.New("usage: page FILE HEADING")
	}
	root, err := world.Root(s.ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, args[0]))
	if err != nil {
		return err
	}
	commands := kubectlCommands(string(text), args[1])
	if len(commands) == 0 {
		return fmt.Errorf("%s has no kubectl command under %q", args[0], args[1])
	}
	for _, command := range commands {
		ts.Logf("$ %s", command)
		words := strings.Fields(command)
		cmd := exec.CommandContext(s.ctx, s.w.Plane.Kubectl, words[1:]...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.w.Plane.Kubeconfig, "HOME="+s.w.Dir)
		out, err := cmd.CombinedOutput()
		ts.Logf("%s", out)
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

// kubectlCommands are those that a section of a document in Markdown has in code spans.
func kubectlCommands(document, heading string) []string {
	_, section, _ := strings.Cut(document, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for _, span := range codeSpan.FindAllStringSubmatch(section, -1) {
		if strings.HasPrefix(span[1], "kubectl ") {
			commands = append(commands, span[1])
		}
	}
	return commands
}

func TestKubectlCommands(t *testing.T) {
	const document = "# A\n`kubectl get a`\n\n## Install it\n\n1. `make` and `kubectl apply -k b`,\n   `--dry-run` or not\n2. `kubectl get c`\n\n## Use it\n\n`kubectl get d`\n"
	for heading, want := range map[string][]string{
		"Install it": {"kubectl apply -k b", "kubectl get c"},
		"Use it":     {"kubectl get d"},
		"Install":    nil,
	} {
		if diff := cmp.Diff(want, kubectlCommands(document, heading)); diff != "" {
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
		return kubectlCommands(string(text), heading)
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
