package main

import (
	"fmt"
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws"
	"windlass.dev/windlass/e2e/world"
	"windlass.dev/windlass/pkg/contract"
)

// The groups. Nothing ends an instance of steady, so that its agents live as long
// as the soak.
const (
	web    = "web"    // a hook of ours
	spot   = "spot"   // the same, spot instances
	plain  = "plain"  // no hook
	shared = "shared" // our hook and somebody else's, which times out
	warm   = "warm"   // a warm pool that takes instances back
	steady = "steady"
	// foreign is of another cluster with the same tags, and not there at first.
	foreign = "foreign"
	// bystanders make the cluster large: as many nodes as the flag says stay and have pods, which nobody
	// disturbs. There are no agents on them, because a thousand processes are more than a host bears.
	bystanders = "bystanders"
	// others is scaled by the stand-in for Cluster Autoscaler, where there is one.
	others = "others"
)

// How quick the programs are told to be, where the laws need to know.
const (
	provision  = time.Minute      // until a Node of an instance must be there
	backOff    = 10 * time.Second // of a group after a launch that came to nothing
	drainTime  = 50 * time.Second // while an instance leaves
	permitWait = 20 * time.Second // of a drain without hurry
	unready    = 30 * time.Second // until a node that is not Ready may go
	// heartbeats are the hooks' timeouts; within the bound the next heartbeat must come.
	heartbeats     = 30 * time.Second
	heartbeatBound = heartbeats * 3 / 4
)

// ourHook is the name of the hook that is the scaler's, fixedNodes how many there are of no
// group.
const (
	ourHook    = "windlass"
	fixedNodes = 2
)

// labelGroup is on the nodes of a group and selects them.
const labelGroup = "soak"

// timeScale makes the two minutes of a spot notice thirty seconds.
const timeScale = 4

// scene is the world of the soak. The programs are told to be quick about what
// otherwise takes ten minutes. Beside a Cluster Autoscaler each of the two has groups of its own.
func scene(nodes int, autoscaler, dryRun bool) world.Spec {
	theirs := fakeaws.Hook{Name: "backup", Transition: "terminate", HeartbeatSeconds: 10, Default: "CONTINUE"}
	zones := []string{"eu-west-1a", "eu-west-1b", "eu-west-1c"}
	groups := []fakeaws.Group{
		{Name: web, Type: "m5.large", Min: 1, Max: 5, Zones: zones, Hooks: []fakeaws.Hook{ours()}},
		{Name: spot, Types: []string{"m5.large", "m5a.large"}, Spot: true, Min: 1, Max: 5, Zones: zones, Hooks: []fakeaws.Hook{ours()}},
		{Name: plain, Type: "m5.large", Max: 4},
		{Name: shared, Type: "m5.large", Max: 3, Hooks: []fakeaws.Hook{ours(), theirs}},
		{Name: warm, Type: "m5.large", Max: 3, Hooks: []fakeaws.Hook{ours()}, WarmPool: &fakeaws.WarmPool{MinSize: 1, ReuseOnScaleIn: true}},
		{Name: steady, Type: "m5.large", Min: 3, Max: 3},
	}
	if nodes > 0 {
		groups = append(groups, fakeaws.Group{Name: bystanders, Type: "m5.large", Min: nodes, Max: nodes, Zones: zones})
	}
	spec := world.Spec{
		NoAgents:     []string{bystanders},
		ControlPlane: []string{"--audit"},
		Agent:        []string{"--imds-poll-interval=1s", "--notice-policy=rebalance=cordon", arg("permit-wait", permitWait)},
		Scaler: []string{
			"--disruption-cost=0.0001", "--scale-down-unneeded-time=15s", "--scale-down-delay-after-add=10s", "--max-drain-time=60s", arg("termination-drain-time", drainTime),
			arg("max-node-provision-time", provision), "--max-node-startup-time=60s", arg("scale-down-unready-time", unready),
			arg("initial-node-group-backoff-duration", backOff), "--max-node-group-backoff-duration=20s", "--ok-total-unready-count=10",
		},
	}
	spec.Cloud.TimeScale, spec.Cloud.Timing.Quick = timeScale, true // more happens in the same time; the disturbance stale-reads makes up for the lag
	for i := range groups {
		groups[i].Tags = map[string]string{contract.TagTemplateLabel + labelGroup: groups[i].Name}
	}
	spec.Cloud.Groups = groups
	if autoscaler {
		spec.Scaler = append(spec.Scaler, "--alongside-cluster-autoscaler")
		spec.Autoscaler = append([]string{"--nodes=1:4:" + others}, hastyAutoscaler...)
	}
	if dryRun {
		for i := range groups {
			groups[i].Hooks = nil // nobody would complete ours
		}
		spec.Scaler, spec.Agent = append(spec.Scaler, "--dry-run"), append(spec.Agent, "--dry-run")
		spec.Autoscaler = append([]string{"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/" + world.ClusterName}, hastyAutoscaler...)
	}
	return spec
}

