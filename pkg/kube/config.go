package kube

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says how a program in a cluster reaches the API server: by the
// kubeconfig file of that name, or, where the name is empty, as a pod does, with
// the token of its service account. Program and version make the user agent, by
// which audit logs and flow schemas know us.
//
// Typed clients made from it speak protobuf, which costs a third of JSON, and
// limit themselves in nothing: API priority and fairness shares out the
// server by what it can bear, and a client-side limit would only add delay in
// a burst, which is when delay hurts.
func Config(kubeconfig, program, version string) (*rest.Config, error) {
	if kubeconfig != "" {
		return ConfigOfUser(kubeconfig, program, version)
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, ErrNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("reading the service account of this pod: %w", err)
	}
	return ours(config, program, version), nil
}

// ConfigOfUser is Config for commands that people run. Without a name it finds
// what kubectl does: the files of $KUBECONFIG, ~/.kube/config, or else the
// service account of a pod. A program that acts on its own does not: it would
// act on the cluster that somebody happened to choose last.
func ConfigOfUser(kubeconfig, program, version string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%w; nor is there a cluster in $KUBECONFIG or ~/.kube/config", ErrNoCluster)
	case err != nil:
		return nil, fmt.Errorf("reading kubeconfig %s: %w", cmp.Or(kubeconfig, "of $KUBECONFIG or ~/.kube/config"), err)
	}
	return ours(config, program, version), nil
}

// NoticeSilence has a connection to the API server that has been silent for ten seconds asked for a
// sign of life, and given up after five without, unless the environment says otherwise: client-go's
// own 30 s and 15 s are too much of the two minutes that a spot instance has, and of a lease. It
// is for the start of a program.
func NoticeSilence() {
	for key, value := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "10", "HTTP2_PING_TIMEOUT_SECONDS": "5"} {
		if _, set := os.LookupEnv(key); !set {
			os.Setenv(key, value)
		}
	}
}

func ours(config *rest.Config, program, version string) *rest.Config {
	config.UserAgent = fmt.Sprintf("%s/%s (%s/%s)", program, version, runtime.GOOS, runtime.GOARCH)
	config.ContentType = k8sruntime.ContentTypeProtobuf
	config.AcceptContentTypes = k8sruntime.ContentTypeProtobuf + "," + k8sruntime.ContentTypeJSON
	config.QPS = -1
	return config
}

// ErrNoCluster means that there is neither a kubeconfig nor a pod's environment.
var ErrNoCluster = errors.New("no --kubeconfig is given and this is not a pod of a cluster")
