// Command windlass-notifier tells people what happens: in Slack, Teams, mail, SNS and elsewhere.
//
//	main.go      flags and wiring; the lease around the loop
//	notifier.go  the loop: observe → fold → persist → send
//	senders.go   services out of the configuration, with secrets from files
//	metrics.go   the metrics for Prometheus
//
// It reads Nodes, Events and the status page, and writes nothing but its own Lease and its own
// ConfigMap.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // our image has no files of time zones

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	// As the scaler has them: our image has no certificates.
	_ "golang.org/x/crypto/x509roots/fallback"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"windlass.dev/windlass/notifier/config"
	"windlass.dev/windlass/notifier/send"
	"windlass.dev/windlass/notifier/store"
	"windlass.dev/windlass/notifier/watch"
	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/pkg/kube/lease"
	"windlass.dev/windlass/pkg/telemetry"
)

func main() {
	kube.NoticeSilence()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, contract.AppNotifier+":", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	log        telemetry.LogFlags
	kubeconfig string
	namespace  string
	identity   string
	address    string
	cluster    string
	config     string
	secrets    string
}

func (s *settings) register(flags *pflag.FlagSet) {
	host, _ := os.Hostname() // without a name of the host the pod's must be given
	s.log.Register(flags)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; empty for the service account of this pod")
	flags.StringVar(&s.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "windlass-system"), "our own namespace, where the scaler's status, our config map and our lease are; $POD_NAMESPACE where that is set")
	flags.StringVar(&s.identity, "leader-elect-identity", cmp.Or(os.Getenv("POD_NAME"), host), "our name in the election of the one replica that sends; $POD_NAME where that is set, else the host's name")
	flags.StringVar(&s.address, "metrics-address", ":8087", "where to serve /metrics, /healthz and /livez; empty for nowhere")
	flags.StringVar(&s.cluster, "cluster-name", os.Getenv("CLUSTER_NAME"), "what messages call the cluster; $CLUSTER_NAME where that is set")
	flags.StringVar(&s.config, "config", "/etc/windlass-notifier/config.yaml", "the file that says which services there are, and which is sent what")
	flags.StringVar(&s.secrets, "secrets", "/etc/windlass-notifier/secrets", "the folder of the files that the configuration calls secrets")
}

func command() *cobra.Command {
	var s settings
	root := &cobra.Command{
		Use:           contract.AppNotifier,
		Short:         "Tells people what Windlass does: in Slack, Teams, mail, SNS and elsewhere.",
		Version:       telemetry.ThisBuild().String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), s, cmd.ErrOrStderr()) },
	}
	s.register(root.Flags())
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

// run wires the parts together and goes on until ctx ends.
func run(ctx context.Context, s settings, logs io.Writer) error {
	text, err := os.ReadFile(s.config)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	file, err := config.Parse(text)
	if err != nil {
		return fmt.Errorf("--config=%s:\n%w", s.config, err)
	}
	if s.identity == "" {
		return errors.New("--leader-elect-identity is empty, and this host has no name")
	}
	senders, err := dial(ctx, file, s.secrets, s.cluster)
	if err != nil {
		return fmt.Errorf("--secrets=%s:\n%w", s.secrets, err)
	}
	logger, err := telemetry.NewLogger(logs, s.log)
	if err != nil {
		return err
	}
	telemetry.SetDefault(logger)
	build := telemetry.ThisBuild()
	rest, err := kube.Config(s.kubeconfig, contract.AppNotifier, build.Version)
	if err != nil {
		return err
	}
	clock := kube.NewClock()
	clock.Follow(rest)
	core, err := corev1client.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	leases, err := coordinationv1client.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("making a client for leases: %w", err)
	}
	p := &program{settings: s, file: file, senders: senders, client: client{core, leases}, now: clock.Now, logger: logger, metrics: newMetrics(file.Services), health: &telemetry.Health{}}
	p.apiServer = p.health.Add(telemetry.Part{Name: "api-server", Patience: time.Minute})
	p.loop = p.health.Add(telemetry.Part{Name: "loop", Within: 3 * time.Minute, Vital: true})
	stop, err := p.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	logger.Info("starting", "version", build.Version, "revision", build.Revision, "go", build.Go, "namespace", s.namespace, "identity", s.identity, "services", len(file.Services))
	return p.compete(ctx)
}

