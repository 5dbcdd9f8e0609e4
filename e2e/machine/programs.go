package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of a machine's programs.
const (
	containerdName = "containerd"
	kubeletName    = "kubelet"
	kubeProxyName  = "kube-proxy"
)

// binds are where a machine finds the folders of its disk.
var binds = []Bind{
	{"kubelet", "/var/lib/kubelet"},
	{"containerd", "/var/lib/containerd"},
	{"log", "/var/log"},
	{"cni-state", "/var/lib/cni"},
	{"cni-config", "/etc/cni/net.d"},
	{"kubernetes", "/etc/kubernetes"},
}

// ours is where a machine finds what is no part of its disk: programs, images, and the
// folder for the logs of its programs.
const ours = "/run/machine"

// boots are files that a machine finds in place of its kernel's, with what they say.
func (m *machine) boots(spec Spec) (map[string]string, error) {
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, err
	}
	online, err := os.ReadFile(processorsFile)
	if err != nil {
		return nil, err
	}
	processors, err := firstProcessors(string(online), spec.VCPUs)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		processorsFile:                    processors,
		"/proc/sys/kernel/random/boot_id": spec.BootID + "\n",
		"/proc/meminfo":                   memoryInfo(string(memory), spec.MemoryMiB),
		"/etc/machine-id":                 machineID(spec.ID) + "\n",
		// The kubelet sets these, which have no namespaces: they are the host's own.
		"/proc/sys/vm/overcommit_memory":      "1\n",
		"/proc/sys/vm/panic_on_oom":           "0\n",
		"/proc/sys/kernel/panic":              "10\n",
		"/proc/sys/kernel/panic_on_oops":      "1\n",
		"/proc/sys/kernel/keys/root_maxkeys":  "1000000\n",
		"/proc/sys/kernel/keys/root_maxbytes": "25000000\n",
	}, nil
}

// machineID is the one that EC2 gives: ec2 and the digits of the instance's id.
func machineID(id string) string { return "ec2" + strings.TrimPrefix(id, "i-") }