// hastyAutoscaler are the flags of a Cluster Autoscaler that is quick.
var hastyAutoscaler = []string{
	"--scan-interval=2s", "--scale-down-unneeded-time=15s", "--scale-down-delay-after-add=10s",
	"--node-delete-delay-after-taint=1s", "--max-pod-eviction-time=20s", "--initial-node-group-backoff-duration=10s",
}

func arg(name string, d time.Duration) string { return "--" + name + "=" + d.String() }

func ours() fakeaws.Hook {
	return fakeaws.Hook{Name: ourHook, Transition: "terminate", HeartbeatSeconds: int(heartbeats / time.Second), Default: "CONTINUE"}
}

// foreignGroup is a copy of what another cluster calls its own, down to the tags.
func foreignGroup() fakeaws.Group {
	return fakeaws.Group{
		Name: foreign, Type: "m5.large", Min: foreignSize, Max: foreignSize + 2, Hooks: []fakeaws.Hook{ours()},
		Tags: map[string]string{
			"k8s.io/cluster-autoscaler/enabled": "true", "k8s.io/cluster-autoscaler/" + world.ClusterName: "owned",
			contract.TagTemplateLabel + labelGroup: foreign,
		},
	}
}

const foreignSize = 6

// workload is a Deployment of the scene.
type workload struct {
	name, group string
	most        int    // replicas; it begins with half of them
	cpu         string // of each
	budget      bool   // a PodDisruptionBudget of one
}

// othersGroup is one without the tags by which Windlass finds its own.
func othersGroup() fakeaws.Group {
	return fakeaws.Group{
		Name: others, Type: "m5.large", Min: 1, Max: 4,
		Tags: map[string]string{contract.TagTemplateLabel + labelGroup: others},
	}
}

// ofOthers are the pods for it.
var ofOthers = workload{"others-mail", others, 6, "500m", true}

var workloads = []workload{
	{"web-shop", web, 8, "400m", true},
	{"web-help", web, 4, "200m", false},
	{"spot-render", spot, 8, "500m", true},
	{"spot-crawl", spot, 6, "300m", false},
	{"plain-mail", plain, 6, "500m", true},
	{"shared-db", shared, 4, "600m", true},
	{"warm-cache", warm, 6, "500m", true},
	{"steady-core", steady, 5, "400m", true},
	{"steady-logs", steady, 4, "200m", false},
}

// budgeted are the names of those with a budget, which has the same name.
func budgeted(workloads []workload) []string {
	var names []string
	for _, w := range workloads {
		if w.budget {
			names = append(names, w.name)
		}
	}
	return names
}

// manifests is the YAML of the workloads.
func manifests(workloads []workload) string {
	var all strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&all, deploymentFormat, w.name, (w.most+1)/2, w.group, w.cpu)
		if w.budget {
			fmt.Fprintf(&all, budgetFormat, w.name)
		}
	}
	return all.String()
}

const deploymentFormat = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {pod-delete.stage.kwok.x-k8s.io/seconds: "1"}
    spec:
      nodeSelector: {soak: %[3]s}
      terminationGracePeriodSeconds: 5
      containers:
      - {name: app, image: app, resources: {requests: {cpu: %[4]s}}}
`

const budgetFormat = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: %[1]s}}
`

// How long what is to come may take once nothing disturbs: a drain whose budgets
// are open, and everything until the world is at rest.
const (
	drainPatience = 90 * time.Second
	restPatience  = 4 * time.Minute
)