// client is the part of a clientset that is used: all of it would link every type of the API.
type client struct {
	core         corev1client.CoreV1Interface
	coordination coordinationv1client.CoordinationV1Interface
}

func (c client) CoreV1() corev1client.CoreV1Interface { return c.core }

// program holds the parts together.
type program struct {
	settings settings
	file     config.File
	senders  map[string]send.Sender
	client   client
	now      func() time.Time
	logger   *slog.Logger
	metrics  *metrics
	health   *telemetry.Health

	apiServer, loop *telemetry.Check
	leading         atomic.Bool
}

// serve answers probes and Prometheus, if it is to.
func (p *program) serve(ctx context.Context) (stop func(), err error) {
	if p.settings.address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", p.settings.address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics on --metrics-address=%s: %w", p.settings.address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics.handler())
	p.health.Register(mux)
	server := telemetry.NewServer(mux)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.logger.Error("serving failed", "address", listener.Addr().String(), "err", err)
		}
	}()
	return func() { _ = server.Close() }, nil // no caller is left for the error
}

// compete sends whenever it has the lease, until ctx ends.
func (p *program) compete(ctx context.Context) error {
	go p.waitingIsWell(ctx)
	for ctx.Err() == nil {
		err := lease.Lead(ctx, lease.Config{
			Namespace: p.settings.namespace, Name: contract.LeaseNotifier, Identity: p.settings.identity,
			Client: p.client.coordination, Logger: p.logger,
		}, p.lead)
		if err != nil && !errors.Is(err, lease.ErrLost) && !errors.Is(err, store.ErrOthers) {
			return err
		}
		if err != nil {
			p.logger.Warn("leadership lost", "err", err)
		}
	}
	return nil
}

// waitingIsWell keeps a replica alive that waits for the lease.
func (p *program) waitingIsWell(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		if !p.leading.Load() {
			p.loop.OK()
			p.apiServer.OK()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lead watches and sends until ctx ends.
func (p *program) lead(ctx context.Context) error {
	p.leading.Store(true)
	p.metrics.leader.Set(1)
	defer p.leading.Store(false)
	defer p.metrics.leader.Set(0)

	maps := store.New(p.client.CoreV1().ConfigMaps(p.settings.namespace))
	saved, ok := p.load(ctx, maps)
	if !ok {
		return nil // ctx has ended
	}
	watcher, err := watch.New(p.client, p.settings.namespace, p.apiServer.Report)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer watcher.Stop()
	defer stop()
	if !p.await(watching, watcher.Run) {
		return nil // ctx has ended
	}
	n := &notifier{
		cluster: p.settings.cluster, services: p.file.Services, wants: p.file.Wants(), senders: p.senders,
		now: p.now, world: watcher.World, changed: watcher.Changed(), store: maps,
		logger: p.logger, metrics: p.metrics, alive: p.loop.OK,
	}
	return n.run(ctx, saved)
}

// again is how long an API server that did not answer is left in peace.
const again = 5 * time.Second

// load reads what was seen and sent, however long the API server takes to answer. It reports
// false if ctx has ended.
func (p *program) load(ctx context.Context, from *store.Store) (saved store.Saved, ok bool) {
	for ctx.Err() == nil {
		p.loop.OK()
		saved, err := from.Load(ctx)
		if errors.Is(err, store.ErrUnreadable) {
			p.logger.Error("state unreadable, starting with an empty one", "err", err)
			return saved, true
		}
		p.apiServer.Report(err)
		if err == nil {
			return saved, true
		}
		p.logger.Warn("state not read, retrying", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return store.Saved{}, false
}

// await waits until something has begun, and is alive meanwhile. It reports false if ctx has
// ended.
func (p *program) await(ctx context.Context, begin func(context.Context) error) bool {
	begun := make(chan error, 1)
	go func() { begun <- begin(ctx) }()
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		p.loop.OK()
		select {
		case err := <-begun:
			return err == nil
		case <-tick.C:
		}
	}
}
