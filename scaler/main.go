// Command windlass-scaler adds nodes for pending pods and scales down unneeded nodes, on EC2
// Auto Scaling groups.
//
//	config.go   flags → settings; foreign.go those of Cluster Autoscaler
//	cloud.go    where machines come from: Auto Scaling, or an external provider
//	scaler.go   Run: the parts, and the leader lease around the loop
//	loop.go     observe → decide → act, again and again
//	pulse.go    heartbeats of hooks that are overdue while that lasts
//	garbage.go  how often garbage is collected
//	startpages_linux.go, startpages_other.go what only the start uses of the program's file
//	shadow.go   the same without hands: a dry run, and groups that are observed
//	metrics.go  the metrics for Prometheus; metrics_drains.go those of drains, metrics_money.go
//	            those of money; gauges.go a gauge for many values of labels
//	verdicts.go the latest plan, served on the loopback address; whatif.go what would be done now
//	troubles.go what is wrong with groups, in the log
//	plan.go     the command plan: the decision without the action
//	print.go    a plan for people, or as YAML or JSON
//	migrate.go  the command migrate: settings of other programs, translated
//	simulate.go the command simulate: decisions in virtual time, and what they cost;
//	            simulate_history.go where pods of a live cluster come from, simulate_sweep.go
//	            combinations of flags
//	compare.go  the command compare: what a Cluster Autoscaler did, and what Windlass would have
//	uninstall.go the command uninstall
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	// The authorities that AWS's certificates are checked against where the system
	// has none, as in our image. A file of the machine that builds the image would
	// bring along whom that machine happens to trust; these are Mozilla's, and
	// go.sum says which.
	_ "golang.org/x/crypto/x509roots/fallback"

	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/migrate"
)

func main() {
	collectEvery(garbage)
	kube.NoticeSilence()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "windlass-scaler:", err)
		if _, ok := errors.AsType[undecided](err); ok {
			os.Exit(undecidedCode)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root := &cobra.Command{
		Use:   "windlass-scaler",
		Short: "Adds nodes for pending pods and scales down unneeded nodes.",
		// As cobra words it: a template of our own would link all of text/template, and
		// with it every method of every type, which doubles the program.
		Version:       telemetry.ThisBuild().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(runCommand(stderr), planCommand(stdout, stderr), simulateCommand(stdout), migrateCommand(os.Stdin, stdout), compareCommand(stdout), uninstallCommand(stdout, stderr), versionCommand(root))
	root.SetArgs(migrate.TwoDashes(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
	})
	return root.ExecuteContext(ctx)
}

func runCommand(stderr io.Writer) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Observe, decide and act, until told to stop.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := telemetry.NewLogger(stderr, s.log)
			if err != nil {
				return err
			}
			if err := s.adoptForeign(cmd.Flags(), logger); err != nil {
				return err
			}
			if err := s.check(); err != nil {
				return err
			}
			telemetry.SetDefault(logger)
			return Run(cmd.Context(), s, logger)
		},
	}
	s.register(cmd.Flags())
	s.registerRun(cmd.Flags())
	s.foreign.register(cmd.Flags())
	return cmd
}

func versionCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), root.Name(), "version", root.Version)
			return err
		},
	}
}
