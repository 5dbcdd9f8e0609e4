// Package upstream asks kube-scheduler's own filter plugins, out of
// k8s.io/kubernetes: the rules themselves and not a copy of them. Package fit
// asks it what is asked seldom (a class of pods against a class of nodes; volumes,
// claims and devices), and its tests hold against it what fit counts by itself.
package upstream

import (
	_ "k8s.io/dynamic-resource-allocation/structured"
	_ "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)
