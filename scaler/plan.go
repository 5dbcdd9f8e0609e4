package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"windlass.dev/windlass/pkg/fleet"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/observe"
	"windlass.dev/windlass/scaler/plan"
	"windlass.dev/windlass/scaler/status"
)

// planOptions are the flags of the command plan alone.
type planOptions struct {
	file, save, output string
	timeout            time.Duration
}

func planCommand(stdout, stderr io.Writer) *cobra.Command {
	var s settings
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Print what run would do now, with every verdict. Changes nothing.",
		Long: `Print what run would do now, and why or why not, for every waiting pod, every
node and every group. Nothing is changed.

The snapshot is taken from the cluster and from AWS, or read from a file that
--snapshot-out wrote.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := telemetry.NewLogger(stderr, s.log)
			if err != nil {
				return err
			}
			telemetry.SetDefault(logger)
			if err := s.adoptForeign(cmd.Flags(), logger); err != nil {
				return err
			}
			return printPlan(cmd.Context(), s, o, stdout, logger)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().StringVarP(&o.file, "snapshot", "f", "", "decide on the snapshot in this file (- for standard input) instead of the cluster")
	cmd.Flags().StringVar(&o.save, "snapshot-out", "", "write the snapshot to this file")
	cmd.Flags().StringVarP(&o.output, "output", "o", asTable, "table, yaml or json")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long taking the snapshot may last")
	s.foreign.register(cmd.Flags())
	return cmd
}

func printPlan(ctx context.Context, s settings, o planOptions, stdout io.Writer, logger *slog.Logger) error {
	if !slices.Contains(outputs, o.output) {
		return fmt.Errorf("--output=%s: want one of %v", o.output, outputs)
	}
	snapshot, err := snapshotFor(ctx, s, o, logger)
	if err != nil {
		return err
	}
	if err := saveSnapshot(o.save, snapshot); err != nil {
		return err
	}
	return newPrintout(snapshot, plan.Decide(snapshot, s.policy)).write(stdout, o.output)
}

func snapshotFor(ctx context.Context, s settings, o planOptions, logger *slog.Logger) (fleet.Snapshot, error) {
	if o.file != "" {
		if err := s.policy.Validate(); err != nil {
			return fleet.Snapshot{}, fmt.Errorf("wrong flags:\n%w", err)
		}
		return readSnapshot(o.file)
	}
	if err := s.check(); err != nil {
		return fleet.Snapshot{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return takeSnapshot(ctx, s, logger)
}

func readSnapshot(name string) (fleet.Snapshot, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return fleet.Snapshot{}, fmt.Errorf("reading the snapshot: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
	}
	snapshot, err := fleet.Read(file)
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("reading the snapshot %s: %w", name, err)
	}
	return snapshot, nil
}

func saveSnapshot(name string, snapshot fleet.Snapshot) (err error) {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("saving the snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := fleet.Write(file, snapshot); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// takeSnapshot observes the world once.
func takeSnapshot(ctx context.Context, s settings, logger *slog.Logger) (fleet.Snapshot, error) {
	config, err := kube.ConfigOfUser(s.kubeconfig, program, telemetry.Version())
	if err != nil {
		return fleet.Snapshot{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("making a client of the API server: %w", err)
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("making a client for custom resources: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("making a client for metadata: %w", err)
	}
	cloud, err := dialCloud(ctx, s, nil)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	reader := cloud.reader(s, logger, nil)
	if err := reader.Read(ctx); err != nil {
		return fleet.Snapshot{}, err
	}
	memory := status.NewMemory(client.CoreV1().ConfigMaps(s.namespace))
	if err := memory.Load(ctx); err != nil {
		return fleet.Snapshot{}, err
	}
	trouble := make(chan error, 1) // the latest failure to watch
	observer := observe.New(observe.Config{
		Client: client, Custom: custom, Metadata: meta, AutoscalerLeases: s.autoscalerLeases, Groups: reader, Machines: reader.Machines, GroupsFault: reader.Fault, OutOfService: s.policy.OutOfService, Namespace: s.namespace, Priorities: s.policy.AsksForPriorities(), Owners: s.policy.AsksForOwners(), Logger: logger, Trouble: keepLatest(trouble),
	})
	watching, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { observer.Run(watching); close(done) }()
	defer func() { stop(); <-done }()
	asked := !s.policy.OutOfService
	for {
		snapshot, _, err := observer.Snapshot(time.Now(), memory.State())
		if err == nil && !asked { // now it is known which machines to ask EC2 of
			asked = true
			if err := reader.Read(ctx); err != nil {
				return fleet.Snapshot{}, err
			}
			continue
		}
		if err == nil {
			if len(snapshot.Groups) == 0 {
				logger.Warn("no groups", "err", cloud.whyNone(s))
			}
			return snapshot, nil
		}
		select {
		case <-observer.Changed():
		case <-ctx.Done():
			return fleet.Snapshot{}, errors.Join(fmt.Errorf("taking a snapshot: %w: %w", ctx.Err(), err), latest(trouble))
		}
	}
}

// keepLatest returns a function that keeps the last error it is given in c.
func keepLatest(c chan error) func(error) {
	return func(err error) {
		if err == nil {
			return
		}
		for {
			select {
			case c <- err:
				return
			case <-c: // an earlier one
			}
		}
	}
}

func latest(c chan error) error {
	select {
	case err := <-c:
		return err
	default:
		return nil
	}
}
