package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// execute runs the program with arguments, and returns what it says.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	err := c.ExecuteContext(ctx)
	return out.String(), err
}

func TestBadConfiguration(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		want []string
	}{
		{"no node name", nil, nil, []string{"is not known", "--node-name", "NODE_NAME"}},
		{"a name that no node has", []string{"--node-name=Web_1"}, nil, []string{`"Web_1"`, "NODE_NAME"}},
		{"unknown flag", []string{"--node", "n"}, nil, []string{"unknown flag: --node", "windlass-agent --help"}},
		{"arguments", []string{"n"}, nil, []string{`unknown command "n"`}},
		{"no duration", []string{"--imds-poll-interval=5"}, nil, []string{"--imds-poll-interval", `"5"`}},
		{"a flood", []string{"--imds-poll-interval=1ns"}, map[string]string{"NODE_NAME": "n"}, []string{"--imds-poll-interval is 1ns"}},
		{"no time to drain", []string{"--termination-drain-time=-1s"}, map[string]string{"NODE_NAME": "n"}, []string{"--termination-drain-time is -1s"}},
		{"two at once", []string{"--termination-drain-time=0"}, nil, []string{"--termination-drain-time", "NODE_NAME"}},
		{"log format", []string{"--log-format=xml"}, map[string]string{"NODE_NAME": "n"}, []string{`"xml"`}},
		{"no cluster", nil, map[string]string{"NODE_NAME": "n"}, []string{"--kubeconfig"}},
		{"no such kubeconfig", []string{"--kubeconfig=/nonexistent"}, map[string]string{"NODE_NAME": "n"}, []string{"/nonexistent"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, key := range []string{"NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
				t.Setenv(key, tc.env[key])
			}
			_, err := execute(t, tc.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	out, err := execute(t, "version")
	if err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("%q, %v", out, err)
	}
}

// The environment fills in for flags, and flags win.
func TestConfig(t *testing.T) {
	t.Setenv("NODE_NAME", "from-env")
	t.Setenv("POD_NAMESPACE", "ns")
	t.Setenv("POD_NAME", "pod")
	parse := func(args ...string) config {
		var c config
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		c.register(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := parse(); c.nodeName != "from-env" || c.identity() != "ns/pod" || c.check() != nil {
		t.Errorf("%+v: %v", c, c.check())
	}
	c := parse("--node-name=n", "--termination-drain-time=3m")
	if c.nodeName != "n" || c.policy().TerminationDrainTime != 3*time.Minute || c.policy().Version == "" {
		t.Errorf("%+v %+v", c, c.policy())
	}
}
