package telemetry

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestJSONLinesAreObjects(t *testing.T) {
	var out bytes.Buffer
	logger, err := NewLogger(&out, LogFlags{Format: "json", Level: "info"})
	if err != nil {
		t.Fatal(err)
	}
	logger.Debug("below the level")
	logger.Info("group grows", "group", "web", "to", 5)

	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("log is not exactly one JSON object: %v\n%s", err, out.String())
	}
	if line["msg"] != "group grows" || line["group"] != "web" {
		t.Errorf("unexpected line: %v", line)
	}
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		args    []string
		wantErr string
	}{
		{args: nil},
		{args: []string{"-log-format=json", "-log-level=DEBUG"}},
		{args: []string{"-log-format=xml"}, wantErr: `log format "xml"`},
		{args: []string{"-log-level=loud"}, wantErr: `log level "loud"`},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			var flags LogFlags
			set := flag.NewFlagSet("test", flag.ContinueOnError)
			flags.Register(set)
			if err := set.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			_, err := NewLogger(&bytes.Buffer{}, flags)
			if got := errText(err); !strings.Contains(got, tc.wantErr) || (tc.wantErr == "") != (err == nil) {
				t.Errorf("error %q, want %q", got, tc.wantErr)
			}
		})
	}
}

func TestClientLibrariesLogThroughUs(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { SetDefault(before) })
	var out bytes.Buffer
	logger, err := NewLogger(&out, LogFlags{})
	if err != nil {
		t.Fatal(err)
	}
	SetDefault(logger)

	klog.Warning("watch closed")
	klog.Flush()
	if got := out.String(); !strings.Contains(got, "watch closed") || !strings.Contains(got, "component=client-go") {
		t.Errorf("klog's line did not arrive: %q", got)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
