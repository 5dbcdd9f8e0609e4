package userdata

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// nodeConfig is what matters here of a NodeConfig of nodeadm.
// https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
type nodeConfig struct {
	Kind string `json:"kind"`
	Spec struct {
		Kubelet struct {
			Config            kubeletConfig `json:"config"`
			Flags             []string      `json:"flags"`
			MaxPodsExpression string        `json:"maxPodsExpression"`
		} `json:"kubelet"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
	} `json:"spec"`
}

// kubeletConfig is what matters here of a KubeletConfiguration.
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
type kubeletConfig struct {
	MaxPods            int64             `json:"maxPods"`
	PodsPerCore        int64             `json:"podsPerCore"`
	KubeReserved       map[string]string `json:"kubeReserved"`
	SystemReserved     map[string]string `json:"systemReserved"`
	EvictionHard       map[string]string `json:"evictionHard"`
	RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
	ReservedSystemCPUs string            `json:"reservedSystemCPUs"`
}

const nodeConfigAPI = "node.eks.aws/"

// isNodeConfig: a NodeConfig may be all of the user data.
func isNodeConfig(text string) bool { return strings.Contains(text, nodeConfigAPI) }

// nodeConfig reads one or several documents.
func (s *Settings) nodeConfig(text string) {
	s.Family = AmazonLinux
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		var n nodeConfig
		if err := yaml.Unmarshal([]byte(document), &n); err != nil {
			s.fault("the NodeConfig is not read: %v; what EKS images do by themselves is assumed", err)
			continue
		}
		s.node(n)
	}
}

// node takes a NodeConfig over. Its kubelet configuration is laid over the image's
// own key by key, unlike a flag, which replaces.
func (s *Settings) node(n nodeConfig) {
	kubelet := n.Spec.Kubelet
	if kubelet.MaxPodsExpression != "" {
		s.Density.Expression = kubelet.MaxPodsExpression
	}
	c := kubelet.Config
	if c.MaxPods > 0 {
		s.Density.Most = c.MaxPods
	}
	if c.PodsPerCore > 0 {
		s.Density.PerCore = c.PodsPerCore
	}
	s.amounts("kubeReserved", &s.KubeReserved, c.KubeReserved, false)
	s.amounts("systemReserved", &s.SystemReserved, c.SystemReserved, false)
	s.amounts("evictionHard", &s.EvictionHard, c.EvictionHard, true)
	for _, t := range c.RegisterWithTaints {
		s.taint(t)
	}
	if c.ReservedSystemCPUs != "" {
		s.fault("reservedSystemCPUs is not considered")
	}
	words := make([]word, 0, len(kubelet.Flags))
	for _, flag := range kubelet.Flags {
		words = append(words, word{text: flag})
	}
	s.kubeletFlags(words)
	s.localDisks(n.Spec.Instance.LocalStorage.Strategy)
}
