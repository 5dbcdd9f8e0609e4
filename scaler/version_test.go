package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/telemetry"
)

func TestVersion(t *testing.T) {
	want := contract.AppScaler + " version " + telemetry.ThisBuild().String() + "\n"
	for _, arg := range []string{"version", "--version"} {
		var out strings.Builder
		if err := run(t.Context(), []string{arg}, &out, io.Discard); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", arg, out.String(), err, want)
		}
	}
}

// The first line of a log names the build.
func TestFirstLogLine(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "k")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	ctx, stop := context.WithCancel(t.Context())
	logs := &firstLine{seen: stop}
	args := []string{"run", "--nodes=0:5:web", "--metrics-address=", "--log-format=json", "--kubeconfig=" + kubeconfig(t, "http://127.0.0.1:1")}
	if err := run(ctx, args, io.Discard, logs); err != nil {
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
