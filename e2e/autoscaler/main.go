// Autoscaler stands in for Cluster Autoscaler in worlds of e2e: what it leaves for others to see is
// as Cluster Autoscaler writes it, which is its Lease, its status, its Events, its taints, its
// evictions and its calls to AWS. What it decides is simple: it grows the first group by name that
// takes a pod, and knows nothing of affinities, volumes and budgets before it evicts.
//
//	main.go       flags, and the Lease
//	loop.go       one iteration
//	groups.go     its groups, as AWS says
//	nodes.go      what fits on which node
//	scaleup.go    pending pods → a group's desired capacity
//	scaledown.go  unneeded nodes → taints, evictions, terminations
//	status.go     its status
//
// A world runs it as the pod of a Deployment (e2e/world/autoscaler.yaml).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/kube"
	"windlass.dev/windlass/scaler/asg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, contract.AppClusterAutoscaler+":", err)
		os.Exit(1)
	}
}

// options are those flags of Cluster Autoscaler that the stand-in heeds. It takes all others, too.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca
type options struct {
	kubeconfig, namespace         string
	nodes, discovery              []string
	scan, unneeded, afterAdd      time.Duration
	deleteDelay, eviction         time.Duration
	graceSeconds                  int
	backOff                       time.Duration
	threshold                     float64
	lease, renewDeadline, retries time.Duration
}

func (o *options) parse(args []string) error {
	flags := pflag.NewFlagSet(contract.AppClusterAutoscaler, pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file")
	flags.StringVar(&o.namespace, "namespace", contract.NamespaceClusterAutoscaler, "where its Lease and its status are")
	flags.StringArrayVar(&o.nodes, "nodes", nil, "min:max:name of a group")
	flags.StringArrayVar(&o.discovery, "node-group-auto-discovery", nil, "asg:tag=key[=value],…; a group must carry all")
	flags.DurationVar(&o.scan, "scan-interval", 10*time.Second, "the period of the loop")
	flags.DurationVar(&o.unneeded, "scale-down-unneeded-time", 10*time.Minute, "how long a node is unneeded until it goes")
	flags.DurationVar(&o.afterAdd, "scale-down-delay-after-add", 10*time.Minute, "how long no node goes after a group has grown")
	flags.Float64Var(&o.threshold, "scale-down-utilization-threshold", 0.5, "at which a node is unneeded")
	flags.DurationVar(&o.deleteDelay, "node-delete-delay-after-taint", 5*time.Second, "between the taint and the drain")
	flags.DurationVar(&o.eviction, "max-pod-eviction-time", 2*time.Minute, "how long an eviction is tried")
	flags.IntVar(&o.graceSeconds, "max-graceful-termination-sec", 600, "how long pods may take to end, in seconds")
	flags.DurationVar(&o.backOff, "initial-node-group-backoff-duration", 5*time.Minute, "of a group whose growth failed")
	flags.DurationVar(&o.lease, "leader-elect-lease-duration", 15*time.Second, "of its Lease")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "of its Lease")
	flags.DurationVar(&o.retries, "leader-elect-retry-period", 2*time.Second, "of its Lease")
	return flags.Parse(args)
}

// run holds the Lease and works until ctx ends. Then it gives the Lease up, and takes its status away,
// as Cluster Autoscaler does; to lose the Lease ends it.
func run(ctx context.Context, args []string, logs io.Writer) error {
	var o options
	if err := o.parse(args); err != nil {
		return err
	}
	a, err := newAutoscaler(ctx, o, slog.New(slog.NewTextHandler(logs, nil)))
	if err != nil {
		return err
	}
	name := os.Getenv("POD_NAME")
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("finding a name for its holder: %w", err)
		}
	}
	lost := true
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.namespace, Name: contract.LeaseClusterAutoscaler},
			Client:     a.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: o.lease, RenewDeadline: o.renewDeadline, RetryPeriod: o.retries,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: a.loop,
			OnStoppedLeading: func() { lost = ctx.Err() == nil },
		},
	})
	if lost {
		return errors.New("lost master")
	}
	a.removeStatus(context.WithoutCancel(ctx))
	return nil
}

// autoscaler is one that runs.
type autoscaler struct {
	options
	selection asg.Selection
	client    kubernetes.Interface
	groupsAPI *autoscaling.Client
	ec2       *ec2.Client
	events    record.EventRecorder
	log       *slog.Logger

	begun     time.Time
	cleaned   bool
	grown     time.Time            // when a group grew last
	backedOff map[string]failure   // groups whose growth failed
	needless  map[string]time.Time // since when nodes are unneeded
	told      map[string]time.Time // when an Event of that kind was written
	types     map[string]string    // of groups without instances, by launch template
	conditions
	deletions
}

// failure is why a group is in back-off, and until when.
type failure struct {
	since, until time.Time
	message      string
}

func newAutoscaler(ctx context.Context, o options, log *slog.Logger) (*autoscaler, error) {
	a := &autoscaler{
		options: o, log: log, begun: time.Now(),
		backedOff: map[string]failure{}, needless: map[string]time.Time{}, told: map[string]time.Time{}, types: map[string]string{},
		conditions: conditions{}, deletions: newDeletions(),
	}
	var err error
	if a.selection, err = asg.ParseSelection(o.nodes, o.discovery); err != nil {
		return nil, err
	}
	rest, err := kube.Config(o.kubeconfig, contract.AppClusterAutoscaler, "stand-in")
	if err != nil {
		return nil, err
	}
	if a.client, err = kubernetes.NewForConfig(rest); err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	account, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of AWS: %w", err)
	}
	a.groupsAPI, a.ec2 = autoscaling.NewFromConfig(account), ec2.NewFromConfig(account)
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: contract.AppClusterAutoscaler})
	return a, nil
}
