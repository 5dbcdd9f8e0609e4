package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/uninstall"
	"windlass.dev/windlass/scaler/uninstall/remove"
)

// uninstallOptions are the flags of the command uninstall alone.
type uninstallOptions struct {
	plan, yes, hooks, stop bool
	timeout                time.Duration
}

func uninstallCommand(stdout, stderr io.Writer) *cobra.Command {
	var s settings
	var o uninstallOptions
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what Windlass has written into the cluster and into AWS.",
		Long: `Remove what Windlass has written into the cluster and into AWS: keys on Nodes, cordons,
requests for drains, ConfigMaps, Leases, the owner tag, a suspension of AZRebalance.

It runs with the rights of whoever calls it. Give it the flags by which the scaler finds its groups,
hooks and namespace, as they are set there. No drain is cut off: what AWS takes is drained to its end.
It may be run again at any time, and goes on then.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := telemetry.NewLogger(stderr, s.log)
			if err != nil {
				return err
			}
			telemetry.SetDefault(logger)
			if err := s.check(); err != nil {
				return err
			}
			if o.plan == o.yes {
				return errors.New("say --plan to list what would be removed, or --yes to remove it")
			}
			return uninstallNow(cmd.Context(), s, o, stdout, logger)
		},
	}
	s.register(cmd.Flags())
	f := cmd.Flags()
	f.BoolVar(&o.plan, "plan", false, "list what would be done, in its order, and what stays; change nothing")
	f.BoolVar(&o.yes, "yes", false, "do it")
	f.BoolVar(&o.hooks, "hooks", false, "delete the lifecycle hooks of --termination-hook and --launch-hook, too")
	f.BoolVar(&o.stop, "stop", false, "scale the Deployments of the scaler and of the notifier to 0, and delete the DaemonSet of the agents when no drain needs them any more; without this it ends where one of them runs, and names the command that stops it")
	f.DurationVar(&o.timeout, "timeout", 30*time.Minute, "how long to wait for drains and instances")
	return cmd
}

func uninstallNow(ctx context.Context, s settings, o uninstallOptions, stdout io.Writer, logger *slog.Logger) error {
	r, err := newRemover(ctx, s, o, logger)
	if err != nil {
		return err
	}
	r.Say = func(step uninstall.Step) { fmt.Fprintln(stdout, step) }
	r.Retry = func(err error) { fmt.Fprintf(stdout, "it is tried again: %v\n", err) }
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.plan {
		w, err := r.Observe(ctx)
		if err != nil {
			return err
		}
		return printUninstall(stdout, uninstall.Steps(w, r.Options), uninstall.Stays(w, r.Options))
	}
	failed := r.Run(ctx)
	w, err := r.Observe(context.WithoutCancel(ctx))
	if err == nil {
		err = printStays(stdout, uninstall.Stays(w, r.Options))
	}
	return errors.Join(failed, err)
}

func newRemover(ctx context.Context, s settings, o uninstallOptions, logger *slog.Logger) (*remove.Remover, error) {
	config, err := kube.ConfigOfUser(s.kubeconfig, program, telemetry.Version())
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	cloud, err := dialCloud(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	reader := cloud.reader(s, logger, nil)
	read := func(ctx context.Context) ([]fleet.Group, error) {
		known, _, _ := reader.Groups(nil) // none before the first reading
		for _, g := range known {
			reader.Recheck(g.Name) // its hooks
		}
		if err := reader.Read(ctx); err != nil {
			return nil, err
		}
		groups, _, err := reader.Groups(nil)
		return groups, errors.Join(err, unread(groups))
	}
	return &remove.Remover{
		Client: client, Groups: cloud.verbs(nil), Read: read, Namespace: s.namespace, Stop: o.stop,
		Options: uninstall.Options{Hooks: o.hooks, TerminationHooks: s.policy.TerminationHooks, LaunchHooks: s.policy.LaunchHooks},
	}, nil
}

// unread says which groups have hooks that are not known: instances may wait there.
func unread(groups []fleet.Group) error {
	var all []error
	for _, g := range groups {
		if g.HooksUnknown && len(g.Instances) > 0 {
			all = append(all, fmt.Errorf("hooks of group %s are not known: %s", g.Name, cmp.Or(g.HooksFault, "they were not read yet")))
		}
	}
	return errors.Join(all...)
}

func printUninstall(out io.Writer, steps []uninstall.Step, stays []uninstall.Left) error {
	var text strings.Builder
	for n, step := range steps {
		fmt.Fprintf(&text, "%3d. %s\n", n+1, step)
	}
	if len(steps) == 0 {
		text.WriteString("Nothing is there to remove.\n")
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	return printStays(out, stays)
}

func printStays(out io.Writer, stays []uninstall.Left) error {
	var text strings.Builder
	for _, left := range stays {
		fmt.Fprintf(&text, "stays: %s; to remove it: %s\n", left.What, left.Command)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("writing what stays: %w", err)
	}
	return nil
}
