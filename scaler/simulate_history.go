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
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/shadow/record"
	"windlass.dev/windlass/scaler/simulate/prometheus"
	"windlass.dev/windlass/scaler/simulate/shadowlog"
	"windlass.dev/windlass/scaler/simulate/trace"
)

// asPods is the format of a file that has a history.
const asPods = "pods"

// historyOptions are where the pods of a live cluster are read from, and which time of them.
type historyOptions struct {
	source        prometheus.Source
	headers       []string
	logs          []string
	shadow        bool
	window, until string
}

func (h *historyOptions) register(f *pflag.FlagSet) {
	f.StringVar(&h.source.URL, "prometheus", "", "play the pods that Prometheus at this URL has recorded of kube-state-metrics; with --snapshot beside it, on its groups and nodes and with what its pods need")
	f.StringVar(&h.source.TokenFile, "prometheus-token-file", "", "a file with a bearer token for it")
	f.StringArrayVar(&h.headers, "prometheus-header", nil, "a header for it, as NAME=VALUE; may be given several times")
	f.StringVar(&h.source.Match, "prometheus-match", "", `matchers that its series are asked for by, such as cluster="prod",namespace!="test"`)
	f.StringArrayVar(&h.logs, "log", nil, "play the pods in the log of a dry run, from this file, as kubectl get configmap -o yaml prints it, on the groups that the log has; may be given several times; with --snapshot beside it, on its groups and nodes and with what its pods need")
	f.BoolVar(&h.shadow, "shadow", false, "the same, with the log in the ConfigMaps of --namespace, which are read by --kubeconfig")
	f.StringVar(&h.window, "window", "7d", "how long a time of --prometheus, --log, --shadow, or of a --trace in the format pods, is played")
	f.StringVar(&h.until, "until", "", "when that time ends, as 2026-01-31 or 2026-01-31T12:00:00Z; without it now, or with the last moment of the file or the log")
}

// history is true where pods of a live cluster are played.
func (o simulateOptions) history() bool {
	return o.live.source.URL != "" || o.logged() || o.trace != "" && o.format == asPods
}

// logged is true where pods are those in the log of a shadow.
func (o simulateOptions) logged() bool { return o.live.shadow || len(o.live.logs) > 0 }

// checkInputs refuses flags that are of another input than the one that is given.
func (o simulateOptions) checkInputs(flags *pflag.FlagSet) error {
	switch {
	case o.live.source.URL != "" && o.trace != "":
		return errors.New("--prometheus and --trace are two histories: want one of them")
	case o.live.shadow && len(o.live.logs) > 0:
		return errors.New("--shadow reads the log in the cluster, and --log files: want one of them")
	case o.logged() && (o.live.source.URL != "" || o.trace != ""):
		return errors.New("the log of a dry run is a history of its own: want neither --prometheus nor --trace beside it")
	case o.snapshot != "" && o.trace != "" && o.format != asPods:
		return errors.New("--snapshot and --trace are two worlds: want one of them, or a trace in the format pods")
	}
	recorded, listed := o.live.source.URL != "", o.trace != ""
	were := recorded || listed || o.logged()
	const (
		history    = "is for a history: want --prometheus, --log, --shadow, or --trace with --trace-format=pods"
		prometheus = "is for a history from Prometheus: want --prometheus"
		there      = "is for pods that were there: want --trace, --prometheus, --log or --shadow"
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
		{"pods", !were && o.snapshot == "", "is for pods that are generated: leave it out, or --snapshot and whatever names a history"},
		{"swing", !were && o.snapshot != "", "is for pods of a snapshot that go on: want --snapshot, and no history"},
		{"divide", were, there},
		{"ramp", were, there},
		{"sample", were, there},
		{"phase", o.sample > 0 && were, "is which of the services that --sample divides: want --sample, and --trace, --prometheus, --log or --shadow"},
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
	snapshot, err := o.beside(s)
	if err != nil {
		return trace.Trace{}, err
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

// beside is the snapshot beside a history; nil without one.
func (o simulateOptions) beside(s settings) (*fleet.Snapshot, error) {
	if o.snapshot == "" {
		return nil, nil
	}
	snapshot, err := readSnapshot(o.snapshot)
	if err != nil {
		return nil, err
	}
	priced(&snapshot, s)
	return &snapshot, nil
}

// logTime is how long reading a log from the cluster may last.
const logTime = 30 * time.Second

// readLog reads the log of a shadow, from files or from the cluster.
func (o simulateOptions) readLog(ctx context.Context, s settings) (shadowlog.Log, error) {
	var r readings
	err := r.readFiles(o.live.logs, contract.NamespaceClusterAutoscaler)
	if o.live.shadow {
		err = r.readLogOf(ctx, s)
	}
	if err != nil {
		return shadowlog.Log{}, err
	}
	if len(r.chunks) == 0 {
		where := "the files of --log"
		if o.live.shadow {
			where = "namespace " + s.namespace
		}
		return shadowlog.Log{}, fmt.Errorf("in %s there is no log of a dry run: run --dry-run writes it to ConfigMaps %s-log-00 and on", where, contract.ConfigMapShadow)
	}
	log, err := shadowlog.Of(record.Read(r.chunks))
	if err != nil {
		return shadowlog.Log{}, fmt.Errorf("reading the log of the shadow: %w", err)
	}
	return log, nil
}

func (r *readings) readLogOf(ctx context.Context, s settings) error {
	config, err := kube.ConfigOfUser(s.kubeconfig, program, telemetry.Version())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	return r.readLog(ctx, client, s.namespace)
}

// playLog has the pods of a log come and end as they did.
func (o simulateOptions) playLog(log shadowlog.Log, s settings) (trace.Trace, error) {
	w, err := o.part()
	if err != nil {
		return trace.Trace{}, err
	}
	snapshot, err := o.beside(s)
	if err != nil {
		return trace.Trace{}, err
	}
	played, err := log.History.Trace("pods that a shadow has logged", w, snapshot)
	played.Lacks = log.Lacks
	return played, err
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
