package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"windlass.dev/windlass/pkg/contract"
	"windlass.dev/windlass/pkg/drainable/drainflags"
	"windlass.dev/windlass/pkg/prices"
	"windlass.dev/windlass/pkg/statuspage"
	"windlass.dev/windlass/pkg/telemetry"
	"windlass.dev/windlass/scaler/asg"
	"windlass.dev/windlass/scaler/asg/template"
	"windlass.dev/windlass/scaler/externalgrpc"
	"windlass.dev/windlass/scaler/migrate"
	"windlass.dev/windlass/scaler/plan/policy"
	"windlass.dev/windlass/scaler/status"
)

// settings are all flags of the program. Where Cluster Autoscaler has a flag of
// the same meaning, ours has its name and, but for a few, its default.
type settings struct {
	log        telemetry.LogFlags
	kubeconfig string
	namespace  string
	policy     policy.Policy

	nodes     []string
	discovery []string
	selection asg.Selection // the two above, parsed by check
	assume    template.Assumptions

	cloudProvider, cloudConfig string
	external                   externalgrpc.Config // of the file, read by check

	foreign foreign

	autoscalerLeases []string
	priceFile        string
	priceSource      string // what the prices are, for people
	spotPrices       string

	address        string
	verdictsPort   uint16
	dryRun         bool
	theirs         string // the namespace of Cluster Autoscaler
	leaderElect    bool
	identity       string
	writeCASStatus bool
	casStatusName  string
}

const (
	defaultNamespace = "windlass-system"
	defaultAddress   = ":8085"
	// defaultVerdictsPort is declared in no manifest; see loopback.
	defaultVerdictsPort = 8086
	// defaultMemoryOverhead is Karpenter's, of the flag of the same meaning.
	defaultMemoryOverhead = 0.075
	// defaultSpotFactor is a guess: spot prices move, and differ by type and zone.
	// AWS names no typical price, only "up to 90 %" off.
	// https://aws.amazon.com/ec2/spot/pricing/
	defaultSpotFactor = 0.4
)

// Values of --spot-prices.
const spotByFactor, spotByHistory = "factor", "history"

// aliases are names that Cluster Autoscaler has for flags of ours.
var aliases = map[string]string{"address": "metrics-address", "ignore-taint": "startup-taint"}

// register adds the flags that both commands have.
func (s *settings) register(flags *pflag.FlagSet) {
	flags.SortFlags = false

	s.log.Register(flags)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; empty for the service account of this pod; plan takes $KUBECONFIG or ~/.kube/config before that, as kubectl does")
	flags.StringVar(&s.namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), defaultNamespace), "our own namespace, where the agents run and the config maps and the lease are; $POD_NAMESPACE where that is set")

	flags.StringVar(&s.cloudProvider, "cloud-provider", cloudAWS, "where machines come from: aws is EC2 Auto Scaling; externalgrpc is a provider of one's own, which is asked by Cluster Autoscaler's protocol and names its groups itself, whatever --nodes and --node-group-auto-discovery say")
	flags.StringVar(&s.cloudConfig, "cloud-config", "", "with --cloud-provider=externalgrpc, the file of the connection, as Cluster Autoscaler has it: YAML with address, key, cert, cacert and grpc_timeout")
	flags.StringArrayVar(&s.nodes, "nodes", nil, "a group and its bounds, as min:max:name; may be given several times")
	flags.StringArrayVar(&s.discovery, "node-group-auto-discovery", nil, "discover groups by tags, as asg:tag=key[=value][,key[=value]…]; a group must carry all tags of all these flags")

	flags.Float64Var(&s.assume.MemoryOverhead, "vm-memory-overhead", defaultMemoryOverhead, "the share of an instance type's memory that its nodes are assumed to lack, until one has registered")
	flags.StringVar(&s.priceFile, "price-file", "", "a file with prices that override the built-in ones: a region, an instance type and US dollars an hour on each line")
	flags.Float64Var(&s.assume.SpotFactor, "spot-price-factor", defaultSpotFactor, "what a spot instance is assumed to cost, as a share of its on-demand price")
	flags.StringVar(&s.spotPrices, "spot-prices", spotByFactor, "what spot instances cost: factor is the share --spot-price-factor of their on-demand price; history is what EC2 reports of the type and zone at the time, for which the scaler's role needs manifests/iam/spot-prices.json, and the factor where EC2 reports nothing")

	flags.StringArrayVar(&s.autoscalerLeases, "cluster-autoscaler-lease", nil, "the name of another lease than "+contract.LeaseClusterAutoscaler+" that a Cluster Autoscaler of this cluster holds, in any namespace: its --leader-elect-resource-name; may be given several times. The scaler's ClusterRole must name it, too")
	s.registerPolicy(flags)
}

