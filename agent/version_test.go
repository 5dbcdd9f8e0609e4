package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/telemetry"
)

func TestVersion(t *testing.T) {
	want := contract.AppAgent + " version " + telemetry.ThisBuild().String() + "\n"
	for _, arg := range []string{"version", "--version"} {
		if out, err := execute(t, arg); err != nil || out != want {
			t.Errorf("%s: %q, %v; want %q", arg, out, err, want)
		}
	}
}

// The first line of a log names the build.
func TestFirstLogLine(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	logs := &firstLine{seen: stop}
	c := command()
	c.SetArgs([]string{"--node-name=n", "--log-format=json", "--kubeconfig=" + kubeconfig})
	c.SetErr(logs)
	if err := c.ExecuteContext(ctx); err != nil {
		t.Fatal(err)
	}
	var line struct{ Version, Revision, Go string }
	if err := json.Unmarshal(logs.text, &line); err != nil {
		t.Fatalf("%v: %s", err, logs.text)
	}
	if got := telemetry.Build(line); got != telemetry.ThisBuild() {
		t.Errorf("%s tells %v, this is %v", logs.text, got, telemetry.ThisBuild())
	}
}

// firstLine keeps the first line of a log and signals that it is there.
type firstLine struct {
	once sync.Once
	text []byte
	seen func()
}

func (f *firstLine) Write(p []byte) (int, error) {
	f.once.Do(func() {
		f.text = append(f.text, p...)
		f.seen()
	})
	return len(p), nil
}
