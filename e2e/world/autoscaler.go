package world

import (
	_ "embed"
	"fmt"
	"strings"
)

// autoscalerManifest is the Deployment of the stand-in for Cluster Autoscaler with its rights, as the
// examples of Cluster Autoscaler have them. A comment stands in the place of more flags.
// https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/examples/cluster-autoscaler-autodiscover.yaml
//
//go:embed autoscaler.yaml
var autoscalerManifest string

// autoscaler is that manifest with the flags of this world.
func (s Spec) autoscaler() string {
	var flags strings.Builder
	for _, flag := range s.Autoscaler {
		fmt.Fprintf(&flags, "\n            - %q", flag)
	}
	return strings.Replace(autoscalerManifest, "\n            # flags", flags.String(), 1)
}