// registerPolicy adds the flags that say what is decided.
func (s *settings) registerPolicy(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(normalize)
	p := policy.DefaultPolicy()
	s.policy = p
	flags.BoolVar(&s.policy.AlongsideClusterAutoscaler, "alongside-cluster-autoscaler", p.AlongsideClusterAutoscaler, "act even if another autoscaler is active in the cluster; without this the scaler only plans then")
	flags.Int32Var(&s.policy.ExpendableBelow, "expendable-pods-priority-cutoff", p.ExpendableBelow, "pods below this priority trigger no scale-up")
	flags.StringArrayVar(&s.policy.Schedulers, "scheduler-name", p.Schedulers, "a scheduler whose pending pods trigger scale-up; may be given several times; it replaces the default, so name default-scheduler too if it is to count")
	flags.DurationVar(&s.policy.NewPodDelay, "new-pod-scale-up-delay", p.NewPodDelay, "how old a pod has to be to trigger scale-up; its annotation cluster-autoscaler.kubernetes.io/pod-scale-up-delay may make that longer")
	flags.StringVar(&s.policy.Expander, "expander", p.Expander, "how one of several possible groups is chosen: least-waste, least-nodes, most-pods, priority, price, random; several of them, separated by commas, each choose among the groups that the one before finds equal")
	flags.BoolVar(&s.policy.BalanceSimilar, "balance-similar-node-groups", p.BalanceSimilar, "grow similar groups by turns, the smallest first")
	flags.StringArrayVar(&s.policy.BalancingIgnoredLabels, "balancing-ignore-label", p.BalancingIgnoredLabels, "a label in which groups may differ and still be similar; may be given several times")
	flags.IntVar(&s.policy.MaxNodes, "max-nodes-total", p.MaxNodes, "how many nodes the cluster may grow to, upcoming ones and those of no group included; 0 means no limit")
	flags.Var(&s.policy.Cores, "cores-total", "how many cores the cluster may have, as min:max; it does not grow beyond the maximum, and nothing is scaled down below the minimum")
	flags.Var(&s.policy.Memory, "memory-total", "how many GiB of memory the cluster may have, as min:max; it does not grow beyond the maximum, and nothing is scaled down below the minimum")
	flags.Var(&s.policy.Headroom, "headroom", "headroom: room that is kept free in the cluster for more pods: a percentage of what is requested, as 10%, or that of so many pods of a size, as pods=5,cpu=500m,memory=1Gi; a group keeps its own by its tag "+contract.TagHeadroom)
	flags.IntVar(&s.policy.BufferPods, "max-capacity-buffer-pods", p.BufferPods, "for how many pods all CapacityBuffers together may keep room; namespaces share it")
	flags.IntVar(&s.policy.BufferPodsPerNamespace, "max-capacity-buffer-pods-per-namespace", p.BufferPodsPerNamespace, "for how many pods the CapacityBuffers of one namespace may keep room")
	flags.BoolVar(&s.policy.EnforceMinSize, "enforce-node-group-min-size", p.EnforceMinSize, "grow groups that are smaller than their minimum, such as that of --nodes")
	flags.DurationVar(&s.policy.MaxNodeProvisionTime, "max-node-provision-time", p.MaxNodeProvisionTime, "how long an instance may take from its launch to a registered node")
	flags.DurationVar(&s.policy.MaxNodeStartupTime, "max-node-startup-time", p.MaxNodeStartupTime, "how long a registered node may take until it is Ready")
	flags.StringArrayVar(&s.policy.StartupTaints, "startup-taint", nil, "the key of a taint that is removed once something has started on a node, in addition to those of usual components: node templates leave it out, and a young node that has it counts as upcoming; may be given several times")
	flags.StringArrayVar(&s.policy.StartupTaintPrefixes, "startup-taint-prefix", nil, "a prefix of the keys of startup taints; may be given several times")
	flags.StringArrayVar(&s.policy.StatusTaints, "status-taint", nil, "the key of a taint that shows a node's condition: node templates leave it out; may be given several times")
	flags.DurationVar(&s.policy.BackOff, "initial-node-group-backoff-duration", p.BackOff, "back-off of a group after its first failed launch; it doubles with each further one")
	flags.DurationVar(&s.policy.MaxBackOff, "max-node-group-backoff-duration", p.MaxBackOff, "the longest back-off of a group")
	flags.DurationVar(&s.policy.BackOffReset, "node-group-backoff-reset-timeout", p.BackOffReset, "the time without a failed launch after which the back-off of a group starts at the initial duration again")

	flags.StringSliceVar(&s.policy.TerminationHooks, "termination-hook", p.TerminationHooks, "names of the lifecycle hooks that the scaler completes when an instance is terminated")
	flags.StringSliceVar(&s.policy.LaunchHooks, "launch-hook", p.LaunchHooks, "names of the lifecycle hooks that the scaler completes when an instance was launched and its node is up")
	flags.StringVar(&s.policy.FailedDrain, "failed-drain", p.FailedDrain, "what is done with an instance in a termination hook whose drain was not done in time: go terminates it with the pods that are left, hold keeps it for as long as AWS allows")
	flags.DurationVar(&s.policy.TerminationDrainTime, "termination-drain-time", p.TerminationDrainTime, "how long a drain for a termination by Auto Scaling may take")

	flags.BoolVar(&s.policy.ScaleDown, "scale-down-enabled", p.ScaleDown, "scale unneeded nodes down")
	flags.Float64Var(&s.policy.UtilizationThreshold, "scale-down-utilization-threshold", p.UtilizationThreshold, "a node may be unneeded while the share of its cpu and of its memory that is requested is not above this")
	flags.Float64Var(&s.policy.GPUUtilizationThreshold, "scale-down-gpu-utilization-threshold", p.GPUUtilizationThreshold, "a node with GPUs may be unneeded while the share of its GPUs that is requested is not above this, whatever is requested of its cpu and memory")
	flags.DurationVar(&s.policy.UnneededTime, "scale-down-unneeded-time", p.UnneededTime, "how long a node must be unneeded before it is scaled down")
	flags.DurationVar(&s.policy.DelayAfterAdd, "scale-down-delay-after-add", p.DelayAfterAdd, "how long after a scale-up of a group none of its nodes is scaled down")
	flags.DurationVar(&s.policy.DelayAfterDelete, "scale-down-delay-after-delete", p.DelayAfterDelete, "how long after a scale-down in a group no further node of it is scaled down; drains that are under way go on")
	flags.DurationVar(&s.policy.DelayAfterFailure, "scale-down-delay-after-failure", p.DelayAfterFailure, "how long after a failed scale-down in a group none of its nodes is scaled down; one that a PodDisruptionBudget blocks has not failed")
	flags.BoolVar(&s.policy.DelaysLocal, "scale-down-delay-type-local", p.DelaysLocal, "apply the delays of scale-down only to the group in which a node was added, deleted or failed; false applies them to all groups, as is Cluster Autoscaler's default")
	flags.BoolVar(&s.policy.ScaleDownUnready, "scale-down-unready-enabled", p.ScaleDownUnready, "scale down unneeded nodes that are not Ready any more")
	flags.DurationVar(&s.policy.UnreadyTime, "scale-down-unready-time", p.UnreadyTime, "how long an unneeded node must not have been Ready before it is scaled down")
	flags.BoolVar(&s.policy.IgnoreDaemonSets, "ignore-daemonsets-utilization", p.IgnoreDaemonSets, "leave pods of DaemonSets out of the utilization")
	flags.BoolVar(&s.policy.IgnoreMirrors, "ignore-mirror-pods-utilization", p.IgnoreMirrors, "leave static pods out of the utilization")
	flags.BoolVar(&s.policy.ClaimGroups, "claim-groups", p.ClaimGroups, "put the tag "+contract.TagOwner+" with this cluster's UID on each group that has none, and do nothing with a group before it has it; groups that another cluster owns are left alone in any case")
	flags.BoolVar(&s.policy.SuspendAZRebalance, "suspend-az-rebalance", p.SuspendAZRebalance, "suspend the process AZRebalance of a group, once for each, before a scale-up or scale-down makes its zones uneven; otherwise Auto Scaling launches and terminates instances to even them out")
	flags.BoolVar(&s.policy.OutOfService, "out-of-service-taint", p.OutOfService, "put the taint node.kubernetes.io/out-of-service on nodes that are not Ready and have volumes attached, where EC2 says that their instance is stopped or terminated: their pods are deleted by force and their volumes detached, and StatefulSets come back at once; the component out-of-service-taint sets it")
	flags.IntVar(&s.policy.MaxDrainParallelism, "max-drain-parallelism", p.MaxDrainParallelism, "how many nodes with pods may be drained at once where there is no hurry: for scale-down, rebalance recommendations and maintenance; 0 means a tenth of the nodes, at least two")
	flags.IntVar(&s.policy.MaxScaleDownParallelism, "max-scale-down-parallelism", p.MaxScaleDownParallelism, "how many nodes may be scaled down at once, empty ones included; of nodes that are not Ready a tenth of that, at least one; 0 means 10 or twice the number that may be drained at once, whichever is more")
	flags.DurationVar(&s.policy.MaxDrainTime, "max-drain-time", p.MaxDrainTime, "how long a drain for scale-down may take before it is given up; its node is not tried again for as long, and twice as long after each further one, up to four hours")
	flags.Float64Var(&s.policy.MaxUnrecognisedPercent, "max-unrecognised-share", p.MaxUnrecognisedPercent, "the percentage of all instances that may be not recognised: Windlass did not launch them, and they are no Nodes of this cluster; with more, none of those that should long be Nodes is terminated")
	flags.IntVar(&s.policy.MaxUnready, "ok-total-unready-count", p.MaxUnready, "how many nodes may be unready; with more than this and more than --max-total-unready-percentage, nothing is scaled down and no group grows; a group whose own unready nodes are more than both does not grow")
	flags.Float64Var(&s.policy.MaxUnreadyPercent, "max-total-unready-percentage", p.MaxUnreadyPercent, "the percentage of nodes that may be unready; with more than this and more than --ok-total-unready-count, nothing is scaled down and no group grows; a group whose own unready nodes are more than both does not grow; in a zone with more than this percentage and at least three unready nodes, or with two or more nodes and none of them Ready, no unready node is removed")
	flags.Float64Var(&s.policy.MaxRebalanceCordonedPercent, "max-rebalance-cordoned-percentage", p.MaxRebalanceCordonedPercent, "the percentage of the nodes of a group that may stay cordoned for rebalance recommendations, which agents with --notice-policy=rebalance=cordon cordon: at least one node, and with 0 none; the others are uncordoned")
	flags.StringVar(&s.policy.Consolidate, "consolidate", p.Consolidate, "what pods are moved for: with off only nodes without pods to move are scaled down; unneeded: and those that are little used, if their pods fit elsewhere; replace: and some that cost more together than a new node of another group that replaces them; balance: all of that where it saves more than --disruption-cost, and kube-scheduler is led to fill the fullest nodes first, by the taints "+contract.TaintFillLater+" and "+contract.TaintSurplus+" on the others")
	flags.Float64Var(&s.policy.DisruptionCost, "disruption-cost", p.DisruptionCost, "with --consolidate=balance, what it costs to evict one pod, in dollars; more for a higher priority; 0 takes what the pod's requests cost in four hours; the annotation "+contract.AnnotationDisruptionCost+" of a pod wins")
	flags.BoolVar(&s.policy.Drainable.SkipSystemPods, "skip-nodes-with-system-pods", p.Drainable.SkipSystemPods, "do not scale down nodes with pods of kube-system that no PodDisruptionBudget guards")
	flags.DurationVar(&s.policy.Drainable.SystemPodTimeout, "blocking-system-pod-distruption-timeout", p.Drainable.SystemPodTimeout, "the age from which a pod of kube-system that no budget guards does not block scale-down any more; 0 means that it always does")
	flags.BoolVar(&s.policy.Drainable.SkipLocalStorage, "skip-nodes-with-local-storage", p.Drainable.SkipLocalStorage, "do not scale down nodes with pods that have a hostPath or emptyDir volume")
	flags.BoolVar(&s.policy.Drainable.SkipCustomControllers, "skip-nodes-with-custom-controller-pods", p.Drainable.SkipCustomControllers, "do not scale down nodes with pods whose controller is none of Kubernetes' own")
	flags.IntVar(&s.policy.Drainable.MinReplicas, "min-replica-count", p.Drainable.MinReplicas, "do not scale down nodes with pods whose ReplicaSet or ReplicationController wants fewer replicas than this")

	drainflags.Register(flags, &s.policy.Manner) // as the agents have them, for the drains that the scaler does in place of one
}

