package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
)

// name is the program's, by which kubectl finds it.
const name = "kubectl-windlass"

// defaultSystem is where the manifests put Windlass.
const defaultSystem = "windlass-system"

// cli is what all commands share.
type cli struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	// system is the namespace of windlass-scaler.
	system string
	// unattended is a client whose login plugins have no terminal, as a view has it.
	unattended bool
	// now is the time, that of the API server once it has answered; connect makes a client of the flags.
	// Tests have others.
	now     func() time.Time
	connect func() (kubernetes.Interface, error)
	// forward reaches a port of a pod.
	forward func(ctx context.Context, pod *corev1.Pod, port int) (base string, stop func(), err error)
}

func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) error {
	c := &cli{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams), now: time.Now}
	c.connect, c.forward = c.client, c.portForward
	return c.run(ctx, args)
}

func (c *cli) run(ctx context.Context, args []string) error {
	root := c.root()
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         "Say what Windlass does in this cluster, and why.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl windlass"},
		Version:       telemetry.ThisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	c.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&c.system, "windlass-namespace", defaultSystem, "the namespace of windlass-scaler, where the ConfigMap windlass-status is")
	root.AddCommand(c.statusCommand(), c.topCommand(), c.whyCommand(), c.costCommand(), c.eventsCommand(),
		c.planCommand(), c.checkCommand(), c.holdCommand(), c.unholdCommand(), c.drainCommand(), c.undrainCommand(), c.versionCommand(root))
	c.completeFlags(root)
	return root
}

func (c *cli) versionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.Out, name, "version", root.Version)
			return err
		},
	}
}

// client sends what it asks at once: few calls for people, of which none repeats.
func (c *cli) client() (kubernetes.Interface, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	if plugin := config.ExecProvider; c.unattended && plugin != nil {
		without := *plugin // the kubeconfig's own
		without.StdinUnavailable, without.StdinUnavailableMessage = true, "kubectl windlass top has the terminal; log in, and begin it anew"
		config.ExecProvider = &without
	}
	clock := kube.NewClock()
	clock.Follow(config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	c.now = clock.Now
	return client, nil
}

// namespace is that of pods without one.
func (c *cli) namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}
