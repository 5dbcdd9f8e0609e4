package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/migrate"
)

// The forms in which migrate answers.
const (
	asKustomize = "kustomize"
	asHelm      = "helm"
)

var migrateOutputs = []string{asKustomize, asHelm, asJSON, asTable}

type migrateOptions struct {
	autoscaler, handler  []string // files
	chosen               chosen
	kubeconfig, output   string
	namespace, manifests string
	stdin                io.Reader
}

// chosen is what people name where several run. Anybody may run a program under such a name.
type chosen struct {
	deployment string // NAMESPACE/NAME of Cluster Autoscaler
	namespace  string // of the Node Termination Handler
}

// undecided is the answer of a migration that is not whole. Its exit code is one of its own.
type undecided int

const undecidedCode = 2

func (n undecided) Error() string {
	return fmt.Sprintf("%d of what was given need a decision, see the report", int(n))
}

func migrateCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	o := migrateOptions{stdin: stdin}
	cmd := &cobra.Command{
		Use:   "migrate [FILE]...",
		Short: "Translate the settings of Cluster Autoscaler and the Node Termination Handler.",
		Long: `Translate the settings of Cluster Autoscaler and of the Node Termination Handler
into an overlay for kustomize or values of the chart, and say what means the same, what
has no counterpart, what behaves otherwise and what remains to be done.

A file has objects of Kubernetes, the values of a chart, or arguments, one a line or as a
command line; - is standard input. Without files what runs in the cluster is read. Nothing
is changed.

The exit code is 0 if all is translated, 2 if something needs a decision.`,
		RunE: func(cmd *cobra.Command, files []string) error {
			return o.run(cmd.Context(), files, stdout)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (o *migrateOptions) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.autoscaler, "cluster-autoscaler", nil, "a file of Cluster Autoscaler, where the file does not say whose it is; may be given several times")
	flags.StringArrayVar(&o.handler, "termination-handler", nil, "a file of the Node Termination Handler, where the file does not say whose it is; may be given several times")
	flags.StringVar(&o.chosen.deployment, "deployment", "", "the Deployment of Cluster Autoscaler in the cluster, as NAMESPACE/NAME, where several are found")
	flags.StringVar(&o.chosen.namespace, "handler-namespace", "", "the namespace of the Node Termination Handler in the cluster, where it is found in several")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; empty for $KUBECONFIG or ~/.kube/config, as kubectl has it")
	flags.StringVarP(&o.output, "output", "o", asKustomize, "kustomize, helm, json or table")
	flags.StringVar(&o.namespace, "namespace", defaultNamespace, "the namespace that Windlass gets")
	flags.StringVar(&o.manifests, "manifests", "../windlass/manifests", "where Windlass's manifests are, as the overlay's folder sees them")
}

func (o *migrateOptions) run(ctx context.Context, files []string, stdout io.Writer) error {
	if !slices.Contains(migrateOutputs, o.output) {
		return fmt.Errorf("--output=%s: want one of %v", o.output, migrateOutputs)
	}
	if wrong := validation.IsDNS1123Label(o.namespace); len(wrong) > 0 {
		return fmt.Errorf("--namespace=%s is no namespace: %s", o.namespace, wrong[0])
	}
	var in migrate.Input
	err := o.read(ctx, &in, files)
	if err != nil {
		return err
	}
	report := migrate.Translate(in, checkForeignValue)
	if err := checkTogether(report.Settings); err != nil {
		report.Decide = append(report.Decide, migrate.Item{Argument: migrate.Argument{Name: "the flags together"}, Why: err.Error()})
	}
	text, err := o.answer(report)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if !report.Done() {
		return undecided(len(report.Decide) + len(report.Unknown))
	}
	return nil
}

func (o *migrateOptions) answer(report migrate.Report) (string, error) {
	switch o.output {
	case asHelm:
		return report.Values()
	case asJSON:
		text, err := json.MarshalIndent(report, "", "  ")
		return string(text) + "\n", err
	case asTable:
		return report.Text(), nil
	}
	return report.Overlay(migrate.Place{Namespace: o.namespace, Manifests: o.manifests})
}