// registerRun adds the flags of the command run alone.
func (s *settings) registerRun(flags *pflag.FlagSet) {
	flags.StringVar(&s.address, "metrics-address", defaultAddress, "where to serve /metrics, /healthz and /livez; empty for nowhere")
	flags.Uint16Var(&s.verdictsPort, "verdicts-port", defaultVerdictsPort, "the port of 127.0.0.1 where the latest plan is served with every verdict, as JSON, for kubectl port-forward, and where kubectl windlass plan asks what would be done now; 0 for none")
	flags.BoolVar(&s.writeCASStatus, "write-status-configmap", true, "also keep the config map in which a Cluster Autoscaler reports its status, for programs that read it; not while one is alive")
	flags.StringVar(&s.casStatusName, "status-config-map-name", contract.ConfigMapClusterAutoscalerStatus, "the name of that config map; it is in our own namespace. The scaler's Role must name it, too")
	flags.BoolVar(&s.dryRun, "dry-run", false, "change nothing: what is decided is assumed done and logged, beside what happens, for windlass-scaler compare. Written are "+contract.ConfigMapStatus+", ConfigMaps of the shadow's own, the Lease and Events. The tag "+contract.TagMode+"="+contract.ModeObserve+" does the same for one group")
	flags.StringVar(&s.theirs, "cluster-autoscaler-namespace", contract.NamespaceClusterAutoscaler, "the namespace of a Cluster Autoscaler, whose Events there are believed by a shadow")
	flags.BoolVar(&s.leaderElect, "leader-elect", true, "take part in the election of the one replica that acts")
	host, _ := os.Hostname() // without a name of the host the pod's must be given
	flags.StringVar(&s.identity, "leader-elect-identity", cmp.Or(os.Getenv("POD_NAME"), host), "our name in the election; $POD_NAME where that is set, else the host's name")
}

