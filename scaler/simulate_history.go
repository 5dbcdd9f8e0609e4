package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/simulate/prometheus"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// asPods is the format of a file that has a history.
const asPods = "pods"

// historyOptions are where the pods of a live cluster are read from, and which time of them.
type historyOptions struct {
	source        prometheus.Source
	headers       []string
	window, until string
}

func (h *historyOptions) register(f *pflag.FlagSet) {
	f.StringVar(&h.source.URL, "prometheus", "", "play the pods that Prometheus at this URL has recorded of kube-state-metrics; with --snapshot beside it, on its groups and nodes and with what its pods need")
	f.StringVar(&h.source.TokenFile, "prometheus-token-file", "", "a file with a bearer token for it")
	f.StringArrayVar(&h.headers, "prometheus-header", nil, "a header for it, as NAME=VALUE; may be given several times")
	f.StringVar(&h.source.Match, "prometheus-match", "", `matchers that its series are asked for by, such as cluster="prod",namespace!="test"`)
	f.StringVar(&h.window, "window", "7d", "how long a time of --prometheus, or of a --trace in the format pods, is played")
	f.StringVar(&h.until, "until", "", "when that time ends, as 2026-01-31 or 2026-01-31T12:00:00Z; without it now, or with the last moment of the file")
}

// history is true where pods of a live cluster are played.
func (o simulateOptions) history() bool {
	return o.live.source.URL != "" || o.trace != "" && o.format == asPods
}

// checkInputs refuses flags that are of another input than the one that is given.
func (o simulateOptions) checkInputs(flags *pflag.FlagSet) error {
	switch {
	case o.live.source.URL != "" && o.trace != "":
		return errors.New("--prometheus and --trace are two histories: want one of them")
	case o.snapshot != "" && o.trace != "" && o.format != asPods:
		return errors.New("--snapshot and --trace are two worlds: want one of them, or a trace in the format pods")
	}
	recorded, listed := o.live.source.URL != "", o.trace != ""
	const (
		history    = "is for a history: want --prometheus, or --trace with --trace-format=pods"
		prometheus = "is for a history from Prometheus: want --prometheus"
		there      = "is for pods that were there: want --trace or --prometheus"
	)
	for _, flag := range []struct {
		name   string
		means  bool
		remedy string
	}{
		{"days", !o.history(), "is for other inputs: want --window, and --until where it does not end now"},
		{"window", o.history(), history},
		{"until", o.history(), history},
		{"prometheus-token-file", recorded, prometheus},
		{"prometheus-header", recorded, prometheus},
		{"prometheus-match", recorded, prometheus},
		{"trace-format", listed, "is for a file of pods: want --trace"},
		{"pods", !recorded && !listed && o.snapshot == "", "is for pods that are generated: leave it out, or --snapshot, --trace and --prometheus"},
		{"swing", !recorded && !listed && o.snapshot != "", "is for pods of a snapshot that go on: want --snapshot, and neither --trace nor --prometheus"},
		{"divide", recorded || listed, there},
		{"ramp", recorded || listed, there},
		{"sample", recorded || listed, there},
		{"phase", o.sample > 0 && (recorded || listed), "is which of the services that --sample divides: want --sample, and --trace or --prometheus"},
		{"price-file", o.snapshot != "", "is for groups of a snapshot: want --snapshot, or prices in the file of --world"},
		{"spot-prices", false, "asks EC2, which a simulation does not: want --spot-price-factor"},
		{"spot-price-factor", o.snapshot != "", "is for groups of a snapshot: want --snapshot, or prices in the file of --world"},
	} {
		if flags.Changed(flag.name) && !flag.means {
			return fmt.Errorf("--%s %s", flag.name, flag.remedy)
		}
	}
	return nil
}

// part reads --window and --until.
func (o simulateOptions) part() (trace.Window, error) {
	length, err := model.ParseDuration(o.live.window)
	if err != nil || length <= 0 {
		return trace.Window{}, fmt.Errorf("--window=%s: want a time such as 7d or 36h", o.live.window)
	}
	w := trace.Window{Length: time.Duration(length), Slice: o.slice()}
	w.Until, err = momentOf("until", o.live.until)
	return w, err
}

// readHistory has the pods of a live cluster come and end as they did.
func (o simulateOptions) readHistory(ctx context.Context, s settings) (trace.Trace, error) {
	w, err := o.part()
	if err != nil {
		return trace.Trace{}, err
	}
	var snapshot *fleet.Snapshot
	if o.snapshot != "" {
		read, err := readSnapshot(o.snapshot)
		if err != nil {
			return trace.Trace{}, err
		}
		priced(&read, s)
		snapshot = &read
	}
	if o.trace != "" {
		return o.fromFile(w, snapshot)
	}
	source := o.live.source
	if source.Header, err = headersOf(o.live.headers); err != nil {
		return trace.Trace{}, err
	}
	now := time.Now()
	if w.Until.IsZero() || w.Until.After(now) {
		w.Until = now
	}
	if err := w.Check(); err != nil {
		return trace.Trace{}, err
	}
	history, err := prometheus.Read(ctx, source, w.Until.Add(-w.Length), w.Until)
	if err != nil {
		return trace.Trace{}, err
	}
	return history.Trace("pods that Prometheus has recorded", w, snapshot)
}

func (o simulateOptions) fromFile(w trace.Window, snapshot *fleet.Snapshot) (trace.Trace, error) {
	file, err := os.Open(o.trace)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--trace: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	history, err := trace.ReadPods(file)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--trace=%s: %w", o.trace, err)
	}
	t, err := history.Trace(filepath.Base(o.trace), w, snapshot)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--trace=%s: %w", o.trace, err)
	}
	return t, nil
}

// headersOf reads NAME=VALUE. An error does not show a value, which may be a secret.
func headersOf(list []string) (http.Header, error) {
	headers := http.Header{}
	for _, h := range list {
		name, value, whole := strings.Cut(h, "=")
		if !whole || name == "" || strings.ContainsAny(name, " :") { // as in "Authorization: Bearer …="
			return nil, fmt.Errorf("--prometheus-header=%s…: want NAME=VALUE", name[:min(len(name), 3)])
		}
		headers.Add(name, value)
	}
	return headers, nil
}
