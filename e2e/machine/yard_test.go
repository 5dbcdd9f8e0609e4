//go:build linux

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// echoes is a Deployment, its budget and its Service.
const echoes = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: 3
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: echo}}}
      containers:
      - name: main
        image: e2e-echo:v1
        args: [--drain=100ms]
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: echo}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: echo}}}
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec: {clusterIP: 10.96.0.80, selector: {app: echo}, ports: [{port: 80, targetPort: 8080}]}
`

// client is a pod on one node that asks the echoes all the time; %s are its name, the
// node and its memory limit. Its heap only grows, so the limit is its end.
const client = `
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: e2e-client:v1
    args: [--report=200ms, --interval=1ms, http://10.96.0.80]
    env: [{name: GOGC, value: "off"}]
    resources: {limits: {memory: %s}}
`

// TestMachines: machines join, run pods that reach Services and the API server, and do
// with them what a kubelet does.
func TestMachines(t *testing.T) {
	if !insideCluster(t) {
		return
	}
	c := newCluster(t)
	all := []Spec{specOf(1), specOf(2), specOf(3), specOf(4)}
	began := time.Now()
	c.powerOn(all...)
	for _, spec := range all {
		c.wait("node/"+spec.Name, "condition=Ready")
	}
	t.Logf("four machines are Ready %s after they were switched on", time.Since(began).Round(time.Millisecond))
	one, two := all[0], all[1]
	c.wantNode(one)

	c.apply(echoes)
	c.apply(fmt.Sprintf(client, "asks", two.Name, "1Gi"))
	c.kubectl("rollout", "status", "deployment/echo", "--timeout=60s")
	c.wait("pod/asks", "condition=Ready")
	c.kubectl("exec", "asks", "--", "/main", "--await", "http://10.96.0.80") // until its node's kube-proxy knows of Services
	c.wantAPIServer("asks")
	c.wantUsage("asks")
	c.wantKilledContainer("asks")

	c.apply(fmt.Sprintf(client, "eats", two.Name, "16Mi"))
	c.wait("pod/eats", "jsonpath={.status.containerStatuses[0].lastState.terminated.reason}=OOMKilled")
	c.kubectl("delete", "pod", "eats")
	c.wantLog("eats", "summary requests=")

	c.kubectl("drain", one.Name, "--ignore-daemonsets", "--timeout=60s")
	c.kubectl("rollout", "status", "deployment/echo", "--timeout=60s")
	if left := c.kubectl("get", "pods", "--field-selector=spec.nodeName="+one.Name, "--output=name"); left != "" {
		t.Errorf("a drain has left %s", left)
	}
	t.Logf("the programs of a machine use %s, those of one without pods %s", c.memory(two), c.memory(one))
}

// wantNode compares a node with its machine.
func (c *cluster) wantNode(spec Spec) {
	c.t.Helper()
	node := "node/" + spec.Name
	for path, want := range map[string]string{
		".spec.providerID":                                        spec.ProviderID,
		".status.nodeInfo.bootID":                                 spec.BootID,
		".status.nodeInfo.machineID":                              machineID(spec.ID),
		".status.addresses[?(@.type=='InternalIP')]." + "address": spec.IP.String(),
		".status.capacity.memory":                                 "4Gi",
		".status.allocatable.memory":                              fmt.Sprintf("%dMi", 4096-100-255-11*spec.MaxPods),
		".status.capacity.cpu":                                    fmt.Sprint(spec.VCPUs),
		".status.allocatable.cpu":                                 fmt.Sprintf("%dm", 1000*spec.VCPUs-60),
		".status.capacity.pods":                                   fmt.Sprint(spec.MaxPods),
		`.metadata.labels.topology\.kubernetes\.io/zone`:          spec.Labels["topology.kubernetes.io/zone"],
	} {
		if got := c.field(node, path); got != want {
			c.t.Errorf("%s%s is %q, want %q", node, path, got, want)
		}
	}
}

// wantAPIServer asks the kubernetes Service from a pod, in a language that it does not
// understand; whether others can say so shows that exec works.
func (c *cluster) wantAPIServer(pod string) {
	c.t.Helper()
	said, err := c.try("", "exec", pod, "--", "/main", "--probe", "http://10.96.0.1:443")
	if err == nil || !strings.Contains(said, "400 Bad Request") {
		c.t.Errorf("a pod that asks the API server for a token: %q, want a bad request (%v)", said, err)
	}
}

// wantUsage: a pod that works uses something.
func (c *cluster) wantUsage(pod string) {
	c.t.Helper()
	uid := c.field("pod/"+pod, ".metadata.uid")
	u, err := c.yard.Usage(uid)
	if err != nil {
		c.t.Fatal(err)
	}
	if u.RSS < 1<<20 || u.WorkingSet < u.RSS/2 || u.MemoryBytes < u.WorkingSet || u.CPU <= 0 {
		c.t.Errorf("a working pod uses %+v", u)
	}
	if _, err := c.yard.Usage("nobody"); err == nil {
		c.t.Error("a pod that is not there uses something")
	}
}

// wantKilledContainer kills a container, which the kubelet starts again, and expects what
// both wrote.
func (c *cluster) wantKilledContainer(pod string) {
	c.t.Helper()
	uid := c.field("pod/"+pod, ".metadata.uid")
	c.awaitLog(pod)
	if err := c.yard.Signal(c.t.Context(), uid, "main", syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	c.wait("pod/"+pod, "jsonpath={.status.containerStatuses[0].restartCount}=1")
	if code := c.field("pod/"+pod, ".status.containerStatuses[0].lastState.terminated.exitCode"); code != "137" {
		c.t.Errorf("a killed container's exit code is %s", code)
	}
	if err := c.yard.Signal(c.t.Context(), uid, "other", syscall.SIGKILL); err == nil {
		c.t.Error("a container that is not there was killed")
	}
	first := strings.SplitAfter(c.kubectl("logs", pod, "--previous"), "\n")[0]
	c.wantLog(pod, first)
	c.awaitLog(pod)
	second := strings.SplitAfter(c.kubectl("logs", pod), "\n")[0]
	c.wantLog(pod, second)
}

// awaitLog returns when a pod's container has written something.
func (c *cluster) awaitLog(pod string) {
	c.t.Helper()
	c.kubectl("logs", pod, "--follow", "--limit-bytes=1")
}

// wantLog expects a text among what a pod's container wrote.
func (c *cluster) wantLog(pod, text string) {
	c.t.Helper()
	log, err := c.yard.PodLog("default", pod, "main")
	if err != nil {
		c.t.Fatal(err)
	}
	if text == "" || !strings.Contains(string(log), text) {
		c.t.Errorf("no %q in the log of %s:\n%s", text, pod, log)
	}
}

// memory is what a machine's own programs use, their page cache included.
func (c *cluster) memory(spec Spec) string {
	c.t.Helper()
	u, err := c.yard.cgroups.usage(filepath.Join(c.yard.cgroups.root(spec.ID), systemGroup))
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%d MiB, of it anonymous %d MiB", u.MemoryBytes>>20, u.RSS>>20)
}

// TestPower: what happens to a machine happens to its node.
func TestPower(t *testing.T) {
	if !insideCluster(t) {
		return
	}
	c := newCluster(t, "--arg=kube-controller-manager=--node-monitor-grace-period=20s")
	one, silent, deaf := specOf(1), specOf(2), specOf(3)
	silent.Fault, deaf.Fault = NeverJoins, NeverReady
	c.powerOn(one, silent, deaf)
	node := "node/" + one.Name
	c.wait(node, "condition=Ready")
	if err := c.yard.PowerOn(t.Context(), one); err == nil {
		t.Error("a machine was switched on twice")
	}
	c.apply(echoes)
	c.kubectl("rollout", "status", "deployment/echo", "--timeout=60s")

	c.wait("node/"+deaf.Name, "jsonpath={.status.conditions[?(@.type=='Ready')].reason}=KubeletNotReady")
	if said, err := c.try("", "get", "node", silent.Name); err == nil {
		t.Errorf("a machine whose kubelet does not start has joined:\n%s", said)
	}
	if err := c.yard.StartKubelet(silent.ID); err != nil {
		t.Fatal(err)
	}
	c.wait("node/"+silent.Name, "condition=Ready")

	if err := c.yard.StopKubelet(silent.ID); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := c.yard.PowerOff(one.ID); err != nil {
		t.Fatal(err)
	}
	t.Logf("switching off took %s", time.Since(began).Round(time.Millisecond))
	if err := c.yard.StopKubelet(one.ID); err == nil {
		t.Error("a kubelet was stopped on a machine that is off")
	}
	c.wait(node, "condition=Ready=Unknown")
	c.wait("node/"+silent.Name, "condition=Ready=Unknown")
	if err := c.yard.StartKubelet(silent.ID); err != nil {
		t.Fatal(err)
	}
	c.wait("node/"+silent.Name, "condition=Ready")

	pod, _, _ := strings.Cut(c.kubectl("get", "pods", "--field-selector=spec.nodeName="+one.Name, "--output=name"), "\n")
	if restarts := c.field(pod, ".status.containerStatuses[0].restartCount"); restarts != "0" {
		t.Errorf("%s was restarted %s times before its machine was", pod, restarts)
	}
	one.BootID = "00000000-0000-4000-8000-00000000000b"
	c.powerOn(one)
	c.wait(node, "jsonpath={.status.nodeInfo.bootID}="+one.BootID)
	c.wait(node, "condition=Ready")
	c.wait(pod, "jsonpath={.status.containerStatuses[0].restartCount}=1")
	c.kubectl("rollout", "status", "deployment/echo", "--timeout=60s")

	c.wantOffWhileBooting(specOf(4))
	c.wantTooLarge(specOf(5))

	if err := c.yard.Discard(one.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.yard.Dir, one.ID, diskFolder)); !os.IsNotExist(err) {
		t.Errorf("a machine was discarded, and its disk is there: %v", err)
	}
	if err := c.yard.PowerOff(one.ID); err == nil {
		t.Error("a machine that was discarded was switched off")
	}
}

// wantTooLarge: a machine that says it has processors that nobody has is not made.
func (c *cluster) wantTooLarge(spec Spec) {
	c.t.Helper()
	spec.VCPUs = 1 << 20
	if err := c.yard.PowerOn(c.t.Context(), spec); err == nil || !strings.Contains(err.Error(), "smaller instance type") {
		c.t.Errorf("switching on a machine of %d vCPUs: %v", spec.VCPUs, err)
	}
	if err := c.yard.Discard(spec.ID); err != nil {
		c.t.Error(err)
	}
}

// wantOffWhileBooting switches a machine off as soon as its init runs. Its boot fails, and
// it can be switched on again.
func (c *cluster) wantOffWhileBooting(spec Spec) {
	c.t.Helper()
	m, err := c.yard.add(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	booted := make(chan error)
	go func() { booted <- c.yard.PowerOn(c.t.Context(), spec) }()
	for runs := false; !runs; {
		m.mu.Lock()
		runs = m.now != nil
		m.mu.Unlock()
	}
	if err := c.yard.PowerOff(spec.ID); err != nil {
		c.t.Fatal(err)
	}
	c.t.Log("a machine that was switched off while it booted:", <-booted)
	if err := c.yard.StopKubelet(spec.ID); err == nil {
		c.t.Error("a machine that was switched off while it booted is on")
	}
	c.powerOn(spec)
	c.wait("node/"+spec.Name, "condition=Ready")
}
