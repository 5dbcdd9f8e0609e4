package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"windlass.dev/windlass/agent/drain"
	"windlass.dev/windlass/agent/imds"
	"windlass.dev/windlass/pkg/telemetry"
)

// config is what the flags and the environment say.
type config struct {
	nodeName   string
	kubeconfig string
	// namespace and podName of this agent, from the downward API; for the log.
	namespace, podName string
	metadata           string
	pollInterval       time.Duration
	policy             drain.Policy
	// noticePolicies and lastChances together are what policy.Responses is read
	// from.
	noticePolicies, lastChances []string
	log                         telemetry.LogFlags
}

// The environment variables that flags fall back to, as the downward API fills
// them.
const (
	envNodeName  = "NODE_NAME"
	envNamespace = "POD_NAMESPACE"
	envPodName   = "POD_NAME"
)

func (c *config) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.nodeName, "node-name", os.Getenv(envNodeName), "the Node that this agent is for [$"+envNodeName+"]")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file; without it the service account of this pod is used")
	flags.StringVar(&c.namespace, "namespace", os.Getenv(envNamespace), "the namespace of this pod, for the log [$"+envNamespace+"]")
	flags.StringVar(&c.podName, "pod-name", os.Getenv(envPodName), "the name of this pod, for the log [$"+envPodName+"]")
	flags.StringVar(&c.metadata, "metadata", metadataEC2, "where notices of the machine are read: ec2 is the instance metadata of EC2; none is nowhere, as on machines of another cloud, and the agent serves the requests on its Node alone")
	flags.DurationVar(&c.pollInterval, "imds-poll-interval", imds.UsualInterval,
		"how often the instance metadata are read for a spot interruption and the target lifecycle state, at most 30s; what is read less often keeps its proportion to that")
	c.policy = drain.DefaultPolicy()
	c.policy.Version = telemetry.Version()
	c.registerPolicy(flags)
	c.log.Register(flags)
}

// Values of --metadata.
const metadataEC2, metadataNone = "ec2", "none"

// leastPoll keeps a typing error from becoming a flood, and mostPoll a spot notice, which comes two minutes
// before, from being seen when it is too late.
const leastPoll, mostPoll = 50 * time.Millisecond, 30 * time.Second

// check says what is wrong, all of it.
func (c *config) check() error {
	var errs []error
	if err := checkNodeName(c.nodeName); err != nil {
		errs = append(errs, err)
	}
	if c.metadata != metadataEC2 && c.metadata != metadataNone {
		errs = append(errs, fmt.Errorf("--metadata=%s: want %s or %s", c.metadata, metadataEC2, metadataNone))
	}
	if c.pollInterval < leastPoll {
		errs = append(errs, fmt.Errorf("--imds-poll-interval is %s, less than %s", c.pollInterval, leastPoll))
	}
	if c.pollInterval > mostPoll && c.metadata != metadataNone {
		errs = append(errs, fmt.Errorf("--imds-poll-interval is %s, more than %s: a spot interruption is announced two minutes before", c.pollInterval, mostPoll))
	}
	errs = append(errs, c.checkPolicy())
	return errors.Join(errs...)
}

func checkNodeName(name string) error {
	if name == "" {
		return fmt.Errorf("the name of the node is not known: set --node-name or $%s, which the downward API fills from spec.nodeName", envNodeName)
	}
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return fmt.Errorf("--node-name (or $%s) is %q, which no Node can be called: %s", envNodeName, name, wrong[0])
	}
	return nil
}

// identity names this pod in the log.
func (c *config) identity() string { return cmp.Or(c.namespace, "-") + "/" + cmp.Or(c.podName, "-") }