// memoryInfo is the host's /proc/meminfo with the machine's own size, by which the
// kubelet counts what pods may have. Nobody has swap.
func memoryInfo(host string, mib int) string {
	var lines []string
	for line := range strings.Lines(host) {
		switch name, _, _ := strings.Cut(line, ":"); name {
		case "MemTotal", "MemFree", "MemAvailable":
			line = fmt.Sprintf("%s: %d kB\n", name, mib<<10)
		case "SwapTotal", "SwapFree":
			line = name + ": 0 kB\n"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// order makes the machine's disk, if it has none, and says what its init has to do.
func (m *machine) order(spec Spec) (Order, error) {
	if err := m.makeDisk(); err != nil {
		return Order{}, fmt.Errorf("making its disk: %w", err)
	}
	o, err := m.system()
	if err != nil {
		return Order{}, err
	}
	files, err := m.boots(spec)
	if err != nil {
		return Order{}, err
	}
	for _, to := range slices.Sorted(maps.Keys(files)) {
		from := m.path(diskFolder, "boot", filepath.Base(to))
		if err := write(from, []byte(files[to])); err != nil {
			return Order{}, err
		}
		o.Binds = append(o.Binds, Bind{from, to})
	}
	if err := m.configure(spec); err != nil {
		return Order{}, err
	}
	if o.Cgroups, err = m.yard.cgroups.system(m.id); err != nil {
		return Order{}, err
	}
	kubelet := m.program(kubeletName, o.lend(m.yard.Kubelet, kubeletName), kubeletArgs(spec)...)
	kubelet.Held = spec.Fault == NeverJoins
	kubeProxy := o.lend(m.yard.KubeProxy, kubeProxyName)
	o.Hostname, o.IP = spec.Name, spec.IP
	o.Programs = []Program{kubelet, m.program(kubeProxyName, kubeProxy, "--config=/etc/kubernetes/kube-proxy.json")}
	return o, nil
}

// system is an order for a machine with a containerd and no network.
func (m *machine) system() (Order, error) {
	o := Order{Hostname: m.id, Run: []string{"/run"}, Socket: containerdSocket}
	for _, b := range binds {
		b.From = m.path(diskFolder, b.From)
		if err := os.MkdirAll(b.From, 0o755); err != nil {
			return Order{}, err
		}
		o.Binds = append(o.Binds, b)
	}
	if err := os.MkdirAll(m.path(logsFolder), 0o755); err != nil {
		return Order{}, err
	}
	if err := write(m.path(diskFolder, "kubernetes/containerd.toml"), []byte(containerdConfig)); err != nil {
		return Order{}, err
	}
	o.lend(m.path(logsFolder), logsFolder)
	o.Containerd = m.program(containerdName, "containerd", "--config", "/etc/kubernetes/containerd.toml")
	return o, nil
}

func (m *machine) program(name, path string, args ...string) Program {
	return Program{Name: name, Path: path, Args: args, Log: filepath.Join(ours, logsFolder, name+".log")}
}

// lend gives the machine a file or folder of the host's, wherever that is, and returns
// where the machine finds it.
func (o *Order) lend(from, name string) (to string) {
	to = filepath.Join(ours, name)
	o.Binds = append(o.Binds, Bind{from, to})
	return to
}

// configure writes what the programs read: credentials and configuration in
// /etc/kubernetes, and the network of pods.
func (m *machine) configure(spec Spec) error {
	node, err1 := m.kubeconfig("system:node:"+spec.Name, "system:nodes")
	proxy, err2 := m.kubeconfig("system:kube-proxy")
	serving, err3 := m.yard.authority.server(spec.Name, spec.IP)
	kubelet, err4 := json.Marshal(kubeletConfiguration(spec, m.yard.cgroups.root(m.id)))
	kubeProxy, err5 := json.Marshal(kubeProxyConfiguration(spec))
	network, err6 := json.Marshal(podNetwork(m.pods))
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"kubernetes/ca.crt":                m.yard.authority.pem,
		"kubernetes/kubelet.kubeconfig":    node,
		"kubernetes/kubelet.crt":           serving.certificate,
		"kubernetes/kubelet.key":           serving.key,
		"kubernetes/kubelet.json":          kubelet,
		"kubernetes/kube-proxy.kubeconfig": proxy,
		"kubernetes/kube-proxy.json":       kubeProxy,
		"kubernetes/resolv.conf":           []byte("# There is no name service here.\n"),
	} {
		if err := write(m.path(diskFolder, name), content); err != nil {
			return err
		}
	}
	file := m.path(diskFolder, "cni-config", "10-pods.conflist")
	if spec.Fault == NeverReady {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return write(file, network)
}

func (m *machine) kubeconfig(user string, groups ...string) ([]byte, error) {
	credentials, err := m.yard.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return m.yard.authority.kubeconfig(m.yard.Server, credentials)
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// object is a piece of a configuration.
type object = map[string]any

// reserved is what an EKS image keeps from pods: 255 MiB and 11 MiB for each pod, and a
// falling share of the processors. The 100 MiB below which it evicts are reserved here
// instead, because the kubelet would look at the host's memory, which is not the machine's.
// https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
func reserved(cores, pods int) (kube, system map[string]string) {
	// Of the first core 6 %, of the second 1 %, of the next two half a percent, of each
	// further one a quarter of a percent, in hundredths of a percent of a core.
	share := 600 + 100*min(1, cores-1) + 50*min(2, max(0, cores-2)) + 25*max(0, cores-4)
	return map[string]string{"cpu": fmt.Sprintf("%dm", share/10), "memory": fmt.Sprintf("%dMi", 255+11*pods)},
		map[string]string{"memory": "100Mi"}
}
