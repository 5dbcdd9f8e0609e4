package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// pluginDir is where Debian puts the plugins that connect pods.
const pluginDir = "/usr/lib/cni"

// Missing is what this host lacks to make real machines, one line for each lack, that
// says what to do about it. Nothing is changed on the host.
func Missing() []string {
	if os.Geteuid() != 0 {
		return []string{"root: namespaces, devices and mounts are made"}
	}
	missing := slices.Concat(missingPrograms(), missingControllers())
	if err := tryNamespaces(); err != nil {
		// What follows is tried in such namespaces.
		return append(missing, fmt.Sprintf("the rights CAP_SYS_ADMIN and CAP_NET_ADMIN: %v", err))
	}
	return slices.Concat(missing, missingTables(), missingBridges(), missingOverlay())
}

// programs are what is started, by the package that has it. kubelet and kube-proxy,
// which are built, start iptables and mount.
var programs = []struct {
	pkg   string
	names []string
}{
	{"containerd", []string{"containerd", "containerd-shim-runc-v2", "ctr"}},
	{"runc", []string{"runc"}},
	{"containernetworking-plugins", []string{pluginDir + "/bridge", pluginDir + "/host-local", pluginDir + "/loopback", pluginDir + "/portmap"}},
	{"iproute2", []string{"ip"}},
	{"iptables", []string{"iptables", "iptables-save", "iptables-restore"}},
	{"mount", []string{"mount"}},
	{"buildah", []string{"buildah"}},
}

func missingPrograms() []string {
	var missing []string
	for _, p := range programs {
		for _, name := range p.names {
			if _, err := exec.LookPath(name); err != nil {
				missing = append(missing, fmt.Sprintf("%s: install Debian's package %s", name, p.pkg))
			}
		}
	}
	return missing
}

// controllers are the cgroup controllers without which the kubelet does not start.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "pids"}

// missingControllers looks for version 1, one hierarchy for each controller or several
// mounted together, which is what machines are made on. Version 2 is not accepted: it
// has never been tried.
func missingControllers() []string {
	var missing []string
	for _, c := range controllers {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", c, "cgroup.procs")); err != nil {
			missing = append(missing, fmt.Sprintf("cgroup controller %s: mount its hierarchy of version 1 at /sys/fs/cgroup/%s", c, c))
		}
	}
	return missing
}

// apart makes a command run in a network and a mount namespace of its own.
func apart(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func tryNamespaces() error { return runCommand(apart("true"), "") }

// sampleRules are of the kinds that the world and kube-proxy make: each match and
// target of theirs is a piece of the kernel that may be missing.
const sampleRules = `*nat
:SAMPLE - [0:0]
-A PREROUTING -d 169.254.169.254/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 127.0.0.1:80
-A PREROUTING -m addrtype --dst-type LOCAL -m comment --comment sample -j SAMPLE
-A SAMPLE -m statistic --mode random --probability 0.5 -j MARK --or-mark 0x4000
-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE
COMMIT
*filter
-A FORWARD -m conntrack --ctstate INVALID -j DROP
COMMIT
`

func missingTables() []string {
	if _, err := exec.LookPath("iptables-restore"); err != nil {
		return nil // told already
	}
	if err := runCommand(apart("iptables-restore"), sampleRules); err != nil {
		return []string{fmt.Sprintf("iptables in a network namespace, with NAT and the matches of kube-proxy: %v", err)}
	}
	return nil
}

func missingBridges() []string {
	if _, err := os.Stat("/proc/sys/net/bridge"); err != nil {
		return []string{"the kernel module br_netfilter: load it with modprobe; without it no pod reaches another on its own machine through a Service"}
	}
	return nil
}

func missingOverlay() []string {
	if _, err := exec.LookPath("mount"); err != nil {
		return nil // told already
	}
	if err := tryOverlay(); err != nil {
		return []string{fmt.Sprintf("overlay file systems in %s, which containers are made of (TMPDIR names another folder): %v", os.TempDir(), err)}
	}
	return nil
}

func tryOverlay() error {
	dir, err := os.MkdirTemp("", "windlass-overlay-")
	if err != nil {
		return err
	}
	options := make([]string, 0, 3)
	for _, part := range []string{"lowerdir", "upperdir", "workdir"} {
		if err := os.Mkdir(filepath.Join(dir, part), 0o755); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		options = append(options, part+"="+filepath.Join(dir, part))
	}
	err = runCommand(apart("mount", "-t", "overlay", "-o", strings.Join(options, ","), "overlay", dir), "")
	return errors.Join(err, os.RemoveAll(dir))
}