// read takes files, or what runs in the cluster where there are none.
func (o *migrateOptions) read(ctx context.Context, in *migrate.Input, files []string) error {
	if len(files)+len(o.autoscaler)+len(o.handler) == 0 {
		config, err := kube.ConfigOfUser(o.kubeconfig, program, telemetry.Version())
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client of the API server: %w", err)
		}
		return readRunning(ctx, client, in, o.chosen)
	}
	if o.chosen != (chosen{}) {
		return errors.New("--deployment and --handler-namespace are read from the cluster: give them without files")
	}
	for _, of := range []struct {
		program migrate.Program
		files   []string
	}{{"", files}, {migrate.Autoscaler, o.autoscaler}, {migrate.Handler, o.handler}} {
		for _, name := range of.files {
			text, err := o.readFile(name)
			if err != nil {
				return err
			}
			if err := in.AddFile(of.program, text, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads no more than one byte too much, which AddFile refuses.
func (o *migrateOptions) readFile(name string) (string, error) {
	from := o.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("reading settings: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, migrate.MostBytes+1))
	if err != nil {
		return "", fmt.Errorf("reading settings from %s: %w", name, err)
	}
	return string(text), nil
}

// readRunning takes what runs in the cluster: one Cluster Autoscaler, and the termination handlers of one
// namespace, of which there may be one for each operating system, each by its image or command.
func readRunning(ctx context.Context, client kubernetes.Interface, in *migrate.Input, chosen chosen) error {
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Deployments: %w", err)
	}
	daemons, err := client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing DaemonSets: %w", err)
	}
	running := map[migrate.Program][]migrate.Workload{}
	add := func(kind string, meta metav1.ObjectMeta, template corev1.PodTemplateSpec) {
		of, _, ok := migrate.Runs(template)
		switch {
		case !ok:
			return
		case of == migrate.Autoscaler && chosen.deployment != "" && meta.Namespace+"/"+meta.Name != chosen.deployment:
			return
		case of == migrate.Handler && chosen.namespace != "" && meta.Namespace != chosen.namespace:
			return
		}
		w := migrate.Workload{Kind: kind, Metadata: meta}
		w.Spec.Template = template
		running[of] = append(running[of], w)
	}
	for _, d := range deployments.Items {
		add("Deployment", d.ObjectMeta, d.Spec.Template)
	}
	for _, d := range daemons.Items {
		add("DaemonSet", d.ObjectMeta, d.Spec.Template)
	}
	autoscalers, handlers := running[migrate.Autoscaler], running[migrate.Handler]
	switch {
	case chosen.deployment != "" && len(autoscalers) == 0:
		return fmt.Errorf("--deployment=%s: there is none of that name with the image or command of Cluster Autoscaler", chosen.deployment)
	case chosen.namespace != "" && len(handlers) == 0:
		return fmt.Errorf("--handler-namespace=%s: there is none with the image or command of the Node Termination Handler", chosen.namespace)
	case slices.ContainsFunc(handlers, func(w migrate.Workload) bool { return w.Metadata.Namespace != handlers[0].Metadata.Namespace }):
		return fmt.Errorf("termination handlers run in several namespaces, %s: name one by --handler-namespace=NAMESPACE", namesOf(handlers))
	case len(autoscalers) > 1:
		return fmt.Errorf("several Cluster Autoscalers run, %s: name one by --deployment=NAMESPACE/NAME", namesOf(autoscalers))
	case len(autoscalers)+len(handlers) == 0:
		return errors.New("neither Cluster Autoscaler nor the Node Termination Handler runs in the cluster: give a file of its settings, or --kubeconfig of another cluster")
	}
	for _, w := range slices.Concat(autoscalers, handlers) {
		if err := in.AddWorkload(w); err != nil {
			return err
		}
	}
	if len(autoscalers) == 0 {
		return nil
	}
	return readBeside(ctx, client, in, autoscalers[0])
}

func namesOf(workloads []migrate.Workload) string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.String())
	}
	return strings.Join(names, ", ")
}

// readBeside takes what Cluster Autoscaler has beside its flags: the role of its account, and
// priorities.
func readBeside(ctx context.Context, client kubernetes.Interface, in *migrate.Input, w migrate.Workload) error {
	namespace := w.Metadata.Namespace
	if name := w.Spec.Template.Spec.ServiceAccountName; name != "" {
		account, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the service account of Cluster Autoscaler: %w", err)
		}
		if err == nil {
			in.TakeAccount(account.Annotations)
		}
	}
	priorities, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.ConfigMapPriorities, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the priorities of Cluster Autoscaler: %w", err)
	}
	return in.AddPriorities(priorities.Data, "ConfigMap "+namespace+"/"+priorities.Name)
}

// flagsOfRun are a new set of them.
func flagsOfRun(s *settings) *pflag.FlagSet {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.register(flags)
	s.registerRun(flags)
	return flags
}

// checkForeignValue says what is wrong with a value that somebody else's flag has given one of ours.
func checkForeignValue(flag, value string) error {
	var s settings
	if err := flagsOfRun(&s).Set(flag, value); err != nil {
		return err
	}
	var err error
	switch flag {
	case "nodes", "node-group-auto-discovery":
		_, err = asg.ParseSelection(s.nodes, s.discovery)
	default:
		err = s.checkPolicy()
	}
	return err
}

// checkTogether says what is wrong with flags that are sound one by one.
func checkTogether(from migrate.Settings) error {
	var s settings
	flags := flagsOfRun(&s)
	for _, f := range from.Scaler {
		if err := flags.Set(f.Flag, f.Value); err != nil {
			return err
		}
	}
	return s.checkPolicy()
}
