// Windlass-agent drains the node that it runs on in time: when EC2 or Auto
// Scaling takes its instance, and when somebody asks for it on the Node.
//
// It opens no port, holds no AWS rights, and asks the API server for nothing
// but one watch while there is nothing to do.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"windlass.dev/windlass/agent/evict"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
)

func main() {
	kube.NoticeSilence()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, contract.AppAgent+":", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var c config
	root := &cobra.Command{
		Use:   contract.AppAgent,
		Short: "Drains the node it runs on, in time.",
		// As cobra words it: a template of our own would link all of text/template, and
		// with it every method of every type, which doubles the program.
		Version:       telemetry.ThisBuild().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), c, cmd.ErrOrStderr()) },
	}
	c.register(root.Flags())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version.",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), root.Name(), "version", root.Version)
		},
	})
	return root
}

// run wires the parts together and goes on until ctx ends. It logs to logs.
func run(ctx context.Context, c config, logs io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	logger, err := telemetry.NewLogger(logs, c.log)
	if err != nil {
		return err
	}
	telemetry.SetDefault(logger)
	build := telemetry.ThisBuild()
	client, clock, err := connect(c, build.Version)
	if err != nil {
		return err
	}
	logger.Info("started", "node", c.nodeName, "pod", c.identity(), "version", build.Version, "revision", build.Revision, "go", build.Go)
	serve(ctx, c, client, clock, logger)
	logger.Info("stopped; the next agent of this node continues its drain")
	return nil
}

// connect returns a client of the API server, of which nothing is asked yet, and a clock that
// goes by its answers.
func connect(c config, version string) (*evict.Client, *kube.Clock, error) {
	rest, err := kube.Config(c.kubeconfig, contract.AppAgent, version)
	if err != nil {
		return nil, nil, err
	}
	clock := kube.NewClock()
	clock.Follow(rest)
	client, err := evict.New(rest, c.nodeName)
	return client, clock, err
}

func serve(ctx context.Context, c config, client *evict.Client, clock *kube.Clock, logger *slog.Logger) {
	events := kube.NewEventWriter(client, contract.AppAgent, c.nodeName, logger, kube.EventLimits{})
	agent := wire(c, client, events, logger)
	agent.APITime = clock.Now
	agent.WatchNotices, agent.Identify = noticesOf(c, events, logger)
	var parts sync.WaitGroup
	defer parts.Wait()
	writing, written := context.WithCancel(context.WithoutCancel(ctx))
	defer written() // the agent's last words are Events
	parts.Go(func() { events.Run(writing) })
	parts.Go(func() {
		kube.CheckAccount(ctx, contract.AppAgent, client.UserName, logger, func(message string) {
			events.Write(kube.Event{Object: kube.NodeReference(c.nodeName), Warning: true, Reason: contract.EventNotConfined, Message: message})
		})
	})
	agent.Run(ctx)
}

// noticesOf returns what gives the notices of the machine and is told which instance it is.
func noticesOf(c config, events *kube.EventWriter, logger *slog.Logger) (watch func(context.Context, func(imds.Sighting)), identify func(instance string)) {
	if c.metadata == metadataNone {
		return func(ctx context.Context, _ func(imds.Sighting)) { <-ctx.Done() }, func(string) {}
	}
	watcher := imds.NewWatcher(imds.NewRead(), c.pollInterval, logger)
	watcher.Unread = func(since time.Time, why error) {
		events.Write(kube.Event{Object: kube.NodeReference(c.nodeName), Warning: true, Reason: contract.EventMetadataUnread, Message: unread(since, why)})
	}
	return watcher.Run, watcher.SetInstance
}

// unread says that notices may not be heard.
func unread(since time.Time, why error) string {
	return fmt.Sprintf("notices of EC2 and Auto Scaling may not be heard since %s, as the instance metadata are not read: %v; check that the instance's metadata endpoint is enabled, and what answers in its place", since.UTC().Format(time.TimeOnly), why)
}

// wire returns an agent that acts on the cluster and does not hear of notices
// yet.
func wire(c config, client *evict.Client, events *kube.EventWriter, logger *slog.Logger) *Agent {
	return &Agent{
		Name:     c.nodeName,
		Policy:   c.policy,
		Logger:   logger,
		ReadNode: client.Node,
		WriteNode: func(ctx context.Context, patch kube.NodePatch) (*corev1.Node, error) {
			return kube.Send(ctx, client, patch)
		},
		Evict:     client.Evict,
		WatchNode: func(ctx context.Context, saw func(evict.Metadata)) { client.WatchNode(ctx, logger, saw) },
		WatchPods: func(ctx context.Context, pods *evict.Pods) { client.WatchPods(ctx, logger, pods) },
		WatchBudgets: func(ctx context.Context, namespace string, pods *evict.Pods) {
			client.WatchBudgets(ctx, logger, namespace, pods)
		},
		Tell: func(e kube.Event) { events.Write(e) },
	}
}
