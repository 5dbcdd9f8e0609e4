package main

import (
	"slices"
	"testing"
)

// TestAddress: the API server listens where it is told, which must be where others can
// reach it, because the kubernetes Service leads there.
func TestAddress(t *testing.T) {
	for _, wrong := range []string{"", "localhost", "127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "fd00::1", "172.31.255.1:6443"} {
		if _, err := parseOptions([]string{"--dir=x", "--address=" + wrong}); err == nil {
			t.Errorf("--address=%s was taken", wrong)
		}
	}
	for _, c := range []struct {
		flags      []string
		host, ends string
	}{
		{nil, "127.0.0.1", "none"},
		{[]string{"--address=172.31.255.1"}, "172.31.255.1", "lease"},
	} {
		o, err := parseOptions(append([]string{"--dir=x"}, c.flags...))
		if err != nil {
			t.Fatal(err)
		}
		args := argsOf(t, o, apiServer)
		for _, want := range []string{"--bind-address=" + c.host, "--advertise-address=" + c.host, "--endpoint-reconciler-type=" + c.ends} {
			if !slices.Contains(args, want) {
				t.Errorf("%v: the API server is not started with %s", c.flags, want)
			}
		}
	}
}

// TestNodeMonitor: nodes that are not simulated are watched as in production.
func TestNodeMonitor(t *testing.T) {
	const patient = "--node-monitor-grace-period=24h"
	for _, flags := range [][]string{{"--dir=x"}, {"--dir=x", "--without=kwok"}} {
		o, err := parseOptions(flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(argsOf(t, o, "kube-controller-manager"), patient); got != o.simulated() {
			t.Errorf("%v: %s is %v", flags, patient, got)
		}
	}
}

func argsOf(t *testing.T, o options, name string) []string {
	t.Helper()
	for _, c := range components(o.dir, ports{}, o) {
		if c.name == name {
			return c.args
		}
	}
	t.Fatalf("there is no component %s", name)
	return nil
}