// normalize lets _ stand for -, as Cluster Autoscaler does, and knows other
// names of flags.
func normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	name = strings.ReplaceAll(name, "_", "-")
	return pflag.NormalizedName(cmp.Or(aliases[name], name))
}

// check returns everything that is wrong with the flags.
func (s *settings) check() error {
	s.policy.Shadow = s.dryRun
	wrong := []error{s.checkCloud(), s.checkPolicy(), s.checkAssumptions()}
	if s.namespace == "" {
		wrong = append(wrong, errors.New("--namespace is empty"))
	}
	if slices.Contains([]string{"", contract.ConfigMapState, contract.ConfigMapStatus}, s.casStatusName) && s.writeCASStatus {
		wrong = append(wrong, fmt.Errorf("--status-config-map-name=%q: want a name of its own, such as %s", s.casStatusName, contract.ConfigMapClusterAutoscalerStatus))
	}
	if s.leaderElect && s.identity == "" {
		wrong = append(wrong, errors.New("--leader-elect-identity is empty, and this host has no name"))
	}
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("wrong flags:\n%w", err)
	}
	return nil
}

// checkCloud reads which groups there are, or where the provider of them is.
func (s *settings) checkCloud() (err error) {
	switch s.cloudProvider {
	case cloudAWS:
		if s.cloudConfig != "" {
			return fmt.Errorf("%s=%s: it is for --cloud-provider=%s; AWS is found by AWS_REGION and AWS_ENDPOINT_URL_AUTO_SCALING and its like", externalgrpc.FlagConfig, s.cloudConfig, cloudExternal)
		}
		s.selection, err = asg.ParseSelection(s.nodes, s.discovery)
		return err
	case cloudExternal:
		s.external, err = externalgrpc.ReadConfig(s.cloudConfig)
		return errors.Join(err, s.checkExternal())
	}
	return fmt.Errorf("--cloud-provider=%s: want %s or %s: %w", s.cloudProvider, cloudAWS, cloudExternal, migrate.Provider(s.cloudProvider))
}

