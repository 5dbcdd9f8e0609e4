package kube

import (
	"errors"
	"fmt"
	"runtime"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says how to reach the API server: by the kubeconfig file of that
// name, or, where the name is empty, as a pod does, with the token of its
// service account. Program and version make the user agent, by which audit
// logs and flow schemas know us.
//
// Typed clients made from it speak protobuf, which costs a third of JSON, and
// limit themselves in nothing: API priority and fairness shares out the
// server by what it can bear, and a client-side limit would only add delay in
// a burst, which is when delay hurts.
func Config(kubeconfig, program, version string) (*rest.Config, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = fmt.Sprintf("%s/%s (%s/%s)", program, version, runtime.GOOS, runtime.GOARCH)
	config.ContentType = k8sruntime.ContentTypeProtobuf
	config.AcceptContentTypes = k8sruntime.ContentTypeProtobuf + "," + k8sruntime.ContentTypeJSON
	config.QPS = -1
	return config, nil
}

// ErrNoCluster means that there is neither a kubeconfig nor a pod's environment.
var ErrNoCluster = errors.New("no --kubeconfig is given and this is not a pod of a cluster")

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, ErrNoCluster
		}
		if err != nil {
			return nil, fmt.Errorf("reading the service account of this pod: %w", err)
		}
		return config, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
