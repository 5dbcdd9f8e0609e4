package machine

// pauseImage holds the namespaces of a pod.
const pauseImage = "docker.io/library/e2e-pause:v1"

// alsoCalled are further names of images. What people apply as it is asks for them by
// these, and there is no registry.
var alsoCalled = map[string]string{
	"registry.k8s.io/pause:3.10.2": pauseImage, // manifests/examples/balloons
}

const containerdSocket = "/run/containerd/containerd.sock"

// containerdConfig is containerd's for Kubernetes, where it differs from its own defaults.
// https://github.com/containerd/containerd/blob/v1.6.20/docs/cri/config.md
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  # Folders below /opt, which are the host's, for programs that nobody installs.
  "io.containerd.internal.v1.opt",
  # File systems that the snapshots of no machine are on.
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "` + containerdSocket + `"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pauseImage + `"
# Without CAP_SYS_RESOURCE nobody can be made less likely to be killed than we are.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni" # Debian's place
conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
`
