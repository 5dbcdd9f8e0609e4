package machine

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// kubeletArgs are what the kubelet does not take from a file.
func kubeletArgs(spec Spec) []string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		labels = append(labels, key+"="+spec.Labels[key])
	}
	return []string{
		"--config=/etc/kubernetes/kubelet.json",
		"--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
		"--hostname-override=" + spec.Name,
		"--node-ip=" + spec.IP.String(),
		"--node-labels=" + strings.Join(labels, ","),
		"--register-with-taints=" + strings.Join(spec.Taints, ","),
		"--v=2",
	}
}

// kubeletConfiguration is a KubeletConfiguration: the defaults, and those of an EKS image,
// but for what is said beside each line.
// https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/
func kubeletConfiguration(spec Spec, cgroupRoot string) object {
	kubeReserved, systemReserved := reserved(spec.VCPUs, spec.MaxPods)
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"providerID": spec.ProviderID,
		"maxPods":    spec.MaxPods,
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": "/etc/kubernetes/ca.crt"},
		},
		"authorization":            object{"mode": "Webhook"},
		"tlsCertFile":              "/etc/kubernetes/kubelet.crt",
		"tlsPrivateKeyFile":        "/etc/kubernetes/kubelet.key",
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"clusterDomain":            "cluster.local",
		"clusterDNS":               []string{"10.96.0.10"}, // nobody answers there; without it every pod gets a warning
		"resolvConf":               "/etc/kubernetes/resolv.conf",
		"serializeImagePulls":      false,
		"kubeReserved":             kubeReserved,
		"systemReserved":           systemReserved,

		// All machines share the host's cgroups, which are of version 1 without systemd.
		"cgroupDriver": "cgroupfs",
		"cgroupRoot":   cgroupRoot,
		"failCgroupV1": false,
		"failSwapOn":   false,

		// What it would measure is the host's: its memory and its disk.
		"evictionHard":                object{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,

		// Its own process may not be made less likely to be killed, see containerdConfig.
		"oomScoreAdj": 0,
		// One log file for each run of a container, so that nothing is compressed away.
		"containerLogMaxSize": "1Gi",
		// The default is a folder of the host's.
		"volumePluginDir": "/var/lib/kubelet/volume-plugins",
	}
}

// kubeProxyConfiguration is a KubeProxyConfiguration: Services by iptables, as EKS has it.
// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/
func kubeProxyConfiguration(spec Spec) object {
	return object{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"clientConnection": object{"kubeconfig": "/etc/kubernetes/kube-proxy.kubeconfig"},
		"hostnameOverride": spec.Name,
		"mode":             "iptables",
		"clusterCIDR":      allPods.String(),
		"oomScoreAdj":      0,
		// Limits of connections have no namespaces: they are the host's own.
		"conntrack": object{"maxPerCore": 0, "min": 0},
	}
}

// podNetwork is a CNI configuration list: a bridge for the machine's pods, whose addresses
// are routed as they are, as the addresses of a VPC.
// https://www.cni.dev/plugins/current/main/bridge/
func podNetwork(pods netip.Prefix) object {
	return object{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []object{{
			"type":        "bridge",
			"bridge":      "cni0",
			"isGateway":   true,
			"hairpinMode": true, // a pod reaches itself through a Service
			"ipam": object{
				"type":   "host-local",
				"ranges": [][]object{{{"subnet": pods.String()}}},
				"routes": []object{{"dst": "0.0.0.0/0"}},
			},
		}, {
			"type":         "portmap",
			"capabilities": object{"portMappings": true},
		}},
	}
}
