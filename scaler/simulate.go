package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/simulate"
	"windlass.dev/windlass/scaler/simulate/report"
	"windlass.dev/windlass/scaler/simulate/trace"
	"windlass.dev/windlass/scaler/simulate/world"
)

// simulateOptions are the flags of the command simulate alone.
type simulateOptions struct {
	snapshot, trace, format, world string
	days                           string
	pods                           int
	swing, divide                  float64
	ramp                           time.Duration
	sample, phase                  uint32
	seed                           uint64
	times                          int
	interval                       time.Duration
	live                           historyOptions
	compare                        inOrder
	sweep                          string
	output, page                   string
}

func simulateCommand(stdout io.Writer) *cobra.Command {
	var s settings
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Play the life of a cluster in virtual time, and say what it costs.",
		Long: `Play the life of a cluster in virtual time through the decisions of run, with
the flags given, and say what it costs beside what it must cost. Nothing is
changed, and nothing is reached but Prometheus where it is named,
and the API server with --shadow.

Pods come as a seed determines, from a file, as those of a saved snapshot may
go on, or as they did in a live cluster that Prometheus or a dry run has recorded.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && len(o.compare.files) == 0 {
				return fmt.Errorf("%q is no flag; files of flags come after --compare", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printSimulation(cmd.Context(), s, o, cmd.Flags(), stdout)
		},
	}
	s.register(cmd.Flags())
	f := cmd.Flags()
	f.StringVarP(&o.snapshot, "snapshot", "f", "", "go on from the snapshot in this file (- for standard input), which plan --snapshot-out wrote, with its groups")
	f.StringVar(&o.trace, "trace", "", "play the pods in this file; without one, and without a snapshot, they are generated")
	f.StringVar(&o.format, "trace-format", "openb", "how the file lists pods: openb (Alibaba cluster-trace-gpu-v2023), dlrm (cluster-trace-gpu-v2025), or pods: a history of a live cluster")
	o.live.register(f)
	f.StringVar(&o.days, "days", "2", "how many days, or which of a trace, as 119-124")
	f.IntVar(&o.pods, "pods", 500, "about how many pods there are, where they are generated")
	f.Float64Var(&o.swing, "swing", 0.3, "how far the replicas of a snapshot swing over the day, as a share of them")
	f.Float64Var(&o.divide, "divide", 1, "what requests of a trace are divided by")
	f.DurationVar(&o.ramp, "ramp", 0, "how long the pods that are alive at the start of a trace take to come; 0 has all of them come at once")
	f.Uint32Var(&o.sample, "sample", 0, "take one in so many services of a trace, by a hash of their names; 0 takes all")
	f.Uint32Var(&o.phase, "phase", 0, "which one of each --sample services is taken, from 0")
	f.StringVar(&o.world, "world", "", "what the cluster is made of: a file of groups, prices, times and rates; without one, nine groups of on-demand instances in one zone")
	f.Uint64Var(&o.seed, "seed", 1, "what determines all that is left to chance")
	f.IntVar(&o.times, "times", 1, "how often it is played, each time with the next seed for what is left to chance; pods that are generated stay the same")
	f.DurationVar(&o.interval, "interval", 0, "the least time between evaluations; 0 takes that of the world file, or else 1s; a longer one costs less to play, and pods wait longer")
	o.compare.flags = f
	f.Var(&o.compare, "compare", "play the same for each of these files of flags, as NAME: VALUE on each line")
	f.StringVar(&o.sweep, "sweep", "", "play the same for each combination of the values in this file, as NAME: [VALUE, VALUE] on each line")
	f.StringVarP(&o.output, "output", "o", asTable, "table or json")
	f.StringVar(&o.page, "html", "", "also write a page with charts and decisions to this file")
	return cmd
}

// inOrder are the files of --compare, given to the flag or beside it, in the order in which they
// are named.
type inOrder struct {
	flags *pflag.FlagSet
	files []string
	// beside is how many of the other arguments are among them.
	beside int
}

func (o *inOrder) Set(files string) error {
	o.files = append(o.all(), strings.Split(files, ",")...)
	o.beside = o.flags.NArg()
	return nil
}

// all has the arguments, too, that followed the flag.
func (o *inOrder) all() []string { return slices.Concat(o.files, o.flags.Args()[o.beside:]) }

func (o *inOrder) String() string { return strings.Join(o.files, ",") }

func (o *inOrder) Type() string { return "stringSlice" }

func printSimulation(ctx context.Context, s settings, o simulateOptions, flags *pflag.FlagSet, stdout io.Writer) error {
	if o.output != asTable && o.output != asJSON {
		return fmt.Errorf("--output=%s: want %s or %s", o.output, asTable, asJSON)
	}
	if o.times < 1 || o.times > mostTimes {
		return fmt.Errorf("--times=%d: want 1 to %d", o.times, mostTimes)
	}
	variants, err := variantsOf(&s, o, flags)
	if err != nil {
		return err
	}
	if err := o.checkInputs(flags); err != nil {
		return err
	}
	spec, played, err := o.stage(ctx, s)
	if err != nil {
		return err
	}
	got, err := simulated(ctx, func() (report.Report, error) { return simulate.Run(spec, played, o.seed, o.times, variants) })
	if err != nil {
		return err
	}
	if o.sweep != "" {
		got.Rank(slices.Sorted(maps.Keys(variants[0].Swept)))
	}
	if err := savePage(o.page, got); err != nil {
		return err
	}
	if o.output == asJSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(got)
	}
	return got.Table(stdout)
}

// mostTimes bounds how often the same is played.
const mostTimes = 1000

// roomy is how far the heap may grow between two collections, in percent: what a simulation
// keeps is little beside what it throws away.
const roomy = 400

// simulated lets people stop what may take minutes. The simulation itself knows of no context:
// it ends with the process.
func simulated(ctx context.Context, play func() (report.Report, error)) (report.Report, error) {
	type outcome struct {
		report report.Report
		err    error
	}
	defer debug.SetGCPercent(debug.SetGCPercent(roomy))
	done := make(chan outcome, 1)
	go func() {
		got, err := play()
		done <- outcome{got, err}
	}()
	select {
	case got := <-done:
		return got.report, got.err
	case <-ctx.Done():
		return report.Report{}, fmt.Errorf("simulating: %w", ctx.Err())
	}
}

// variantsOf are the policies to play: that of the flags, or those of files.
func variantsOf(s *settings, o simulateOptions, flags *pflag.FlagSet) ([]simulate.Variant, error) {
	if err := errors.Join(s.policy.Validate(), s.checkAssumptions()); err != nil {
		return nil, fmt.Errorf("wrong flags:\n%w", err)
	}
	how := "--compare"
	if o.sweep != "" {
		how = "--sweep"
		if len(o.compare.files) > 0 {
			return nil, errors.New("--sweep and --compare are two comparisons: want one of them")
		}
	}
	var own settings
	known := pflag.NewFlagSet("policy", pflag.ContinueOnError)
	own.register(known)
	var both, words []string
	flags.Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) != nil {
			both = append(both, "--"+f.Name)
			words = append(words, word(f.Name, f.Value))
		}
	})
	if len(o.compare.files) == 0 && o.sweep == "" {
		name := "these flags"
		if len(words) == 0 {
			name = "default flags"
		}
		return []simulate.Variant{{Name: name, Policy: s.policy, Flags: strings.Join(words, " ")}}, nil
	}
	both = slices.DeleteFunc(both, func(name string) bool {
		return slices.Contains([]string{"--price-file", "--spot-price-factor", "--kubeconfig", "--namespace"}, name)
	})
	if len(both) > 0 {
		return nil, fmt.Errorf("%s beside %s: write it into each file", strings.Join(both, ", "), how)
	}
	if o.sweep != "" {
		swept, err := readSweep(o.sweep)
		if err != nil {
			return nil, fmt.Errorf("--sweep=%s: %w", o.sweep, err)
		}
		return swept, nil
	}
	var variants []simulate.Variant
	for _, file := range o.compare.all() {
		v, err := readVariant(file)
		if err != nil {
			return nil, fmt.Errorf("reading the flags of %s: %w", file, err)
		}
		variants = append(variants, v)
	}
	return variants, nil
}

// word is a flag as people give it.
func word(name string, value any) string { return "--" + name + "=" + plain(value) }

// plain is a value of a file as a flag has it: no number with an exponent.
func plain(value any) string {
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// readVariant reads a file of flags. What it does not name has its default.
func readVariant(file string) (simulate.Variant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return simulate.Variant{}, err
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict(text, &given); err != nil {
		return simulate.Variant{}, err
	}
	p, words, err := policyOf(given)
	base := filepath.Base(file)
	return simulate.Variant{Name: strings.TrimSuffix(base, filepath.Ext(base)), Policy: p, Flags: words}, err
}

// policyOf is that of flags with their values, or several of them; and these as people give them.
func policyOf(given map[string]any) (policy.Policy, string, error) {
	var s settings
	flags := pflag.NewFlagSet("policy", pflag.ContinueOnError)
	s.registerPolicy(flags)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		values, several := given[name].([]any)
		if !several {
			values = []any{given[name]}
		}
		name = strings.TrimLeft(name, "-")
		if flags.Lookup(name) == nil && knownFlag(name) {
			return policy.Policy{}, "", fmt.Errorf("%s is not of the policy, and would make no difference here: give it on the command line, for all that are compared", name)
		}
		for _, v := range values {
			switch v.(type) {
			case string, float64, bool:
			default:
				return policy.Policy{}, "", fmt.Errorf("%s: want a value, or a list of values", name)
			}
			if err := flags.Set(name, plain(v)); err != nil {
				return policy.Policy{}, "", err
			}
			words = append(words, word(name, v))
		}
	}
	return s.policy, strings.Join(words, " "), s.policy.Validate()
}

// stage is the world and the pods that come to it.
func (o simulateOptions) stage(ctx context.Context, s settings) (world.Spec, trace.Trace, error) {
	spec := world.Default()
	if o.snapshot != "" {
		spec.Groups, spec.Prices = nil, pricesOf(s, spec.Prices)
	}
	if o.world != "" {
		text, err := os.ReadFile(o.world)
		if err != nil {
			return spec, trace.Trace{}, fmt.Errorf("--world: %w", err)
		}
		if spec, err = world.Parse(text); err != nil {
			return spec, trace.Trace{}, fmt.Errorf("--world=%s: %w", o.world, err)
		}
	}
	if o.interval > 0 {
		spec.Interval.Duration = o.interval
	}
	if !o.logged() {
		played, err := o.play(ctx, s)
		return spec, played, err
	}
	log, err := o.readLog(ctx, s)
	if err != nil {
		return spec, trace.Trace{}, err
	}
	if len(log.Groups) > 0 && o.snapshot == "" && o.world == "" {
		spec.Groups, spec.Prices = log.Groups, "those of the shadow's log"
	}
	played, err := o.playLog(log, s)
	return spec, played, err
}

// pricesOf says what the prices of a snapshot are, given what those of the program are.
func pricesOf(s settings, shipped string) string {
	own := ""
	if s.priceFile != "" {
		own = "those of " + s.priceFile + ", or else "
	}
	return "those of the snapshot; where it has none, " + own + shipped
}

func (o simulateOptions) play(ctx context.Context, s settings) (trace.Trace, error) {
	switch {
	case o.history():
		return o.readHistory(ctx, s)
	case o.trace != "":
		return o.readTrace()
	case o.snapshot == "":
		days, err := o.length()
		if err != nil {
			return trace.Trace{}, err
		}
		return trace.Generate(trace.Mix{Seed: o.seed, Days: days, Pods: o.pods})
	}
	days, err := o.length()
	if err != nil {
		return trace.Trace{}, err
	}
	snapshot, err := readSnapshot(o.snapshot)
	if err != nil {
		return trace.Trace{}, err
	}
	priced(&snapshot, s)
	return trace.FromSnapshot(snapshot, o.seed, days, o.swing)
}

func (o simulateOptions) readTrace() (trace.Trace, error) {
	format, known := trace.Formats[o.format]
	if !known {
		return trace.Trace{}, fmt.Errorf("--trace-format=%s: want one of %s", o.format, strings.Join(trace.FormatNames, ", "))
	}
	from, to, err := trace.ParseDays(o.days)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--days of a trace: %w", err)
	}
	file, err := os.Open(o.trace)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--trace: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	slice := o.slice()
	slice.From, slice.To = from, to
	t, err := format.Read(file, slice)
	if err != nil {
		return trace.Trace{}, fmt.Errorf("--trace=%s: %w", o.trace, err)
	}
	t.Name = fmt.Sprintf("%s, days %s", filepath.Base(o.trace), o.days)
	return t, nil
}

// slice is what is taken of pods that were there, but for its days.
func (o simulateOptions) slice() trace.Slice {
	return trace.Slice{Ramp: int64(o.ramp.Seconds()), Divide: o.divide, Sample: o.sample, Phase: o.phase}
}

// length is --days where they are a number.
func (o simulateOptions) length() (float64, error) {
	days, err := strconv.ParseFloat(o.days, 64)
	if err != nil {
		return 0, fmt.Errorf("--days=%s: want a number, as there is no --trace", o.days)
	}
	return days, nil
}

// priced gives node templates of a snapshot the prices that are known here.
func priced(snapshot *fleet.Snapshot, s settings) {
	for i := range snapshot.Groups {
		g := &snapshot.Groups[i]
		for j := range g.NodeTemplates {
			shape := &g.NodeTemplates[j]
			if shape.PricePerHour > 0 {
				continue
			}
			shape.PricePerHour = s.assume.Prices.Of(shape.Labels[corev1.LabelTopologyRegion], shape.InstanceType)
			if g.Spot {
				shape.PricePerHour *= s.assume.SpotFactor
			}
		}
	}
}

// savePage writes the page of a report; to nowhere without a name.
func savePage(name string, r report.Report) error {
	if name == "" {
		return nil
	}
	if err := os.WriteFile(name, []byte(r.Page()), 0o644); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}
