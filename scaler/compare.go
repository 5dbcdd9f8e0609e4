package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/shadow/compare"
	"windlass.dev/windlass/scaler/shadow/record"
	traces "windlass.dev/windlass/scaler/shadow/seen"
	"windlass.dev/windlass/scaler/status/cas"
)

// asHTML is the form of a page.
const asHTML = "html"

// compareOptions are the flags of the command compare.
type compareOptions struct {
	kubeconfig, namespace, theirs string
	logs, events, activities      []string
	from, to, since               string
	output, page                  string
	scaleUp, scaleDown, timeout   time.Duration
}

func compareCommand(stdout io.Writer) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare what a Cluster Autoscaler did with what Windlass would have done.",
		Long: `Compare what a Cluster Autoscaler did with what Windlass would have done, by the
log that run --dry-run writes, and by what Cluster Autoscaler's Events, its
status and activities of Auto Scaling groups say. Nothing is changed.

All but activities is read from the cluster, or, where files of --log or --events
are given, from these alone.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printComparison(cmd.Context(), o, time.Now(), stdout)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *compareOptions) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it $KUBECONFIG or ~/.kube/config, as kubectl does")
	f.StringVar(&o.namespace, "namespace", defaultNamespace, "the namespace of the shadow, where its log is")
	f.StringVar(&o.theirs, "cluster-autoscaler-namespace", contract.NamespaceClusterAutoscaler, "the namespace of Cluster Autoscaler, where its status is")
	f.StringArrayVar(&o.logs, "log", nil, "read the log from this file, as kubectl get configmap -o yaml prints it, and nothing from the cluster; may be given several times")
	f.StringArrayVar(&o.events, "events", nil, "read Events from this file, as kubectl get events -A -o yaml prints them, and nothing from the cluster; may be given several times")
	f.StringArrayVar(&o.activities, "activities", nil, "read activities from this file, as aws autoscaling describe-scaling-activities prints them; may be given several times")
	f.StringVar(&o.from, "from", "", "when the time that is compared begins, as 2026-01-31 or 2026-01-31T12:00:00Z; without it with the first record")
	f.StringVar(&o.to, "to", "", "when that time ends; without it with the last record")
	f.StringVar(&o.since, "since", "", "compare the time up to the end that is as long as this, such as 7d or 12h")
	f.DurationVar(&o.scaleUp, "scale-up-window", time.Duration(compare.Usual.ScaleUp), "how far apart both sides may grow a group for the same pods")
	f.DurationVar(&o.scaleDown, "scale-down-window", time.Duration(compare.Usual.ScaleDown), "how far apart both sides may remove a node")
	f.StringVarP(&o.output, "output", "o", asTable, "table, json or html")
	f.StringVar(&o.page, "html", "", "also write a page with both timelines to this file")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long reading from the cluster may last")
}

func printComparison(ctx context.Context, o compareOptions, now time.Time, stdout io.Writer) error {
	in, err := o.span(now)
	if err != nil {
		return err
	}
	var r readings
	if err := r.readActivities(o.activities); err != nil {
		return err
	}
	if o.live() {
		err = r.readCluster(ctx, o)
	} else {
		err = r.readFiles(slices.Concat(o.logs, o.events), o.theirs)
	}
	if err != nil {
		return err
	}
	in.Log, in.Direct, in.Missing, in.Now = record.Read(r.chunks), r.direct, r.missing, now
	if o.since != "" && in.From.IsZero() { // up to the last record
		in.From = compare.Of(in).To.Add(-o.length())
	}
	got := compare.Of(in)
	if o.page != "" {
		if err := os.WriteFile(o.page, []byte(got.Page()), 0o644); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	switch o.output {
	case asJSON:
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(got)
	case asHTML:
		_, err := io.WriteString(stdout, got.Page())
		return err
	}
	return got.Table(stdout)
}

// span is which time is compared, and by which windows.
func (o compareOptions) span(now time.Time) (in compare.Input, err error) {
	var wrong []error
	if !slices.Contains([]string{asTable, asJSON, asHTML}, o.output) {
		wrong = append(wrong, fmt.Errorf("--output=%s: want %s, %s or %s", o.output, asTable, asJSON, asHTML))
	}
	for _, w := range []struct {
		name   string
		length time.Duration
	}{{"scale-up-window", o.scaleUp}, {"scale-down-window", o.scaleDown}} {
		if w.length <= 0 {
			wrong = append(wrong, fmt.Errorf("--%s=%s: want a time such as 5m", w.name, w.length))
		}
	}
	in.From, err = momentOf("from", o.from)
	wrong = append(wrong, err)
	in.To, err = momentOf("to", o.to)
	wrong = append(wrong, err)
	if o.since != "" && o.length() <= 0 {
		wrong = append(wrong, fmt.Errorf("--since=%s: want a time such as 7d or 12h", o.since))
	}
	if o.since != "" && o.from != "" {
		wrong = append(wrong, errors.New("--since and --from are two beginnings: want one of them"))
	}
	if err := errors.Join(wrong...); err != nil {
		return in, fmt.Errorf("wrong flags:\n%w", err)
	}
	if !in.To.IsZero() && in.To.Before(in.From) {
		return in, fmt.Errorf("--to=%s is before --from=%s", o.to, o.from)
	}
	if o.since != "" && o.live() && in.To.IsZero() {
		in.To = now
	}
	if o.since != "" && !in.To.IsZero() {
		in.From = in.To.Add(-o.length())
	}
	in.Windows = compare.Windows{ScaleUp: compare.Duration(o.scaleUp), ScaleDown: compare.Duration(o.scaleDown)}
	return in, nil
}

// live is true where the cluster is read.
func (o compareOptions) live() bool { return len(o.logs)+len(o.events) == 0 }

// length is --since; 0 where it is none.
func (o compareOptions) length() time.Duration {
	d, err := model.ParseDuration(o.since)
	if err != nil {
		return 0
	}
	return time.Duration(d)
}

// momentOf reads the flag of that name; zero where it is not given.
func momentOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && contract.IsDate(at) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s=%s: want a moment as 2026-01-31 or 2026-01-31T12:00:00Z", name, text)
}

// readings is what was read.
type readings struct {
	chunks []record.Chunk
	direct []record.Record
	// missing is what was not read.
	missing []string
}

// wanted is what a file has to have.
const wanted = "want config maps or Events, as kubectl get -o yaml prints them"

// take takes an object over, of whatever kind it is.
func (r *readings) take(raw []byte, theirs string) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return fmt.Errorf("%s: %w", wanted, err)
	}
	switch kind.Kind {
	case "List", "ConfigMapList", "EventList":
		var list struct{ Items []json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for i, item := range list.Items {
			if kind.Kind != "List" { // its items have no kind
				item = slices.Concat([]byte(`{"kind":"`+kind.Kind[:len(kind.Kind)-len("List")]+`",`), item[1:])
			}
			if err := r.take(item, theirs); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
	case "ConfigMap":
		var object corev1.ConfigMap
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		r.configMap(&object)
	case "Event":
		var e corev1.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		r.direct = append(r.direct, traces.OfEvent(&e, theirs)...)
	default:
		return fmt.Errorf("kind %q: %s", kind.Kind, wanted)
	}
	return nil
}

// configMap takes over a part of the log, or Cluster Autoscaler's status.
func (r *readings) configMap(object *corev1.ConfigMap) {
	if c, is := record.ChunkOf(object); is {
		r.chunks = append(r.chunks, c)
	}
	text, is := object.Data[contract.ClusterAutoscalerStatusKey]
	if !is || object.Name == contract.ConfigMapStatus || contract.IsOwnStatus(object.Annotations) {
		return // nothing, or what a Windlass has written
	}
	if s, err := cas.Parse(text); err == nil { // older ones are no YAML, and say less
		r.direct = append(r.direct, traces.OfStatus(s)...)
	}
}

func (r *readings) readFiles(names []string, theirs string) error {
	for _, name := range names {
		if err := r.readFile(name, theirs); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return nil
}

func (r *readings) readFile(name, theirs string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	documents := k8syaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(raw) > 0 && string(raw) != "null" {
			err = r.take(raw, theirs)
		}
		if err != nil {
			return err
		}
	}
}

func (r *readings) readActivities(names []string) error {
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("--activities: %w", err)
		}
		list, err := traces.ReadActivities(text)
		if err != nil {
			return fmt.Errorf("--activities=%s: %w", name, err)
		}
		for _, a := range list {
			r.direct = append(r.direct, traces.OfActivity(a)...)
		}
	}
	return nil
}

// mostEvents bounds how many Events are read: of an hour there are fewer, unless somebody makes
// many.
const mostEvents = 50_000

// readCluster reads the log, Events and the status.
func (r *readings) readCluster(ctx context.Context, o compareOptions) error {
	config, err := kube.ConfigOfUser(o.kubeconfig, program, telemetry.Version())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return r.read(ctx, client, o.namespace, o.theirs)
}

// readLog reads the log of a shadow.
func (r *readings) readLog(ctx context.Context, client kubernetes.Interface, ours string) error {
	maps := client.CoreV1().ConfigMaps(ours)
	for _, name := range contract.ConfigMapsShadowLog(record.Chunks) {
		object, err := maps.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading config map %s of namespace %s: %w", name, ours, err)
		}
		r.configMap(object)
	}
	return nil
}

func (r *readings) read(ctx context.Context, client kubernetes.Interface, ours, theirs string) error {
	if err := r.readLog(ctx, client, ours); err != nil {
		return err
	}
	object, err := client.CoreV1().ConfigMaps(theirs).Get(ctx, contract.ConfigMapClusterAutoscalerStatus, metav1.GetOptions{})
	if err == nil {
		r.configMap(object)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading config map %s of namespace %s: %w", contract.ConfigMapClusterAutoscalerStatus, theirs, err)
	}
	// What is believed comes first: of the others there may be any number.
	known := map[string]bool{}
	for _, place := range contract.AutoscalerPlaces(theirs) {
		if err := r.listEvents(ctx, client, place.Namespace, place.Selector().String(), theirs, known); err != nil {
			return err
		}
	}
	return r.listEvents(ctx, client, metav1.NamespaceAll, fields.OneTermEqualSelector("source", contract.AppClusterAutoscaler).String(), theirs, known)
}

// listEvents reads at most mostEvents, but for those that are known, by namespace and name.
func (r *readings) listEvents(ctx context.Context, client kubernetes.Interface, namespace, selector, theirs string, known map[string]bool) error {
	options := metav1.ListOptions{Limit: 500, FieldSelector: selector}
	for n := 0; ; {
		list, err := client.CoreV1().Events(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing Events of Cluster Autoscaler: %w", err)
		}
		for i := range list.Items {
			e := &list.Items[i]
			if key := e.Namespace + "/" + e.Name; !known[key] {
				known[key] = true
				r.direct = append(r.direct, traces.OfEvent(e, theirs)...)
			}
		}
		n += len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
		if n >= mostEvents {
			in := "all namespaces"
			if namespace != metav1.NamespaceAll {
				in = "namespace " + namespace
			}
			r.missing = append(r.missing, fmt.Sprintf("Events of %s beyond the first %d", in, n))
			return nil
		}
	}
}
