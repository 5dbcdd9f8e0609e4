// Package traces has the windows of public traces, and generated times beside them, that tests
// play. The public traces are no part of the project: without them these tests are skipped.
package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"windlass.dev/windlass/scaler/simulate/trace"
)

// folderEnv names a folder with the traces.
const folderEnv = "WINDLASS_TRACES"

// Play runs a subtest for each window of a trace and for each generated time.
func Play(t *testing.T, test func(*testing.T, trace.Trace)) {
	folder := os.Getenv(folderEnv)
	if folder == "" {
		t.Skipf("%s names no folder with the traces", folderEnv)
	}
	const openb, dlrm, ramp = "openb_pods_until_day_139.csv", "dlrm_instances_until_day_24.csv", 12 * 3600
	for _, c := range []struct {
		format, file string
		slice        trace.Slice
	}{
		{"openb", openb, trace.Slice{From: 119, To: 124, Divide: 4}},
		{"openb", openb, trace.Slice{From: 124, To: 129, Divide: 4}},
		{"openb", openb, trace.Slice{From: 129, To: 134, Divide: 4}},
		{"openb", openb, trace.Slice{From: 134, To: 139, Divide: 4}},
		{"openb", openb, trace.Slice{From: 119, To: 124, Divide: 4, Ramp: ramp}},
		{"openb", openb, trace.Slice{From: 124, To: 129, Divide: 4, Ramp: ramp}},
		{"openb", openb, trace.Slice{From: 129, To: 134, Divide: 4, Ramp: ramp}},
		{"openb", openb, trace.Slice{From: 134, To: 139, Divide: 4, Ramp: ramp}},
		{"dlrm", dlrm, trace.Slice{From: 6, To: 10, Divide: 20, Sample: 24, Phase: 1}},
		{"dlrm", dlrm, trace.Slice{From: 8, To: 12, Divide: 20, Sample: 24, Phase: 2}},
		{"dlrm", dlrm, trace.Slice{From: 6, To: 10, Divide: 20, Sample: 24, Phase: 1, Ramp: ramp}},
		{"dlrm", dlrm, trace.Slice{From: 8, To: 12, Divide: 20, Sample: 24, Phase: 2, Ramp: ramp}},
	} {
		start := "cold"
		if c.slice.Ramp > 0 {
			start = "ramp"
		}
		name := fmt.Sprintf("%s %g-%g %s", c.format, c.slice.From, c.slice.To, start)
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join(folder, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }() // it was only read
			played, err := trace.Formats[c.format].Read(file, c.slice)
			if err != nil {
				t.Fatal(err)
			}
			played.Name = name
			test(t, played)
		})
	}
	for _, m := range []trace.Mix{{Seed: 1, Days: 7, Pods: 100}, {Seed: 2, Days: 4, Pods: 400}, {Seed: 3, Days: 1, Pods: 1_000}} {
		name := fmt.Sprintf("generated %d", m.Seed)
		t.Run(name, func(t *testing.T) {
			played, err := trace.Generate(m)
			if err != nil {
				t.Fatal(err)
			}
			played.Name = fmt.Sprintf("%s, %d pods", name, m.Pods)
			test(t, played)
		})
	}
}