// checkExternal names the flags that ask something of AWS.
func (s *settings) checkExternal() error {
	var wrong []error
	for _, f := range []struct {
		flag  string
		given bool
	}{
		{"--claim-groups", s.policy.ClaimGroups}, {"--suspend-az-rebalance", s.policy.SuspendAZRebalance},
		{"--out-of-service-taint", s.policy.OutOfService}, {"--spot-prices=" + spotByHistory, s.spotPrices == spotByHistory},
	} {
		if f.given {
			wrong = append(wrong, fmt.Errorf("%s is for Auto Scaling groups: leave it out with --cloud-provider=%s", f.flag, cloudExternal))
		}
	}
	return errors.Join(wrong...)
}

func (s *settings) checkPolicy() error {
	return errors.Join(s.policy.Validate(), drainflags.Check(s.policy.Manner))
}

// checkAssumptions reads the prices, too.
func (s *settings) checkAssumptions() error {
	var wrong []error
	if o := s.assume.MemoryOverhead; !(o >= 0 && o < 1) {
		wrong = append(wrong, fmt.Errorf("--vm-memory-overhead=%v: want a share from 0 to less than 1, such as %v", o, defaultMemoryOverhead))
	}
	if f := s.assume.SpotFactor; !(f > 0 && f <= 1) {
		wrong = append(wrong, fmt.Errorf("--spot-price-factor=%v: want a share above 0, and 1 at the most", f))
	}
	s.assume.AskSpot = s.spotPrices == spotByHistory
	if !s.assume.AskSpot && s.spotPrices != spotByFactor {
		wrong = append(wrong, fmt.Errorf("--spot-prices=%s: want %s or %s", s.spotPrices, spotByFactor, spotByHistory))
	}
	var err error
	s.assume.Prices, s.priceSource, err = prices.ReadFile(s.priceFile, os.ReadFile)
	if err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// bill is what nodes cost by these settings and the spot prices of now.
func (s *settings) bill(spot asg.Spot) status.Bill {
	note := strings.Trim(spot.Fault+"; "+spot.Note, "; ")
	return status.Bill{Book: s.assume.Prices, Spot: spot.Prices, Prices: statuspage.Prices{
		Source: s.priceSource, SpotFactor: s.assume.SpotFactor, SpotAt: spot.At.UTC(), SpotNote: statuspage.Cut(note)}}
}
