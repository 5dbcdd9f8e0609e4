package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windlass.dev/windlass/pkg/contract"
)

// TestBadInput runs the programs as a person would who got something wrong: each
// ends at once with a status other than 0 and a short text that names the culprit
// and what to do.
func TestBadInput(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	programs, err := buildAll()
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := buildNotifier()
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{contract.AppAgent: programs.Agent, contract.AppScaler: programs.Scaler, contract.AppNotifier: notifier}
	files := badFiles(t)
	kubeconfig := "--kubeconfig=" + files["kubeconfig"]
	signed := []string{"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s"}
	for _, c := range []struct {
		what    string
		program string
		args    []string
		env     []string
		want    []string
	}{
		{"unknown flag", contract.AppScaler, []string{"run", "--nodez=0:5:web"}, nil, []string{"unknown flag: --nodez", "windlass-scaler run --help"}},
		{"unknown command", contract.AppScaler, []string{"walk"}, nil, []string{`unknown command "walk"`}},
		{"no groups", contract.AppScaler, []string{"run"}, nil, []string{"no groups", "--nodes=min:max:name", "--node-group-auto-discovery=asg:tag="}},
		{"malformed nodes", contract.AppScaler, []string{"run", "--nodes=5:web"}, nil, []string{"--nodes=5:web", "want min:max:name, such as 0:10:web"}},
		{"min above max", contract.AppScaler, []string{"run", "--nodes=5:1:web"}, nil, []string{"--nodes=5:1:web", "min 5 is greater than max 1"}},
		{"malformed discovery", contract.AppScaler, []string{"run", "--node-group-auto-discovery=label:a=b"}, nil, []string{"--node-group-auto-discovery=label:a=b", `does not begin with "asg:tag="`}},
		{"everything at once", contract.AppScaler, []string{"run", "--nodes=web", "--expander=roulette"}, nil, []string{"--nodes=web", `--expander names "roulette"`}},
		{"no cluster", contract.AppScaler, []string{"run", "--nodes=0:5:web"}, signed, []string{"--kubeconfig"}},
		{"no region", contract.AppScaler, []string{"run", "--nodes=0:5:web", kubeconfig}, nil, []string{"AWS_REGION"}},
		{"no credentials", contract.AppScaler, []string{"run", "--nodes=0:5:web", kubeconfig}, signed[:1], []string{"no valid AWS credentials", "IRSA", "AWS_ACCESS_KEY_ID"}},
		{"the address is taken", contract.AppScaler, []string{"run", "--nodes=0:5:web", kubeconfig, "--metrics-address=127.0.0.1:no"}, signed, []string{"--metrics-address=127.0.0.1:no"}},
		{"no such snapshot", contract.AppScaler, []string{"plan", "-f", "/no/such/file"}, nil, []string{"/no/such/file", "no such file"}},
		{"a snapshot that is no YAML", contract.AppScaler, []string{"plan", "-f", files["cut"]}, nil, []string{files["cut"], "this is no YAML", "line 2"}},
		{"a snapshot with an unknown field", contract.AppScaler, []string{"plan", "-f", files["field"]}, nil, []string{files["field"], `unknown field "groups[0].nmae"`}},
		{"a snapshot with a wrong value", contract.AppScaler, []string{"plan", "-f", files["value"]}, nil, []string{files["value"], "nodes[0].allocatable.cpu"}},
		{"an empty snapshot", contract.AppScaler, []string{"plan", "-f", files["empty"]}, nil, []string{files["empty"], "it has no field now"}},

		{"unknown flag", contract.AppAgent, []string{"--nodename=n"}, nil, []string{"unknown flag: --nodename", "windlass-agent --help"}},
		{"no node name", contract.AppAgent, []string{kubeconfig}, nil, []string{"NODE_NAME", "--node-name", "spec.nodeName"}},
		{"no name of a node", contract.AppAgent, []string{kubeconfig}, []string{"NODE_NAME=$(HOST)"}, []string{"NODE_NAME", `"$(HOST)"`}},
		{"no cluster", contract.AppAgent, nil, []string{"NODE_NAME=n"}, []string{"--kubeconfig"}},

		{"unknown flag", contract.AppNotifier, []string{"--configuration=x"}, nil, []string{"unknown flag: --configuration", "windlass-notifier --help"}},
		{"no configuration", contract.AppNotifier, []string{"--config=/no/such/file"}, nil, []string{"--config", "/no/such/file", "no such file"}},
		{"a configuration with an unknown field", contract.AppNotifier, []string{"--config=" + files["field"]}, nil, []string{files["field"], `unknown field "groups"`}},
		{"no secret", contract.AppNotifier, []string{"--config=" + files["notifier"], "--secrets=/no/such"}, nil, []string{"--secrets=/no/such", "service ops", "/no/such/url"}},
		{"no cluster", contract.AppNotifier, []string{"--config=" + files["sns"]}, nil, []string{"--kubeconfig"}},
	} {
		t.Run(strings.ReplaceAll(c.program+" "+c.what, " ", "_"), func(t *testing.T) {
			status, text := runProgram(t, binaries[c.program], c.args, c.env)
			if status != 1 {
				t.Errorf("status %d, want 1", status)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			if !strings.HasPrefix(text, c.program+": ") || strings.Count(text, "\n") > 3 {
				t.Errorf("want the program's name and a few lines:\n%s", text)
			}
		})
	}
}

// badFiles are what the programs are to read, by what is wrong with them.
func badFiles(t *testing.T) map[string]string {
	t.Helper()
	const now = "now: 2026-08-01T12:00:00Z\n"
	dir := t.TempDir()
	files := map[string]string{}
	for name, content := range map[string]string{
		"cut":      now + "groups: [{name: web, min: 1",
		"field":    now + "groups: [{nmae: web}]\n",
		"value":    now + "nodes: [{name: a, allocatable: {cpu: four}}]\n",
		"empty":    "",
		"notifier": "services: [{name: ops, webhook: {secret: url}}]\n",
		"sns":      "services: [{name: ops, sns: {topic: 'arn:aws:sns:eu-west-1:111122223333:ops'}}]\n",
		"kubeconfig": `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],` +
			`"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`,
	} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// runProgram runs a program in an environment of its own until it ends, and
// returns its exit status and what it says on standard error.
func runProgram(t *testing.T, binary string, args, env []string) (status int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append([]string{
		"HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}, env...)
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("it did not end:\n%s", out.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}
